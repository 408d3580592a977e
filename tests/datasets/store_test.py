"""Object stores through fsspec: the same bytes as on the disk, and runs that go on. A local server stands for S3."""

import hashlib
import os
import signal

import pytest
import tmaops.dataset
import with_camera
from lerobot_test import digests
from stopped import run_and_stop
from tmaops.dataset import Refused

for needed in ("moto.server", "s3fs", "upath"):
    pytest.importorskip(needed)


@pytest.fixture(scope="module")
def store():
    """An S3 server of this machine with the bucket `robots`; the environment names it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    wanted = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "NO_PROXY": host,
        "no_proxy": host,
    }
    before = {key: os.environ.get(key) for key in wanted}
    os.environ.update(wanted)
    import s3fs

    s3fs.S3FileSystem().mkdir("robots")
    yield s3fs.S3FileSystem()
    server.stop()
    for key, value in before.items():
        os.environ.pop(key) if value is None else os.environ.update({key: value})


@pytest.fixture(scope="module")
def source(store, tmp_path_factory):
    root = tmp_path_factory.mktemp("store") / "in"
    with_camera.write(root, [200] * 12, files=6)
    store.put(str(root), "robots/in", recursive=True)
    return root


@pytest.fixture(scope="module")
def here(source):
    tmaops.dataset.resample(source, source.parent / "out", hz=137, workers=1)
    return digests(source.parent / "out")


def digests_there(store, root):
    store.invalidate_cache()
    found = store.find(root)
    return {path.removeprefix(root + "/"): hashlib.sha256(store.cat_file(path)).hexdigest() for path in found}


def without_manifest(found):
    return {name: digest for name, digest in found.items() if name != "tmaops_manifest.json"}


def test_a_set_in_a_store_becomes_the_bytes_of_one_on_the_disk(store, source, here, tmp_path):
    report = tmaops.dataset.resample("s3://robots/in", "s3://robots/out", hz=137, workers=2)
    assert report.done and report.episodes == 12
    assert digests_there(store, "robots/out") == here
    tmaops.dataset.resample("s3://robots/in", tmp_path / "down", hz=137, workers=1)
    assert digests(tmp_path / "down") == here
    tmaops.dataset.resample(source, "s3://robots/up", hz=137, workers=1)
    assert digests_there(store, "robots/up") == here
    with pytest.raises(Refused, match="a path that exists"):
        tmaops.dataset.resample("s3://robots/in", "s3://robots/out", hz=30)
    with pytest.raises(Refused, match="a path that exists"):
        tmaops.dataset.resample("s3://robots/in", "s3://robots/in", hz=30)
    assert [c.samples for c in tmaops.dataset.inspect("s3://robots/in").clocks] == [200] * 12


def test_a_killed_run_goes_on_in_the_store(store, here):
    arguments = ["resample", "s3://robots/in", "s3://robots/again", "--hz", "137", "--workers", "1", "--quiet"]
    assert run_and_stop(2, arguments, signal.SIGKILL) == -signal.SIGKILL
    store.invalidate_cache()
    assert len(store.glob("robots/again/data/*/*.parquet")) == 2
    assert not store.exists("robots/again/tmaops_manifest.json") and not store.exists("robots/again/meta/info.json")
    with pytest.raises(Refused, match="--resume"):
        tmaops.dataset.resample("s3://robots/in", "s3://robots/again", hz=137, workers=1)
    report = tmaops.dataset.resample("s3://robots/in", "s3://robots/again", hz=137, workers=1, resume=True)
    assert report.done and report.reused == 2
    assert digests_there(store, "robots/again") == here


def test_one_file_in_a_store(store, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["timestamp"] = [0.0, 0.1, 0.2, 0.3]
        file["x"] = [0.0, 1.0, 2.0, 3.0]
    store.put_file(str(tmp_path / "in.h5"), "robots/one/in.h5")
    tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=20, workers=1)
    tmaops.dataset.resample("s3://robots/one/in.h5", "s3://robots/one/out.h5", hz=20, workers=1)
    assert store.cat_file("robots/one/out.h5") == (tmp_path / "out.h5").read_bytes()
    assert not store.exists("robots/one/out.h5.partial")
