"""A run of the tool that is stopped in the middle: it waits there until the signal comes."""

import subprocess
import sys

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
