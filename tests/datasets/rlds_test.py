"""RLDS episodes as they are exported to Parquet: a row per step, a struct of steps, lists beside each other."""

import known
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from tmaops.dataset import Refused

LENGTHS = [31, 1, 52]


def steps_of(length, rng):
    """Steps as tfds.as_numpy gives them."""
    return [
        {
            "observation": {"state": rng.normal(size=3).astype(np.float32), "image": bytes([i % 256]) * 20},
            "action": rng.normal(size=7).astype(np.float32),
            "reward": np.float32(i == length - 1),
            "is_first": i == 0,
            "is_last": i == length - 1,
            "is_terminal": i == length - 1,
            "language_instruction": "pick",
        }
        for i in range(length)
    ]


@pytest.fixture
def episodes():
    rng = np.random.default_rng(21)
    return [steps_of(length, rng) for length in LENGTHS]


def check(made, steps, hz_in, hz):
    """made: the steps of an episode after resampling."""
    times = np.arange(len(steps)) / hz_in
    targets = np.arange(len(made)) / hz
    assert targets[-1] <= times[-1] + 1e-9 < targets[-1] + 1 / hz
    for kind in (lambda s: s["action"], lambda s: s["observation"]["state"]):
        np.testing.assert_allclose(
            [kind(s) for s in made], known.linear([kind(s) for s in steps], times, targets), atol=1e-6
        )
    images = known.previous([s["observation"]["image"] for s in steps], times, targets + 1e-9)
    assert [s["observation"]["image"] for s in made] == images
    count = len(made)
    assert [s["is_first"] for s in made] == [True] + [False] * (count - 1)
    for flag in ("is_last", "is_terminal"):
        assert [s[flag] for s in made] == [False] * (count - 1) + [True]


@pytest.mark.parametrize("hz", [10, 40])
def test_a_row_per_episode_with_its_steps_as_structs(episodes, tmp_path, hz):
    rows = [{"steps": steps, "episode_metadata": {"file_path": f"{i}"}} for i, steps in enumerate(episodes)]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "in.parquet")
    report = tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=hz, input_hz=15, workers=1)
    assert report.rows_read == sum(LENGTHS) and report.episodes == 3
    assert report.notes[:2] == [
        "time: counted at 15 per second (asked for)",
        "episodes: a row each, whose steps are in steps",
    ]
    assert report.columns["steps.observation.state"] == "linear (real numbers)"
    made = pq.read_table(tmp_path / "out.parquet")
    assert made.schema.equals(pq.read_schema(tmp_path / "in.parquet"))
    assert made.column("episode_metadata").equals(table.column("episode_metadata"))
    for new, old in zip(made.column("steps").to_pylist(), episodes, strict=True):
        check(new, old, 15, hz)


def test_a_row_per_episode_with_lists_beside_each_other(episodes, tmp_path):
    rows = [
        {key: [step[key] for step in steps] for key in steps[0]} | {"episode_id": f"e{i}"}
        for i, steps in enumerate(episodes)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=40, input_hz=15, workers=1)
    made = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row.pop("episode_id") for row in made] == ["e0", "e1", "e2"]
    for row, old in zip(made, episodes, strict=True):
        check([dict(zip(row, values, strict=True)) for values in zip(*row.values(), strict=True)], old, 15, 40)


def test_a_row_per_step_begins_an_episode_where_it_is_first(episodes, tmp_path):
    pq.write_table(pa.Table.from_pylist([step for steps in episodes for step in steps]), tmp_path / "in.parquet")
    with pytest.raises(Refused, match="--input-hz"):
        tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "no.parquet", hz=40, workers=1)
    report = tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=40, input_hz=15, workers=1)
    assert report.episodes == 3 and "episodes: begin where 'is_first' is true" in report.notes
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    starts = [i for i, row in enumerate(rows) if row["is_first"]]
    for old, first, last in zip(episodes, starts, [*starts[1:], len(rows)], strict=True):
        check(rows[first:last], old, 15, 40)
    assert [c.samples for c in tmaops.dataset.inspect(tmp_path / "in.parquet", input_hz=15).clocks] == LENGTHS


def test_the_time_of_steps_is_found_among_their_fields(tmp_path):
    rows = [{"steps": [{"timestamp": i / 10, "observation": {"x": float(i)}} for i in range(11)]} for _ in range(2)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    report = tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=20, workers=1)
    assert report.notes[0].startswith("time: column 'steps.timestamp' in s")
    steps = pq.read_table(tmp_path / "out.parquet").to_pylist()[1]["steps"]
    np.testing.assert_allclose([step["observation"]["x"] for step in steps], np.arange(21) / 2, atol=1e-6)
    np.testing.assert_allclose([step["timestamp"] for step in steps], np.arange(21) / 20)
