#!/usr/bin/env python3
"""Checks the documents against the tree: check_docs.py SOURCE_DIR. Prints every difference, exits 1 when there is one.

The C++ example of README.md is examples/quickstart.cpp to the letter; every relative link leads to a file; every error
number named in a document is in the catalogue; every path of the tree that a document names exists; every key and every
file of a configuration is in docs/configuration.md, every header of the device layer in docs/device.md. docs/published.md
answers each of the 84 items of the published reports; what it says is not run yet has no result file. Every command has a
subcommand, options, configurations, files of the tree, tests and targets of make that are there.
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
    "resample": "resample",
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

COMMAND = re.compile(
    r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:build-executor/bin/)?(tmaops|make|python3|ninja|ctest|scripts/\S+)\s([^#|&]*)"
)
TREE = r"(?<![\w/.-])(?:configs|results|scripts|tests|src|examples)/[\w./*-]+"


def sources(*folders):
    files = (path for folder in folders for path in sorted((root / folder).rglob("*")))
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path.suffix in (".cpp", ".hpp", ".py"))


program = sources("tool", "measure", "datasets", "python/tmaops")
in_tests = sources("tests")
targets = set(re.findall(r"^([\w-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def problems_of(command):
    """What a command of a document names that is not there."""
    word, rest = COMMAND.match(command).groups()
    for path in re.findall(TREE, command):
        if not list(root.glob(path)):
            yield f"{path} is not there"
    names = rest.split()
    if word == "make" and names and names[0] not in targets:
        yield f"make has no target {names[0]}"
    for name in re.findall(r"gtest_filter='\*?(\w+)\*?'|ctest .*-R (\w+)$", command):
        if not re.search(name[0] or name[1], in_tests):
            yield f"no test is named {name[0] or name[1]}"
    if word == "tmaops" and names and re.fullmatch(r"[a-z][a-z-]+", names[0]):
        if f'"{names[0]}"' not in program:
            yield f"tmaops has no subcommand {names[0]}"
        for option in re.findall(r"(?<!\S)--[a-z][\w-]+", rest):
            if not re.search(rf'[",]{option}["{{, =]', program):
                yield f"tmaops has no option {option}"
        if names[0] in ("bench", "verify") and len(names) > 1 and re.fullmatch(r"[a-z]\w*", names[1]):
            if not (root / f"configs/{names[1]}.yaml").exists():
                yield f"there is no configs/{names[1]}.yaml"


commands = 0
for document in documents:
    for language, block in re.findall(
        r"^```(\w*)\n(.*?)^```", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        if language not in ("", "sh", "bash"):
            continue
        for line in filter(COMMAND.match, block.replace("\\\n", " ").splitlines()):
            commands += 1
            found += [f"{document.relative_to(root)}: {problem}: {line}" for problem in problems_of(line)]
if commands < 40:
    found.append(f"only {commands} commands were found in the documents")
wrong = (
    "make nothing",
    "tmaops no-such",
    "tmaops bench --no-such",
    "tmaops verify no_such",
    "python3 scripts/no_such.py .",
)
for command in wrong:
    if not list(problems_of(command)):
        found.append(f"check_docs.py: finds nothing in `{command}`")

print("\n".join(found))
sys.exit(1 if found else 0)
