#!/usr/bin/env python3
"""Checks the opcode table of sass_check.py against nvdisasm on an object: sass_table_test.py OBJECT [NVDISASM].

Every instruction the table names must be what nvdisasm calls it. Exit code 77 (skipped) without nvdisasm."""

import collections
import re
import shutil
import subprocess
import sys
import tempfile

import sass_check

nvdisasm = sys.argv[2] if len(sys.argv) > 2 else shutil.which("nvdisasm")
if not nvdisasm:
    print("skipped: nvdisasm is not in the toolkit (PyPI has it as nvidia-cuda-nvdisasm)")
    sys.exit(77)

seen, wrong = collections.Counter(), []
with open(sys.argv[1], "rb") as file:
    data = file.read()
for arch, elf in sass_check.cubins(data):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        cubin.write(elf)
        cubin.flush()
        text = subprocess.run([nvdisasm, "-hex", "-c", cubin.name], check=True, capture_output=True, text=True).stdout
    for words, low in re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);\s+/\* 0x([0-9a-f]{16}) \*/", text):
        name = re.sub(r"^@!?U?P\w+\s+", "", words).split()[0].split(".")[0]
        name = {"REDG": "RED"}.get(name, name)
        if name == "HFMA2" and "-RZ, RZ" in words:
            continue  # a constant loaded by the multiplier, not arithmetic of the kernel
        ours = sass_check.opcode(int(low, 16), arch)
        if ours == name:
            seen[ours] += 1
        elif ours is not None or name in sass_check.OPCODES.values():
            wrong.append(f"0x{int(low, 16) & 0xFFF:03x} is {name}, the table says {ours}: {words}")
print(f"{sum(seen.values())} instructions of {len(seen)} kinds agree: {', '.join(sorted(seen))}")
if wrong or not seen:
    sys.exit("FAILED: " + "\n        ".join(sorted(set(wrong))))
