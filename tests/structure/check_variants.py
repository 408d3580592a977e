#!/usr/bin/env python3
"""Checks what a variant is: one folder that can be read by itself, one kernel, one plan.

  check_variants.py SOURCE_DIR        check the tree; prints every violation, exits 1 when there is one
  check_variants.py SOURCE_DIR list   lines to read for each variant
  check_variants.py --self-test       show that each rule catches its violation

1. What one reads to understand a variant is at most 1,800 lines: its folder, the shared/ files it includes, and the .cpp of
   those headers. Up to five variants may have up to 2,400: CONTRIBUTING.md gives their folders below src/ops, their limits and
   the reasons in the table "Longer variants".
2. A GPU variant has one __global__, or as many as its line says a call runs: kernels(3).
3. A variant includes only its own folder, the shared/ of its home and of its operator, and problem.hpp; never another variant.
4. Only select.cpp chooses.
5. What a plan keeps has a type: no shared_ptr<const void>, and nothing is prepared aside.
6. What a kernel has in shared memory has a type: no offset is added to the bytes of its storage by hand.

A home is the folder that holds gpu/ and cpu/: src/ops/<operator>, forward/ and others in it, or study/<operator>. A study may
include what its operator's variants share, never the other way.
"""

import pathlib
import re
import sys

BUDGET, LONGEST, MOST_LONGER = 1800, 2400, 5
SOURCES = (".cu", ".cuh", ".cpp", ".hpp", ".inc")
INCLUDE = re.compile(r'^\s*#\s*include\s*"((?:ops|study)/[^"]+)"', re.MULTILINE)
FOLDER = re.compile(r"((?:ops|study)/(\w+)(?:/\w+)?)/([gc]pu)/(\w+)")  # home, operator, device, variant
LINE = re.compile(r'^TMAOPS_VARIANT\((\w+), (\w+), (cpu|cuda), \w+, "[^"]*"(.*)\)$', re.MULTILINE)
CHOOSES = re.compile(r"\b(try_variant|best_choice|named_choice|first_variant|named_variant)\b")
SELECTS = re.compile(r"(?<![\w.])select\(")
UNTYPED = re.compile(r"shared_ptr<\s*const\s+void\s*>|\bprepared\b")
OFFSET = re.compile(r"\bshared\.bytes\s*\+")
LONGER = re.compile(r"^\| *`([\w/]+)` *\| *([\d,]+) *\| *(\w.*?) *\|$", re.MULTILINE)


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


class Tree:
    """The files of src/ops and study, by their path as an include spells it."""

    def __init__(self, files, contributing=""):
        self.files = files
        section = re.search(r"^#+ Longer variants\n(.*?)(?=^#|\Z)", contributing, re.MULTILINE | re.DOTALL)
        self.longer = {
            f"ops/{folder}": int(limit.replace(",", ""))
            for folder, limit, _ in LONGER.findall(section.group(1) if section else "")
        }

    @classmethod
    def read(cls, root):
        files = {
            path.relative_to(base).as_posix(): path.read_text(encoding="utf-8")
            for base, folder in ((root / "src", "ops"), (root, "study"))
            for path in (base / folder).rglob("*")
            if path.suffix in (*SOURCES, ".def")
        }
        return cls(files, (root / "CONTRIBUTING.md").read_text(encoding="utf-8"))

    def variants(self):
        """Files of every variant, by its folder."""
        folders = {}
        for name in sorted(self.files):
            if match := FOLDER.match(name):
                folders.setdefault(match.group(0), []).append(name)
        return folders

    def to_read(self, names):
        """The files and what they include of variants and shared/."""
        seen, left = set(), list(names)
        while left:
            name = left.pop()
            if name in self.files and name not in seen and (FOLDER.match(name) or "/shared/" in name):
                seen.add(name)
                left += [*INCLUDE.findall(self.files[name]), re.sub(r"\.(hpp|cuh)$", ".cpp", name)]
        return seen

    def lines(self, names):
        return sum(self.files[name].count("\n") for name in self.to_read(names))


def check_budget(tree):
    found = []
    for folder, names in tree.variants().items():
        lines, limit = tree.lines(names), tree.longer.get(folder, BUDGET)
        if lines > limit:
            found.append(f"{folder}: {lines} lines to read, more than {limit}")
        if folder in tree.longer and lines <= BUDGET:
            found.append(f"CONTRIBUTING.md: {folder} has {lines} lines and needs no exception")
    if len(tree.longer) > MOST_LONGER or any(limit > LONGEST for limit in tree.longer.values()):
        found.append(f"CONTRIBUTING.md: more than {MOST_LONGER} longer variants, or one of more than {LONGEST} lines")
    found += [
        f"CONTRIBUTING.md: there is no variant {folder}" for folder in tree.longer if folder not in tree.variants()
    ]
    return found


def check_kernels(tree):
    declared = {}
    for name, text in tree.files.items():
        if name.endswith("/variants.def"):
            for _, variant, _, attributes in LINE.findall(text):
                match = re.search(r"\bkernels\((\d+)\)", attributes)
                declared[name.split("/")[1], variant] = int(match.group(1)) if match else 1
    found = []
    for folder, names in tree.variants().items():
        _, operator, device, variant = FOLDER.match(folder).groups()
        count = sum(
            len(re.findall(r"\b__global__\b", without_comments(tree.files[name]))) for name in tree.to_read(names)
        )
        wanted = declared.get((operator, variant), 1) if device == "gpu" else 0
        if count != wanted:
            found.append(f"{folder}: {count} kernels, its line says {wanted}")
    return found


def check_includes(tree):
    found = []
    for folder, names in tree.variants().items():
        home, operator, _, _ = FOLDER.match(folder).groups()
        for name in names:
            for target in INCLUDE.findall(tree.files[name]):
                homes = [home, f"ops/{operator}", f"study/{operator}", f"ops/{operator}/forward"]
                if name.startswith("ops/"):
                    homes = homes[:2]
                own = target.startswith((folder + "/", *(f"{of}/shared/" for of in homes)))
                if not own and target not in [f"{of}/problem.hpp" for of in homes]:
                    found.append(f"{name}: a variant may not include {target}")
    for name, text in tree.files.items():
        if not FOLDER.match(name):
            found += [
                f"{name}: includes {target}, which is a variant's own"
                for target in INCLUDE.findall(text)
                if FOLDER.match(target)
            ]
    return found


def check_choosing(tree):
    found = []
    for name, text in tree.files.items():
        code = without_comments(text)
        if not re.search(r"/select\.cpp$", name) and (match := CHOOSES.search(code)):
            found.append(f"{name}: {match.group(1)}, but only select.cpp chooses")
        if FOLDER.match(name) and SELECTS.search(code):
            found.append(f"{name}: a variant calls select()")
        if name.endswith((".cu", ".cuh")) and (match := OFFSET.search(code)):
            found.append(f"{name}: '{match.group(0)}': an array in shared memory has a type and a name")
        if match := UNTYPED.search(code):
            found.append(f"{name}: {match.group(0)}: what is kept has a type")
    return found


def check(tree):
    return check_budget(tree) + check_kernels(tree) + check_includes(tree) + check_choosing(tree)


def self_test():
    line = 'TMAOPS_VARIANT(gemm, one, cuda, sm90a, "text", regs(8))\n'
    kernel = '#include "ops/gemm/shared/call.cuh"\n__global__ void kernel() {}\n'
    good = {
        "ops/gemm/variants.def": line,
        "ops/gemm/gpu/one/kernel.cu": kernel,
        "ops/gemm/shared/call.cuh": "\n" * 1000,
        "ops/gemm/shared/call.cpp": "\n" * 500,
        "ops/gemm/select.cpp": "best_choice(variants());",
        "ops/gemm/cpu/two/two.cpp": '#include "ops/gemm/problem.hpp"\n',
    }
    assert check(Tree(good)) == [], check(Tree(good))
    big = "ops/gemm/shared/call.cuh"
    longer = (
        "### Longer variants\n| variant | lines | reason |\n|---|---|---|\n| `gemm/gpu/one` | 1,900 | two schedules |\n"
    )
    cases = [
        ({big: "\n" * 1300}, "", "1802 lines to read, more than 1800"),
        ({"ops/gemm/cpu/two/two.cpp": "\n" * 1801}, "", "ops/gemm/cpu/two: 1801 lines to read"),
        ({big: "\n" * 1500}, longer, "more than 1900"),
        ({}, longer, "needs no exception"),
        ({}, longer.replace("gemm/gpu/one", "gemm/gpu/none"), "there is no variant"),
        ({}, longer + "".join(f"| `gemm/gpu/{i}` | 1300 | why |\n" for i in "abcde"), "more than 5 longer variants"),
        ({}, longer.replace("1,900", "2,700"), "or one of more than 2400"),
        ({"ops/gemm/gpu/one/more.cuh": "__global__ void other();\n"}, "", "2 kernels, its line says 1"),
        ({"ops/gemm/variants.def": line.replace("regs", "kernels(2), regs")}, "", "1 kernels, its line says 2"),
        ({"ops/gemm/gpu/one/kernel.cu": "// __global__\n"}, "", "0 kernels"),
        (
            {"ops/gemm/cpu/two/two.cpp": '#include "ops/gemm/gpu/one/more.cuh"\n'},
            "",
            "may not include ops/gemm/gpu/one",
        ),
        ({"ops/gemm/cpu/two/two.cpp": '#include "ops/gemm/estimate.hpp"\n'}, "", "may not include ops/gemm/estimate"),
        ({big: '#include "ops/gemm/gpu/one/more.cuh"\n'}, "", "a variant's own"),
        ({"ops/gemm/api.cpp": "first_variant(table);"}, "", "only select.cpp chooses"),
        ({"ops/gemm/cpu/two/two.cpp": "const auto choice = select(problem, device);"}, "", "calls select"),
        ({"ops/gemm/cpu/two/two.cpp": "std::shared_ptr<const void> kept;"}, "", "has a type"),
        ({"ops/gemm/gpu/one/kernel.cu": kernel + "load(shared.bytes + job.rows_at);\n"}, "", "has a type and a name"),
    ]
    for change, contributing, expected in cases:
        found = check(Tree({**good, **change}, contributing))
        assert any(expected in text for text in found), (change, found)
    assert check(Tree({**good, big: "\n" * 1300}, longer)) == []


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    tree = Tree.read(pathlib.Path(sys.argv[1]))
    if sys.argv[2:] == ["list"]:
        for lines, folder in sorted((tree.lines(names), folder) for folder, names in tree.variants().items()):
            print(f"{lines:6d} {folder}")
        return 0
    found = check(tree)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
