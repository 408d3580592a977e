"""Ray and datatrove: the same bytes as one machine, also when a node is lost."""

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from lerobot_test import digests
from stopped import hold, wait_for_files
from tmaops.dataset import Refused, example


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    root = tmp_path_factory.mktemp("cluster") / "in"
    example.write(root, [400] * 32, files=16)
    return root


@pytest.fixture(scope="module")
def whole(source):
    tmaops.dataset.resample(source, source.parent / "whole", hz=2000, workers=1)
    return digests(source.parent / "whole")


def test_a_node_that_is_killed_changes_no_byte(source, whole, tmp_path, monkeypatch):
    pytest.importorskip("ray")
    import ray
    import tmaops.ray
    from ray.cluster_utils import Cluster

    for name, value in hold(tmp_path).items():
        monkeypatch.setenv(name, value)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        lost = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        seen = []

        def kill():
            seen.append(wait_for_files(tmp_path, lambda: not seen))
            cluster.remove_node(lost, allow_graceful=False)
            (tmp_path / "hold").unlink()

        killer = threading.Thread(target=kill)
        killer.start()
        report = tmaops.ray.resample_files(source, tmp_path / "out", hz=2000)
        killer.join()
        assert report.done and report.episodes == 32
        assert 3 <= seen[0] < 16, "the node was killed too late to matter"
        assert digests(tmp_path / "out") == whole
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_a_ray_dataset_is_resampled_by_episode(tmp_path):
    pytest.importorskip("ray")
    import ray
    import tmaops.ray

    rng = np.random.default_rng(4)
    times = np.concatenate([np.cumsum(rng.uniform(0.005, 0.02, 80)) for _ in range(5)])
    episode = np.repeat(np.arange(5), 80)
    yaw = (times * (episode == 3) * 9 + 2) % (2 * np.pi) - np.pi  # jumps in one of them alone
    table = pa.table({"timestamp": times, "x": np.sin(200 * times), "yaw": yaw, "episode": episode})
    pq.write_table(table, tmp_path / "in.parquet")
    options = {"hz": 50, "start": 0.1, "snap": 1e-3, "offset": 0.05, "max_gap": 0.0195, "mode": {"x": "nearest"}}
    report = tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "one.parquet", workers=1, **options)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        source = ray.data.read_parquet(str(tmp_path / "in.parquet"))
        with pytest.warns(UserWarning, match="energy of x is above half") as warned:
            ds = tmaops.ray.resample(source, episode_column="episode", **options)
        assert [str(each.message) for each in warned] == report.warnings
        for more, words in (
            ({"strict": True, "sort": True}, "strict.*energy of x"),
            ({"latency": {"x": 1}}, "stream"),
            ({"topics": ["/x"]}, "topics"),
            ({"copy": True}, "copy"),
        ):
            with pytest.raises(Refused, match=words):
                tmaops.ray.resample(source, episode_column="episode", **options, **more)
        rows = ds.to_pandas().sort_values(["episode", "timestamp"]).reset_index(drop=True)
    finally:
        ray.shutdown()
    one = pq.read_table(tmp_path / "one.parquet").to_pandas()
    assert list(rows.columns) == list(one.columns)
    np.testing.assert_array_equal(*(each.to_numpy(float, na_value=np.nan) for each in (rows, one)))


def test_datatrove_runs_every_share_and_again_only_what_is_missing(source, whole, tmp_path):
    pytest.importorskip("datatrove")
    from datatrove.executor import LocalPipelineExecutor
    from tmaops.dataset.datatrove import Resample

    step = Resample(source, tmp_path / "out", hz=2000)
    executor = LocalPipelineExecutor(
        [step], tasks=4, workers=2, start_method="spawn", logging_dir=str(tmp_path / "logs")
    )
    executor.run()
    assert digests(tmp_path / "out") == whole
