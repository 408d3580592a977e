"""Rules by name, type and YAML file, said and saved, and nested columns."""

import known
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from tmaops.dataset import Refused
from tmaops.dataset.cli import main


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(11)
    n = 120
    times = np.cumsum(rng.integers(8_000_000, 12_000_000, n))
    quaternion = rng.normal(size=(n, 4)) * 0.1 + [0, 0, 0, 1]
    pose = {"position": rng.normal(size=(n, 3)), "quat": quaternion}
    table = pa.table(
        {
            "stamp_ns": times,
            "observation": pa.array(
                [
                    {"state": pose["position"][i], "eef_quat": quaternion[i], "step": i} if i != 7 else None
                    for i in range(n)
                ]
            ),
            "action": rng.normal(size=n),
            "counter": np.arange(n),
            "cloud": [rng.normal(size=1 + i % 5) for i in range(n)],
            "is_last": np.arange(n) == n - 1,
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def test_fields_of_a_struct_have_rules_of_their_own(source, tmp_path):
    report = tmaops.dataset.resample(source, tmp_path / "out.parquet", hz=130, workers=1)
    assert report.columns["observation.state"] == "linear (real numbers)"
    assert report.columns["observation.eef_quat"] == "slerp (a quaternion)"
    assert report.columns["cloud"].startswith("previous (list<")
    was, now = pq.read_table(source), pq.read_table(tmp_path / "out.parquet")
    assert now.schema.equals(was.schema)
    times, targets = was.column("stamp_ns").to_numpy(), now.column("stamp_ns").to_numpy()
    rows = was.column("observation").to_pylist()
    present = [i for i, row in enumerate(rows) if row is not None]
    seconds = (times - times[0]) / 1e9
    state = known.linear([rows[i]["state"] for i in present], seconds[present], (targets - times[0]) / 1e9)
    turned = known.slerp([rows[i]["eef_quat"] for i in present], seconds[present], (targets - times[0]) / 1e9)
    before = np.searchsorted(times, targets, side="right") - 1
    for i, row in enumerate(now.column("observation").to_pylist()):
        if before[i] == 7:
            assert row is None
        elif before[i] == 6 and targets[i] != times[6]:
            assert row["state"] is None and row["step"] == 6
        else:
            np.testing.assert_allclose(row["state"], state[i], atol=1e-6)
            np.testing.assert_allclose(row["eef_quat"], turned[i], atol=1e-6)
            assert row["step"] == before[i]
    assert now.column("cloud").to_pylist() == [was.column("cloud").to_pylist()[i] for i in before]
    assert now.column("is_last").to_pylist() == [False] * (len(targets) - 1) + [True]


def test_saved_rules_name_everything_and_give_the_same_bytes(source, tmp_path, capsys):
    pytest.importorskip("yaml")
    first = ["--mode", "action=cubic", "--mode", "type:int*=nearest", "--max-gap", "0.5"]
    saved = str(tmp_path / "rules.yaml")
    assert (
        main(
            [
                "resample",
                str(source),
                str(tmp_path / "a.parquet"),
                "--hz",
                "40",
                "--explain",
                "--save-rules",
                saved,
                *first,
            ]
        )
        == 0
    )
    said = capsys.readouterr().err
    assert "counter: nearest (asked for)" in said and "time: column 'stamp_ns' in ns (by its name)" in said
    assert not (tmp_path / "a.parquet").exists()
    text = (tmp_path / "rules.yaml").read_text()
    for line in (
        "action: cubic",
        "observation.step: nearest",
        "observation.eef_quat: slerp",
        "time_column: stamp_ns",
        "is_last: any",
    ):
        assert line in text, text
    assert main(["resample", str(source), str(tmp_path / "a.parquet"), "--hz", "40", "--quiet", *first]) == 0
    assert main(["resample", str(source), str(tmp_path / "b.parquet"), "--hz", "40", "--quiet", "--rules", saved]) == 0
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert (
        main(
            [
                "resample",
                str(source),
                str(tmp_path / "c.parquet"),
                "--hz",
                "40",
                "--quiet",
                "--rules",
                saved,
                "--mode",
                "action=next",
            ]
        )
        == 0
    )
    assert pq.read_table(tmp_path / "c.parquet").column("action")[1] in pq.read_table(source).column("action")


def test_rules_that_mean_nothing_are_refused_by_name(source, tmp_path):
    pytest.importorskip("yaml")
    for text, what in (
        ("mods: {action: cubic}", "'mods'"),
        ("modes: {type:string: next}", "mode of type:string"),
        ("modes: {nothing: next}", "mode of nothing"),
        ("modes: {cloud: linear}", "mode of cloud"),
        ("latency: {imu: 0.1}", "latency of imu"),
        ("max_gap: {imu: 0.1}", "max_gap of imu"),
        ("max_gap: much", "seconds"),
        ("- 1", "no mapping"),
        ("a: [", "rules.yaml"),
    ):
        (tmp_path / "rules.yaml").write_text(text)
        with pytest.raises(Refused, match=what):
            tmaops.dataset.resample(source, tmp_path / "out.parquet", hz=40, rules=tmp_path / "rules.yaml", workers=1)
        assert not (tmp_path / "out.parquet.partial").exists(), text


def test_a_gap_beside_a_column_without_nulls_is_refused_before_anything_is_written(tmp_path):
    schema = pa.schema([("time", pa.float64()), pa.field("x", pa.float64(), nullable=False)])
    pq.write_table(pa.table({"time": [0.0, 0.1, 2.0], "x": [1.0, 2.0, 3.0]}, schema=schema), tmp_path / "in.parquet")
    with pytest.raises(Refused, match="column 'x'.*a gap"):
        tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=10, max_gap=1, workers=1)
    assert not (tmp_path / "out.parquet.partial").exists()


def test_depth_images_are_taken_as_they_are_behind_every_door(tmp_path):
    """Rows of more than 4,096 numbers; those of fewer are channels."""
    import h5py
    import tmaops
    import zarr

    rows, times = 12, np.arange(12) / 10
    rng = np.random.default_rng(3)
    columns = {f"depth_{kind}": rng.random((rows, 65, 64)).astype(kind) for kind in ("f2", "f4")}
    columns |= {"depth_u2": (columns["depth_f4"] * 60_000).astype("u2"), "scan": rng.random((rows, 4096))}
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["timestamp"] = times
        for name, values in columns.items():
            file[name] = values
    store = zarr.open_group(str(tmp_path / "in.zarr"), mode="w", zarr_format=2)
    ends = np.array([rows])
    for name, values in {"data/timestamp": times, **{f"data/{n}": v for n, v in columns.items()}}.items():
        store.create_array(name, shape=values.shape, chunks=values.shape, dtype=values.dtype)[...] = values
    store.create_array("meta/episode_ends", shape=(1,), chunks=(1,), dtype=ends.dtype)[...] = ends
    made, report = tmaops.resample({"timestamp": times, **columns}, hz=15, report=True)
    assert dict(report.modes) == {name: "linear" if name == "scan" else "previous" for name in columns}
    for ending, read in (("h5", h5py.File), ("zarr", lambda path: zarr.open_group(str(path))["data"])):
        report = tmaops.dataset.resample(tmp_path / f"in.{ending}", tmp_path / f"out.{ending}", hz=15, workers=1)
        found = read(tmp_path / f"out.{ending}")
        for name in columns:
            assert found[name][:].tobytes() == made[name].tobytes(), (ending, name)
    flat = {name: values.reshape(rows, -1) for name, values in columns.items() if name != "depth_f2"}
    lists = {name: pa.FixedSizeListArray.from_arrays(pa.array(v.reshape(-1)), v.shape[1]) for name, v in flat.items()}
    pq.write_table(pa.table({"timestamp": times, **lists}), tmp_path / "in.parquet")
    tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=15, workers=1)
    table = pq.read_table(tmp_path / "out.parquet")
    for name in flat:
        assert table[name].combine_chunks().flatten().to_numpy().tobytes() == made[name].tobytes(), name
    asked, _ = tmaops.resample({"timestamp": times, **columns}, hz=15, mode={"depth_f4": "linear"}, report=True)
    report = tmaops.dataset.resample(
        tmp_path / "in.h5", tmp_path / "asked.h5", hz=15, modes={"depth_f4": "linear"}, workers=1
    )
    with h5py.File(tmp_path / "asked.h5") as found:
        assert found["depth_f4"][:].tobytes() == asked["depth_f4"].tobytes()
        assert (found["depth_f4"][:] != made["depth_f4"]).any()


def through(columns, folder, **options):
    """Columns through the library, Parquet and HDF5: three dictionaries."""
    import h5py
    import tmaops

    folder.mkdir()
    named = {"mode": options.pop("modes")} if "modes" in options else {}
    made = tmaops.resample(columns, outside="hold", **named, **options)
    pq.write_table(pa.table({name: list(v) if v.ndim > 1 else v for name, v in columns.items()}), folder / "in.parquet")
    with h5py.File(folder / "in.h5", "w") as file:
        file.update(columns)
    for ending in ("parquet", "h5"):
        modes = {"modes": named["mode"]} if named else {}
        tmaops.dataset.resample(folder / f"in.{ending}", folder / f"out.{ending}", workers=1, **modes, **options)
    table = pq.read_table(folder / "out.parquet")
    with h5py.File(folder / "out.h5") as file:
        return made, {n: np.array(table[n].to_pylist()) for n in columns}, {n: file[n][()] for n in columns}


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize(
    "modes",
    [
        {"*": "cubic"},
        {"*": "max"},
        {"*": "nearest"},
        {"v [m/s]": "cubic", "q[0]": "next"},
        {"state[0:2]": "nearest", "state[2]": "mean"},
        {"state": "next", "state[1:]": "linear"},
    ],
)
def test_wishes_mean_the_same_behind_every_door(modes, tmp_path):
    """ "*" is every column that can have the mode: the others keep their rule, as flags of what happened, and so do the times."""
    rng, rows = np.random.default_rng(4), 40
    columns = {"timestamp": np.arange(rows) / 10, "v [m/s]": rng.random(rows), "state": rng.random((rows, 3))}
    columns |= {"done": np.arange(rows) % 9 == 4, "count": np.arange(rows), "q[0]": rng.random(rows)}
    made, *others = through(columns, tmp_path / "all", hz=3, modes=modes)
    for name in columns:
        for other in others:
            assert other[name].tobytes() == made[name].tobytes(), name


@pytest.mark.parametrize("text", ["cubic", "v=cubic", "nearest"])
def test_a_mode_may_be_one_text_behind_every_door(text, tmp_path):
    columns = {"timestamp": np.arange(40) / 10, "v": np.random.default_rng(4).random(40), "count": np.arange(40)}
    made, *others = through(columns, tmp_path / "all", hz=3, modes=text)
    for other in others:
        assert other["v"].tobytes() == made["v"].tobytes() and (other["count"] == made["count"]).all()
    out = tmp_path / "out.parquet"
    assert main(["resample", str(tmp_path / "all/in.parquet"), str(out), "--hz", "3", "--mode", text, "--quiet"]) == 0
    assert pq.read_table(out)["v"].to_numpy().tobytes() == made["v"].tobytes()


def test_a_mode_that_was_asked_for_is_not_warned_of(tmp_path):
    angle = (np.arange(60) * 0.3) % (2 * np.pi)
    pq.write_table(pa.table({"timestamp": np.arange(60) / 10, "dial": angle}), tmp_path / "in.parquet")
    for modes, warned in (({}, True), ({"dial": "next"}, False), ({"*": "nearest"}, False)):
        out = tmp_path / f"{len(modes)}{warned}{list(modes)}.parquet".replace("*", "all")
        report = tmaops.dataset.resample(tmp_path / "in.parquet", out, hz=20, modes=modes, workers=1)
        assert bool(report.warnings) == warned, report.warnings


@pytest.mark.parametrize("ending", ["files", "hdf5"])
def test_an_angle_that_wraps_behind_the_first_rows_is_a_warning(ending, tmp_path):
    import h5py

    times = np.arange(20) / 10
    flat, wraps = times / 10, (times + 2.5 + np.pi) % (2 * np.pi) - np.pi
    source = tmp_path / ("in" if ending == "files" else "in.hdf5")
    if ending == "files":
        source.mkdir()
        for number, yaw in enumerate((flat, wraps)):
            pq.write_table(pa.table({"t": times, "yaw": yaw, "x": 100 * yaw}), source / f"{number}.parquet")
    else:
        with h5py.File(source, "w") as file:
            for number, yaw in enumerate((flat, wraps)):
                file.update({f"data/demo_{number}/t": times, f"data/demo_{number}/yaw": yaw})
    out = tmp_path / "out.hdf5"
    report = tmaops.dataset.resample(source, out, hz=15, workers=1)
    [warning] = report.warnings
    assert "'yaw' jumps by a turn in episode" in warning and "1" in warning and "'yaw=angle:rad'" in warning
    with pytest.raises(Refused, match="a warning: 'yaw' jumps"):
        tmaops.dataset.resample(source, tmp_path / "strict.hdf5", hz=15, workers=1, strict=True)
    modes = {"yaw": "angle:rad"}
    assert not tmaops.dataset.resample(source, tmp_path / "mended.hdf5", hz=15, workers=1, modes=modes).warnings


def test_a_mask_makes_rows_null_and_is_refused_where_there_are_no_nulls(tmp_path):
    import h5py
    import tmaops
    import zarr

    times, valid = np.arange(11) / 10, np.arange(11) != 5
    columns = {"timestamp": times, "x": times * 3, "k": np.arange(11), "valid": valid}
    made = tmaops.resample(columns, hz=20)
    for kind in (pa.bool_(), pa.int8(), pa.string()):
        source, out = tmp_path / f"{kind}.parquet", tmp_path / f"out_{kind}.parquet"
        pq.write_table(pa.table(columns | {"valid": pa.array(valid).cast(kind)}), source)
        report = tmaops.dataset.resample(source, out, hz=20, workers=1)
        assert report.columns["valid"] == "valid (rows of 0 are no samples)"
        table = pq.read_table(out)
        assert table["valid"].cast(pa.bool_()).to_pylist() == made["valid"].tolist()
        assert table["x"].null_count == table["k"].null_count == 3 == (~made["valid"]).sum()
        assert np.array(table["x"].to_pylist(), float).tobytes() == made["x"].tobytes()
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.update(columns)
    buffer = zarr.open_group(str(tmp_path / "in.zarr"), mode="w")
    for name, values in columns.items():
        buffer[f"data/{name}"] = values
    buffer["meta/episode_ends"] = np.array([11])
    for ending, name in ((".h5", "valid"), (".zarr", "data/valid")):
        with pytest.raises(Refused, match=f"'{name}'.*a mask of rows that are no samples.*another name"):
            tmaops.dataset.resample(tmp_path / f"in{ending}", tmp_path / f"out{ending}", hz=20, workers=1)


def test_an_array_of_fields_in_fields_is_a_warning(tmp_path):
    import h5py

    rows = np.zeros(11, [("x", "f8"), ("twist", [("y", "f8")])])
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.update({"timestamp": np.arange(11) / 10, "pose": rows})
    asked = tmaops.dataset.resample(
        tmp_path / "in.h5", tmp_path / "a.h5", hz=20, workers=1, modes={"pose/twist": "previous"}
    )
    assert not asked.warnings
    warned = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "b.h5", hz=20, workers=1)
    assert [said[-16:] for said in warned.warnings] == ["[fields_as_rows]"] and "'pose/twist'" in warned.warnings[0]
