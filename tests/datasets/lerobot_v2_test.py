"""LeRobot v2.1 sets: a file for each episode, lines of JSON beside them."""

import json
import os

import known
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from tmaops.dataset import Refused

CAMERA = "observation.images.top"
LENGTHS = [40, 25, 31]


def state(episode, frames):
    return np.stack([np.arange(frames) * 0.1 + episode, np.cos(np.arange(frames) / 7)], axis=1).astype(np.float32)


def write(root, lengths=LENGTHS, fps=20, version="v2.1"):
    """A set as LeRobot 2.1 writes it, with a camera whose files hold no video: nothing here decodes one."""
    (root / "meta").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    (root / f"videos/chunk-000/{CAMERA}").mkdir(parents=True)
    rows, stats, index = [], [], 0
    for episode, frames in enumerate(lengths):
        values = state(episode, frames)
        table = {
            "observation.state": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 2),
            "next.done": np.arange(frames) == frames - 1,
            "timestamp": (np.arange(frames) / fps).astype(np.float32),
            "frame_index": np.arange(frames),
            "episode_index": np.full(frames, episode),
            "index": np.arange(index, index + frames),
            "task_index": np.zeros(frames, np.int64),
        }
        pq.write_table(pa.table(table), root / f"data/chunk-000/episode_{episode:06d}.parquet")
        (root / f"videos/chunk-000/{CAMERA}/episode_{episode:06d}.mp4").write_bytes(b"video %d" % episode)
        rows.append({"episode_index": episode, "tasks": ["push"], "length": frames})
        numbers = {"min": values.min(0), "max": values.max(0), "mean": values.mean(0), "std": values.std(0)}
        numbers = {key: value.tolist() for key, value in numbers.items()} | {"count": [frames]}
        image = {key: [[[0.5]]] * 3 for key in ("min", "max", "mean", "std")} | {"count": [10]}
        stats.append({"episode_index": episode, "stats": {"observation.state": numbers, CAMERA: image}})
        index += frames
    for name, lines in (("episodes", rows), ("episodes_stats", stats), ("tasks", [{"task_index": 0, "task": "push"}])):
        (root / f"meta/{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    counted = {
        name: {"dtype": "int64", "shape": [1], "names": None} for name in ("frame_index", "episode_index", "index")
    }
    features = {
        "observation.state": {"dtype": "float32", "shape": [2], "names": ["x", "y"]},
        "next.done": {"dtype": "bool", "shape": [1], "names": None},
        CAMERA: {"dtype": "video", "shape": [9, 9, 3], "names": ["height", "width", "channel"]},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        **counted,
    }
    info = {
        "codebase_version": version,
        "total_episodes": len(lengths),
        "total_frames": index,
        "total_videos": len(lengths),
        "total_chunks": 1,
        "chunks_size": 1000,
        "fps": fps,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
        "features": features,
    }
    (root / "meta/info.json").write_text(json.dumps(info))
    return root


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_file_line_and_statistic_is_that_of_the_new_rate(tmp_path):
    write(tmp_path / "in")
    report = tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=10, workers=1)
    assert "videos are linked: they share their bytes with the source" in " ".join(report.notes)
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert info["fps"] == 10 and info["codebase_version"] == "v2.1" and info["total_episodes"] == 3
    index = 0
    for episode, frames in enumerate(LENGTHS):
        table = pq.read_table(tmp_path / f"out/data/chunk-000/episode_{episode:06d}.parquet").to_pandas()
        targets = np.arange((frames + 1) // 2) / 10
        wanted = known.linear(state(episode, frames), np.arange(frames) / 20, targets)
        np.testing.assert_allclose(np.stack(table["observation.state"]), wanted, atol=1e-6)
        assert table["index"].tolist() == list(range(index, index + len(table))) and table["next.done"].sum() == 1
        row = lines(tmp_path / "out/meta/episodes.jsonl")[episode]
        assert row == {"episode_index": episode, "tasks": ["push"], "length": len(table)}
        stats = lines(tmp_path / "out/meta/episodes_stats.jsonl")[episode]["stats"]
        np.testing.assert_allclose(stats["observation.state"]["mean"], wanted.mean(0), atol=1e-6)
        assert stats["observation.state"]["count"] == [len(table)] and stats[CAMERA]["count"] == [10]
        index += len(table)
    assert info["total_frames"] == index


def test_an_episode_that_is_left_out_renumbers_files_and_videos(tmp_path):
    write(tmp_path / "in")
    path = tmp_path / "in/data/chunk-000/episode_000001.parquet"
    path.write_bytes(path.read_bytes()[:200])
    report = tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=10, keep_going=True, workers=1)
    assert list(report.failed) == ["data/chunk-000/episode_000001.parquet"] and report.episodes == 2
    out = tmp_path / "out"
    assert sorted(p.name for p in (out / "data/chunk-000").iterdir()) == [
        "episode_000000.parquet",
        "episode_000001.parquet",
    ]
    assert (out / f"videos/chunk-000/{CAMERA}/episode_000001.mp4").read_bytes() == b"video 2"
    assert [row["episode_index"] for row in lines(out / "meta/episodes.jsonl")] == [0, 1]
    assert pq.read_table(out / "data/chunk-000/episode_000001.parquet").column("episode_index")[0].as_py() == 1


def test_videos_share_bytes_with_the_source_or_are_copied(tmp_path):
    write(tmp_path / "in")
    name = f"videos/chunk-000/{CAMERA}/episode_000000.mp4"
    for copy in (False, True):
        report = tmaops.dataset.resample(tmp_path / "in", tmp_path / f"{copy}", hz=10, copy=copy, workers=1)
        assert os.path.samefile(tmp_path / "in" / name, tmp_path / f"{copy}" / name) != copy
        assert any("copied as they are" in note for note in report.notes) == copy


def test_v1_is_refused_with_the_line_that_converts(tmp_path):
    write(tmp_path / "in", version="v1.6")
    with pytest.raises(Refused, match="convert_dataset_v1_to_v2"):
        tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=10, workers=1)


@pytest.mark.parametrize(
    "key,value", [("chunks_size", 0), ("chunks_size", "x"), ("data_path", "{nothing}"), ("data_path", 3)]
)
def test_patterns_that_name_no_file_are_refused_by_their_key(tmp_path, key, value):
    info = write(tmp_path / "in") / "meta/info.json"
    info.write_text(json.dumps(json.loads(info.read_text()) | {key: value}))
    with pytest.raises(Refused, match=f"info.json: {key}: got"):
        tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=10, workers=1)


def test_a_file_whose_numbers_need_another_rule_is_refused(tmp_path):
    write(tmp_path / "in")
    path = sorted((tmp_path / "in" / "data").rglob("*.parquet"))[1]
    table = pq.read_table(path)
    at, field = table.schema.get_field_index("observation.state"), table.schema.field("observation.state")
    pq.write_table(table.set_column(at, field.name, pa.array([[1, 2]] * len(table))), path)
    with pytest.raises(Refused, match="column 'observation.state'.*as in the first file"):
        tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=10)


def test_a_rate_that_is_not_that_of_the_timestamps_is_a_warning(tmp_path):
    write(tmp_path / "in")
    path = tmp_path / "in" / "meta" / "info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"fps": 30}))
    report = tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=10, workers=1)
    assert "about 20" in report.warnings[0] and "info.json says 30" in report.warnings[0]
    assert not any("every new timestamp" in note for note in report.notes)
