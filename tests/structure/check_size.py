#!/usr/bin/env python3
"""Holds the tree to its size: lines of C++, CUDA and Python, without tests, scripts and documents.

  check_size.py SOURCE_DIR     prints the lines of every part; exits 1 when the product or the whole has more than it may
  check_size.py --self-test    show that too many lines are found

The ceilings go down alone: who deletes lines lowers them. src/offers, by which the wings meet, counts with them: the product has no use
for it. The goals are 40,000 for the product and 62,000 for the whole. The
executor, which checks kernels in a build of its own, is not counted.
"""

import pathlib
import sys

CEILINGS = {"product": 44_290, "whole": 72_044}
GOALS = {"product": 40_000, "whole": 62_000}
PRODUCT = ("include", "src", "python")
WINGS = ("tool", "study", "measure", "datasets")
KINDS = (".h", ".hpp", ".cpp", ".cu", ".cuh", ".inc", ".def", ".py")


def lines_of(root):
    """{folder: lines}; src by its rooms."""
    lines = {}
    for top in (*PRODUCT, *WINGS):
        for path in (root / top).rglob("*"):
            parts = path.relative_to(root).parts
            if path.suffix not in KINDS or not path.is_file() or parts[:2] == ("src", "executor"):
                continue
            room = "/".join(parts[: 2 if top == "src" and len(parts) > 2 else 1])
            lines[room] = lines.get(room, 0) + path.read_bytes().count(b"\n")
    return lines


def sums(lines):
    product = sum(count for room, count in lines.items() if room.split("/")[0] in PRODUCT and room != "src/offers")
    return {"product": product, "whole": sum(lines.values())}


def check(counts, ceilings):
    found = []
    for what, count in counts.items():
        if count > ceilings[what]:
            found.append(f"the {what} has {count} lines, {count - ceilings[what]} more than it may: delete as many")
    return found


def main():
    if sys.argv[1:] == ["--self-test"]:
        counts = sums({"src/core": 60, "include": 20, "python": 20, "tool": 40, "src/offers": 10})
        assert counts == {"product": 100, "whole": 150}
        assert check(counts, {"product": 100, "whole": 150}) == []
        assert len(check(counts, {"product": 99, "whole": 149})) == 2
        assert "delete as many" in check(counts, {"product": 90, "whole": 150})[0]
        return 0
    lines = lines_of(pathlib.Path(sys.argv[1]))
    counts = sums(lines)
    for room, count in sorted(lines.items()):
        print(f"{count:7d} {room}")
    for what, count in counts.items():
        print(f"{count:7d} the {what}, at most {CEILINGS[what]}; goal {GOALS[what]}")
    found = check(counts, CEILINGS)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
