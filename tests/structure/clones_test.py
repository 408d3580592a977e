#!/usr/bin/env python3
"""Clones for AVX2 and for AVX-512 (core/clones.hpp) consist of vector instructions.

clones_test.py OBJDUMP OBJECT...: the objects of all files that have clones
"""

import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
# Arithmetic, logic or a conversion on all elements of a register; ...ss and ...sd work on one.
PACKED = re.compile(r"\tv(?:f|add|mul|sub|min|max|cvt|p|and|or)\w*(?<!s[sd])\s.*%[yz]mm")

objdump, *objects = sys.argv[1:]
assert objects, "no object of a file that has clones"
failed = []
for name in objects:
    counts = {}
    function = ""
    for line in subprocess.run(
        [objdump, "-dC", "--no-show-raw-insn", name], check=True, capture_output=True, text=True
    ).stdout.splitlines():
        if found := FUNCTION.match(line):
            function = found[1]
        elif "arch_x86_64_v" in function:
            counts[function] = counts.get(function, 0) + bool(PACKED.search(line))
    if not counts:
        failed.append(f"{name}: has no clone")
    failed += [f"{name}: {clone} has no vector instruction" for clone, count in counts.items() if count == 0]
print("\n".join(failed))
sys.exit(1 if failed else 0)
