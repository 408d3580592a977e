"""Runs that wait in the middle: for a signal, or until a file is gone."""

import os
import subprocess
import sys
import time

PROGRAM = """
import signal, sys, time
from tmaops.dataset import cli, job
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without
digest, seen = job.file_digest, []

def wait(path):
    seen.append(path)
    if len(seen) > int(sys.argv[1]):
        print("waiting", flush=True)
        time.sleep(120)
    return digest(path)

job.file_digest = wait
sys.exit(cli.main(sys.argv[2:]))
"""


def run_and_stop(files, arguments, how):
    """Runs the tool in one process, and sends a signal when so many files are done and the next is written but not yet in its
    place. Returns how the process ended.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(files), *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(how)
    return process.wait(60)


#: Of every Python process that begins: files beyond the third wait before they are in their place, while `HOLD` is there.
HELD = """
import os, signal, time
from pathlib import Path
from tmaops.dataset import job
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without
digest, hold = job.file_digest, Path(os.environ["HOLD"])

def wait(path):
    while hold.exists() and len(list(hold.parent.glob("out.partial/data/*/file-*.parquet"))) >= 3:
        time.sleep(0.01)
    return digest(path)

job.file_digest = wait
"""


def hold(folder):
    """The environment of runs into folder/out that wait there while folder/hold exists."""
    (folder / "hold").touch()
    (folder / "start").mkdir()
    (folder / "start" / "sitecustomize.py").write_text(HELD)
    path = os.pathsep.join([str(folder / "start"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "HOLD": str(folder / "hold")}


def wait_for_files(folder, running):
    """Waits until three files of a run that is held are in their place. running(): whether it is still at work."""
    while len(found := list(folder.glob("out.partial/data/*/file-*.parquet"))) < 3:
        assert running(), "the run ended before it was held"
        time.sleep(0.01)
    return len(found)
