"""Parquet tables with an episode column: every Arrow type keeps its meaning."""

import datetime
import decimal

import known
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from tmaops.dataset import Refused
from tmaops.dataset.cli import main
from tmaops.dataset.tables import BATCH_ROWS, Runs, batches_of, map_runs, parquet


def table_of(times_ns, episodes, rng):
    n = len(times_ns)
    x = rng.normal(size=n)
    return pa.table(
        {
            "speed": pa.array(x, mask=np.arange(n) == 5),
            "label": pa.array([f"s{i % 3}" for i in range(n)]).dictionary_encode(),
            "time": pa.array(times_ns, pa.timestamp("ns", tz="Europe/Berlin")),
            "nested": pa.array([{"a": i, "b": [i, i + 1]} for i in range(n)]),
            "vector": pa.array(rng.normal(size=(n, 3)).tolist(), pa.list_(pa.float64())),
            "when": pa.array([datetime.date(2024, 1, 1 + i % 28) for i in range(n)]),
            "count": pa.array([None if i == 3 else i for i in range(n)], pa.uint16()),
            "episode": pa.array(episodes).dictionary_encode(),
        }
    ).replace_schema_metadata({"made by": "a test"})


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(7)
    steps = rng.integers(5_000_000, 30_000_000, 240)
    times = 1_700_000_000_000_000_000 + np.cumsum(steps)
    table = table_of(times, ["a"] * 100 + ["b"] * 140, rng)
    pq.write_table(table, tmp_path / "in.parquet", compression="zstd", row_group_size=37)
    return tmp_path / "in.parquet", table, times


def test_types_order_zones_and_metadata_survive_and_numbers_are_those_of_float64(source, tmp_path):
    path, table, times = source
    report = tmaops.dataset.resample(path, tmp_path / "out.parquet", hz=40, workers=1)
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.schema.equals(pq.read_schema(path), check_metadata=True)
    assert report.rows_written == out.num_rows
    assert pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0).column(0).compression == "ZSTD"
    for episode, rows in (("a", slice(0, 100)), ("b", slice(100, 240))):
        mine = out.filter(pa.array([e == episode for e in out.column("episode").to_pylist()]))
        t = times[rows]
        targets = t[0] + np.rint(np.arange(mine.num_rows) * 1e9 / 40).astype(np.int64)
        assert mine.column("time").cast(pa.int64()).to_pylist() == targets.tolist()
        assert t[-1] - targets[-1] < 25_000_000
        seconds, at = (t - t[0]) / 1e9, (targets - t[0]) / 1e9
        wanted = known.linear(np.stack(table.column("vector").to_pylist()[rows]), seconds, at)
        np.testing.assert_allclose(np.stack(mine.column("vector").to_pylist()), wanted, atol=1e-12)
        for name in ("label", "nested", "when", "count"):
            assert mine.column(name).to_pylist() == known.previous(table.column(name).to_pylist()[rows], t, targets), (
                name
            )


def test_a_null_sample_leaves_nulls_around_it_and_nowhere_else(source, tmp_path):
    path, table, times = source
    tmaops.dataset.resample(path, tmp_path / "out.parquet", hz=200, workers=1)
    out = pq.read_table(tmp_path / "out.parquet")
    mine = out.filter(pa.array([e == "a" for e in out.column("episode").to_pylist()]))
    at = mine.column("time").cast(pa.int64()).to_numpy()
    gone = (at > times[4]) & (at < times[6])
    assert gone.any()
    assert mine.column("speed").is_null().to_pylist() == gone.tolist()


def test_gaps_become_nulls(source, tmp_path):
    path, _, times = source
    tmaops.dataset.resample(path, tmp_path / "out.parquet", hz=200, max_gap=0.02, workers=1)
    out = pq.read_table(tmp_path / "out.parquet").slice(0, 50)
    at = out.column("time").cast(pa.int64()).to_numpy()
    before = times[np.searchsorted(times, at, side="right") - 1]
    after = times[np.searchsorted(times, at)]
    wanted = ((after - before) > 20_000_000).tolist()
    assert any(wanted) and out.column("label").is_null().to_pylist() == wanted
    assert out.column("vector").is_null().to_pylist() == wanted


def test_an_episode_in_two_places_is_refused(tmp_path):
    rng = np.random.default_rng(1)
    table = table_of(np.arange(30) * 10**7, ["a"] * 10 + ["b"] * 10 + ["a"] * 10, rng)
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(Refused, match="episode 'a' in two places"):
        tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=30, workers=1)


@pytest.mark.parametrize("kind", ["behind one another", "in turn"])
def test_times_that_increase_among_the_rows_of_a_value_name_the_episode_column(tmp_path, kind):
    rows = {"clip": ["n", "s"] * 40, "ts": np.repeat(np.arange(40) * 0.05, 2), "level": np.arange(80) % 7}
    table = pa.table(rows)
    if kind == "behind one another":
        table = table.sort_by([("clip", "ascending"), ("ts", "ascending")])
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(Refused, match="--episode-column 'clip', if its values are the episodes"):
        tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out", hz=10)
    if kind == "in turn":
        with pytest.raises(Refused, match="in two places.*sort_values"):
            tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out", hz=10, episode_column="clip")
    else:
        tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out", hz=10, episode_column="clip")
        assert pq.read_table(tmp_path / "out").column("clip").to_pylist() == ["n"] * 20 + ["s"] * 20


def test_what_was_taken_as_time_is_said_and_a_missing_one_refused(source, tmp_path):
    path, _, _ = source
    report = tmaops.dataset.resample(path, tmp_path / "out.parquet", hz=30, workers=1)
    assert report.notes[0] == "time: column 'time' in its own unit (of the type timestamp[ns, tz=Europe/Berlin])"
    pq.write_table(pa.table({"x": [1.0, 2.0], "seq": [0, 1]}), tmp_path / "none.parquet")
    with pytest.raises(Refused, match="--time NAME"):
        tmaops.dataset.resample(tmp_path / "none.parquet", tmp_path / "none_out.parquet", hz=30, workers=1)


def test_float32_seconds_are_warned_about(tmp_path):
    pq.write_table(
        pa.table({"t": pa.array(np.arange(50, dtype=np.float32) / 10), "x": np.arange(50.0)}), tmp_path / "in.parquet"
    )
    report = tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=5, workers=1)
    assert any("float32 seconds" in warning for warning in report.warnings)


def test_rows_of_a_dictionary_that_shrinks_the_file_are_read_in_bounded_parts(tmp_path):
    rows = 4 * BATCH_ROWS
    text = pa.array(["x" * 1000]).take(pa.array(np.zeros(rows, np.int64)))
    table = pa.table({"time": np.arange(rows) / 50, "episode": np.arange(rows) // 100, "text": text})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=rows)
    file = parquet(tmp_path / "in.parquet")
    assert file.metadata.row_group(0).total_byte_size < 32 << 20 < text.nbytes
    assert max(batch.num_rows for batch in batches_of(file, "in", None)) <= BATCH_ROWS
    seen = []
    runs = Runs(pa.array(range(rows // 100)), np.arange(rows // 100) * 100, np.full(rows // 100, 100))
    map_runs(
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        runs,
        lambda group, part: seen.append(part.num_rows) or part.slice(0, 1),
    )
    assert max(seen) <= BATCH_ROWS and sum(seen) == 100 * len(runs)


def test_images_that_no_codec_shrinks_are_written_without_and_old_names_of_list_elements_keep_theirs(tmp_path):
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "time": np.arange(400) / 50,
            "image": pa.array([random.bytes(500) for _ in range(400)]),
            "text": pa.array(["a text that repeats itself " * 20] * 200 + [f"text {i} " * 100 for i in range(200)]),
            "list": pa.array([[float(i // 50), 1.0] for i in range(400)], pa.list_(pa.float32())),
        }
    )
    pq.write_table(
        table,
        tmp_path / "in.parquet",
        compression="zstd",
        use_compliant_nested_type=False,
        use_dictionary=["list.list.item"],
    )
    tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=50, workers=1)
    group = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    found = {group.column(i).path_in_schema: group.column(i) for i in range(4)}
    assert {path: column.compression for path, column in found.items()} == {
        "time": "ZSTD",
        "image": "UNCOMPRESSED",
        "text": "ZSTD",
        "list.list.element": "ZSTD",
    }
    assert found["list.list.element"].has_dictionary_page and not found["text"].has_dictionary_page
    assert pq.read_table(tmp_path / "out.parquet").equals(table)


def test_tables_without_rows_beside_others_cost_nothing(source, tmp_path):
    """A file without rows is refused by its name alone, and left out where refused files are."""
    path, table, _ = source
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "full.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "in" / "none.parquet")
    report = tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=40, workers=1)
    assert report.episodes == 2 and report.done
    wanted = tmaops.dataset.resample(path, tmp_path / "one.parquet", hz=40, workers=1)
    assert report.rows_written == wanted.rows_written
    assert pq.read_table(tmp_path / "out" / "full.parquet").equals(pq.read_table(tmp_path / "one.parquet"))
    with pytest.raises(Refused, match="none.*no episode"):
        tmaops.dataset.resample(tmp_path / "in" / "none.parquet", tmp_path / "none.parquet", hz=40, workers=1)


def test_times_in_fields_of_structs_are_read_and_written_there(tmp_path):
    """As tables of ROS messages have them: a header with a stamp of seconds and nanoseconds."""
    nanoseconds = 1_700_000_000_000_000_000 + np.arange(40) * 50_000_000
    stamps = [{"stamp": {"sec": t // 10**9, "nanosec": t % 10**9}, "frame_id": "base"} for t in nanoseconds.tolist()]
    pq.write_table(pa.table({"header": stamps, "x": np.arange(40.0)}), tmp_path / "in.parquet")
    tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=40, workers=1)
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.schema.equals(pq.read_schema(tmp_path / "in.parquet"))
    made = out["header"].to_pylist()
    at = [each["stamp"]["sec"] * 10**9 + each["stamp"]["nanosec"] for each in made]
    assert at == [1_700_000_000_000_000_000 + 25_000_000 * i for i in range(79)] and made[7]["frame_id"] == "base"
    np.testing.assert_allclose(out["x"], np.arange(79) / 2)
    report = tmaops.dataset.inspect(tmp_path / "in.parquet")
    assert not report.unreadable and report.clocks[0].hz == pytest.approx(20)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pa.Table.from_arrays([pa.array([0.0, 1.0])] * 3, names=["t", "x", "x"]), "two columns of the name 'x'"),
        (pa.table({"t": [0.0, 1.0], "a.b": [0.0, 1.0], "a": [{"b": 1.0}] * 2}), "two columns of the name 'a.b'"),
        (pa.table({"t": [0.0, 1.0], "s": pa.array(["a"] * 2, pa.string_view())}), "column 's': got string_view"),
        (pa.table({"t": [0.0, 1.0], "episode": [[0], [0]]}), "episode column: got 'episode', a column of list"),
        (pa.table({"t": [0.0, 1.0], "episode": [{"a": 0}] * 2}), "episode column: got 'episode', a column of struct"),
    ],
)
def test_columns_of_one_name_and_episodes_that_are_no_values_are_refused_by_name(tmp_path, table, words):
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(Refused, match=words):
        tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=30, workers=1)


def test_tensors_and_lists_in_lists_are_numbers(tmp_path):
    tensors = np.sin(np.arange(20) / 9)[:, None, None] * np.arange(6).reshape(2, 3)
    table = pa.table({"t": np.arange(20) / 10, "grid": pa.FixedShapeTensorArray.from_numpy_ndarray(tensors)})
    table = table.append_column("bytes", [[b"a"] * 20]).append_column("lists", [[[[1.0], [2.0]]] * 20])
    pq.write_table(table, tmp_path / "in.parquet")
    report = tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=5, workers=1)
    assert not report.warnings, "values that are not looked at are not missing"
    made = pq.read_table(tmp_path / "out.parquet")["grid"]
    assert made.type == table["grid"].type
    np.testing.assert_allclose(made.combine_chunks().to_numpy_ndarray(), tensors[::2], atol=1e-12)
    tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "up.parquet", hz=20, workers=1)
    middle = pq.read_table(tmp_path / "up.parquet")["grid"].combine_chunks().to_numpy_ndarray()[1]
    np.testing.assert_allclose(middle, tensors[:2].mean(0))


def test_decimals_with_digits_and_times_of_a_day_are_numbers_and_keep_their_types(tmp_path):
    price = pa.array([decimal.Decimal(f"{i}.50") for i in range(11)], pa.decimal128(10, 2))
    price = pa.array([*price.to_pylist()[:7], None, *price.to_pylist()[8:]], price.type)
    clock = pa.array(np.arange(11) * 100 + 3_600_000, pa.int32()).cast(pa.time32("ms"))
    count = pa.array([decimal.Decimal(i) for i in range(11)], pa.decimal128(10, 0))
    for time in (clock, pa.array([decimal.Decimal(i) / 10 for i in range(11)], pa.decimal128(12, 6))):
        pq.write_table(pa.table({"time": time, "price": price, "count": count}), tmp_path / "in.parquet")
        report = tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=20, workers=1)
        made = pq.read_table(tmp_path / "out.parquet")
        assert made.schema.types == [time.type, price.type, count.type] and not report.warnings
        assert made["price"].to_pylist()[:3] == [decimal.Decimal(text) for text in ("0.50", "1.00", "1.50")]
        assert [i for i, value in enumerate(made["price"].to_pylist()) if value is None] == [13, 14, 15]
        assert made["count"].to_pylist()[:3] == [0, 0, 1]
        assert made["time"].take([0, 2]).to_pylist() == time.take([0, 1]).to_pylist()
        (tmp_path / "out.parquet").unlink()


def test_a_file_of_other_columns_is_refused_with_the_column(tmp_path):
    (tmp_path / "in").mkdir()
    times = np.arange(9) / 20
    for name, x in (("a", np.arange(9)), ("b", np.arange(9) / 2)):
        pq.write_table(pa.table({"timestamp": times, "x": x}), tmp_path / "in" / f"{name}.parquet")
    with pytest.raises(Refused, match="b.parquet: column 'x': got double; needed int64"):
        tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=30)


@pytest.mark.parametrize("mode", ["mean", "sum", "min", "max", "any", "count", "lowpass"])
@pytest.mark.parametrize("hz", [7, 130])
def test_over_an_interval_a_null_reaches_what_nan_reaches(mode, hz, tmp_path):
    rng = np.random.default_rng(5)
    times, x = (np.arange(300) * 10_000_000).astype("M8[ns]"), rng.normal(size=300)
    x[rng.random(300) < 0.05] = np.nan
    pq.write_table(pa.table({"timestamp": times, "x": pa.array(x, from_pandas=True)}), tmp_path / "in.parquet")
    tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=hz, mode={"x": mode}, workers=1)
    wanted = tmaops.resample({"timestamp": times, "x": x}, hz=hz, mode={"x": mode})["x"]
    np.testing.assert_array_equal(pq.read_table(tmp_path / "out.parquet")["x"].to_numpy(), wanted)


@pytest.mark.parametrize("lost", ["gap", "gap at the end", "mask"])
def test_events_before_a_gap_or_a_mask_stay_as_in_one_recording(lost, tmp_path):
    times, rows = np.arange(60) * 0.02, np.arange(60)
    last = 58 if lost == "gap at the end" else 30
    columns = {"timestamp": times + (rows > last) * 0.5 * (lost != "mask"), "x": np.sin(times * 9), "hits": rows % 4}
    columns |= {"reward": np.ones(60), "done": rows == last, "best": np.cos(times * 5)}
    if lost == "mask":
        columns["valid"] = (rows < 31) | (rows > 45)
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    asked = {"hz": 13, "max_gap": 0.1, "mode": {"x": "cubic", "hits": "sum", "best": "max"}}
    tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", workers=1, **asked)
    made, wanted = pq.read_table(tmp_path / "out.parquet"), tmaops.resample(columns, **asked)
    assert made["x"].is_null().to_pylist() == (~wanted["valid"]).tolist() and made["x"].null_count > 2
    for name in ("x", "reward", "best"):
        np.testing.assert_array_equal(np.array(made[name].to_pylist(), float), wanted[name])
    for name in ("hits", "done"):
        np.testing.assert_array_equal(made[name].cast(pa.int64()).fill_null(0), wanted[name].astype(int))
    assert sum(made["done"].drop_null().to_pylist()) == wanted["done"].sum() > 0
    assert sum(made["reward"].drop_null().to_pylist()) == pytest.approx(60 - 15 * (lost == "mask"))


@pytest.mark.parametrize("name, mode", [("done", "any"), ("success", "any"), ("hits", "max"), ("hits", "count")])
def test_nulls_behind_the_first_rows_are_no_values_of_flags_and_whole_numbers(name, mode, tmp_path):
    rows = np.arange(9000)
    column = np.where(rows == 8500, 1, rows % 7 if name == "hits" else 0)
    holes = pa.array(column.astype(bool if name == "done" else np.int32), mask=rows == 8600)
    pq.write_table(pa.table({"timestamp": rows * 0.1, name: holes}), tmp_path / "in.parquet")
    asked = {"hz": 7, "mode": {name: mode}}
    tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", workers=1, **asked)
    made = pq.read_table(tmp_path / "out.parquet")[name]
    wanted = tmaops.resample({"timestamp": rows * 0.1, name: np.where(rows == 8600, np.nan, column)}, **asked)[name]
    assert made.type == holes.type and made.null_count == np.isnan(wanted).sum() == (mode != "count")
    np.testing.assert_array_equal(np.array(made.to_pylist(), float), wanted)
    with pytest.raises(Refused, match="nulls in whole numbers that are summed|bool"):
        tmaops.dataset.resample(tmp_path / "in.parquet", tmp_path / "b.parquet", hz=7, mode={name: "sum"}, workers=1)


def test_options_have_the_names_of_one_recording_too(tmp_path):
    path, made = tmp_path / "in.parquet", []
    columns = {"when": np.tile(np.arange(9) / 20, 2), "run": np.repeat(["a", "b"], 9), "x": np.arange(18.0)}
    pq.write_table(pa.table(columns), path)
    for number, names in enumerate((("time", "group", "mode"), ("time_column", "episode_column", "modes"))):
        options = dict(zip(names, ("when", "run", {"x": "next"}), strict=True))
        tmaops.dataset.resample(path, tmp_path / f"{number}.parquet", hz=30, workers=1, **options)
        made.append(pq.read_table(tmp_path / f"{number}.parquet"))
    command = ["resample", str(path), str(tmp_path / "2.parquet"), "--hz", "30", "--group", "run", "--time", "when"]
    assert main([*command, "--mode", "x=next", "--quiet"]) == 0
    assert made[0].equals(made[1]) and made[0].equals(pq.read_table(tmp_path / "2.parquet")) and len(made[0]) == 26
    with pytest.raises(Refused, match="'modus'.*time_column"):
        tmaops.dataset.resample(path, tmp_path / "3.parquet", hz=30, modus={})
