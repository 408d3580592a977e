"""Feeds damaged copies of a data set to the reader of its format, and prints what was neither a result nor a refusal.

hostile.py SOURCE SCRATCH COUNT
"""

import os
import random
import resource
import shutil
import signal
import sys
import traceback
from pathlib import Path

import tmaops.dataset
from tmaops import Error


def damaged(data, rng):
    """Bytes with one to four faults: bits turned, bytes cut off, zeroed, doubled, or numbers put to their ends."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not data:
            break
        at, length = rng.randrange(len(data)), rng.choice((1, 1, 2, 4, 8, 64))
        how = rng.randrange(6)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del data[at : len(data) if rng.random() < 0.3 else at + length]
        elif how == 2:
            data[at : at + length] = bytes(min(length, len(data) - at))
        elif how == 3:
            data[at:at] = data[at : at + length]
        elif how == 4:
            data[at : at + length] = b"\xff" * min(length, len(data) - at)
        else:
            data[at] = rng.randrange(256)
    return bytes(data)


def main(source, scratch, count):
    source, scratch = Path(source), Path(scratch)
    os.fsync = lambda descriptor: None  # nothing here has to outlive a power cut
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    names = [Path()] if source.is_file() else [p.relative_to(source) for p in sorted(source.rglob("*")) if p.is_file()]
    outcomes = {"done": 0, "refused": 0}
    for seed in range(int(os.environ.get("FIRST", 0)), count):
        rng = random.Random(seed)
        given = scratch / f"in{source.suffix}"
        if source.is_file():
            given.write_bytes(damaged(source.read_bytes(), rng))
        else:
            shutil.copytree(source, given)
            path = given / rng.choice(names)
            path.write_bytes(damaged(path.read_bytes(), rng))
        print("seed", seed, outcomes, file=sys.stderr, flush=True)
        signal.alarm(60)  # ends the process, also inside a library
        try:
            tmaops.dataset.resample(
                given, scratch / "out", hz=20, input_hz=10, workers=1, keep_going=rng.random() < 0.3
            )
            outcomes["done"] += 1
        except Error:
            outcomes["refused"] += 1
        except BaseException:
            print(f"seed {seed}:\n{traceback.format_exc()}")
        for path in scratch.iterdir():
            if ".partial" in path.name:
                print(f"seed {seed}: left {path.name}")
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    signal.alarm(0)
    print("seed", count - 1, outcomes, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
