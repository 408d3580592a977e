#!/usr/bin/env python3
"""Checks the documents against the tree: check_docs.py SOURCE_DIR. Prints every difference, exits 1 when there is one.

The C++ example of README.md is examples/quickstart.cpp to the letter; every relative link leads to a file; every error
number named in a document is in the catalogue; every path of the tree that a document names exists; every key and every
file of a configuration is in docs/configuration.md, every header of the device layer in docs/device.md. docs/published.md
answers each of the 84 items of the published reports; what it says is not run yet has no result file.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
found = []
documents = [
    root / "README.md",
    root / "CONTRIBUTING.md",
    root / "CHANGELOG.md",
    *sorted((root / "docs").rglob("*.md")),
]

for document, language, file in (
    ("README.md", "cpp", "examples/quickstart.cpp"),
    ("docs/c.md", "c", "examples/resample.c"),
):
    example = (root / file).read_text(encoding="utf-8")
    if f"```{language}\n{example}```" not in (root / document).read_text(encoding="utf-8"):
        found.append(f"{document}: the example differs from {file}")

catalogue = set(
    re.findall(r"TMAOPS_ERROR\((E\d{3}),", (root / "include/tmaops/errors.def").read_text(encoding="utf-8"))
)
for document in documents:
    text = document.read_text(encoding="utf-8")
    name = document.relative_to(root)
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in link and not (document.parent / link).exists():
            found.append(f"{name}: link to {link}, which is not there")
    for number in set(re.findall(r"\bE[01]\d\d\b", text)) - catalogue:
        found.append(f"{name}: {number} is not in the error catalogue")

    for path in re.findall(
        r"`((?:src|include|python|tool|study|measure|datasets|tests|scripts|configs|cmake|examples)/[\w./-]+)`", text
    ):
        if "my_variant" not in path and not (root / path).exists():
            found.append(f"{name}: {path} is not there")

configuration = (root / "docs/configuration.md").read_text(encoding="utf-8")
sections = {part.split("\n")[0]: part for part in configuration.split("\n## ")}
every_problem = set(re.findall(r"`(\w+)`", sections["Every problem"]))


def check_keys(source, pattern, section):
    keys = re.search(pattern, (root / source).read_text(encoding="utf-8"), re.DOTALL).group(1)
    for key in (
        set(re.findall(r'"(\w+)"', keys)) - every_problem - set(re.findall(r"`(\w+)`", sections.get(section, "")))
    ):
        found.append(f"docs/configuration.md: {section} does not name the key {key}")


check_keys("measure/bench/run/options.cpp", r"kOptionKeys\[\] = \{(.*?)\}", "The run")
for operator, source in {
    "gemm": "gemm",
    "ms_deform_attn": "ms_deform_attn_cases",
    "resample": "resample_case",
    "tile_load": "tile_load",
}.items():
    check_keys(f"measure/bench/workloads/{source}.cpp", r"problem\.only\(\{(.*?)\}\)", operator)
for file in (root / "configs").iterdir():
    if f"`{file.name}`" not in configuration:
        found.append(f"docs/configuration.md: does not name configs/{file.name}")
device = (root / "docs/device.md").read_text(encoding="utf-8")
for file in (root / "src/device").glob("*.cuh"):
    if f"`{file.name}`" not in device:
        found.append(f"docs/device.md: does not name {file.name}")

ITEMS = 84
published = (root / "docs/published.md").read_text(encoding="utf-8")
items = [
    [cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\| \d+ \|.*$", published, re.MULTILINE)
]
if [item[0] for item in items] != [str(number) for number in range(1, ITEMS + 1)]:
    found.append(f"docs/published.md: the items are not 1 to {ITEMS}, each once and in order")
for item in items:
    if len(item) != 4 or not all(item) or re.search(r"missing|not measured", " ".join(item)):
        found.append(f"docs/published.md: item {item[0]} has no answer: {' | '.join(item[1:])}")
for sentence in re.split(r"\.\s|\|", published):
    for file in re.findall(r"`(results/[\w/]+\.json)`", sentence):
        if (root / file).exists() == ("not run yet" in sentence):
            found.append(
                f"docs/published.md: {file} {'is there' if (root / file).exists() else 'is not there'}: {sentence.strip()}"
            )

print("\n".join(found))
sys.exit(1 if found else 0)
