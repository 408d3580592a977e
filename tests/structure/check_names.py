#!/usr/bin/env python3
"""Checks what things are called, and that no time stands in a comment.

  check_names.py SOURCE_DIR           check the tree; prints every violation, exits 1 when there is one
  check_names.py --self-test          show that each rule catches its violation

1. Tests are named in snake_case: TEST(Resample, holds_the_last_value_after_the_end).
2. No file or folder has a name that says nothing: utils, helpers, misc, common.
3. No comment of the code says how long something took, at what rate it ran or how much faster it is: such numbers change, and
   stand in results/ and docs/findings/. What a program sets itself is no such number: "polls for 50 ms" (at most, for, every,
   after, within).
4. A NOLINT names checks of .clang-tidy.
5. No two headers of the tests define types of one name: a program that includes both, each in another file, has two types for one.
"""

import pathlib
import re
import sys

TEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)|\bRC_GTEST_PROP\(\s*\w+,\s*(\w+),")
SNAKE = re.compile(r"[a-z][a-z0-9_]*")
EMPTY = {
    "util",
    "utils",
    "utility",
    "utilities",
    "helper",
    "helpers",
    "misc",
    "common",
    "stuff",
    "various",
    "other",
    "others",
    "impl",
    "internal",
    "new",
    "old",
    "tmp",
    "temp",
    "things",
    "base",
}
TO_RENAME = {"measure/bench/workloads/common.hpp"}
NUMBER = r"\b\d[\d.,]*(?:(?: to |-)\d[\d.,]*)?"
SET_BY_US = r"(?<!at most )(?<!for )(?<!every )(?<!after )(?<!within )"
TIMES = re.compile(
    SET_BY_US + NUMBER + r" ?(?:us|ns|ms|microseconds|milliseconds|TB/s|GB/s|G tiles/s|TFLOPS?|TFLOP/s)\b(?! ?=)"
)
PERCENT = NUMBER + r" ?%"
GAINS = re.compile(
    rf"{PERCENT}(?: \w+)? (?:faster|slower|longer|shorter|quicker|better|worse|cheaper|more time|less time)\b|"
    rf"\b(?:costs?|gains?|saves?|loses?|lost|wins?|won|slower by|faster by) (?:\w+ ){{0,2}}{PERCENT}|"
    r"\b\d[\d.]* times (?:as fast|faster|slower)\b"
)


def check_test_names(path, text):
    names = [a or b for a, b in TEST.findall(text)]
    return [f"{path}: the test {name} is not in snake_case" for name in names if not SNAKE.fullmatch(name)]


def check_path(path):
    return [
        f"{path}: the name {part} says nothing"
        for part in pathlib.PurePosixPath(path).parts
        if part.split(".")[0] in EMPTY
    ]


def check_comments(path, text):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"//(.*)", line)
        for rule in (TIMES, GAINS):
            if comment and (match := rule.search(comment.group(1))):
                found.append(f"{path}:{number}: a measured number in a comment: {match.group(0).strip()}")
    return found


def check_lints(path, text, enabled):
    named = re.findall(r"NOLINT(?:NEXTLINE|BEGIN|END)?\b(?:\(([^)]*)\))?", text)
    return [
        f"{path}: NOLINT({checks}) names no check of .clang-tidy"
        for checks in named
        if not checks or not {check.strip() for check in checks.split(",")} <= enabled
    ]


def check_types(headers):
    """`headers` are pairs of a path and its text."""
    found, first = [], {}
    for path, text in headers:
        for name in re.findall(r"^(?:struct|class|enum class) (\w+)(?=[ :{])(?!.*;$)", text, re.MULTILINE):
            if first.setdefault(name, path) != path:
                found.append(f"{path}: {first[name]} defines a {name}, too")
    return found


def check_tree(root):
    headers = [path for path in sorted((root / "tests").rglob("*")) if path.suffix in (".hpp", ".cuh")]
    found = check_types([(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in headers])
    enabled = set(re.findall(r"^  ([a-z][\w-]+),?$", (root / ".clang-tidy").read_text(encoding="utf-8"), re.MULTILINE))
    for top in ("src", "include", "tool", "study", "measure", "datasets", "tests", "examples"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".cu", ".cuh", ".inc", ".py"):
                continue
            relative = path.relative_to(root)
            name, text = relative.as_posix(), path.read_text(encoding="utf-8")
            if top == "tests" and path.suffix != ".py":
                found += check_test_names(name, text)
            if path.suffix != ".py":
                found += check_lints(name, text, enabled)
            if name not in TO_RENAME:
                found += check_path(name)
            if top not in ("include", "tests", "examples") and path.suffix != ".py":
                found += check_comments(name, text)
    return found


def self_test():
    assert check_test_names("a", "TEST(Gemm, multiplies_2_by_2)\nTEST_P(Gemm, x)\n") == []
    for text in ("TEST(Gemm, MultipliesTwo)", "TEST_F(Gemm,\n    twoByTwo)", "RC_GTEST_PROP(Gemm, AnyShape, (int n))"):
        assert len(check_test_names("a", text)) == 1, text
    assert check_path("measure/bench/workloads/gemm.cpp") == []
    assert check_types([("a", "struct A {\n  class B {};\nclass B;"), ("b", "class B {\nclass A;")]) == []
    assert len(check_types([("a", "struct A {\n"), ("b", "class A : public B {\n")])) == 1
    for path in ("src/core/utils.cpp", "src/ops/gemm/helpers/a.cuh", "tests/common/a.hpp"):
        assert len(check_path(path)) == 1, path
    assert check_lints("a", "x;  // NOLINT(google-x): why\n// NOLINTNEXTLINE(google-x, b)", {"google-x", "b"}) == []
    for text in ("// NOLINT", "// NOLINT(other)", "// NOLINTNEXTLINE(google-x, other)"):
        assert len(check_lints("a", text, {"google-x"})) == 1, text
    good = [
        "// waits at most 50 ms for it",
        "// 40 % of its step",
        "// 0.05: 5 % is meant",
        "// int64 ns = 1e-9 s",
        "int ms = 4;  // of 128 bytes",
        "// 5 tiles in 2 rounds",
        "// spins for 7 ms",
        "// 16 MB of the L2",
    ]
    bad = [
        "// takes 4.2 us",
        "// 26.5 G tiles/s",
        "// 13 % faster",
        "// costs 2 to 3 % of it",
        "x = 1;  // 0.15 us of 4.6",
        "// a third at 1.33 times as fast",
        "// reads 3.1 TB/s",
        "// saves another 5 %",
        "// 10 % slower than without",
    ]
    for text in good:
        assert check_comments("a", text) == [], text
    for text in bad:
        assert len(check_comments("a", text)) == 1, text


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
