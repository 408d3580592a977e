"""Times as data sets have them: units, text, zones, equal stamps, disorder, and targets with ends."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from tmaops.dataset import Refused
from tmaops.dataset.cli import main

SINCE_1970 = 1_686_767_222  # seconds


def write(path, times, episodes=None, **columns):
    rows = len(times)
    columns = {"timestamp": times, "x": np.arange(rows, dtype=np.float64)} | columns
    if episodes is not None:
        columns["episode_index"] = episodes
    pq.write_table(pa.table(columns), path)
    return path


def resampled(source, **options):
    out = source.with_name("out" + source.suffix)
    report = tmaops.dataset.resample(source, out, workers=1, **{"hz": 20} | options)
    table = pq.read_table(out)
    out.unlink()
    return table, report


def h5(path, times, **more):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["timestamp"] = times
        file["x"] = np.arange(len(times), dtype=np.float64)
        for name, values in more.items():
            file[name] = values
    return path


@pytest.mark.parametrize("unit,scale", [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.float64])
def test_dates_of_our_time_say_their_unit_in_parquet_and_hdf5(tmp_path, unit, scale, kind):
    step = 1 if unit == "s" else 10  # samples per second
    times = ((SINCE_1970 + np.arange(60) / step) * scale).round().astype(kind)
    table, report = resampled(write(tmp_path / "in.parquet", times), hz=step)
    assert table.num_rows == 60, report.notes
    assert report.notes[0].startswith(f"time: column 'timestamp' in {unit} (since they are then dates")
    if kind != np.float64 or unit in ("s", "ms"):
        assert table.column("timestamp").to_pylist() == times.tolist()
    h5(tmp_path / "in.h5", times)
    report = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=step, workers=1)
    assert report.rows_written == 60 and f"dataset 'timestamp' in {unit} (since" in report.notes[0]


def test_an_absurd_number_of_targets_is_a_warning_with_strict_an_error_and_beyond_memory_refused(tmp_path):
    source = write(tmp_path / "in.parquet", np.arange(50) * 20.0)  # milliseconds, taken as seconds
    _, report = resampled(source)
    assert "targets per sample: is the unit of the times right?" in report.warnings[0]
    with pytest.raises(Refused, match="a warning: 392"):
        resampled(source, strict=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet"]
    table, report = resampled(source, time_unit="ms")
    assert not report.warnings and table.num_rows == 20
    with pytest.raises(Refused, match="targets for 50 samples"):
        resampled(write(tmp_path / "far.parquet", np.arange(50) * 1e8))
    with pytest.raises(Refused, match="targets for 50 samples"):
        tmaops.dataset.resample(h5(tmp_path / "far.h5", np.arange(50) * 1e8), tmp_path / "no.h5", hz=20, workers=1)


def test_text_and_datetimes_with_zones_are_times_and_come_out_as_they_were(tmp_path):
    begin = datetime.datetime(2024, 3, 1, 12, 0, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    moments = [begin + datetime.timedelta(milliseconds=100 * i) for i in range(11)]
    text = [moment.isoformat(timespec="milliseconds") for moment in moments]
    table, report = resampled(write(tmp_path / "in.parquet", text))
    assert table.column("x").to_pylist() == pytest.approx(np.arange(21) / 2)
    assert table.column("timestamp")[1].as_py() == "2024-03-01T12:00:00.050000000+02:00"
    assert not report.warnings
    naive = [f"{one[:10]} {one[11:23]}" for one in text]
    table, report = resampled(write(tmp_path / "naive.parquet", pa.array(naive).dictionary_encode()))
    assert table.column("timestamp")[1].as_py() == "2024-03-01 12:00:00.050000000"
    assert "no zone" in report.warnings[0]
    dates = pa.array(moments, pa.timestamp("ms", "Asia/Tokyo"))
    table, _ = resampled(write(tmp_path / "dates.parquet", dates))
    assert table.schema.field("timestamp").type == dates.type and table.num_rows == 21
    h5(tmp_path / "in.h5", np.array(text, "S29"))
    tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=20, workers=1)
    import h5py

    with h5py.File(tmp_path / "out.h5") as made:
        assert made["timestamp"][1] == b"2024-03-01T12:00:00.050000000+02:00"
        np.testing.assert_allclose(made["x"], np.arange(21) / 2)
    with pytest.raises(Refused, match="a zone, as before"):
        resampled(write(tmp_path / "mixed.parquet", [text[0], naive[1], *text[2:]]))


def test_decimal_text_is_a_time_as_in_a_csv_file_and_comes_out_as_text(tmp_path):
    """Strings of Parquet and HDF5, whose unit follows from their values; large strings keep a zone, too."""
    seconds = np.arange(11) / 10
    for name, text, second in (
        ("s", [f"{t:.3f}" for t in seconds], "0.05"),
        ("dates", [f"{SINCE_1970 + t:.3f}" for t in seconds], f"{SINCE_1970}.05"),
        ("ms", [str(SINCE_1970 * 1000 + round(1000 * t)) for t in seconds], f"{SINCE_1970}050"),
        ("exponents", [f"{t:.2e}" for t in seconds], "0.05"),
        ("zone", [f"2024-03-01T12:00:00.{round(10 * t)}Z" for t in seconds[:10]], "2024-03-01T12:00:00.050000000Z"),
    ):
        for kind in (pa.string(), pa.large_string()):
            table, _ = resampled(write(tmp_path / f"{name}.parquet", pa.array(text, kind)))
            assert table.schema.field("timestamp").type == kind and table["timestamp"][1].as_py() == second, name
            np.testing.assert_allclose(table["x"], np.arange(len(text) * 2 - 1) / 2, atol=1e-6)
        h5(tmp_path / f"{name}.h5", np.array(text, "S"))
        tmaops.dataset.resample(tmp_path / f"{name}.h5", tmp_path / f"{name}_out.h5", hz=20, workers=1)
        import h5py

        with h5py.File(tmp_path / f"{name}_out.h5") as made:
            assert made["timestamp"][1].decode() == second
    late = [f"{i / 10}" for i in range(9000)] + ["later"]
    with pytest.raises(Refused, match="row 9000: got 'later'; needed a number"):
        resampled(write(tmp_path / "late.parquet", late))


def test_durations_are_times_and_come_out_as_they_were(tmp_path):
    for unit, step in (("s", 1), ("ms", 20), ("us", 20_000)):
        times = pa.array(np.arange(100) * step, pa.duration(unit))
        pq.write_table(pa.table({"time": times, "x": np.arange(100.0)}), tmp_path / f"{unit}.parquet")
        report = tmaops.dataset.resample(tmp_path / f"{unit}.parquet", tmp_path / f"o{unit}.parquet", hz=0.5, workers=1)
        made = pq.read_table(tmp_path / f"o{unit}.parquet")
        assert made.schema.field("time").type == pa.duration(unit) and not report.warnings
        assert made["time"].cast(pa.int64()).to_pylist()[:1] == [0]
        assert made.num_rows == (50 if unit == "s" else 1)


def test_times_of_one_column_are_found_and_keep_their_shape(tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    times = (SINCE_1970 * 1000 + 100 * np.arange(11))[:, None]
    h5(tmp_path / "in.h5", times)
    store = zarr.open_group(str(tmp_path / "in.zarr"), mode="w", zarr_format=2)
    for name, values in (("data/timestamp", times), ("data/x", np.arange(11.0)), ("meta/episode_ends", np.array([11]))):
        store.create_array(name, shape=values.shape, chunks=values.shape, dtype=values.dtype)[...] = values
    for name, read in (("h5", h5py.File), ("zarr", lambda path: zarr.open_group(str(path))["data"])):
        tmaops.dataset.resample(tmp_path / f"in.{name}", tmp_path / f"out.{name}", hz=20, workers=1)
        made = read(tmp_path / f"out.{name}")
        assert made["timestamp"][:].tolist() == (SINCE_1970 * 1000 + 50 * np.arange(21)[:, None]).tolist(), name
        np.testing.assert_allclose(made["x"][:], np.arange(21) / 2, atol=1e-6)


def test_big_endian_times_are_read_and_coarse_ones_warned_of_in_hdf5_and_zarr(tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    for kind, coarse in ((">f8", 0), (">i8", 0), (">f4", 1)):
        times = (np.arange(11) * 100).astype(kind)
        h5(tmp_path / f"in{kind}.h5", times)
        store = zarr.open_group(str(tmp_path / f"in{kind}.zarr"), mode="w", zarr_format=2)
        ends = np.array([11])
        for name, values in (("data/timestamp", times), ("data/x", np.arange(11.0)), ("meta/episode_ends", ends)):
            store.create_array(name, shape=values.shape, chunks=values.shape, dtype=values.dtype)[...] = values
        for ending, read in (("h5", h5py.File), ("zarr", lambda path: zarr.open_group(str(path))["data"])):
            source, out = tmp_path / f"in{kind}.{ending}", tmp_path / f"out{kind}.{ending}"
            report = tmaops.dataset.resample(source, out, hz=20, time_unit="ms", workers=1)
            made = read(out)
            assert made["timestamp"].dtype == kind and made["timestamp"][:].tolist() == list(range(0, 1001, 50))
            assert sum("float32 seconds" in warning for warning in report.warnings) == coarse, (kind, ending)


def test_an_episode_column_of_text_tells_episodes_apart(tmp_path):
    source = write(tmp_path / "in.parquet", np.tile(np.arange(11) / 10, 2), ["left"] * 11 + ["right"] * 11)
    table, _ = resampled(source)
    assert table.column("episode_index").to_pylist() == ["left"] * 21 + ["right"] * 21


def test_one_repeated_stamp_costs_one_step_and_no_episode(tmp_path):
    times = np.arange(11) / 10
    times[5] = times[4]
    source = write(tmp_path / "in.parquet", np.tile(times, 2), np.repeat([0, 1], 11), flag=np.arange(22))
    with pytest.raises(Refused, match="row 5: got twice 0.4 s.*--duplicates last"):
        resampled(source)
    table, _ = resampled(source, duplicates="last")
    x, flags = table.column("x").to_numpy()[:21], table.column("flag").to_pylist()[:21]
    assert x[6:10].tolist() == [3, 3.5, 5, 5.25], (
        "before it the earlier of the two counts, at it and behind it the later"
    )
    assert flags[6:10] == [3, 3, 5, 5]
    h5(tmp_path / "in.h5", times)
    tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=20, duplicates="last", workers=1)
    import h5py

    with h5py.File(tmp_path / "out.h5") as made:
        assert made["x"][6:10].tolist() == [3, 3.5, 5, 5.25]


def test_samples_out_of_order_are_sorted_on_demand(tmp_path):
    order = np.random.default_rng(2).permutation(11)
    source = write(tmp_path / "in.parquet", order / 10, x=order.astype(float), label=[f"s{i}" for i in order])
    with pytest.raises(Refused, match="--sort"):
        resampled(source)
    table, _ = resampled(source, sort=True)
    np.testing.assert_allclose(table.column("x"), np.arange(21) / 2)
    assert table.column("label").to_pylist() == [f"s{i // 2}" for i in range(21)]
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["timestamp"], file["x"] = order / 10, order.astype(float)
        file["label"] = order.astype(np.int32)
    tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=20, sort=True, workers=1)
    with h5py.File(tmp_path / "out.h5") as made:
        np.testing.assert_allclose(made["x"], np.arange(21) / 2)
        assert made["label"][()].tolist() == [i // 2 for i in range(21)]


def test_lerobot_sets_take_the_same_options(tmp_path):
    from lerobot_test import data_of
    from tmaops.dataset import example

    example.write(tmp_path / "in", [40, 50])
    path = tmp_path / "in" / "data" / "chunk-000" / "file-001.parquet"
    table = pq.read_table(path)
    stamps = table.column("timestamp").to_numpy().copy()
    stamps[[10, 20, 21]] = stamps[[11, 21, 20]]
    at = table.schema.get_field_index("timestamp")
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(stamps)), path)
    with pytest.raises(Refused, match="episode 1"):
        tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=25, workers=1)
    report = tmaops.dataset.resample(
        tmp_path / "in", tmp_path / "out", hz=25, duplicates="last", sort=True, start=0.2, end=0.6, workers=1
    )
    assert report.done
    rows = data_of(tmp_path / "out").to_pandas()
    assert rows["timestamp"].tolist() == pytest.approx(list(np.arange(0.2, 0.61, 0.04)) * 2)


def test_snap_start_end_align_and_offset_place_the_targets(tmp_path):
    times = SINCE_1970 + 0.03 + np.arange(20) / 10 + 1e-7
    source = write(tmp_path / "in.parquet", times, count=np.arange(20))
    table, _ = resampled(source, hz=10, align=True)
    assert table.column("timestamp")[0].as_py() == SINCE_1970 + 0.1
    table, _ = resampled(source, hz=10, offset=-0.0300001, align=True, snap=1e-6)
    assert table.column("count").to_pylist() == list(range(20)) and table.column("timestamp")[0].as_py() == SINCE_1970
    moment = datetime.datetime.fromtimestamp(SINCE_1970 + 1, datetime.timezone.utc).isoformat()
    table, _ = resampled(source, hz=10, start=moment, end=SINCE_1970 + 1.5)
    assert table.column("timestamp").to_pylist() == pytest.approx(SINCE_1970 + 1 + np.arange(6) / 10)
    with pytest.raises(Refused, match="no episode.*--start and --end"):
        resampled(source, hz=10, end=5)
    with pytest.raises(Refused, match="start: got 'noon'"):
        resampled(source, hz=10, start="noon")


def test_the_time_can_be_named_on_the_command_line(tmp_path, capsys):
    pq.write_table(pa.table({"when": np.arange(11) / 10, "x": np.arange(11.0)}), tmp_path / "in.parquet")
    arguments = ["resample", str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet"), "--hz", "20"]
    assert main(arguments) == 2 and "--time NAME" in capsys.readouterr().err
    assert main([*arguments, "--time", "when", "--snap", "1e-6", "--strict"]) == 0
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 21


def test_stamps_beyond_64_bits_are_refused_by_name(tmp_path):
    times = np.array([2**63, 2**63 + 10, 2**63 + 20], np.uint64)
    for options in ({}, {"time_unit": "s"}):
        with pytest.raises(Refused, match="timestamp.*292 years"):
            resampled(write(tmp_path / "in.parquet", times), **options)
    with pytest.raises(Refused, match="timestamp.*292 years"):
        tmaops.dataset.resample(h5(tmp_path / "in.h5", times), tmp_path / "out.h5", hz=10, workers=1)


def test_what_the_new_rate_cannot_hold_is_said_with_the_mode_that_removes_it(tmp_path):
    times = np.arange(3000) / 1000
    fast, slow = np.sin(2 * np.pi * 40 * times), np.sin(2 * np.pi * times)
    both = pa.FixedSizeListArray.from_arrays(pa.array(np.stack([slow, fast], 1).reshape(-1)), 2)
    columns = {"slow": slow, "both": both, "turn": np.sign(slow) * slow}
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"timestamp": times} | columns), source)
    _, report = resampled(source, hz=30)
    (said,) = report.warnings
    assert "energy of both[1] is above half the new rate" in said and said.endswith("[faster_than_targets]")
    with pytest.raises(Refused, match="strict"):
        resampled(source, hz=30, strict=True)
    table, report = resampled(source, hz=30, modes={"both[1:2]": "lowpass"}, strict=True)
    assert np.abs(np.stack(table.column("both").to_numpy())[5:-5, 1]).max() < 0.01
    h5(tmp_path / "in.h5", times, fast=fast, slow=slow)
    report = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=30, workers=1)
    assert [warning.split(" is above")[0][-14:] for warning in report.warnings] == ["energy of fast"]


@pytest.mark.parametrize("modes, order", [({}, 1), ({"x": "nearest"}, 1), ({}, -1)])
def test_what_the_new_rate_cannot_hold_is_said_in_the_words_of_one_recording(modes, order, tmp_path):
    times = np.cumsum(np.random.default_rng(3).uniform(0.015, 0.025, 300))
    columns = {"timestamp": times[::order], "x": (np.sin(100 * times) + np.sin(3 * times))[::order]}
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    _, report = resampled(tmp_path / "in.parquet", hz=20, modes=modes, sort=order < 0)
    with pytest.warns(UserWarning, match="energy of x is above half") as warned:
        tmaops.resample(columns, hz=20, mode=modes, sort=order < 0)
    assert report.warnings == [f"{said.message} [faster_than_targets]".partition(": ")[2] for said in warned]


def test_an_array_of_another_length_beside_samples_is_named(tmp_path):
    h5(tmp_path / "in.h5", np.arange(100) / 50, action=np.arange(99.0))
    report = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=25, workers=1)
    said = "array 'action' stays as it is: it has 99 rows beside 100 samples [other_length]"
    assert report.warnings == [said]


@pytest.mark.parametrize(
    "kind, said",
    [(pa.int64(), "1 null"), (pa.float64(), "row 7: got nan"), (pa.timestamp("us"), "1 null"), (pa.string(), "1 null")],
)
def test_times_with_a_null_are_refused_by_name(tmp_path, kind, said):
    times = pa.array([20 * row for row in range(60)], pa.int64()).cast(kind).to_pylist()
    write(tmp_path / "in.parquet", pa.array([*times[:7], None, *times[8:]], kind))
    with pytest.raises(Refused, match=f"'timestamp'.*{said}"):
        resampled(tmp_path / "in.parquet")


@pytest.mark.parametrize("ending", ["h5", "zarr", "parquet"])
def test_seconds_and_nanoseconds_are_one_time(ending, tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    ns = SINCE_1970 * 10**9 + np.arange(12) * 300_000_000
    columns = {"stamp.sec": ns // 10**9, "stamp.nanosec": ns % 10**9, "x": np.arange(12.0)}

    def resampled(columns, **options):
        source, out = tmp_path / f"in{len(options)}.{ending}", tmp_path / f"out{len(options)}.{ending}"
        if ending == "h5":
            with h5py.File(source, "w") as file:
                file.update(columns)
        elif ending == "zarr":
            store = zarr.open_group(str(source), mode="w", zarr_format=2)
            for name, v in {
                **{f"data/{n}": v for n, v in columns.items()},
                "meta/episode_ends": np.array([12]),
            }.items():
                store.create_array(name, shape=v.shape, chunks=v.shape, dtype=v.dtype)[...] = v
        else:
            pq.write_table(pa.table(columns), source)
        tmaops.dataset.resample(source, out, hz=5, workers=1, **options)
        found = zarr.open_group(str(out))["data"] if ending == "zarr" else None
        found = found or (pq.read_table(out) if ending == "parquet" else h5py.File(out))
        return {name: np.asarray(found[name][:]) for name in columns}

    made = resampled(columns)
    targets = ns[0] + np.arange(17) * 200_000_000
    assert (made["stamp.sec"] * 10**9 + made["stamp.nanosec"]).tolist() == targets.tolist()
    np.testing.assert_allclose(made["x"], np.arange(17) / 1.5)
    late = columns | {"stamp.nanosec": np.where(np.arange(12) == 11, ns % 10**9 + 10**9, ns % 10**9)}
    with pytest.raises(Refused, match="from 0 to 999,?999,?999 ns"):
        resampled(late, duplicates="last")


def test_new_times_that_are_the_same_whole_number_are_refused(tmp_path):
    source = write(tmp_path / "in.parquet", SINCE_1970 + np.arange(20))
    with pytest.raises(Refused, match="the same whole numbers of 1000000000 ns; needed a lower --hz"):
        resampled(source, hz=2)
    assert resampled(source, hz=0.5)[0].num_rows == 10


def test_warnings_of_times_are_those_of_every_door(tmp_path):
    text = np.array([f"2024-03-01 12:00:0{i}" for i in range(9)], "S19")
    tmaops.dataset.resample(h5(tmp_path / "in.h5", text), tmp_path / "out.h5", hz=2, workers=1)
    report = tmaops.dataset.resample(
        h5(tmp_path / "two.h5", np.arange(9.0), time=np.arange(9.0)), tmp_path / "two_out.h5", hz=2, workers=1
    )
    assert "[other_time_name]" in report.warnings[0]
    report = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "again.h5", hz=2, workers=1)
    assert "no zone" in report.warnings[0]


def test_dates_in_other_forms_are_refused_with_what_converts_them(tmp_path):
    columns = {"time": ["March 14, 2026 10:00:00", "March 14, 2026 10:00:01"], "x": [1.0, 2.0]}
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    with pytest.raises(tmaops.Error, match="pandas.to_datetime makes it of other dates"):
        tmaops.resample({name: np.array(values) for name, values in columns.items()}, hz=2)
    with pytest.raises(tmaops.Error, match="pandas.to_datetime makes it of other dates"):
        tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=2, workers=1)


@pytest.mark.parametrize("hz", [10, 30, 100])
def test_seconds_since_1970_are_the_same_times_in_arrays_text_and_parquet(hz, tmp_path):
    times, count = 1_700_000_000.123456 + np.arange(101) / hz, np.arange(101)
    made = tmaops.resample({"timestamp": times, "x": np.sin(times), "k": count}, hz=hz)
    pq.write_table(pa.table({"timestamp": times, "x": np.sin(times), "k": count}), tmp_path / "in.parquet")
    tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=hz, workers=1)
    text = {"timestamp": np.array([repr(time) for time in times.tolist()]), "x": np.sin(times), "k": count}
    tables = pq.read_table(tmp_path / "out.parquet"), tmaops.resample(text, hz=hz)
    for name in ("x", "k"):
        for other in tables:
            np.testing.assert_array_equal(np.asarray(other[name]), made[name])
    assert hz == 30 or (made["k"] == count).all()  # a period of whole microseconds: each target meets its sample


def test_a_day_is_added_where_times_of_day_pass_midnight_and_it_is_said(tmp_path):
    clock = [
        f"{(23 * 3600 + 3590 + i) // 3600 % 24:02d}:{(3590 + i) // 60 % 60:02d}:{(50 + i) % 60:02d}" for i in range(20)
    ]
    table, report = resampled(write(tmp_path / "in.parquet", clock), hz=2)
    assert table["timestamp"].to_pylist()[18:22:2] == ["23:59:59.000000000", "00:00:00.000000000"]
    np.testing.assert_allclose(table["x"], np.arange(39) / 2)
    assert "[past_midnight]" in report.warnings[0]
    with pytest.warns(UserWarning, match="passes midnight"):
        made = tmaops.resample({"time": np.array(clock), "x": np.arange(20.0)}, hz=2)
    assert made["time"].tolist()[18:21] == ["23:59:59.0", "23:59:59.5", "00:00:00.0"]
    np.testing.assert_allclose(made["x"], np.arange(39) / 2)


def test_dates_with_the_year_last_have_one_order_in_all_rows_and_files(tmp_path):
    """That of 05/06 is said to be a guess; a later row, and the first file, decide it for all."""
    hours = [f"{day:02d}/06/2026 {hour:02d}:00:00" for day in (5, 13) for hour in range(20)]
    table, report = resampled(write(tmp_path / "in.parquet", hours[20:], [1] * 20), hz=1 / 1800)
    assert table["timestamp"][1].as_py() == "13/06/2026 00:30:00.000000000" and "[date_order]" not in str(
        report.warnings
    )
    made = tmaops.resample({"time": np.array(hours), "x": np.arange(40.0)}, hz=1 / 3600)
    assert len(made["x"]) == 8 * 24 + 20 and made["time"][-1] == "13/06/2026 19:00:00"
    with pytest.warns(UserWarning, match="month first, and the other order fits as well"):
        tmaops.resample({"time": np.array(hours[:20]), "x": np.arange(20.0)}, hz=1 / 3600)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, own in (("a", hours[20:]), ("b", hours[:20])):
        write(folder / f"{name}.parquet", own)
    tmaops.dataset.resample(folder, tmp_path / "out", hz=1 / 1800, workers=1)
    late = pq.read_table(tmp_path / "out" / "b.parquet")["timestamp"]
    assert late[1].as_py() == "05/06/2026 00:30:00.000000000"
