#!/usr/bin/env python3
"""Checks that the figures of the documents come from results.

  check_figures.py SOURCE_DIR       check the tree; prints every violation, exits 1 when there is one
  check_figures.py --self-test      show that each rule catches its violation

A figure is a number with a unit of time, bandwidth, ratio or percent. In a document with tables of results, a figure in
prose stands, rounded, in a table of that document, or its paragraph says where it comes from: a result file, a command, a
data sheet, a setting, arithmetic. What a paragraph that begins with "Published" says, and what stands in quotes, is not ours. A lesson in docs/findings that has figures names a result file or a command,
or says that it is reckoned. A comment of a configuration has only published figures. Code, tables and comments are
not looked at.
"""

import pathlib
import re
import sys

NUMBER = r"\d[\d,]*\d(?:\.\d+)?|\d(?:\.\d+)?"
UNIT = "ns|us|ms|GB/s|TB/s|TFLOPS|TFLOP/s|percent|times|%"
FIGURE = re.compile(
    rf"(?<![\w.])((?:{NUMBER})(?:(?:, | to | and | or | - |–|-)(?:{NUMBER}))*)(?:(x)(?! ?\d)| ?({UNIT}))(?![\w/])"
)
TABLE = re.compile(r"<!-- (table|counters|models) .*?<!-- /\1 -->", re.DOTALL)
IGNORED = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->|^\|.*$", re.DOTALL | re.MULTILINE)
SOURCED = re.compile(
    r"results/\w+/\w+\.json|`(?:h100|h200|cpu)/\w+\.json`|`[^`]*(?:tmaops|make|cmake|ninja|scripts/)[ \w][^`]*`"
    r"|[Rr]eckoned|^(?:- )?Published|data sheet|[Ff]or example|[Bb]y default"
)


def figures(text):
    """(number, unit) of each figure in the text."""
    text = re.sub(r"\s+", " ", IGNORED.sub(" ", text))
    return [
        (number, match[2] or match[3]) for match in FIGURE.finditer(text) for number in re.findall(NUMBER, match[1])
    ]


def value(number):
    return float(number.replace(",", ""))


def stands_in(number, unit, known):
    """Whether a number of a table, or a percentage of one, rounds to the figure."""
    half = 0.5 * 10 ** -len(number.partition(".")[2]) * (1 + 1e-6)
    shown = [value(number)]
    if unit in ("%", "percent"):  # 14 % slower: 1.14 or 0.86
        shown += [1 + shown[0] / 100, 1 - shown[0] / 100, shown[0] / 100]
        return any(abs(one - shown[0]) <= half for one in known) or any(
            abs(one - other) <= half / 100 for one in known for other in shown[1:]
        )
    return any(abs(one - shown[0]) <= half for one in known)


def check_text(name, text):
    tables = " ".join(match[0] for match in TABLE.finditer(text))
    if not tables:
        return []
    known = {value(number) for number in re.findall(NUMBER, tables)}
    prose = re.sub(r"```.*?```", "", TABLE.sub("", text), flags=re.DOTALL)
    prose = re.sub(r"^(#.*)$", r"\1\n", prose, flags=re.MULTILINE)
    return [
        f"{name}: {number} {unit} is in no table of the page, and its paragraph names no source: {paragraph.strip()[:70]!r}"
        for paragraph in re.split(r"\n\s*\n|\n(?=- |\d+\. )", prose)
        if not SOURCED.search(re.sub(r"\s+", " ", paragraph.strip()))
        for number, unit in figures(re.sub(r'"[^"]*"', "", paragraph))
        if not stands_in(number, unit, known)
    ]


def check_lessons(name, text):
    return [
        f"{name}: {lesson.split(':')[0]} has figures and names neither a result file nor a command; see its README"
        for lesson in text.split("\n### ")[1:]
        if figures(lesson) and not SOURCED.search(re.sub(r"\s+", " ", lesson)) and "<!-- table" not in lesson
    ]


def check_comments(name, text):
    comments = " ".join(line.partition("#")[2].strip() for line in text.split("\n") if "#" in line)
    return [
        f"{name}: {number} {unit}: a comment of a configuration has only published figures"
        for sentence in comments.split(". ")
        if "ublished" not in sentence
        for number, unit in figures(sentence)
    ]


def check_tree(root):
    found = []
    for check, paths in (
        (check_text, [root / "README.md", *sorted((root / "docs").glob("*.md"))]),
        (check_lessons, sorted((root / "docs/findings").glob("*.md"))),
        (check_comments, sorted((root / "configs").glob("*.yaml"))),
    ):
        for path in paths:
            found += check(path.relative_to(root), path.read_text(encoding="utf-8"))
    return found


def self_test():
    table = "<!-- table a -->\n| RC 1 | 4.29 us (1.21x) | 0.86 | 1,500 |\n<!-- /table -->\n"

    def passes(text, expected=None):
        found = check_text("a.md", table + text)
        assert (found == []) if expected is None else (len(found) == 1 and expected in found[0]), (text, found)

    passes("It takes 4.3 us, and 1.2 times as long. 14 % less, 21 % more, 1,500 GB/s.\n")
    passes("It takes 4.4 us.\n", "a.md: 4.4 us is in no table")
    passes("It takes 4.3 us.\n\nIt takes 9 us.\n", "9 us")
    passes("Published: 9 us.\n\n- 9 us (`tmaops bench a.yaml`)\n- reckoned 9 us\n")
    passes("- Published: 9 us.\n- it is 9 us here\n", "9 us")
    passes("`9 us`\n```\n# 9 us\n```\n| by hand | 9 us |\n64 x 32 tiles, 4.8 TB, 2x2\n")
    assert check_text("a.md", "without a table 9 us\n") == []
    assert check_lessons("g.md", "# G\n### G1: A.\n3 us (reckoned)\n### G2: B.\n4 us\n") == [
        "g.md: G2 has figures and names neither a result file nor a command; see its README"
    ]
    assert check_comments("a.yaml", "x: 1  # 3 us. Published: 5 % and\n# 2 us on a GPU.\n") == [
        "a.yaml: 3 us: a comment of a configuration has only published figures"
    ]


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
