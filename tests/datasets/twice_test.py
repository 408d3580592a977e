"""The result of every format is read by the next program, and by a second run: 20 Hz to 10 to 5."""

import json

import lerobot_v2_test
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from tmaops.dataset import example

LENGTHS = [60, 61, 62]


def position(frames):
    return np.arange(frames) * 0.25


def write_parquet(root):
    times = np.concatenate([1_686_767_222_000 + 50 * np.arange(n) for n in LENGTHS])
    columns = {"timestamp": times, "episode_index": np.repeat(range(3), LENGTHS)}
    columns["x"] = np.concatenate([position(n) for n in LENGTHS])
    columns["done"] = np.concatenate([np.arange(n) == n - 1 for n in LENGTHS]).astype(np.int64)
    pq.write_table(pa.table(columns), root)


def read_parquet(root):
    import pandas

    table = pandas.read_parquet(root)
    groups = [group for _, group in table.groupby("episode_index")]
    return [(group.x.to_numpy(), int(group.done.sum())) for group in groups]


def write_robomimic(root):
    h5py = pytest.importorskip("h5py")
    with h5py.File(root, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "env_kwargs": {"control_freq": 20}})
        data.attrs["total"] = sum(LENGTHS)
        for i, n in enumerate(LENGTHS):
            demo = data.create_group(f"demo_{i}")
            demo.attrs["num_samples"] = n
            demo["actions"] = position(n)[:, None]
            demo["dones"] = (np.arange(n) == n - 1).astype(np.int64)


def read_robomimic(root):
    import h5py

    with h5py.File(root) as file:
        data = file["data"]
        demos = [data[name] for name in sorted(data)]
        assert data.attrs["total"] == sum(demo.attrs["num_samples"] for demo in demos)
        assert [demo.attrs["num_samples"] for demo in demos] == [len(demo["actions"]) for demo in demos]
        return [(demo["actions"][:, 0], int(demo["dones"][()].sum())) for demo in demos]


def write_aloha(root):
    h5py = pytest.importorskip("h5py")
    root.mkdir()
    for i, n in enumerate(LENGTHS):
        with h5py.File(root / f"episode_{i}.hdf5", "w") as file:
            for name, value in {"sim": False, "compress": True, "num_frames": n, "fps": 20}.items():
                file.attrs[name] = value
            file["action"] = position(n)[:, None]
            file["observations/qpos"] = position(n)[:, None]
            file["observations/images/top"] = np.repeat(np.arange(n, dtype=np.uint8)[:, None], 7, axis=1)
            file["compress_len"] = np.arange(2 * n).reshape(2, n)
            file["done"] = np.arange(n) == n - 1


def read_aloha(root):
    import h5py

    found = []
    for path in sorted(root.glob("*.hdf5")):
        with h5py.File(path) as file:
            rows = len(file["action"])
            assert file.attrs["num_frames"] == rows and file["compress_len"].shape == (2, rows)
            images, lengths = file["observations/images/top"][:, 0], file["compress_len"][()]
            assert images.tolist() == lengths[0].tolist() and (lengths[1] - lengths[0] == lengths[1, 0]).all()
            found.append((file["action"][:, 0], int(file["done"][()].sum())))
    return found


def write_lerobot(root):
    example.write(root, LENGTHS, fps=20)


def read_lerobot(root):
    table = pa.concat_tables([pq.read_table(path) for path in sorted(root.glob("data/*/*.parquet"))]).to_pandas()
    groups = [group for _, group in table.groupby("episode_index")]
    return [(np.stack(group["observation.state"])[:, 1], int(group["done"].sum())) for group in groups]


def write_v2(root):
    lerobot_v2_test.write(root, LENGTHS)


def read_v2(root):
    tables = [pq.read_table(path).to_pandas() for path in sorted(root.glob("data/*/*.parquet"))]
    states = [np.stack(table["observation.state"])[:, 0] for table in tables]
    return [(2.5 * (x - x[0]), int(table["next.done"].sum())) for x, table in zip(states, tables, strict=True)]


def write_zarr(root):
    zarr = pytest.importorskip("zarr")
    store = zarr.open_group(str(root), mode="w", zarr_format=2)
    x = np.concatenate([position(n) for n in LENGTHS])
    done = np.concatenate([np.arange(n) == n - 1 for n in LENGTHS])
    for name, values in (("data/x", x), ("data/done", done), ("meta/episode_ends", np.cumsum(LENGTHS))):
        store.create_array(name, shape=values.shape, chunks=(64,), dtype=values.dtype)[...] = values
    store.attrs["fps"] = 20


def read_zarr(root):
    import zarr

    store = zarr.open_group(str(root), mode="r")
    ends = store["meta/episode_ends"][:]
    return [
        (x, int(d.sum()))
        for x, d in zip(*(np.split(store[f"data/{n}"][:], ends[:-1]) for n in ("x", "done")), strict=True)
    ]


@pytest.mark.parametrize("kind", ["parquet", "robomimic", "aloha", "lerobot", "v2", "zarr"])
def test_a_run_over_the_result_of_a_run_knows_its_rate(tmp_path, kind):
    name = {"parquet": "in.parquet", "robomimic": "in.hdf5"}.get(kind, "in")
    given, half, quarter = (tmp_path / f"{part}_{name}" for part in ("a", "b", "c"))
    globals()[f"write_{kind}"](given)
    read = globals()[f"read_{kind}"]
    before = read(given)
    for source, out, hz in ((given, half, 10), (half, quarter, 5)):
        report = tmaops.dataset.resample(source, out, hz=hz, workers=1)
        assert not [warning for warning in report.warnings if "targets per sample" in warning]
        step = 20 // hz
        for (x, done), (was, _) in zip(read(out), before, strict=True):
            np.testing.assert_allclose(x, was[::step], atol=1e-6, err_msg=f"{kind} at {hz} Hz")
            assert done == 1, f"{kind} at {hz} Hz"


@pytest.mark.parametrize("hz", [5, 10, 15, 37, 50])
def test_rewards_keep_their_sum_and_other_columns_do_on_demand(tmp_path, hz):
    h5py = pytest.importorskip("h5py")
    rewards = [np.where(np.arange(n) % 13 == n - 1 - (n - 1) // 13 * 13, 1.0, 0.0) for n in LENGTHS]
    table = {
        "timestamp": np.concatenate([np.arange(n) / 20 for n in LENGTHS]),
        "episode_index": np.repeat(range(3), LENGTHS),
        "next.reward": np.concatenate(rewards),
        "action": np.full(sum(LENGTHS), 0.5, np.float32),
    }
    pq.write_table(pa.table(table), tmp_path / "in.parquet")
    modes = {"action": "sum"}
    report = tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=hz, modes=modes, workers=1)
    assert report.columns["next.reward"] == "sum (a reward, which adds up)"
    made = pq.read_table(tmp_path / "out.parquet").to_pandas().groupby("episode_index")
    np.testing.assert_allclose(made["next.reward"].sum(), [r.sum() for r in rewards])
    np.testing.assert_allclose(made["action"].sum(), np.array(LENGTHS) * 0.5, rtol=1e-5)
    write_robomimic(tmp_path / "in.hdf5")
    with h5py.File(tmp_path / "in.hdf5", "a") as file:
        for i, reward in enumerate(rewards):
            file[f"data/demo_{i}/rewards"] = reward
    tmaops.dataset.resample(tmp_path / "in.hdf5", tmp_path / "out.hdf5", hz=hz, workers=1)
    with h5py.File(tmp_path / "out.hdf5") as file:
        sums = [file[f"data/demo_{i}/rewards"][()].sum() for i in range(3)]
    np.testing.assert_allclose(sums, [r.sum() for r in rewards])


@pytest.mark.parametrize("hz", [7, 15, 30, 60])
@pytest.mark.parametrize("none", [[], None])
def test_every_event_occurs_once_at_the_nearest_target(tmp_path, hz, none):
    rows = 50
    events = [[{"at": i, "what": f"e{i}"}] * (i % 3) if i % 7 == 3 else none for i in range(rows)]
    times = np.arange(rows) / 30
    kind = pa.list_(pa.struct({"at": pa.int64(), "what": pa.string()}))
    table = {
        "timestamp": np.tile(times, 2),
        "episode_index": np.repeat([0, 1], rows),
        "language_events": pa.array(events * 2, kind),
    }
    pq.write_table(pa.table(table), tmp_path / "in.parquet")
    report = tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=hz, workers=1)
    assert report.columns["language_events"] == "each (lists of events by their name)"
    made = pq.read_table(tmp_path / "out.parquet")
    for episode in (0, 1):
        own = made.filter(pa.compute.equal(made.column("episode_index"), episode))
        targets, lists = own.column("timestamp").to_numpy(), own.column("language_events").to_pylist()
        found = [(event["at"], t) for t, many in zip(targets, lists, strict=True) for event in many or []]
        assert [at for at, _ in found] == [event["at"] for many in events for event in many or []]
        for at, t in found:
            assert abs(t - times[at]) <= np.abs(targets - times[at]).min() + 1e-9, f"event {at} at {t} s"


UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def write_times(kind, root, times):
    x = np.arange(len(times)) * 0.25
    if kind == "parquet":
        pq.write_table(pa.table({"t": times, "x": x}), root)
    elif kind == "lists":
        pq.write_table(pa.table({"is_first": [(x == 0).tolist()], "t": [times.tolist()], "x": [x.tolist()]}), root)
    elif kind == "hdf5":
        with pytest.importorskip("h5py").File(root, "w") as file:
            file["t"], file["x"] = times, x
    else:
        zarr = pytest.importorskip("zarr")
        store = zarr.open_group(str(root), mode="w", zarr_format=int(kind[-1]))
        for name, values in (("data/t", times), ("data/x", x), ("meta/episode_ends", np.array([len(times)]))):
            store.create_array(name, shape=values.shape, chunks=(64,), dtype=values.dtype)[...] = values


def times_in(kind, root):
    if kind == "parquet":
        return pq.read_table(root)["t"].to_pylist()
    if kind == "lists":
        return pq.read_table(root)["t"][0].as_py()
    if kind == "hdf5":
        with pytest.importorskip("h5py").File(root) as file:
            return file["t"][()].tolist()
    return pytest.importorskip("zarr").open_group(str(root), mode="r")["data/t"][:].tolist()


@pytest.mark.parametrize("kind", ["parquet", "lists", "hdf5", "zarr2", "zarr3"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_unit_that_was_inferred_holds_for_the_result_at_any_rate(tmp_path, kind, unit):
    source, step = tmp_path / f"in_20.{kind}", 10**9 // 20 // UNITS[unit]
    source = source.with_suffix(".parquet" if kind == "lists" else f".{kind}")
    write_times(kind, source, np.arange(600) * step)
    for hz, period in ((10, 0.1), (5, 0.2), (1, 1), ("1/4", 4)):
        out = source.with_stem(f"out_{hz}".replace("/", "_"))
        report = tmaops.dataset.resample(source, out, hz=hz, workers=1)
        assert not report.warnings and f"in {unit} (" in report.notes[0]
        times = times_in(kind, out)
        assert times == [round(i * period * 10**9) // UNITS[unit] for i in range(int(29.95 / period) + 1)]
        source = out
    assert "as the data set says" in report.notes[0]
    assert tmaops.dataset.inspect(source).clocks[0].hz == pytest.approx(0.25)
