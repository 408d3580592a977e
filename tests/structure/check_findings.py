#!/usr/bin/env python3
"""Checks the lessons in docs/findings and every citation of them.

  check_findings.py SOURCE_DIR        check the tree; prints every violation, exits 1 when there is one
  check_findings.py --self-test       show that each rule catches its violation

A page has less than 10,000 bytes. Its lessons are headings "### G7: ..." with one letter per page, in ascending order;
docs/findings/README.md, which has no lessons, lists each page and its letter. Whoever cites a page or a lesson cites one
that is there: "docs/findings/gemm.md, G7" in code, "[G7](findings/gemm.md)" in documents, "G7" in the pages themselves,
"G7 to G9" for several. A result file that a page names, `h200/gemm.json`, is in results/.
"""

import pathlib
import re
import subprocess
import sys

LARGEST = 10_000  # bytes of a page
LESSON = re.compile(r"^### ([A-Z])(\d+): \S", re.MULTILINE)
HEADING = re.compile(r"^### (.*)$", re.MULTILINE)
NUMBER = r"[A-Z]\d{1,2}"
NUMBERS = re.compile(rf"\b{NUMBER}\b")
LIST = rf"{NUMBER}\b(?:(?:, | and | to ){NUMBER}\b)*"
# A citation in plain text, also over the end of a comment line; and a link in a document.
PLAIN = re.compile(rf"docs/findings/(\w+)\.md(?:,\s+(?://+ |# |\* )?({LIST}))?")
LINK = re.compile(r"\[([^\]]*)\]\((?:[\w./]*/)?findings/(\w+)\.md\)")
LISTED = re.compile(r"^\| \[(\w+)\.md\]\(\1\.md\) \| ([A-Z]) \|", re.MULTILINE)
RESULT = re.compile(r"`((?:h100|h200|cpu)/\w+\.json)`")
SOURCES = (
    "src",
    "include",
    "docs",
    "tests",
    "configs",
    "scripts",
    "cmake",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)
EXAMPLES = ("tests/structure/check_findings.py",)  # cites lessons that are not there


def check_page(name, text, letters):
    """Violations of one page, and the lessons it has."""
    found = []
    if len(text.encode()) >= LARGEST:
        found.append(f"docs/findings/{name}.md: {len(text.encode())} bytes, not less than {LARGEST}")
    lessons = [(letter, int(number)) for letter, number in LESSON.findall(text)]
    for heading in HEADING.findall(text):
        if name != "README" and not LESSON.match(f"### {heading}"):
            found.append(f"docs/findings/{name}.md: '### {heading}' is no lesson; write '### X1: ...'")
    if name != "README" and name not in letters:
        found.append(f"docs/findings/README.md: does not list {name}.md and the letter of its lessons")
    last = 0
    for letter, number in lessons:
        if letter != letters.get(name, letter):
            found.append(f"docs/findings/{name}.md: {letter}{number}, but its letter is {letters[name]}")
        if number <= last:
            found.append(f"docs/findings/{name}.md: {letter}{number} comes after {letter}{last}")
        last = number
    return found, {f"{letter}{number}" for letter, number in lessons}


def check_pages(pages, results):
    """pages: name -> text of docs/findings/<name>.md; results: paths below results/."""
    listed = LISTED.findall(pages.get("README", ""))
    letters = dict(listed)
    found = [f"docs/findings/README.md: lists {name}.md, which is not there" for name in letters if name not in pages]
    if len(set(letters.values())) < len(letters):
        found.append("docs/findings/README.md: two pages have the same letter")
    lessons = {}
    for name, text in pages.items():
        violations, lessons[name] = check_page(name, text, letters)
        found += violations
    everywhere = set().union(*lessons.values())
    for name, text in pages.items():
        for number in sorted({n for n in NUMBERS.findall(text) if n[0] in letters.values()} - everywhere):
            if name != "README":
                found.append(f"docs/findings/{name}.md: {number} is on no page")
        for result in sorted(set(RESULT.findall(text)) - results):
            found.append(f"docs/findings/{name}.md: results/{result} is not there")
    return found, lessons


def numbers_of(cited):
    """The lessons of "G7, G9 and G12 to G14"."""
    found = []
    for first, last in re.findall(rf"\b({NUMBER})\b(?: to ({NUMBER})\b)?", cited):
        end = int(last[1:]) if last else int(first[1:])
        found += [f"{first[0]}{number}" for number in range(int(first[1:]), end + 1)]
    return found


def check_citations(path, text, lessons):
    """Violations of one file that may cite pages and lessons."""
    found = []
    citations = PLAIN.findall(text)
    if path.endswith(".md"):
        citations += [(page, words) for words, page in LINK.findall(text)]
    for page, cited in citations:
        if page not in lessons:
            found.append(f"{path}: docs/findings/{page}.md is not there")
            continue
        found += [
            f"{path}: {number} is not in docs/findings/{page}.md"
            for number in numbers_of(cited)
            if number not in lessons[page]
        ]
    return found


def check_tree(root):
    pages = {path.stem: path.read_text(encoding="utf-8") for path in sorted((root / "docs/findings").glob("*.md"))}
    results = {path.relative_to(root / "results").as_posix() for path in (root / "results").rglob("*.json")}
    found, lessons = check_pages(pages, results)
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--", *SOURCES], capture_output=True, check=False
    )
    if listing.returncode == 0:
        paths = [root / name for name in listing.stdout.decode().split("\0") if name]
    else:  # no checkout
        paths = [
            path
            for name in SOURCES
            for path in ([root / name] if (root / name).is_file() else (root / name).rglob("*"))
        ]
    for path in paths:
        name = path.relative_to(root).as_posix()
        if path.is_file() and name not in EXAMPLES:
            found += check_citations(name, path.read_text(encoding="utf-8", errors="replace"), lessons)
    return found


def self_test():
    readme = "| [gemm.md](gemm.md) | G | x |\n| [host.md](host.md) | H | x |\n"
    pages = {
        "README": readme,
        "gemm": "### G1: A.\n`h200/gemm.json`, see H2.\n### G3: B.\n",
        "host": "### H2: An H100.\n",
    }
    results = {"h200/gemm.json"}
    found, lessons = check_pages(pages, results)
    assert found == [] and lessons["gemm"] == {"G1", "G3"}, found

    def broken(name, text, expected):
        found, _ = check_pages({**pages, name: text}, results)
        assert len(found) == 1 and expected in found[0], (name, found)

    broken("host", "### H2: " + "x" * LARGEST, "not less than")
    broken("host", "### H2: A.\n### H2: B.\n", "H2 comes after H2")
    broken("host", "### H3: A.\n### H2: B.\n", "H2 comes after H3")
    broken("host", "### H2: A.\n### G4: B.\n", "its letter is H")
    broken("host", "### H2: A.\n### Something\n", "is no lesson")
    broken("host", "### H2: A, as G9 says.\n", "G9 is on no page")
    broken("host", "### H2: A.\n`h200/other.json`\n", "results/h200/other.json is not there")
    broken("other", "### X1: A.\n", "does not list other.md")
    broken("README", readme + "| [tma.md](tma.md) | T | x |\n", "lists tma.md")

    def cites(path, text, expected=None):
        found = check_citations(path, text, lessons)
        assert (found == []) if expected is None else (len(found) == 1 and expected in found[0]), (text, found)

    cites("src/a.cpp", "// as measured (docs/findings/gemm.md, G1 and G3)\n")
    cites("src/a.cpp", "// docs/findings/gemm.md, G2\n", "G2 is not in docs/findings/gemm.md")
    cites("src/a.cpp", "/// docs/findings/gemm.md,\n/// G2\n", "G2 is not in")
    cites("src/a.cpp", "// docs/findings/gemm_gpu.md\n", "gemm_gpu.md is not there")
    cites("docs/a.md", "[G1, G3](findings/gemm.md), [on an H100](findings/host.md)")
    cites("docs/a.md", "[lessons G1 to G3](findings/gemm.md)", "G2 is not in")
    cites("README.md", "[H2](docs/findings/gemm.md)", "H2 is not in docs/findings/gemm.md")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found = check_tree(pathlib.Path(sys.argv[1]))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
