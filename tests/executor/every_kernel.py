#!/usr/bin/env python3
"""Runs every kernel that can be chosen on the executor by `tmaops verify`, and the faults of `tmaops probe`.

every_kernel.py TOOL verify [SEEDS]    no finding under any schedule, and no kernel that did not run
every_kernel.py TOOL same              the same seed gives the same findings
every_kernel.py TOOL faults SOURCE     each fault of probe is named as docs/tma.md says
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Of operators that verify does not run: tests/executor/kernels_test.cpp does.
RUN_ELSEWHERE = {"count_violations"}


def run(tool, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "findings.json"
        command = [tool, "verify", *arguments, "--json", "-q", "--findings", str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1) or not file.exists():
            sys.exit(f"{' '.join(command)} ends with {done.returncode}:\n{done.stderr}")
        return done, json.loads(done.stdout)["rows"], json.loads(file.read_text())["findings"]


def verify(tool, seeds="3"):
    jobs = [
        ("executor", "--seeds", seeds, "--operator", op, "--schedule", schedule)
        for op in ("gemm", "ms_deform_attn", "resample", "tile_load")
        for schedule in ("random", "eager", "lazy", "starving")
    ]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda job: run(tool, *job), jobs))
    listed = json.loads(subprocess.run([tool, "list", "--json"], capture_output=True, text=True, check=True).stdout)
    variants = [one for entry in listed for one in entry["variants"]]
    wanted = {one["name"] for one in variants if one["device"] == "cuda" and not one["study"]}
    missing = wanted - {row["selected"] for _, rows, _ in done for row in rows} - RUN_ELSEWHERE
    failed = [one.stderr for one, _, findings in done if one.returncode != 0 or findings]
    if failed:
        sys.exit("\n".join(failed))
    if missing:
        sys.exit("configs/executor.yaml has no problem for " + ", ".join(sorted(missing)))


def named(tool, fault):
    """The rules that a fault of probe breaks, in words."""
    return subprocess.run([tool, "probe-fault", fault], capture_output=True, text=True).stdout


def same(tool):
    first, second = named(tool, "release_missing"), named(tool, "release_missing")
    if first != second or ": " not in first:
        sys.exit(f"two runs of the same seed give\n{first}\nand\n{second}")


def faults(tool, source):
    table = (pathlib.Path(source) / "docs/tma.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (nothing|`\w+`(?:, `\w+`)*) \|$", table, re.MULTILINE))
    wrong = []
    for line in (pathlib.Path(source) / "measure/probe/faults.def").read_text().splitlines():
        match = re.match(r"TMAOPS_FAULT\((\w+),", line)
        if not match:
            continue
        got = re.findall(r"^(\w+): ", named(tool, match[1]), re.MULTILINE)
        said = re.findall(r"`(\w+)`", rows.get(match[1], "`no row`"))
        if sorted({one for one in got if one != "outcome"}) != sorted(said):
            wrong.append(f"{match[1]}: found {got}, docs/tma.md says {said}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    {"verify": verify, "same": same, "faults": faults}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
