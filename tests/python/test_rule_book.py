"""One rule book behind every door: the same columns come out with the same bits and the same words.

A door is a function from (columns by name, options of tmaops.resample) to (columns by name, report). A format joins with one
function in DOORS, and says in `holds` which columns it can carry.
"""

import contextlib
import datetime
import decimal
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import tmaops

ROWS = 41
STEP = 0.125  # which f64 and decimal text hold alike, also since 1970
TIMES = np.arange(ROWS) * STEP
START = 1_767_225_600  # 2026-01-01 UTC


def turned(axis: int, flips: bool = False) -> np.ndarray:
    """Quaternions x y z w that turn about one axis, with sign flips of their own where asked for."""
    half = np.linspace(0.1, 2.6, ROWS)
    q = np.zeros((ROWS, 4))
    q[:, axis], q[:, 3] = np.sin(half / 2), np.cos(half / 2)
    return q * np.where(np.arange(ROWS) % 3 == 1, -1, 1)[:, None] if flips else q


def wrapped(turn: float, low: float) -> np.ndarray:
    return (np.linspace(0, 2.5 * turn, ROWS) + 0.4 * turn - low) % turn + low


def wave(seed: int) -> np.ndarray:
    return np.sin(np.arange(ROWS) * 0.3 + seed) * (seed + 1) + 0.125


def table() -> dict[str, tuple[np.ndarray, str]]:
    """Columns by name, and the mode that each must have."""
    tau, q = 2 * np.pi, turned(2, flips=True)
    columns: dict[str, tuple[np.ndarray, str]] = {}
    for name in ("tx", "joint.position", "velocity [m/s]", "effort", "temperature", "yaw_rate"):
        columns[name] = (wave(len(columns)), "linear")
    for name, kind in (("small", "f4"), ("smaller", "f2"), ("list of floats", "f8")):
        columns[name] = (np.stack([wave(1), wave(2)], 1).astype(kind), "linear")
    for i, part in enumerate("xyzw"):
        columns[f"q{part}"] = (q[:, i], "slerp")
        columns[f"left_q{part}"] = (turned(0)[:, i], "slerp")
        columns[f"pose.orientation.{part}"] = (turned(1)[:, i], "slerp")
        columns[f"q{part}_world_device"] = (turned(1, flips=True)[:, i], "slerp")
        columns[f"q_RS_{part} []"] = (q[:, i], "slerp")
        columns[f"att.q[{i}]"] = (np.roll(turned(2), 1, 1)[:, i], "slerp")
    for name in ("eef_quat", "orientation", "robot0_rotation"):
        columns[name] = (turned(0, flips=True), "slerp")
    columns["two_quats"] = (np.hstack([turned(0), turned(1)]).reshape(ROWS, 2, 4), "slerp")
    columns["pose7"] = (np.hstack([np.stack([wave(1), wave(2), wave(3)], 1), turned(2)]), "linear")
    for name, turn, low in (
        ("yaw", tau, -np.pi),
        ("heading_deg", 360, 0),
        ("theta", tau, 0),
        ("roll", tau, -np.pi),
        ("bearing", 360, 0),
        ("course [deg]", 360, -180),
        ("azimuth", 360, 0),
        ("longitude", 360, -180),
        ("phase", tau, -np.pi),
        ("dial", 360, 0),
    ):
        columns[name] = (wrapped(turn, low), "angle")
    columns["pitch"] = (wave(0) * 0.3, "linear")
    for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        columns[f"count_{kind}"] = ((np.arange(ROWS) // 5).astype(kind), "previous")
    columns["wide"] = (np.arange(ROWS).astype("u8") + np.uint64(2**63), "previous")
    columns["flag"] = (np.arange(ROWS) % 7 > 3, "previous")
    columns["label"] = (np.array([f"step {i // 6}" for i in range(ROWS)]), "previous")
    columns["gaps"] = (np.where(np.arange(ROWS) % 9 == 4, np.nan, wave(3)), "linear")
    columns["empty"] = (np.full(ROWS, np.nan), "linear")
    columns["constant"] = (np.full(ROWS, 2.5), "linear")
    columns["one hot"] = (np.eye(4)[np.arange(ROWS) % 4], "linear")
    return columns


def clocks() -> dict[str, tuple[dict[str, np.ndarray], str]]:
    """Columns of times, and the unit that each must be read in."""
    steps = np.arange(ROWS)
    real = START + steps * STEP
    ns = START * 10**9 + steps * 125 * 10**6
    return {
        "seconds": ({"timestamp": TIMES}, "s"),
        "seconds since 1970": ({"t": real}, "s"),
        "whole seconds since 1970": ({"stamp": START + steps}, "s"),
        "milliseconds since 1970": ({"time": ns // 10**6}, "ms"),
        "real milliseconds since 1970": ({"time": real * 1e3}, "ms"),
        "microseconds since 1970": ({"ts": ns // 10**3}, "us"),
        "nanoseconds since 1970": ({"header.stamp": ns}, "ns"),
        "whole seconds": ({"t": steps}, "s"),
        "whole milliseconds": ({"t": steps * 125}, "ms"),
        "whole microseconds": ({"t": steps * 125_000}, "us"),
        "whole nanoseconds": ({"t": steps * 125 * 10**6}, "ns"),
        "milliseconds by name": ({"t_ms": steps * 125}, "ms"),
        "microseconds by name": ({"timestamp [us]": steps * 125_000}, "us"),
        "nanoseconds by name": ({"elapsed_ns": steps * 125 * 10**6}, "ns"),
        "seconds by name": ({"monotonic_s": TIMES}, "s"),
        "secs and nsecs": ({"stamp.secs": ns // 10**9, "stamp.nsecs": ns % 10**9}, "s"),
        "text": ({"time": np.array([f"2026-01-01T00:00:{i / 8:06.3f}Z" for i in steps])}, "s"),
        "text of a zone": ({"time": np.array([f"2026-01-01T01:00:{i / 8:06.3f}+01:00" for i in steps])}, "s"),
        "datetime64": ({"when": ns.astype("M8[ns]")}, "ns"),
        "nanoseconds as pandas names them of EuRoC": ({"#timestamp [ns]": ns}, "ns"),
        "milliseconds by a name in camel case": ({"timeMs": steps * 125}, "ms"),
        "seconds and nanos": ({"stamp.seconds": ns // 10**9, "stamp.nanos": ns % 10**9}, "s"),
        "secs and nsecs in camel case": ({"stampSec": ns // 10**9, "stampNsec": ns % 10**9}, "s"),
        "tv_sec and tv_usec": ({"tv_sec": ns // 10**9, "tv_usec": ns % 10**9 // 1000}, "s"),
        "secs and msecs": ({"stamp.secs": ns // 10**9, "stamp.msecs": ns % 10**9 // 10**6}, "s"),
        "seconds and ns beside them": ({"timestamp_s": ns // 10**9, "timestamp_ns": ns % 10**9}, "s"),
        "all of it in ns beside whole seconds": ({"timestamp_s": ns // 10**9, "timestamp_ns": ns}, "ns"),
        "microseconds in Greek": ({"Time [µs]": steps * 125_000}, "us"),
        "micros": ({"timestamp_micros": ns // 1000}, "us"),
        "GPS week and seconds of it": ({"GPS Week": steps * 0 + 2400, "GPS TOW [s]": 345_600 + TIMES}, "s"),
        "GPS week and milliseconds of it": ({"week": steps * 0 + 2400, "iTOW": 345_600_000 + steps * 125}, "ms"),
        "text of times of day": ({"Time": np.array([f"10:00:{i / 8:06.3f}" for i in steps])}, "s"),
        "text of dates in America": ({"Time": np.array([f"1/14/2026 1:00:{i / 8:06.3f} PM" for i in steps])}, "s"),
        "text of dates in Europe": ({"Time": np.array([f"14.01.2026 13:00:{i / 8:06.3f}" for i in steps])}, "s"),
        "text of dates and times of day": (
            {"Date": np.full(ROWS, "01/14/2026"), "Time": np.array([f"10:00:{i / 8:06.3f}" for i in steps])},
            "s",
        ),
        "a name like a time": ({"tracking_timestamp_us": 1_000_000 + steps * 125_000}, "us"),
        "text, and a name like a time": (
            {"logged_time(txt)": np.array([f"2026-01-01 01:00:{i / 8:06.3f} +0100" for i in steps])},
            "s",
        ),
    }


def by_dictionary(columns, **options):
    made, report = tmaops.resample(dict(columns), report=True, **options)
    return made, report.json


def by_pandas(columns, **options):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            name: values if values.ndim == 1 else pandas.Series(list(values), dtype=object)
            for name, values in columns.items()
        }
    )
    made, report = tmaops.resample(frame, report=True, **options)
    return {
        name: np.stack(list(made[name])) if np.ndim(made[name].iloc[0]) else made[name].to_numpy() for name in made
    }, report.json


def by_polars(columns, **options):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: polars.Series(name, values) for name, values in columns.items()})
    made, report = tmaops.resample(frame, report=True, **options)
    return {name: made[name].to_numpy() for name in made.columns}, report.json


def _by_tool(path: pathlib.Path, made: pathlib.Path, options: dict) -> dict:
    program = pathlib.Path(tmaops.__file__).parent / "bin" / "tmaops"
    if not program.exists():
        pytest.skip("the package has no tool")
    words = [f"--{name}={value}" for name, value in options.items()]
    command = [program, "resample", path, "-o", made, "--json", "--quiet", "--outside=nan", "--force", *words]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def by_npz(columns, tmp_path, **options):
    np.savez(tmp_path / "recording.npz", **columns)
    said = _by_tool(tmp_path / "recording.npz", tmp_path / "made.npz", options)
    with np.load(tmp_path / "made.npz") as archive:
        return {name: archive[name] for name in archive.files}, said


def by_text(columns, tmp_path, **options):
    def text(value) -> str:
        if isinstance(value, np.datetime64):
            return str(value) + "Z"
        return "" if value != value else repr(value.item() if hasattr(value, "item") else value).strip("'")

    names = [f'"{name}"' for name in columns]
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(names), *(",".join(text(value) for value in row) for row in rows)]
    (tmp_path / "recording.csv").write_text("\n".join(lines) + "\n")
    said = _by_tool(tmp_path / "recording.csv", tmp_path / "made.npz", options)
    with np.load(tmp_path / "made.npz") as archive:
        return {name: archive[name] for name in archive.files}, said


def _by_dataset(source: pathlib.Path, made: pathlib.Path, options: dict) -> dict:
    """What a data set's report says, in the words of the tool's."""
    from tmaops import dataset

    report = dataset.resample(source, made, workers=1, **options)
    columns = [
        (name, *re.fullmatch(r"(.*?) \((.*)\)", said).groups())
        for name, said in report.columns.items()
        if name != "task_index"  # LeRobot's own
    ]
    said = [re.fullmatch(r"(?:\S*: )?(.*) \[(\w+)\]", text) for text in report.warnings]
    time = next(note for note in report.notes if note.startswith(("time", "rate")))
    return {
        "columns": [{"name": name, "mode": mode, "reason": reason} for name, mode, reason in columns],
        "notes": [{"id": "", "text": note} for note in report.notes if note.startswith(("angle", "quaternion"))],
        "warnings": [{"id": match[2], "text": match[1].replace("--time ", "--times-array ")} for match in said],
        "time": time,
    }


def _table_of(columns: dict[str, np.ndarray]):
    arrow = pytest.importorskip("pyarrow")

    def column(values: np.ndarray):
        if values.ndim == 1:
            return arrow.array(values)
        return arrow.FixedSizeListArray.from_arrays(column(values.reshape(-1, *values.shape[2:])), values.shape[1])

    return arrow.table({name: column(values) for name, values in columns.items()})


def _columns_of(table) -> dict[str, np.ndarray]:
    def values(column):
        column = column.combine_chunks()
        shape = [len(column)]
        while hasattr(column.type, "list_size"):
            shape.append(column.type.list_size)
            column = column.flatten()
        return column.to_numpy(zero_copy_only=False).reshape(shape)

    return {name: values(table.column(name)) for name in table.column_names}


def by_parquet(columns, tmp_path, **options):
    table = _table_of(columns)
    from pyarrow import parquet

    parquet.write_table(table, tmp_path / "recording.parquet")
    said = _by_dataset(tmp_path / "recording.parquet", tmp_path / "made.parquet", options)
    return _columns_of(parquet.read_table(tmp_path / "made.parquet")), said


def by_hdf5(columns, tmp_path, **options):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "recording.h5", "w") as file:
        for name, values in columns.items():
            text = values.dtype.kind == "U"
            file.create_dataset(
                name, data=values.astype(object) if text else values, dtype=h5py.string_dtype() if text else None
            )
    said = _by_dataset(tmp_path / "recording.h5", tmp_path / "made.h5", options)
    made = {}

    def keep(name, item):
        if isinstance(item, h5py.Dataset):
            made[name] = item.asstr()[()].astype(str) if item.dtype.kind == "O" else item[()]

    with h5py.File(tmp_path / "made.h5") as file:
        file.visititems(keep)
    return made, said


def by_lerobot(columns, tmp_path, **options):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet
    from tmaops.dataset import example

    root = tmp_path / "recording"
    example.write(root, [ROWS], fps=int(1 / STEP), files=1)
    path = next((root / "data").rglob("*.parquet"))
    old = parquet.read_table(path).select(["timestamp", "frame_index", "episode_index", "index", "task_index"])
    table = _table_of({name: values for name, values in columns.items() if name != "timestamp"})
    for name in old.column_names:
        table = table.append_column(name, old.column(name))
    parquet.write_table(table, path)
    info = json.loads((root / "meta" / "info.json").read_text())
    kept = {name: feature for name, feature in info["features"].items() if name in old.column_names}
    info["features"] = kept | {
        name: {
            "dtype": "string" if values.dtype.kind == "U" else values.dtype.name,
            "shape": list(values.shape[1:]) or [1],
            "names": None,
        }
        for name, values in columns.items()
        if name != "timestamp"
    }
    (root / "meta" / "info.json").write_text(json.dumps(info))
    said = _by_dataset(root, tmp_path / "made", options)
    made = parquet.read_table(next((tmp_path / "made" / "data").rglob("*.parquet")))
    return _columns_of(made.drop_columns(["frame_index", "episode_index", "index", "task_index"])), said


def by_mcap(columns, tmp_path, **options):
    """Messages in JSON with a field for every column."""
    writer = pytest.importorskip("mcap.writer")
    from pyarrow import parquet

    ns = [START * 10**9 + int(t * 1e9) for t in columns["timestamp"]]
    kinds = {"f": "number", "i": "integer", "b": "boolean"}

    def schema(values: np.ndarray) -> dict:
        kind = {"type": kinds[values.dtype.kind]}
        return kind if values.ndim == 1 else {"type": "array", "items": kind}

    named = {name.removeprefix("/t."): values for name, values in columns.items() if name != "timestamp"}
    properties = {name: schema(values) for name, values in named.items()}
    with open(tmp_path / "recording.mcap", "wb") as file:
        made = writer.Writer(file)
        made.start()
        form = made.register_schema(
            "made", "jsonschema", json.dumps({"type": "object", "properties": properties}).encode()
        )
        channel = made.register_channel("/t", "json", form)
        for row, time in enumerate(ns):
            message = {name: values[row].tolist() for name, values in named.items()}
            made.add_message(channel, time, json.dumps(message).encode(), time)
        made.finish()
    said = _by_dataset(tmp_path / "recording.mcap", tmp_path / "made.parquet", options)
    return _columns_of(parquet.read_table(tmp_path / "made.parquet")), said


def everything(values: np.ndarray) -> bool:
    return True


def texts_and_wide_numbers(values: np.ndarray) -> bool:
    """What csv can hold: one number, or a text, in each row, whose type is that of the text."""
    return values.ndim == 1 and values.dtype.str[1:] in ("f8", "i8") or values.dtype.kind == "U"


def of_polars(values: np.ndarray) -> bool:
    return values.dtype != np.float16


def of_messages(values: np.ndarray) -> bool:
    """What JSON has: real numbers of 64 bits that are numbers, whole ones, and booleans; arrays of real ones."""
    kind = values.dtype.str[1:]
    return (values.ndim == 1 and kind in ("i8", "b1")) or (
        values.ndim < 3 and kind == "f8" and bool(np.isfinite(values).all())
    )


DATASETS = {
    "parquet": (by_parquet, everything),
    "hdf5": (by_hdf5, everything),
    "lerobot": (by_lerobot, lambda values: values.dtype != np.float16),
    "mcap": (by_mcap, of_messages),
}
DOORS = {
    "dictionary": (by_dictionary, everything),
    "pandas": (by_pandas, everything),
    "polars": (by_polars, of_polars),
    "npz": (by_npz, everything),
    "text": (by_text, texts_and_wide_numbers),
    **DATASETS,
}


def words(report: dict) -> dict:
    """What is said, without the names of files and with one word for arrays and columns."""

    def plain(text: str) -> str:
        text = re.sub(r"(/\S*/)?(recording(\.npz|\.csv)?|[^ ]*recording\.(npz|csv)):?", "IN:", text)
        return text.replace("array", "column").replace("::", ":")

    whole = ("integers", "booleans", "text", "times", "elements of another type")  # a frame keeps the last for itself

    def reason(text: str) -> str:
        return "whole" if text in whole or text.endswith(" is not interpolated") else text

    modes = [(part["name"], part["mode"].split(":")[0], reason(part["reason"])) for part in report["columns"]]
    said = [(note["id"], plain(note["text"])) for key in ("notes", "warnings") for note in report[key]]
    if isinstance(report["time"], str):
        return {"modes": sorted(modes), "said": sorted(said)}
    return {"modes": modes, "said": said, "quaternions": report["quaternions"], "rows": report["rows"]}


def words_of_a_set(report: dict) -> dict:
    """The words of a report that a data set gives, whose notes have no ids and say times in their own way."""
    found = words(report)
    notes = {note["id"] for note in report["notes"]}
    said = [("" if id in notes else id, text) for id, text in found["said"] if not text.startswith("time: ")]
    return {"modes": sorted(found["modes"]), "said": sorted(said)}


def through(door: str, columns: dict, tmp_path, **options):
    run, _ = DOORS[door]
    extra = {"tmp_path": tmp_path} if door in ("npz", "text", *DATASETS) else {}
    return run(columns, **extra, **options)


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("door", DOORS)
def test_every_door_gives_the_same_bits_and_words(door, tmp_path):
    held = {name: values for name, (values, _) in table().items() if DOORS[door][1](values)}
    columns = {"timestamp": TIMES, **({f"/t.{name}": held[name] for name in held} if door == "mcap" else held)}
    columns = dict(sorted(columns.items())) if door == "hdf5" else columns  # the order that it has
    wanted, report = by_dictionary(columns, hz=7)
    got, said = through(door, columns, tmp_path, hz=7)
    if door in DATASETS:
        assert words(said) == words_of_a_set(report)
        wanted.pop("valid")
        wanted["timestamp"] = got["timestamp"]  # each format has its own form of times
    else:
        assert words(said) == words(report)
    assert set(got) == set(wanted)
    for name, values in wanted.items():
        assert got[name].dtype.kind in (values.dtype.kind, "O", "T"), name
        same = got[name].astype(values.dtype) if values.dtype.kind in "Ub" else got[name]
        assert same.tobytes() == values.tobytes(), f"{name}: {same[:3]} instead of {values[:3]}"


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
def test_every_column_of_the_table_has_its_mode():
    columns = table()
    assert len(columns) + len(clocks()) >= 60
    _, report = by_dictionary({"timestamp": TIMES, **{name: values for name, (values, _) in columns.items()}}, hz=7)
    found: dict[str, set[str]] = {}
    for part in report["columns"]:
        index = list(columns)[part["index"] - 1]
        found.setdefault(index, set()).add(part["mode"])
    assert found == {name: {mode} for name, (_, mode) in columns.items()}
    ids = [note["id"] for note in report["warnings"]]
    assert ids.count("angle_by_value") == 2 and "unit_norm" in ids and "mostly_missing" in ids


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("clock", clocks())
@pytest.mark.parametrize(
    "door", [door for door in DOORS if door not in ("lerobot", "mcap")]
)  # whose clocks have one form
def test_every_door_reads_times_alike(door, clock, tmp_path):
    times, unit = clocks()[clock]
    if door == "hdf5" and clock == "datetime64":
        pytest.skip("HDF5 has no such type")
    columns = {**times, "x": wave(1), "yaw": wrapped(2 * np.pi, -np.pi)}
    hz = 0.7 if clock.startswith("whole seconds") else 7
    doubtful = clock in ("whole seconds", "whole microseconds")  # 8 Hz in us is 8 kHz in ns
    wanted, report = by_dictionary(columns, hz=hz)
    got, said = through(door, columns, tmp_path, hz=hz)
    assert report["time"]["unit"] == unit
    for report_of_a_door in (report, said):
        assert ("unit_ambiguous" in [note["id"] for note in report_of_a_door["warnings"]]) == doubtful
    assert report["rows"] == len(got["x"]) == int((ROWS - 1) * (1 if hz < 1 else STEP) * hz) + 1
    for name in ("x", "yaw"):
        assert got[name].tobytes() == wanted[name].tobytes(), name
    if door in DATASETS:
        form = " in the form of " if clock.startswith("text") else " in its own unit "  # the type says it
        assert (form if clock.startswith(("text", "datetime64")) else f" in {unit} ") in said["time"]
        return
    for key in ("first_ns", "last_ns", "median_step_ns"):
        assert said["time"][key] == report["time"][key]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1"])
def test_text_may_be_utf_16_by_its_mark_and_what_is_not_utf_8_names_the_line_that_converts(encoding, tmp_path):
    text = "timestamp,heading [°],Größe,note\r\n0,1,2.5,ü\r\n1,2,3.5,\U0001f916\r\n"
    data = text.encode(encoding) if encoding != "latin-1" else text.replace("\U0001f916", "ö").encode(encoding)
    (tmp_path / "in.csv").write_bytes(b"\xfe\xff" + data if encoding == "utf-16-be" else data)
    said = _by_tool(tmp_path / "in.csv", tmp_path / "made.npz", {"hz": 2})
    with np.load(tmp_path / "made.npz") as archive:
        if encoding == "latin-1":
            assert "iconv -f LATIN1 -t UTF-8" in said["warnings"][0]["text"]
            return
        assert archive["Größe"].tolist() == [2.5, 3, 3.5]
        assert archive["note"].tolist() == ["ü", "ü", "\U0001f916"]
    (tmp_path / "in.csv").write_bytes(text.encode("utf-16-le"))
    program = pathlib.Path(tmaops.__file__).parent / "bin" / "tmaops"
    command = [program, "resample", tmp_path / "in.csv", "-o", tmp_path / "no.npz", "--hz", "2"]
    assert "iconv -f UTF-16LE" in subprocess.run(command, capture_output=True, text=True).stderr


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_time_that_is_not_finite_has_no_unit(bad):
    times = TIMES.copy()
    times[7] = bad
    with pytest.raises(tmaops.Error, match=rf"row 7\n  got:    {bad}\n"):
        tmaops.resample({"timestamp": times, "x": wave(1)}, hz=7)


def test_what_recorders_write_for_nothing_is_missing_and_numbers_in_other_forms_are_said(tmp_path):
    nothing = ["nan", "-nan", "1.#QNAN", "-1.#IND", "-nan(ind)", "nil", "<NA>", "#N/A", "NULL", ""]
    text = "t,x\n" + "".join(f"{2 * i},{i}.5\n{2 * i + 1},{word}\n" for i, word in enumerate(nothing))
    (tmp_path / "in.csv").write_text(text)
    said = _by_tool(tmp_path / "in.csv", tmp_path / "made.npz", {"hz": 1})
    assert said["columns"][0]["mode"] == "linear"
    with np.load(tmp_path / "made.npz") as archive:
        assert np.isnan(archive["x"]).sum() == len(nothing) and archive["x"][2] == 1.5
    for form in ("1'000.{}", "1 000.{}", "\u2212{}.5", "[{}.5, 2.0]", "{}.5 m", '"1,00{}.5"'):
        rows = "".join(f"{i};{form.format(i)}\n" for i in range(5))
        (tmp_path / "in.csv").write_text("t;x\n" + rows)
        said = _by_tool(tmp_path / "in.csv", tmp_path / "made.npz", {"hz": 1})
        assert "numbers_in_text" in [note["id"] for note in said["warnings"]], form


def test_an_array_whose_shape_no_times_have_is_not_the_times():
    """A pose matrix T, before or behind the times t."""
    poses = np.tile(np.eye(4), (ROWS, 1, 1))
    for columns in ({"T": poses, "t": TIMES}, {"t": TIMES, "T": poses}):
        _, report = tmaops.resample(columns, hz=7, report=True)
        assert report.time["name"] == "t"
    with pytest.raises(tmaops.Error, match="E010"):
        tmaops.resample({"t": TIMES[None], "x": wave(1)}, hz=7)


def test_sums_of_whole_numbers_carry_nothing_into_another_episode():
    parts = np.arange(12) % 5
    columns = {"t": np.r_[TIMES[:7], TIMES[:5]], "n": parts, "offsets": np.array([0, 7, 12])}
    made = tmaops.resample(columns, hz=3, mode={"n": "sum"}, end=0.55, outside="hold")["n"]
    alone = [
        tmaops.resample({"t": TIMES[: b - a], "n": parts[a:b]}, hz=3, mode={"n": "sum"}, end=0.55, outside="hold")["n"]
        for a, b in ((0, 7), (7, 12))
    ]
    assert made.tolist() == np.concatenate(alone).tolist()


@pytest.mark.parametrize("words", ["True False", "true false", "TRUE FALSE"])
def test_true_and_false_in_a_text_file_are_booleans(words, tmp_path):
    truths = np.arange(ROWS) == 3
    text = "t,done,open,word\n" + "".join(
        f"{t},{words.split()[not a]},{words.split()[a]},{'true' if a else 'no'}\n"
        for t, a in zip(TIMES, truths.tolist())
    )
    (tmp_path / "in.csv").write_text(text)
    said = _by_tool(tmp_path / "in.csv", tmp_path / "made.npz", {"hz": 2})
    assert [part["mode"] for part in said["columns"]] == ["any", "previous", "previous"]
    wanted = tmaops.resample({"t": TIMES, "done": truths, "open": ~truths}, hz=2)
    with np.load(tmp_path / "made.npz") as archive:
        assert archive["done"].tolist() == wanted["done"].tolist() and archive["done"].sum() == 1
        assert archive["open"].tolist() == wanted["open"].tolist() and archive["word"].dtype.kind == "U"
    _by_tool(tmp_path / "in.csv", tmp_path / "made.csv", {"hz": 2})
    assert "\n0.5,true,true,no\n" in (tmp_path / "made.csv").read_text()


@pytest.mark.parametrize("form", ["[{} 0. 3.]", "[ {}  0. 3.]", '"{},0,0,1.5"', '"({}, 2)"'])
def test_a_text_column_of_vectors_is_a_warning(form, tmp_path):
    (tmp_path / "in.csv").write_text("t,q\n" + "".join(f"{t},{form.format(t)}\n" for t in TIMES))
    said = _by_tool(tmp_path / "in.csv", tmp_path / "made.npz", {"hz": 2})
    assert "numbers_in_text" in [note["id"] for note in said["warnings"]]
    (tmp_path / "dates.csv").write_text("t,day\n" + "".join(f"{t},2024-03-01\n" for t in TIMES))
    assert not _by_tool(tmp_path / "dates.csv", tmp_path / "made.npz", {"hz": 2})["warnings"]


@pytest.mark.parametrize("name", ["time [min]", "t_hours", "elapsed (h)", "timestamp_min"])
def test_times_in_minutes_and_hours_are_a_warning_behind_every_door(name, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: np.arange(9) / 8, "x": np.arange(9.0)}
    said = f"the time '{re.escape(name)}' has a longer unit in its name, and is read in s"
    with pytest.warns(UserWarning, match=said):
        tmaops.resample(columns, hz=4, time=name)
    parquet.write_table(pa.table(columns), tmp_path / "in.parquet")
    dataset = pytest.importorskip("tmaops.dataset")
    report = dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=4, time=name, workers=1)
    assert any(re.search(said, warning) for warning in report.warnings)
    np.savetxt(tmp_path / "in.csv", np.stack(list(columns.values()), 1), delimiter=",", header=f"{name},x", comments="")
    given = {"hz": 4, "times-array": name}
    ids = [note["id"] for note in _by_tool(tmp_path / "in.csv", tmp_path / "out.npz", given)["warnings"]]
    with_unit = _by_tool(tmp_path / "in.csv", tmp_path / "out.npz", {**given, "time-unit": "s"})
    assert ids == ["unit_ambiguous"] and not with_unit["warnings"]


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("door", ["dictionary", "pandas", "polars", "npz", "text", "parquet", "hdf5"])
def test_flags_that_end_episodes_inside_what_is_taken_for_one_are_said(door, tmp_path):
    rows = np.arange(ROWS)
    columns = {"timestamp": TIMES, "terminals": (rows % 20 == 19) * 1, "timeouts": (rows == ROWS - 1) * 1}
    columns["is_first"] = (rows % 10 == 0) * 1
    _, said = through(door, dict(sorted(columns.items())), tmp_path, hz=7)
    warned = [note["text"].split(" in what")[0] for note in said["warnings"] if note["id"] == "several_episodes"]
    assert sorted(warned) == ["is_first tells of 5 episodes", "terminals tells of 3 episodes"]
    modes = {part["name"]: part["mode"] for part in said["columns"]}
    assert modes == {"terminals": "any", "timeouts": "any", "is_first": "next"}


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("door", ["dictionary", "pandas", "polars", "npz", "text", "parquet", "hdf5"])
def test_signals_that_take_turns_in_one_column_are_said(door, tmp_path):
    turns = np.arange(ROWS) % 3
    bus = {"timestamp": TIMES, "signal": np.array(["rpm", "speed", "torque"])[turns], "value": wave(1) + 100 * turns}
    by_number = {"timestamp": TIMES, "node": turns + 0x200, "value": bus["value"]}
    steady = {"timestamp": TIMES, "place": np.array(["hall", "yard"])[np.arange(ROWS) * 2 // ROWS], "value": wave(1)}
    steady["level"] = np.round(8 * wave(2)).astype("i4") % 4  # whole numbers that name nothing
    for columns, said_of in ((bus, ["signal"]), (by_number, ["node"]), (steady, [])):
        folder = tmp_path / "".join(columns)
        folder.mkdir()
        _, said = through(door, dict(sorted(columns.items())) if door == "hdf5" else columns, folder, hz=7)
        texts = [note["text"] for note in said["warnings"] if note["id"] == "signals_take_turns"]
        assert [text.split("'")[1] for text in texts] == said_of


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("door", ["dictionary", "text", "parquet"])
def test_quaternions_in_camel_case_and_behind_a_unit_are_found(door, tmp_path):
    columns = {"timestamp": TIMES, "speed(m/s)": wave(1)}
    columns |= {f"motionQuaternion{axis}(R)": turned(2)[:, i] for i, axis in enumerate("XYZW")}
    columns |= {f"RotationRight{axis}": turned(1)[:, i] for i, axis in enumerate("XYZW")}
    made, said = through(door, columns, tmp_path, hz=7)
    assert sum(part["mode"] == "slerp" for part in said["columns"]) == 4
    wanted, _ = by_dictionary(
        {"timestamp": TIMES, **{f"q{axis}": turned(2)[:, i] for i, axis in enumerate("xyzw")}}, hz=7
    )
    assert made["motionQuaternionX(R)"].tobytes() == wanted["qx"].tobytes()


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
def test_fields_of_structures_are_columns_in_a_dictionary_and_in_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    dataset = pytest.importorskip("tmaops.dataset")
    kinds = [("timestamp", "f8"), ("position", "f4", (3,)), ("quat", "f8", (4,)), ("count", "i4"), ("label", "S4")]
    fields = {"timestamp": TIMES, "position": np.stack([wave(1), wave(2), wave(3)], 1), "quat": turned(0, flips=True)}
    fields |= {"count": np.arange(ROWS) // 7, "label": np.array([f"s{i // 9}" for i in range(ROWS)], "S4")}
    imu = np.empty(ROWS, kinds)
    for name, values in fields.items():
        imu[name] = values
    wanted = tmaops.resample({name: imu[name] for name in imu.dtype.names}, hz=7)
    made = tmaops.resample({"imu": imu}, hz=7)
    assert list(made) == ["imu", "valid"] and made["imu"].dtype == imu.dtype
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("imu", data=imu, chunks=(16,), compression="gzip")
        file.create_dataset("gps", data=imu[::4])  # a stream of its own
    report = dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=7, workers=1)
    assert report.columns["imu/quat"] == report.columns["gps/quat"] == "slerp (a quaternion)"
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["imu"].dtype == imu.dtype and file["imu"].compression == "gzip"
        for name in imu.dtype.names:
            assert made["imu"][name].tobytes() == wanted[name].tobytes(), name
            assert file["imu"][name].tobytes() == wanted[name].tobytes(), name
        np.testing.assert_allclose(np.linalg.norm(file["gps"]["quat"], axis=1), 1)
        assert file["gps"].shape == file["imu"].shape
    again = dataset.resample(tmp_path / "out.h5", tmp_path / "again.h5", hz=3, workers=1)
    assert again.rows_written == 3 * 5 + 1


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("door", ["pandas", "pandas of arrow", "polars"])
def test_fields_of_structs_of_frames_are_columns_as_in_parquet(door, empty, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("tmaops.dataset")
    header = [{"stamp": {"sec": 5 + i // 2, "nanosec": i % 2 * 500_000_000}, "frame_id": "a"} for i in range(ROWS)]
    poses = [{"x": i / 3, "in": {"y": 2.0 * i, "n": i}, "label": f"s{i // 9}", "done": i == 5} for i in range(ROWS)]
    if empty:  # frames take lists and whole numbers of a column with nulls as they are
        poses[2] = None
    else:
        rest = zip(poses, turned(0).tolist(), strict=True)
        poses = [{**pose, "quat": quat, "reward": i} for i, (pose, quat) in enumerate(rest)]
    table = pa.table({"header": header, "pose": poses, "speed": wave(1)})
    parquet.write_table(table, tmp_path / "in.parquet")
    report = dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=3, workers=1)
    wanted = parquet.read_table(tmp_path / "out.parquet")
    if door == "polars":
        frame = pytest.importorskip("polars").from_arrow(table)
        made, said = tmaops.resample(frame, hz=3, report=True)
        assert [*made.schema.items()][:3] == [*frame.schema.items()]
        got = made.select(frame.columns).to_dict(as_series=False)
    else:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(table.to_pydict())
        if door != "pandas":
            frame = table.to_pandas(types_mapper=pandas.ArrowDtype)
        made, said = tmaops.resample(frame, hz=3, report=True)
        assert made.dtypes[:3].tolist() == frame.dtypes.tolist() and list(made)[:3] == list(frame)
        got = {name: made[name].to_numpy(object, na_value=None).tolist() for name in frame}
        for pose in got["pose"]:
            if not empty:
                pose["quat"] = list(pose["quat"])
    assert got == wanted.to_pydict() and (None in got["pose"]) == empty
    modes = {name: mode for name, mode in said.modes if not name.endswith(" is null")}
    assert modes == {name: mode.partition(" ")[0] for name, mode in report.columns.items()}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("step", "hz"), [(10, 30), (10, 50), (10, 0.5), (10_000, 30), (10_000, 50), (10_000_000, 30)])
def test_times_of_a_unit_that_nothing_states_are_read_back_from_text(step, hz, named, tmp_path):
    rows = [f"{i * step},{i / 100}\n" for i in range(800)]
    (tmp_path / "in.csv").write_text("".join(["t,x\n"] * named + rows))
    said = _by_tool(tmp_path / "in.csv", tmp_path / "made.csv", {"hz": hz})
    again = _by_tool(tmp_path / "made.csv", tmp_path / "made.npz", {"hz": hz / 2})
    assert again["time"]["median_step_ns"] == pytest.approx(1e9 / hz, rel=1e-6)
    assert again["time"]["last_ns"] == pytest.approx(said["rows"] * 1e9 / hz - 1e9 / hz, abs=1e3)
    with np.load(tmp_path / "made.npz") as archive:
        np.testing.assert_allclose(archive["x" if named else "column_2"], np.arange(again["rows"]) * 2 / hz, atol=1e-6)


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("door", ["dictionary", "npz", "text", "parquet", "hdf5"])
def test_hours_minutes_and_seconds_in_one_number_are_said(door, tmp_path):
    seconds = np.arange(ROWS) * 0.5 + 10 * 3600 + 11 * 60 + 50
    digits = seconds // 3600 * 10000 + seconds // 60 % 60 * 100 + seconds % 60
    for times, wanted in (
        (digits, True),
        (digits[: ROWS // 3], False),
        (seconds, False),
        (np.arange(ROWS) * 100.0, False),
    ):
        path = tmp_path / str(times[-1] + len(times))
        path.mkdir()
        _, said = through(door, {"time": times, "x": np.arange(len(times)) / 2}, path, hz=0.5)
        found = [note["text"] for note in said["warnings"] if note["id"] == "unit_ambiguous"]
        assert ["is hhmmss by its values, and is read in s" in text for text in found] == [True] * wanted


NULLABLE = ["dict", "pandas", "pandas objects", "pandas of arrow", "polars", "parquet"]


def _by_nullable(door, columns, kinds, path, **asked):
    """Lists by name through a door whose columns can have nulls: lists again, and what looked wrong."""
    if door == "parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        dataset = pytest.importorskip("tmaops.dataset")
        types = {"boolean": pa.bool_(), "Int64": pa.int64()}
        made = {name: pa.array(v, types.get(kinds.get(name))) for name, v in columns.items()}
        parquet.write_table(pa.table(made), path / "in.parquet")
        out = path / f"{len(list(path.iterdir()))}.parquet"
        report = dataset.resample(path / "in.parquet", out, workers=1, **asked)
        return parquet.read_table(out).to_pydict(), report.warnings
    given = {name: np.array(v, object if name in kinds else float) for name, v in columns.items()}
    if door == "polars":
        given = pytest.importorskip("polars").DataFrame(columns)
    elif door != "dict":
        pandas = pytest.importorskip("pandas")
        of = {"pandas": lambda kind: kind, "pandas objects": lambda _: object}.get(
            door, lambda kind: {"boolean": "bool[pyarrow]", "Int64": "int64[pyarrow]"}[kind]
        )
        given = pandas.DataFrame({n: pandas.array(v, of(kinds[n])) if n in kinds else v for n, v in columns.items()})
    made, report = tmaops.resample_columns(given, report=True, **asked)
    lists = {name: made[name].to_list() if door != "dict" else made[name].tolist() for name in columns}
    return {name: [None if str(each) == "<NA>" else each for each in v] for name, v in lists.items()}, report.warnings


@pytest.mark.parametrize("door", NULLABLE)
@pytest.mark.parametrize("holes", [(), (2,), (2, 3), (0, 5)])
@pytest.mark.parametrize("kind", ["boolean", "Int64"])
def test_a_flag_with_nulls_says_what_is_known(door, holes, kind, tmp_path):
    flags = [i in (3, 6) for i in range(9)]
    flags = [None if i in holes else int(each) if kind == "Int64" else each for i, each in enumerate(flags)]
    columns = {"timestamp": [i / 8 for i in range(9)], "done": flags, "x": [float(i) for i in range(9)]}
    made, warnings = _by_nullable(door, columns, {"done": kind}, tmp_path, hz=4)
    wanted = [flags[0], *([flags[i], flags[i + 1]] for i in range(1, 8, 2))]  # one target for two samples
    wanted = [wanted[0], *(True if 1 in two else None if None in two else False for two in wanted[1:])]
    assert made["done"] == wanted and all(each is None or type(each) is type(flags[7]) for each in made["done"])
    assert not warnings
    nearest, _ = _by_nullable(door, columns, {"done": kind}, tmp_path, hz=4, mode={"done": "next"})
    assert nearest["done"] == flags[::2]
    with pytest.raises(ValueError, match="done"):  # noqa: PT011, of two kinds
        _by_nullable(door, columns, {"done": kind}, tmp_path, hz=5, mode={"done": "linear"})


@pytest.mark.parametrize("door", ["pandas", "pandas of arrow", "polars", "parquet"])
def test_a_reward_of_a_nullable_type_is_summed_up_and_one_with_nulls_is_said(door, tmp_path):
    columns = {"timestamp": [i / 8 for i in range(9)], "reward": [1] * 9, "is_first": [i == 0 for i in range(9)]}
    kinds = {"reward": "Int64", "is_first": "boolean"}
    made, warnings = _by_nullable(door, columns, kinds, tmp_path, hz=4)
    assert sum(made["reward"]) == 9 and not warnings
    made, _ = _by_nullable(door, columns, kinds, tmp_path, hz=16)
    assert made["is_first"] == [True] + [False] * 16
    columns["reward"] = [None, *columns["reward"][1:]]
    with pytest.warns(UserWarning) if door != "parquet" else contextlib.nullcontext():
        _, warnings = _by_nullable(door, columns, kinds, tmp_path, hz=4)
    assert any("reward has nulls and is not summed up" in text for text in warnings)


EPOCHS = {"Excel": 25569, "MATLAB": 719529, "Julian": 2440587.5, "modified Julian": 40587}


@pytest.mark.parametrize("door", ["dict", "npz", "csv", "parquet", "hdf5"])
@pytest.mark.parametrize("clock", [*EPOCHS, "FILETIME", ".NET"])
def test_day_numbers_and_ticks_are_refused_with_the_line_that_makes_seconds_of_them(clock, door, tmp_path):
    seconds = START + TIMES
    if clock in EPOCHS:
        times, said = seconds / 86400 + EPOCHS[clock], "day numbers from"
    else:
        epoch = 116444736 * 10**9 if clock == "FILETIME" else 621355968 * 10**9
        times, said = (seconds * 10**7).astype("i8") + epoch, "ticks of 100 ns from"
    columns, needed = {"timestamp": times, "x": wave(1)}, r"since 1970, \(t - "
    with pytest.raises(ValueError, match=f"(?s){said}.*{needed}"):
        _by_door(door, columns, tmp_path, hz=4)
    unit = "s" if clock in EPOCHS else "ns"
    _by_door(door, columns, tmp_path, hz=4 if unit == "s" else 1e3, time_unit=unit)  # whoever says so has it as before
    made = (times - EPOCHS[clock]) * 86400 if clock in EPOCHS else (times - epoch) * 100  # the line of the message
    wanted, got = (tmaops.resample({"timestamp": t, "x": wave(1)}, hz=4)["x"] for t in (seconds, made))
    np.testing.assert_allclose(got[:40], wanted[:40], atol=1e-3)


def _by_door(door, columns, path, **asked):
    """Columns through a door that reads times by their values; raises what it refuses."""
    if door == "dict":
        tmaops.resample(columns, **asked)
    elif door in ("npz", "csv"):
        np.savez(path / "in.npz", **columns)
        text = "".join(f"{t},{x!r}\n" for t, x in zip(*(values.tolist() for values in columns.values())))
        (path / "in.csv").write_text(",".join(columns) + "\n" + text)
        try:
            _by_tool(
                path / f"in.{door}",
                path / "out.npz",
                {name.replace("_", "-"): v if v is not True else "true" for name, v in asked.items()},
            )
        except subprocess.CalledProcessError as error:
            raise ValueError(error.stderr) from error
    else:
        dataset = pytest.importorskip("tmaops.dataset")
        if door == "parquet":
            pytest.importorskip("pyarrow.parquet").write_table(
                pytest.importorskip("pyarrow").table(columns), path / "in.parquet"
            )
        else:
            with pytest.importorskip("h5py").File(path / "in.hdf5", "w") as file:
                file.update(columns)
        dataset.resample(path / f"in.{door}", path / f"out.{door}", workers=1, **asked)


@pytest.mark.parametrize("door", ["dict", "npz", "csv", "parquet", "hdf5"])
@pytest.mark.parametrize(("unit", "turn"), [("ms", 2**16), ("us", 2**32), ("ms", 2**32), ("s", 86400), ("s", 604800)])
def test_a_clock_that_begins_again_is_not_sorted_away(door, unit, turn, tmp_path):
    steps = np.arange(ROWS) * (0.5 if unit == "s" else 10)
    columns = {f"timestamp_{unit}": (steps + turn - steps[20]) % turn, "x": wave(1)}
    if unit != "s":
        columns[f"timestamp_{unit}"] = columns[f"timestamp_{unit}"].astype("i8")
    for asked in ({"sort": True}, {}) if door == "dict" else ({"sort": True},):
        with pytest.raises(ValueError, match="(?s)clock begins again here: add"):
            _by_door(door, columns, tmp_path, hz=4, **asked)
    halves = np.roll(np.arange(ROWS) * 0.25, 20)  # two parts of a recording in the wrong order
    tmaops.resample({"timestamp": halves, "x": wave(1)}, hz=4, sort=True)


@pytest.mark.parametrize("door", ["dict", "npz", "csv", "parquet", "hdf5"])
def test_a_clock_that_begins_again_behind_the_first_rows_is_not_sorted_away(door, tmp_path):
    ticks = (np.arange(9000) * 100 + 2**32 - 850_000) % 2**32  # of 100 us
    with pytest.raises(ValueError, match="(?s)clock begins again here: add 429496.7296 s"):
        _by_door(door, {"timestamp_us": ticks * 100, "x": np.arange(9000.0)}, tmp_path, hz=4, sort=True)


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("door", ["dictionary", "pandas", "polars", "npz", "text", "parquet", "hdf5"])
def test_whole_days_are_said_to_be_read_as_seconds(door, tmp_path):
    for first, wanted in ((20_453, True), (453, False)):
        (tmp_path / str(first)).mkdir()
        _, said = through(door, {"time": first + np.arange(ROWS), "x": wave(1)}, tmp_path / str(first), hz=0.5)
        (text,) = (note["text"] for note in said["warnings"] if note["id"] == "unit_ambiguous")
        assert ("or days (t * 86400 makes seconds)" in text) == wanted


@pytest.mark.parametrize("door", ["dictionary", "pandas", "polars", "npz", "parquet", "hdf5"])
def test_rotation_vectors_that_turn_over_are_said(door, tmp_path):
    turn = np.linspace(2.8, 3.4, ROWS)  # about an axis, past half a turn
    vectors = np.where(turn > np.pi, turn - 2 * np.pi, turn)[:, None] * np.array([0.6, -0.64, 0.48])
    for values, wanted in ((vectors, True), (vectors[: ROWS // 2].repeat(2, 0), False)):
        columns = {"timestamp": TIMES[: len(values)], "eef_rot_axis_angle": values}
        with pytest.warns() if door in ("dictionary", "pandas", "polars") and wanted else contextlib.nullcontext():
            (tmp_path / str(wanted)).mkdir()
            _, said = through(door, columns, tmp_path / str(wanted), hz=7)
        assert ("rotation_vector_linear" in [note["id"] for note in said["warnings"]]) == wanted


@pytest.mark.parametrize("door", ["dict", "parquet"])
@pytest.mark.parametrize("kind", [datetime.date, decimal.Decimal])
def test_dates_and_decimals_that_are_no_times_name_the_type_that_is(kind, door, tmp_path):
    times = [datetime.date(2024, 1, 1 + i) if kind is datetime.date else decimal.Decimal(i) for i in range(9)]
    columns = {"timestamp": times if door == "parquet" else np.array(times, object), "x": np.arange(9.0)}
    wanted = "pandas.to_datetime makes it" if kind is datetime.date else r"dates as datetime64\[ns\], decimals as f8"
    with pytest.raises(ValueError, match=wanted):
        _by_door(door, columns, tmp_path, hz=4)


def _of_frame(door, columns, tmp_path):
    """Lists through a door whose columns have types of times: lists again."""
    if door == "dictionary":
        given = {
            n: np.array(v, object) if not isinstance(v[0], (str, float)) else np.array(v) for n, v in columns.items()
        }
    elif door == "parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        dataset = pytest.importorskip("tmaops.dataset")
        parquet.write_table(table := pa.table(columns), tmp_path / "in.parquet")
        dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=4, workers=1)
        made = parquet.read_table(tmp_path / "out.parquet")
        assert made.schema == table.schema
        return {name: made.column(name).to_pylist() for name in columns}
    elif door == "polars":
        given = pytest.importorskip("polars").DataFrame(columns)
    else:
        pandas = pytest.importorskip("pandas")
        given = pandas.DataFrame(columns)
        if door == "pandas of arrow":
            pytest.importorskip("pyarrow")
            given = given.convert_dtypes(dtype_backend="pyarrow").astype({"x": float})
            given = given.astype({name: f"{kind}[pyarrow]" for name, kind in OF_ARROW.items() if name in columns})
    made = tmaops.resample(given, hz=4)
    if door != "dictionary":
        assert [str(made[name].dtype) for name in columns] == [str(given[name].dtype) for name in columns]
    return {name: list(made[name]) for name in columns}


OF_ARROW = {"Date": "date32", "Time": "time64[us]"}


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("door", ["dictionary", "pandas", "pandas of arrow", "polars", "parquet"])
@pytest.mark.parametrize("dates", ["dates", "moments", "moments of UTC", "text", "none"])
def test_times_of_day_are_one_time_with_their_dates_of_any_type(door, dates, tmp_path):
    if door == "pandas of arrow" and dates in ("moments", "moments of UTC", "text"):
        pytest.skip("as of pandas")
    moments = [datetime.datetime(2024, 5, 1, 23, 59, 58) + datetime.timedelta(seconds=t) for t in TIMES.tolist()]
    columns = {"Time": [each.time() for each in moments], "x": TIMES.tolist()}
    made_of = {"dates": lambda day: day, "text": str, "moments": lambda day: datetime.datetime(*day.timetuple()[:3])}
    made_of["moments of UTC"] = lambda day: made_of["moments"](day).replace(tzinfo=datetime.timezone.utc)
    if dates != "none":
        columns["Date"] = [made_of[dates](each.date()) for each in moments]
    if dates.startswith("moments") and door == "dictionary":
        pytest.skip("objects of datetime are moments")
    made = _of_frame(door, columns, tmp_path)
    assert {name: made[name] for name in columns} == {name: columns[name][::2] for name in columns}


@pytest.mark.parametrize("door", ["dictionary", "npz"])
def test_dates_of_datetime64_are_joined_with_text_over_midnight(door, tmp_path):
    moments = np.datetime64("2024-02-28T23:59:58.000") + (1000 * TIMES).astype("m8[ms]")
    times = np.array([str(each)[11:] for each in moments])
    columns = {"Date": moments.astype("M8[D]").astype("M8[s]"), "Time": times, "x": TIMES}
    made, said = through(door, columns, tmp_path, hz=4)
    assert said["time"]["second_name"] == "Date" and made["x"].tolist() == TIMES[::2].tolist()
    assert (made["Date"] == columns["Date"][::2]).all() and made["Date"].dtype == "M8[s]"
    assert [float(text[6:]) for text in made["Time"]] == [float(text[6:]) for text in times[::2]]


@pytest.mark.parametrize("door", ["pandas", "pandas of arrow", "pandas objects", "polars", "parquet"])
def test_decimals_are_real_numbers_and_stay_decimals(door, tmp_path):
    values = [decimal.Decimal(i).scaleb(-2) for i in range(ROWS)]
    frame = {"timestamp": TIMES.tolist(), "x": values}
    if door == "parquet":
        dataset, parquet = pytest.importorskip("tmaops.dataset"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pytest.importorskip("pyarrow").table(frame), tmp_path / "in.parquet")
        dataset.resample(tmp_path / "in.parquet", tmp_path / "out.parquet", hz=40, workers=1)
        made = parquet.read_table(tmp_path / "out.parquet").column("x").to_pylist()
    elif door == "polars":
        made = tmaops.resample(pytest.importorskip("polars").DataFrame(frame), hz=40)["x"].to_list()
    else:
        given = pytest.importorskip("pandas").DataFrame(frame)
        if door == "pandas of arrow":
            pa = pytest.importorskip("pyarrow")
            given["x"] = given["x"].astype(sys.modules["pandas"].ArrowDtype(pa.decimal128(9, 2)))
        made = tmaops.resample(given, hz=40)["x"].tolist()
    assert made[:6] == [decimal.Decimal(round(i * 0.2)).scaleb(-2) for i in range(6)]


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
@pytest.mark.parametrize("door", ["dictionary", "pandas", "polars", "npz", "text", "parquet", "hdf5"])
@pytest.mark.parametrize("name", ["X[s]", "Zeit", "Zeit [s]", "tiempo", "temps (s)", "时间"])
def test_times_in_other_languages_and_by_their_unit_alone_are_found(door, name, tmp_path):
    columns = {"alpha": wave(1), name: TIMES + 5, "x": TIMES}
    made, said = through(door, columns, tmp_path, hz=4)
    assert f"'{name}'" in said["time"] if isinstance(said["time"], str) else said["time"]["name"] == name
    np.testing.assert_array_equal(made["x"], TIMES[::2])


def test_a_name_that_stands_twice_in_a_csv_is_told_apart_as_in_a_frame(tmp_path):
    (tmp_path / "in.csv").write_text("time,x,x\n" + "".join(f"{t},{t},{2 * t}\n" for t in TIMES))
    said = _by_tool(tmp_path / "in.csv", tmp_path / "made.npz", {"hz": 4})
    assert "the name 'x' stands twice and became 'x_2'" in said["warnings"][0]["text"]
    with np.load(tmp_path / "made.npz") as archive:
        assert (archive["x_2"] == 2 * archive["x"]).all() and (archive["x"] == TIMES[::2]).all()


def test_structures_in_structures_come_back_whole():
    imu = np.zeros(ROWS, [("acc", [("x", "f8"), ("y", "f8")]), ("temp", "f4")])
    imu["acc"]["x"], imu["temp"] = TIMES, 2 * TIMES
    made = tmaops.resample({"timestamp": TIMES, "imu": imu}, hz=4)
    assert set(made) == {"timestamp", "valid", "imu"}
    assert made["imu"].dtype == imu.dtype and (made["imu"] == imu[::2]).all()


@pytest.mark.parametrize("kind", ["category", "Enum", "Categorical"])
def test_categories_that_name_signals_are_warned_of(kind):
    signals = np.array(["speed", "rpm"])[np.arange(ROWS) % 2]
    if kind == "category":
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"timestamp": TIMES, "signal": pandas.Categorical(signals), "value": wave(1)})
    else:
        polars = pytest.importorskip("polars")
        own = polars.Categorical if kind == "Categorical" else polars.Enum(["speed", "rpm"])
        frame = polars.DataFrame({"timestamp": TIMES, "signal": polars.Series(signals).cast(own), "value": wave(1)})
    with pytest.warns(UserWarning, match="'signal' tells which of several signals"):
        tmaops.resample(frame, hz=4)
    with pytest.raises(ValueError, match="pass --group 'signal'"):
        tmaops.resample(frame, time="value", hz=4)


@pytest.mark.parametrize("door", ["dict", "npz", "csv", "parquet", "hdf5"])
@pytest.mark.parametrize("digits", ["%Y%m%d%H%M%S", "%Y%m%d"])
def test_dates_in_digits_are_refused_with_what_makes_datetimes_of_them(digits, door, tmp_path):
    step = datetime.timedelta(days=1) if digits == "%Y%m%d" else datetime.timedelta(seconds=7)
    times = [int((datetime.datetime(2024, 2, 25) + i * step).strftime(digits)) for i in range(ROWS)]
    columns = {"timestamp": np.array(times), "x": wave(1)}
    with pytest.raises(ValueError, match=r"(?s)dates in digits from 20240225.*pandas\.to_datetime"):
        _by_door(door, columns, tmp_path, hz=4)
    columns["timestamp"] = 20_240_501 + np.arange(ROWS)  # 32 is no day
    _by_door(door, columns, tmp_path, hz=0.5, time_unit="s")


@pytest.mark.parametrize("door", ["dict", "npz", "csv", "parquet", "hdf5"])
def test_the_hour_that_comes_twice_is_not_sorted_away(door, tmp_path):
    seconds = 2 * 3600 + 59 * 60 + 50 + np.arange(ROWS) % 60
    seconds[10:] -= 3600
    texts = [f"2024-10-27 {s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in seconds.tolist()]
    for asked in ({}, {"sort": True}):
        with pytest.raises(ValueError, match="goes back an hour here, as where summer time ends"):
            times = np.array(texts, "S19" if door == "hdf5" else "U19")
            _by_door(door, {"timestamp": times, "x": wave(1)}, tmp_path, hz=0.5, **asked)
