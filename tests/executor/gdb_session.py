#!/usr/bin/env python3
"""The session of docs/executor.md in gdb: gdb_session.py GDB TOOL SOURCE says which of its answers did not come."""

import os
import subprocess
import sys

gdb, tool, source = sys.argv[1:]


def answers(fault, commands, environment):
    script = [word for command in commands for word in ("-ex", command)]
    command = [
        gdb,
        "-q",
        "-batch",
        "-x",
        source + "/src/executor/gdb.py",
        *script,
        "--args",
        tool,
        "probe-fault",
        fault,
    ]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    return done.stdout + done.stderr


def expect(text, *wanted):
    missing = [one for one in wanted if one not in text]
    if missing:
        sys.exit(f"no {missing} in\n{text}")


threads, barriers, copies = "info cuda-threads", "info mbarriers", "info copies"
expect(
    answers("expect_too_little", ["run", threads, barriers, copies], {"TMAOPS_EXECUTOR_BREAK": "1"}),
    "128 from thread 0 of block (0, 0, 0): waits for parity 0 of the barrier for the tile, stage 0",
    "with 1 of 1 arrivals and 8192 of 4096 bytes: 4096 bytes more came than it expects; 128 threads wait",
    "no copy is under way",
)
expect(
    answers("parity_early", ["cuda-break faults.cu:84 33", "run", threads, copies, "next", "cuda-thread 0"], {}),
    "1 from thread 33 of block (0, 0, 0): runs",
    "the tensor load at {8, 3}, issued at cuda/faults.cu:64 < cuda/faults.cu:83: has not begun",
    "to[i] = shared.tile[i]",
    "in __syncthreads",
)
