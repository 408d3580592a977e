#!/usr/bin/env python3
"""Checks what `tmaops dataset resample` may take: 600 MB of memory for a million episodes, and 3 minutes of two cores for an
hour of messages at 1 kHz. Prints a line of JSON for each; exit code 1 where one takes more.

    scripts/dataset_limits.py                        # with the package, pyarrow, rosbags and mcap
    scripts/dataset_limits.py --share 0.01           # of the episodes and messages, as a trial
"""

import argparse
import json
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BEGIN = 1_760_000_000  # seconds since 1970
ROWS = 4  # of an episode, at 20 per second


def write_episodes(path: Path, count: int) -> None:
    """Short episodes in one table."""
    schema = pa.schema([("timestamp", pa.float64()), ("x", pa.float32()), ("episode_index", pa.int64())])
    with pq.ParquetWriter(path, schema) as file:
        for part in np.array_split(np.arange(count), 10):
            times = np.tile(np.arange(ROWS) / 20, part.size)
            columns = [times, np.sin(times).astype(np.float32), np.repeat(part, ROWS)]
            file.write_table(pa.table(columns, schema=schema))


def write_messages(path: Path, count: int) -> None:
    """Messages of ROS 2 at 1 kHz, each of a stamp and three numbers."""
    from mcap.writer import Writer
    from rosbags.typesys import Stores, get_typestore

    store, kind = get_typestore(Stores.ROS2_HUMBLE), "geometry_msgs/msg/PointStamped"
    types = store.types
    stamp, point = types["builtin_interfaces/msg/Time"](BEGIN, 0), types["geometry_msgs/msg/Point"](0.0, 1.0, 2.0)
    message = bytearray(store.serialize_cdr(types[kind](types["std_msgs/msg/Header"](stamp, ""), point), kind))
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema(kind, "ros2msg", store.generate_msgdef(kind)[0].encode())
        channel = writer.register_channel("/point", "cdr", schema)
        for i in range(count):
            struct.pack_into("<iI", message, 4, BEGIN + i // 1000, i % 1000 * 10**6)
            struct.pack_into("<d", message, len(message) - 24, i / 1000)
            writer.add_message(channel, BEGIN * 10**9 + i * 10**6, bytes(message), 0)
        writer.finish()


def run(source: Path, hz: int, workers: int) -> dict[str, float]:
    """The seconds and the most megabytes of a run in a process of its own."""
    begin = time.monotonic()
    code = (
        f"import tmaops.dataset as d; d.resample({str(source)!r}, {str(source) + '.out'!r}, hz={hz}, workers={workers})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": round(time.monotonic() - begin, 1), "megabytes": round(used.ru_maxrss / 1024)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0)
    share = parser.parse_args().share
    with tempfile.TemporaryDirectory() as folder:
        episodes, messages = Path(folder) / "episodes.parquet", Path(folder) / "hour.mcap"
        write_episodes(episodes, int(1e6 * share))
        many = {"episodes": int(1e6 * share), **run(episodes, 10, workers=1)}
        print(json.dumps(many), flush=True)
        write_messages(messages, int(3.6e6 * share))
        hour = {"messages": int(3.6e6 * share), **run(messages, 50, workers=2)}
        print(json.dumps(hour))
    return int(many["megabytes"] > 600 or hour["seconds"] > 180)


if __name__ == "__main__":
    sys.exit(main())
