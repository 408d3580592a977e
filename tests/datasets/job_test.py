"""Runs that are stopped, go on, meet a full disk or a folder of another job."""

import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from lerobot_test import data_of, digests
from stopped import hold, run_and_stop, wait_for_files
from tmaops.dataset import Refused, example, job

COMMAND = [sys.executable, "-c", "import sys; from tmaops.dataset.cli import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    root = tmp_path_factory.mktemp("many") / "in"
    example.write(root, [300] * 24, files=12)
    return root


@pytest.fixture(scope="module")
def whole(source):
    out = source.parent / "whole"
    tmaops.dataset.resample(source, out, hz=137, workers=1)
    return digests(out)


def arguments(source, out, *more):
    return ["resample", source, out, "--hz", "137", "--workers", "1", "--quiet", *more]


def start(source, out, *more):
    return subprocess.Popen(
        COMMAND + [str(a) for a in arguments(source, out, *more)], stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("files", [0, 1, 5])
def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(source, whole, tmp_path, how, files):
    out = tmp_path / "out"
    assert run_and_stop(files, arguments(source, out), how) == (130 if how == signal.SIGINT else -how)
    assert not out.exists() and len(list((tmp_path / "out.partial").glob("data/*/file-*.parquet"))) == files
    again = start(source, out)
    assert again.wait(60) == 2 and "--resume" in again.stderr.read()
    assert start(source, out, "--resume").wait(60) == 0
    assert digests(out) == whole


def test_what_is_done_is_not_done_again(source, tmp_path):
    out = tmp_path / "out"
    tmaops.dataset.resample(source, out, hz=137, workers=1, shard=(0, 2))
    report = tmaops.dataset.resample(source, out, hz=137, workers=1, resume=True)
    assert report.done and report.reused == 6 and report.units == 12


def test_another_job_is_not_taken_over(source, tmp_path):
    tmaops.dataset.resample(source, tmp_path / "out", hz=137, workers=1, shard=(0, 2))
    with pytest.raises(Refused, match="another input or other options"):
        tmaops.dataset.resample(source, tmp_path / "out", hz=30, workers=1, resume=True)


def test_an_output_that_exists_is_refused(source, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(Refused, match="a path that exists"):
        tmaops.dataset.resample(source, tmp_path / "out", hz=30)


def test_a_changed_input_file_is_done_anew(source, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    tmaops.dataset.resample(copy, tmp_path / "out", hz=137, workers=1, shard=(0, 2))
    os.utime(copy / "data" / "chunk-000" / "file-000.parquet", ns=(1, 1))
    assert tmaops.dataset.resample(copy, tmp_path / "out", hz=137, workers=1, resume=True).reused == 5


def test_a_damaged_file_is_refused_by_name_or_its_episodes_are_left_out(source, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    path = copy / "data" / "chunk-000" / "file-003.parquet"
    data = bytearray(path.read_bytes())
    data[: len(data) // 3] = bytes(len(data) // 3)
    path.write_bytes(data)
    with pytest.raises(Refused, match="file-003"):
        tmaops.dataset.resample(copy, tmp_path / "out", hz=137, workers=1)
    report = tmaops.dataset.resample(copy, tmp_path / "rest", hz=137, workers=1, keep_going=True)
    assert report.done and report.episodes == 22 and sorted(report.failed) == ["6", "7"]
    rows = data_of(tmp_path / "rest")
    assert rows.column("index").to_pylist() == list(range(rows.num_rows))
    assert sorted(set(rows.column("episode_index").to_pylist())) == list(range(22))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_loses_nothing(source, whole, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], stderr=subprocess.DEVNULL
    ).returncode:
        pytest.skip("no mounts here")
    try:
        process = start(source, disk / "out", "--keep-going")  # a full disk is no fault of an episode
        assert process.wait(60) == 2 and "No space left" in process.stderr.read()
        assert not (disk / "out").exists()
        assert subprocess.run(["mount", "-o", "remount,size=50m", str(disk)]).returncode == 0
        assert start(source, disk / "out", "--resume", "--keep-going").wait(60) == 0
        assert digests(disk / "out") == whole
    finally:
        subprocess.run(["umount", str(disk)])


@pytest.mark.parametrize("step", ["move", "remove_tree"])
@pytest.mark.parametrize("single", [False, True])
def test_a_run_that_was_stopped_at_its_very_end_goes_on(source, tmp_path, monkeypatch, step, single):
    def stop(*_):
        raise KeyboardInterrupt

    given = source
    if single:
        given = tmp_path / "one.parquet"
        pq.write_table(pa.table({"time": np.arange(30.0), "x": np.arange(30.0)}), given)
    tmaops.dataset.resample(given, tmp_path / "whole", hz=137, workers=1)
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        stopped.setattr(f"tmaops.dataset.job.{step}", stop)
        tmaops.dataset.resample(given, tmp_path / "out", hz=137, workers=1)
    assert tmaops.dataset.resample(given, tmp_path / "out", hz=137, workers=1, resume=True).done
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("out")) == ["out"]
    if single:
        assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    else:
        assert digests(tmp_path / "out") == digests(tmp_path / "whole")
    with pytest.raises(Refused, match="a path that exists"):
        tmaops.dataset.resample(given, tmp_path / "out", hz=137, workers=1, resume=True)


def test_progress_says_episodes_bytes_and_the_time_left(source, tmp_path):
    leader, follower = pty.openpty()
    command = [*COMMAND, "resample", str(source), str(tmp_path / "out"), "--hz", "2000", "--workers", "1"]
    process = subprocess.Popen(command, stderr=follower)
    os.close(follower)
    said = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(leader)
    assert process.wait(60) == 0
    assert re.search(rb"\d+ %  \d+ episodes/s  \d+ MB/s  \d+ s left", said), said
    assert b"24 episodes, 7200 -> " in said


def workers_of(parent):
    """The child processes that do units of work."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            above = int(entry.read_text().rsplit(")", 1)[1].split()[1])
            if above == parent and b"spawn_main" in (entry.parent / "cmdline").read_bytes():
                found.append(int(entry.parent.name))
    return found


@pytest.mark.parametrize("delay", [0, 0.05, 0.6])
def test_a_worker_that_is_killed_ends_the_run_with_words(source, tmp_path, delay):
    command = [*COMMAND, "resample", str(source), str(tmp_path / "out"), "--hz", "20000", "--workers", "3"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    end, workers = time.monotonic() + 60, []
    while len(workers) < 2 and time.monotonic() < end:
        workers = workers_of(process.pid)
    time.sleep(delay)  # while it starts, or while it works
    os.kill(workers[0], signal.SIGKILL)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 2 and "killed" in said and "--resume" in said
    assert tmaops.dataset.resample(source, tmp_path / "out", hz=20000, workers=1, resume=True).done


def test_a_program_without_a_main_guard_and_with_its_own_path_has_workers(source, whole, tmp_path):
    program = "import sys, tmaops.dataset\nsys.path.insert(0, '/nowhere')\ntmaops.dataset.resample(*sys.argv[1:], hz=137, workers=3)\n"
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", source, tmp_path / "out"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and not done.stderr
    assert digests(tmp_path / "out") == whole


def test_ctrl_c_ends_a_run_with_several_workers(source, tmp_path):
    command = [*COMMAND, "resample", str(source), str(tmp_path / "out"), "--hz", "10000", "--workers", "3"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, env=hold(tmp_path))
    wait_for_files(tmp_path, lambda: process.poll() is None)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the children get it, too
    (tmp_path / "hold").unlink()  # children end the files that they have begun
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and said.strip() == "interrupted; --resume goes on from here"
    assert not workers_of(process.pid) and not list((tmp_path / "out.partial").rglob(".*.tmp"))
    assert tmaops.dataset.resample(source, tmp_path / "out", hz=10000, workers=1, resume=True).done


def write_much(path, size):
    """A table of about so many bytes, in episodes of 8 MB with an image a row, in one row group of each 64 MB."""
    rng = np.random.default_rng(1)
    schema = pa.schema(
        [
            ("time", pa.float64()),
            ("episode", pa.int64()),
            ("state", pa.list_(pa.float32(), 250)),
            ("image", pa.binary()),
        ]
    )
    rows = 1000
    with pq.ParquetWriter(path, schema, compression="NONE", use_dictionary=False) as writer:
        episode = 0
        while episode * 8e6 < size:
            tables = []
            for episode in range(episode, episode + 8):
                state = pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(rows * 250, np.float32)), 250)
                image = pa.array([rng.bytes(7000)] * rows, pa.binary())
                tables.append(pa.table([np.arange(rows) / 50, np.full(rows, episode), state, image], schema=schema))
            writer.write_table(pa.concat_tables(tables), row_group_size=8 * rows)
            episode += 1


@pytest.mark.parametrize(
    "size",
    [400 << 20, pytest.param(2 << 30, marks=pytest.mark.skipif("BIG" not in os.environ, reason="BIG=1 runs it"))],
)
def test_memory_does_not_grow_with_the_input(tmp_path, size):
    write_much(tmp_path / "in.parquet", size)
    assert (tmp_path / "in.parquet").stat().st_size >= size
    code = (
        "import sys, tmaops.dataset\n"
        "tmaops.dataset.resample(sys.argv[1], sys.argv[2], hz=30, workers=1)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "in.parquet", tmp_path / "out.parquet"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 500_000, (
        f"{done.stdout} KiB at most"
    )  # of a process; the interpreter and Arrow are 150,000
    (tmp_path / "in.parquet").unlink()
    (tmp_path / "out.parquet").unlink()


def tables(folder):
    folder.mkdir()
    pq.write_table(pa.table({"time": np.arange(30.0), "x": np.arange(30.0)}), folder / "a.parquet")
    return folder


def test_a_refusal_leaves_nothing_and_what_a_killed_run_left_does_not_block_other_options(source, whole, tmp_path):
    given = tables(tmp_path / "given")
    for options in ({"modes": {"no": "linear"}}, {"time_column": "no"}, {"max_gap": {"imu": 1}}):
        with pytest.raises(Refused):
            tmaops.dataset.resample(given, tmp_path / "out", hz=2, workers=1, **options)
    with pytest.raises(Refused):
        tmaops.dataset.resample(tmp_path / "nowhere", tmp_path / "out", hz=2)
    assert [p.name for p in tmp_path.iterdir()] == ["given"]
    out = tmp_path / "again"
    wrong = ["resample", source, out, "--hz", "173", "--workers", "1", "--quiet"]
    assert run_and_stop(2, wrong, signal.SIGKILL) == -signal.SIGKILL
    assert start(source, out).wait(60) == 0 and digests(out) == whole


def test_a_run_at_work_is_not_disturbed_by_one_of_other_options(source, tmp_path):
    command = [*COMMAND, "resample", str(source), str(tmp_path / "out"), "--hz", "3000", "--workers", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=hold(tmp_path))
    wait_for_files(tmp_path, lambda: process.poll() is None)
    with pytest.raises(Refused, match="another input or other options"):
        tmaops.dataset.resample(source, tmp_path / "out", hz=30, workers=1)
    (tmp_path / "hold").unlink()
    assert process.wait(60) == 0 and (tmp_path / "out").is_dir()


def test_a_unit_that_is_refused_in_the_middle_leaves_nothing(tmp_path):
    given = tables(tmp_path / "given")
    quaternion = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(120)), 4)  # of no direction
    pq.write_table(pa.table({"time": np.arange(30.0), "quat": quaternion}), given / "a.parquet")
    with pytest.raises(Refused, match="column 'quat'"):
        tmaops.dataset.resample(given, tmp_path / "out", hz=2, workers=1)
    assert [p.name for p in tmp_path.iterdir()] == ["given"]


def test_places_that_cannot_work_are_refused_by_name_before_any_work(tmp_path):
    given = tables(tmp_path / "given")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    bad = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    cases = [(given, tmp_path / "dangling", "a link to nothing"), (given, given / "sub" / "out", "inside the input")]
    cases.append((given, bad, "not UTF-8"))
    odd = tables(tmp_path / "odd")
    (odd / "a.parquet").rename(odd / os.fsdecode(b"\xff.parquet"))
    cases.append((odd, tmp_path / "out", "not UTF-8"))
    pq.write_table(
        pa.table({"time": pa.array([], pa.float64()), "x": pa.array([], pa.float64())}), tmp_path / "zero.parquet"
    )
    cases.append((tmp_path / "zero.parquet", tmp_path / "out.parquet", "no episode"))
    (tmp_path / "rlds").mkdir()
    (tmp_path / "rlds" / "droid-train.tfrecord-00000-of-00001").write_bytes(b"x")
    cases.append((tmp_path / "rlds", tmp_path / "out", "tensorflow_datasets"))
    (tmp_path / "run.csv").write_text("t,x\n0,1\n")
    cases.append((tmp_path / "run.csv", tmp_path / "out", "tmaops resample"))
    for source, out, why in cases:
        with pytest.raises(Refused, match=why):
            tmaops.dataset.resample(source, out, hz=2, workers=1)
        assert not out.exists() and not out.with_name(out.name + ".partial").exists(), why


def test_memory_hardly_grows_with_the_number_of_episodes(tmp_path):
    episodes = 200_000
    table = pa.table(
        {
            "timestamp": np.tile(np.arange(4) / 10, episodes),
            "x": np.zeros(4 * episodes),
            "episode": np.repeat(np.arange(episodes), 4),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    code = (
        "import sys, resource, tmaops.dataset\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "tmaops.dataset.resample(sys.argv[1], sys.argv[2], hz=10, workers=1)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    command = [sys.executable, "-c", code, tmp_path / "in.parquet", tmp_path / "out.parquet"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 170_000, f"{done.stdout} KiB, of which the columns of two batches are 100,000"


def test_an_option_that_means_nothing_for_a_format_is_refused_by_name(source, tmp_path):
    pq.write_table(pa.table({"t": np.arange(9.0), "x": np.arange(9.0)}), tmp_path / "in.parquet")
    (tmp_path / "in.mcap").write_bytes(b"")
    for given, option in (
        (source, {"time_unit": "ms"}),
        (source, {"topics": "/a"}),
        (tmp_path / "in.parquet", {"times": "record"}),
        (tmp_path / "in.mcap", {"time_column": "t"}),
        (tmp_path / "in.mcap", {"episode_column": "e"}),
        (tmp_path / "in.mcap", {"input_hz": 20}),
        (source, {"input_hz": 20}),
    ):
        with pytest.raises(tmaops.dataset.Refused, match=f"{next(iter(option))}: got .* for "):
            tmaops.dataset.resample(given, tmp_path / "out", hz=20, **option)
        with pytest.raises(tmaops.dataset.Refused, match=f"{next(iter(option))}: got .* for "):
            tmaops.dataset.inspect(given, **option)
    for name in ("in.parquet", "in.mcap"):
        with pytest.raises(tmaops.dataset.Refused, match="copy: got True for "):
            tmaops.dataset.resample(tmp_path / name, tmp_path / "out", hz=20, copy=True)
    with pytest.raises(tmaops.dataset.Refused, match="align: got 'yes'; needed one of True, False"):
        tmaops.dataset.resample(source, tmp_path / "out", hz=20, align="yes")


def test_a_rate_of_episodes_without_times_is_refused_beside_times(tmp_path):
    import h5py
    import zarr

    times = np.arange(9.0)
    pq.write_table(pa.table({"t": times, "x": times}), tmp_path / "in.parquet")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.update({"t": times, "x": times})
    group = zarr.open_group(str(tmp_path / "in.zarr"), mode="w", zarr_format=2)
    for name, values in (("data/t", times), ("data/x", times), ("meta/episode_ends", np.array([9]))):
        group.create_array(name, data=values)
    for ending in ("parquet", "h5", "zarr"):
        with pytest.raises(tmaops.dataset.Refused, match="input_hz: got 50; .* every episode has timestamps"):
            tmaops.dataset.resample(tmp_path / f"in.{ending}", tmp_path / "out", hz=2, input_hz=50, workers=1)


def test_shards_that_begin_together_leave_each_others_files_alone(tmp_path, monkeypatch):
    """One noted its options before it held its lock, and the other took the half-written note for one of a run that had ended."""
    write = job.write_whole

    def meanwhile(path, text):
        monkeypatch.setattr(job, "write_whole", write)
        half = path.with_name(f".{path.name}.1.tmp")
        half.parent.mkdir(parents=True, exist_ok=True)
        half.write_text(text)
        with job._Claim(tmp_path / "out.partial", text, True):
            assert half.exists()
        half.rename(path)

    monkeypatch.setattr(job, "write_whole", meanwhile)
    with job._Claim(tmp_path / "out.partial", "{}", True):
        assert (tmp_path / "out.partial" / job.WORK / "job.json").read_text() == "{}"
    (tmp_path / "out.partial" / job.WORK / ".left.1.tmp").touch()
    with job._Claim(tmp_path / "out.partial", "{}", True):  # alone: what a run left goes
        assert not list(tmp_path.rglob("*.tmp"))
