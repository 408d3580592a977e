#!/usr/bin/env python3
"""What `tmaops wgmma` says of an operand is how wgmma reads it: every layout of A with every layout of B, on the executor.

wgmma_operands.py TMAOPS PROGRAM     the tool, and the program of wgmma_operands.cu
"""

import itertools
import json
import subprocess
import sys


def operand(tool, major, swizzle):
    command = [tool, "wgmma", "--json", "--tile", "64x64", "--major", major, "--swizzle", swizzle]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    numbers = [told["descriptor"], told["loads"], told["box"][0], *told["step_bytes"]]
    return [major, swizzle, *map(str, numbers)]


def main():
    tool, program = sys.argv[1:]
    operands = [operand(tool, *layout) for layout in itertools.product(("k", "mn"), ("none", "32B", "64B", "128B"))]
    wrong = 0
    for a, b in itertools.product(operands, repeat=2):
        done = subprocess.run([program, *a, *b], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            wrong += 1
            print("A", *a[:2], "B", *b[:2], done.stdout, done.stderr)
    print(f"{len(operands) ** 2 - wrong} of {len(operands) ** 2} products are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
