"""Runs that are stopped, go on, meet a full disk or a folder of another job."""

import os
import signal
import subprocess
import sys
import time

import pytest
from lerobot_test import data_of, digests

import tmaops.dataset
from tmaops.dataset import Refused, example

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

def start(source, out, *more):
    arguments = ["resample", str(source), str(out), "--hz", "137", "--workers", "1", "--quiet", *more]
    return subprocess.Popen(COMMAND + arguments, stderr=subprocess.PIPE, text=True)

def stop_after(process, partial, files, how):
    """Sends a signal once so many data files are there."""
    end = time.monotonic() + 60
    while len(list(partial.glob("data/*/file-*.parquet"))) < files and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    process.send_signal(how)
    return process.wait(60)

@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("files", [0, 1, 5])
def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(source, whole, tmp_path, how, files):
    out = tmp_path / "out"
    process = start(source, out)
    code = stop_after(process, tmp_path / "out.partial", files, how)
    assert code in (130, -how, 1) and not out.exists()
    if not (tmp_path / "out.partial").exists():
        return  # stopped before it began
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
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    tmaops.dataset.resample(copy, tmp_path / "out", hz=137, workers=1, shard=(0, 2))
    os.utime(copy / "data" / "chunk-000" / "file-000.parquet", ns=(1, 1))
    assert tmaops.dataset.resample(copy, tmp_path / "out", hz=137, workers=1, resume=True).reused == 5

def test_a_damaged_file_is_refused_by_name_or_its_episodes_are_left_out(source, tmp_path):
    import shutil

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
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no mounts here")
    try:
        process = start(source, disk / "out")
        assert process.wait(60) == 2 and "No space left" in process.stderr.read()
        assert not (disk / "out").exists()
        assert subprocess.run(["mount", "-o", "remount,size=50m", str(disk)]).returncode == 0
        assert start(source, disk / "out", "--resume").wait(60) == 0
        assert digests(disk / "out") == whole
    finally:
        subprocess.run(["umount", str(disk)])
