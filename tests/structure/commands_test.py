#!/usr/bin/env python3
"""Runs the commands of README and docs as a reader types them, in a folder with the files that they name.

  commands_test.py TOOL SOURCE_DIR

A command of `tmaops` in a block of a document ends with 0, or stands in NEEDS with what this test has not.
"""

import gzip
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

# What a command is known by, and what it needs.
NEEDS = {
    r"--device cuda|^tmaops probe": "a GPU",
    r"^tmaops (dataset|report) |--plot": "the Python package, whose tests call it",
    r"^tmaops bench quick": "a minute: `make run` runs it",
    r"\(--hz F \|": "words for IN and OUT: it is the usage",
    r"tum_fr2_desk": "a recording of TUM, which its page says where to get",
    r"--dump -": "a terminal",
}
# What may end otherwise than with 0.
CODES = {
    "--dims 92,160,32": (1,),  # the map whose fault its page explains
    "tmaops doctor": (0, 1),  # 1: it has found a problem
    "onednn": (0, 3),  # 3: a build without oneDNN does the rest
}

TUM = "".join(f"{100 + 0.01 * i:.2f} {i}.0 0 1 0 0 0 1\n" for i in range(500))
CSV = "timestamp [ns],wx,wy\n" + "".join(f"{10**18 + 10**7 * i},{i}.5,0\n" for i in range(500))
EUROC = "#timestamp,p_x [m],p_y [m],p_z [m],q_w [],q_x [],q_y [],q_z []\n" + "".join(
    f"{10**18 + 5 * 10**6 * i},{i}.0,0,0,1,0,0,0\n" for i in range(500)
)
DUMP = """TMA Desc Addr:   0x7ffe
format         6
dim            2
gmem_address   0x7f0000000000
globalDim      (1024,1024,1,1,1)
globalStrides  (2,2048,0,0,0)
boxDim         (64,64,1,1,1)
elementStrides (1,1,1,1,1)
swizzle        3
"""


def npy(values, width=0, code="d"):
    shape = f"({len(values) // (width or 1)}, {width})" if width else f"({len(values)},)"
    header = f"{{'descr': '<{'f8' if code == 'd' else 'i8'}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(header))
        + header.encode()
        + struct.pack(f"<{len(values)}{code}", *values)
    )


def make_files():
    """In the working folder, what the documents' reader has."""
    for name in ("groundtruth.txt", "run.tum"):
        pathlib.Path(name).write_text(TUM, encoding="utf-8")
    pathlib.Path("camera.txt").write_text(
        "".join(f"{100.02 + 0.033 * i:.3f} a.png\n" for i in range(100)), encoding="utf-8"
    )
    pathlib.Path("imu.csv").write_text(CSV, encoding="utf-8")
    pathlib.Path("imu.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    pathlib.Path("stamps.npy").write_bytes(npy([10**18 + 10**7 * i for i in range(10, 400)], code="q"))
    pathlib.Path("mav0/state_groundtruth_estimate0").mkdir(parents=True)
    pathlib.Path("mav0/state_groundtruth_estimate0/data.csv").write_text(EUROC, encoding="utf-8")
    pathlib.Path("log.txt").write_text(DUMP, encoding="utf-8")
    with zipfile.ZipFile("episodes.npz", "w") as archive:
        archive.writestr("timestamp.npy", npy([0.01 * i for i in range(200)]))
        archive.writestr("state.npy", npy([0, 0, 0, 0, 0, 0, 1.0] * 200, width=7))
        archive.writestr("gripper.npy", npy([0.0, 1.0] * 100))


def commands(source):
    """(document, command) of every line of a block that calls the tool."""
    for document in (source / "README.md", *sorted((source / "docs").rglob("*.md"))):
        for language, block in re.findall(
            r"^```(\w*)\n(.*?)^```", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            for line in block.replace("\\\n", " ").splitlines() if language in ("", "sh", "bash") else ():
                if re.match(r"(\$ )?(\w+ \S+ \| )?tmaops ", line):
                    yield document.name, re.sub(r"\s+# .*", "", line.removeprefix("$ "))


def main():
    tool, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    found = list(commands(source))
    failed = [
        f"no command is as {known}, which needs {what}"
        for known, what in NEEDS.items()
        if not any(re.search(known, command) for _, command in found)
    ]
    run = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_files()
        for document, command in found:
            if any(re.search(known, command) for known in NEEDS):
                continue
            run += 1
            more = " -f" if " -o " in command and "-o -" not in command else ""
            line = command.replace(" > ", f"{more} > ") if " > " in command else command + more
            done = subprocess.run(
                line,
                shell=True,
                env={**os.environ, "PATH": path},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            codes = next((codes for known, codes in CODES.items() if known in command), (0,))
            if done.returncode not in codes:
                failed.append(
                    f"{document}: `{command}` ends with {done.returncode}: {(done.stderr or done.stdout)[-1500:]}"
                )
        os.chdir("/")
    print("\n".join(failed) or f"{run} of the documents' {len(found)} commands run; the others need what NEEDS says")
    return 1 if failed or run < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
