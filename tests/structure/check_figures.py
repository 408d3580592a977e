#!/usr/bin/env python3
"""Checks that every figure in the documents comes from a result file.

  check_figures.py SOURCE_DIR       check the tree; prints every violation, exits 1 when there is one
  check_figures.py --self-test      show that each rule catches its violation

A figure is a number with a unit of time, bandwidth, ratio or percent in README.md, docs/*.md, the section [Unreleased] of
CHANGELOG.md and the comments of configs/*.yaml. Code, generated tables and HTML comments are not looked at. A comment below
the text names the source of each figure above it, back to the previous heading or such comment; docs/bench.md, "Figures in
documents", describes it:

  <!-- figures h200/gemm; hot
  4.29 us: RC 1024; tmaops
  1.21 times: RC 1024; cublas / tmaops
  -->

A lesson in docs/findings that has figures names a result file, a command, or says that the run was not kept. A comment of a
configuration has only published figures.
"""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from goal_tables import select  # noqa: E402
from update_tables import COLUMNS  # noqa: E402

NUMBER = r"\d[\d,]*\d(?:\.\d+)?|\d(?:\.\d+)?"
UNITS = {
    "ns": 1e3,
    "us": 1,
    "ms": 1e-3,
    "s": 1e-6,
    "second": 1e-6,
    "seconds": 1e-6,
    "minute": 1e-6 / 60,
    "minutes": 1e-6 / 60,
    "hour": 1e-6 / 3600,
    "hours": 1e-6 / 3600,
    "GB/s": 1,
    "TB/s": 1e-3,
    "TFLOPS": 1,
    "TFLOP/s": 1,
    "%": 100,
    "percent": 100,
    "times": 1,
}
FIELDS = {"GB/s": "gbps", "TB/s": "gbps", "TFLOPS": "tflops", "TFLOP/s": "tflops"}  # of others: the median
UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
FIGURE = re.compile(
    rf"(?<![\w.])(?<!ISO )((?:{NUMBER})(?:(?:, | to | and | or | - |–|-)(?:{NUMBER}))*)(?:(x)(?! ?\d)| ?({UNIT}))(?![\w/])"
)
COMMENT = re.compile(r"<!-- figures\b(.*?)-->", re.DOTALL)
LINE = re.compile(rf"({NUMBER}) ?({UNIT}|x)?: (.*)")
IGNORED = re.compile(
    r"<!-- (table|counters|models) .*?<!-- /\1 -->|```.*?```|`[^`]*`|\]\([^)]*\)|<!--(?! figures).*?-->", re.DOTALL
)
PAIRED = ("operator", "case", "dtype", "temperature")  # what the rows of a ratio have in common
SOURCED = re.compile(
    r"`(?:h100|h200|cpu)/\w+\.json`|`[^`]*(?:tmaops|make|cmake|ninja) [^`]*`|<!-- figures|\(single run, not kept\)"
    r"|[Rr]eckoned|[Ee]xploratory"
)


class Problem(Exception):
    pass


def figures(text):
    """(number, unit) of each figure in the text."""
    text = re.sub(r"\s+", " ", IGNORED.sub(" ", text))
    return [
        (number, match[2] or match[3]) for match in FIGURE.finditer(text) for number in re.findall(NUMBER, match[1])
    ]


def refer(text, before, read):
    """One operand: the file, values of rows' keys and the field that the items of a text ask for, on top of those before."""
    return select(text, before, read, lambda item: {"implementation" if item == "fastest" else "field": item})


def values(wanted, read, field):
    """Rows' keys -> value; the implementation is a key where no one is asked for."""
    field = wanted.get("field", field)
    implementation = wanted.get("implementation")
    found = {}
    for row in read(wanted.get("file")):
        name = row["implementation"]
        if implementation == "fastest":
            if row["kind"] != "variant" or name.startswith("tmaops") or name.endswith("_pdl"):
                continue
        elif implementation not in (None, name):
            continue
        if any(
            row.get(key) != value for key, value in wanted.items() if key not in ("file", "field", "implementation")
        ):
            continue
        key = tuple(row.get(key) for key in PAIRED) + (None if implementation else name,)
        value = value_of(row, field)
        if value is not None:
            found[key] = min(value, found.get(key, value)) if implementation == "fastest" else value
    if not found:
        items = [value for key, value in wanted.items() if key not in ("file", "field")]
        raise Problem(f"{wanted['file']}: no row has {', '.join([*items, field])}")
    return found


def value_of(row, field):
    if field in COLUMNS and "counters" in row:
        return float(re.search(r"[\d.]+", COLUMNS[field][1](row))[0])
    if field in row.get("counters", {}):
        return row["counters"][field]
    for key in field.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return row


def pick(values, how, text):
    if how:
        return {"min": min, "max": max}[how](values)
    if len(values) != 1:
        raise Problem(f"'{text}' leaves {len(values)} rows, not one: say more, or min or max")
    return next(iter(values))


def compute(text, unit, head, read):
    """The value that a line refers to, in its unit."""
    before, after = text.startswith("1 - "), text.endswith(" - 1")
    body, how = re.fullmatch(r"(.*?)(?:(?:; |^)(min|max))?", text.removeprefix("1 - ").removesuffix(" - 1")).groups()
    sides = body.split(" / ")
    field = FIELDS.get(unit, "us.median")
    first = refer(sides[0], head, read)
    left = values(first, read, field)
    if len(sides) == 1:
        field = first.get("field", "")
        percents = field in COLUMNS or field.endswith(("elapsed", "active"))
        return pick(left.values(), how, text) * (1 if percents else UNITS.get(unit, 1))
    other = refer(sides[1], first, read)
    same = [i for i, key in enumerate(PAIRED) if first.get(key) == other.get(key)]
    right = {}
    for key, value in values(other, read, field).items():
        if right.setdefault(tuple(key[i] for i in same), value) != value:
            raise Problem(f"'{text}': more than one row on the right of '/'")
    pairs = [(value, right.get(tuple(key[i] for i in same))) for key, value in left.items()]
    ratio = pick([value / below for value, below in pairs if below is not None], how, text)
    return (1 - ratio if before else ratio - 1 if after else ratio) * (100 if unit in ("%", "percent") else 1)


def check_text(name, text, read):
    found, start = [], 0
    text = IGNORED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    marks = sorted(
        [*re.finditer(r"^#+ .*$", text, re.MULTILINE), *COMMENT.finditer(text)], key=lambda mark: mark.start()
    )
    for mark in [*marks, None]:
        end = mark.start() if mark else len(text)
        scope, begin, start = figures(text[start:end]), start, mark.end() if mark else end
        comment = mark and mark[0].startswith("<!--") and mark[1].strip()
        lines = comment.split("\n") if comment else []
        head, covered, given = {}, set(), False
        if lines and not LINE.match(lines[0]):
            first = lines.pop(0).removeprefix(": ")
            given = first.startswith("given")
            try:
                head = {} if given else refer(first, {}, read)
            except Problem as problem:
                found.append(f"{name}: '{first}': {problem}")
                continue
        for line in lines:
            match = LINE.fullmatch(line.strip())
            if not match:
                found.append(f"{name}: '{line.strip()}' is no line of figures: 'NUMBER UNIT: ITEM; ITEM; ...'")
                continue
            number, unit, source = match.groups()
            units = [one for shown, one in scope if shown == number and unit in (None, one)]
            covered |= {(number, one) for one in units}
            if not units:
                unused = re.search(rf"(?<![\w.,]){re.escape(number)}(?![\w]|[.,]\d)", text[:end])
                if not unused:
                    found.append(f"{name}: '{line.strip()}': the text above has no such figure")
                    continue
            if source.startswith("given"):
                continue
            try:
                value = compute(source, unit or (units or [None])[0], head, read)
            except Problem as problem:
                found.append(f"{name}: '{line.strip()}': {problem}")
                continue
            digits = len(number.partition(".")[2])
            if abs(value - float(number.replace(",", ""))) > 0.5 * 10**-digits * (1 + 1e-6):
                found.append(f"{name}: {number} {unit or ''} is {value:.{digits + 2}f} ({source})")
        if not given:
            for number, unit in dict.fromkeys(scope):
                if (number, unit) not in covered:
                    at = re.compile(rf"(?<![\w.,]){re.escape(number)}(?!\w)").search(text, begin)
                    line = text.count("\n", 0, at.start() if at else begin) + 1
                    found.append(
                        f'{name}:{line}: {number} {unit} has no source; see docs/bench.md, "Figures in documents"'
                    )
    return found


def check_lessons(name, text):
    return [
        f"{name}: {lesson.split(':')[0]} has figures and names neither a result file nor a command; see its README"
        for lesson in text.split("\n### ")[1:]
        if figures(lesson) and not SOURCED.search(re.sub(r"\s+", " ", lesson))
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
    kept = {}

    def read(file):
        if file not in kept:
            path = root / "results" / f"{file}.json"
            if not path.exists():
                raise Problem(f"results/{file}.json is not there")
            kept[file] = json.loads(path.read_text(encoding="utf-8"))["rows"]
        return kept[file]

    found = []
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        found += check_text(path.relative_to(root), path.read_text(encoding="utf-8"), read)
    current = (root / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    found += check_text("CHANGELOG.md", current, read)
    for path in sorted((root / "docs/findings").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        found += check_lessons(path.relative_to(root), text)
    for path in sorted((root / "configs").glob("*.yaml")):
        found += check_comments(path.relative_to(root), path.read_text(encoding="utf-8"))
    return found


def self_test():
    row = {"operator": "gemm", "kind": "variant", "dtype": "f16", "temperature": "hot"}

    def timed(case, name, us, **more):
        return {**row, "case": case, "implementation": name, "us": {"median": us}, "gbps": 1e4 / us, **more}

    rows = [
        timed("RC 1", "tmaops", 10.04),
        timed("RC 1", "cublas", 12.0),
        timed("RC 1", "wgmma", 10.5, kind="variant"),
        timed("RC 2", "tmaops", 1234.0),
        timed("RC 2", "cublas", 2468.0),
    ]

    def read(file):
        if file != "h200/gemm":
            raise Problem("is not there")
        return rows

    def passes(text, expected=None):
        found = check_text("a.md", text, read)
        assert (found == []) if expected is None else (len(found) == 1 and expected in found[0]), (text, found)

    passes("10.0 us\n<!-- figures h200/gemm; hot\n10.0 us: RC 1; tmaops\n-->\n")
    passes("10.0 us\n<!-- figures 10.0 us: h200/gemm; RC 1; tmaops -->\n")
    passes("10.1 us\n<!-- figures 10.1 us: h200/gemm; RC 1; tmaops -->\n", "is 10.040")
    passes("takes 10 us\n", "a.md:1: 10 us has no source")
    passes("10 to 1,234 us\n<!-- figures h200/gemm; tmaops\n10: RC 1\n1,234: RC 2\n-->\n")
    passes("10 to 1,234 us\n<!-- figures h200/gemm; tmaops\n10: min\n1,234: max\n-->\n")
    passes("1.2 to 2.00x\n<!-- figures h200/gemm\n1.2: cublas / tmaops; min\n2.00x: cublas / tmaops; max\n-->\n")
    passes("20 % slower\n<!-- figures h200/gemm; RC 1\n20 %: cublas / tmaops - 1\n-->\n")
    passes("50 % less\n<!-- figures 50 %: 1 - h200/gemm; RC 2; tmaops / cublas -->\n")
    passes("0.96 times the best\n<!-- figures 0.96 times: h200/gemm; RC 1; tmaops / fastest -->\n")
    passes("10 us\n<!-- figures 10 us: h200/gemm; tmaops -->\n", "leaves 2 rows")
    passes("10 us\n<!-- figures 10 us: h200/gemm; RC 3; tmaops -->\n", "no row has tmaops, RC 3")
    passes("10 us\n<!-- figures 10 us: h100/gemm; RC 1 -->\n", "is not there")
    passes("10 us\n<!-- figures h100/gemm\n10 us: RC 1\n-->\n", "is not there")
    passes("10 us\n<!-- figures h200/gemm\n10 us: RC 1; tmaops\n11 us: RC 1; tmaops\n-->\n", "no such figure")
    passes("10 us\n<!-- figures h200/gemm\n10 us: RC 1; tmaops\n10 us RC 1\n-->\n", "is no line of figures")
    passes("50 ms\n<!-- figures 50 ms: given, a setting -->\n")
    passes("50 ms, 20 times\n<!-- figures given: settings -->\n")
    passes(
        "`9 us`\n```\n# 9 us\n```\n<!-- table a -->\n9 us\n<!-- /table -->\n64 x 32 tiles, 4.8 TB, 2x2, ISO 8601 times\n"
    )
    passes("10 us\n## Next\n<!-- figures h200/gemm; RC 1; tmaops -->\n", "10 us has no source")
    assert check_lessons("g.md", "# G\n### G1: A.\n3 us (single run,\nnot kept)\n### G2: B.\n4 us\n") == [
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
