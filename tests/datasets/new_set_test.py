"""`tmaops dataset lerobot`: tables of recordings as a LeRobot v3 data set."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import recorded
import tmaops.dataset
from tmaops.dataset.cli import main

BASE = 1_700_000_000_000_000_000
MS = 1_000_000


def recording(path, shift):
    """Joints at 100 Hz, commands at 50 Hz."""
    rows = []
    for i in range(200):
        at = BASE + i * 10 * MS
        rows.append(("/joints", at, recorded.joints(at, ["elbow", "wrist"], [0.01 * i + shift, -0.02 * i])))
        if i % 2 == 0:
            rows.append(("/command", at, recorded.number(float(i))))
    recorded.write_mcap(path, rows)


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "in").mkdir()
    for episode, shift in enumerate((0.0, 5.0)):
        recording(tmp_path / "in" / f"run{episode}.mcap", shift)
    tmaops.dataset.resample(tmp_path / "in", tmp_path / "tables", hz=25)
    return tmp_path / "tables"


def data_of(root):
    return pa.concat_tables(pq.read_table(path) for path in sorted((root / "data").rglob("*.parquet")))


def test_recordings_become_a_set_with_the_features_that_were_named(tables, tmp_path, capsys):
    out = tmp_path / "set"
    words = ["--feature", "observation.state=/joints.position.*", "--feature", "action=/command.data"]
    assert main(["lerobot", str(tables), str(out), *words, "--task", "lift", "--robot", "arm"]) == 0
    said = capsys.readouterr().err
    assert "observation.state: /joints.position.elbow, /joints.position.wrist" in said and "25 per second" in said
    info = json.loads((out / "meta" / "info.json").read_text())
    assert (info["codebase_version"], info["fps"], info["total_episodes"], info["robot_type"]) == ("v3.0", 25, 2, "arm")
    assert info["features"]["observation.state"]["names"] == ["/joints.position.elbow", "/joints.position.wrist"]
    table = data_of(out)
    frames = table["frame_index"].to_numpy()
    first = int((table["episode_index"].to_numpy() == 0).sum())
    assert info["total_frames"] == len(frames) == 2 * first
    state = np.array(table["observation.state"].to_pylist())
    np.testing.assert_allclose(state[:, 0], 0.04 * frames + np.repeat([0, 5], first), atol=1e-5)
    np.testing.assert_allclose(table["action"].to_numpy(), 4.0 * frames, atol=1e-4)
    assert (table["timestamp"].to_numpy() == (frames / 25).astype(np.float32)).all()
    assert (table["index"].to_numpy() == np.arange(2 * first)).all()
    tasks = pd.read_parquet(out / "meta" / "tasks.parquet")
    assert tasks.iloc[0].name == "lift"  # as LeRobot asks for it
    stats = json.loads((out / "meta" / "stats.json").read_text())
    np.testing.assert_allclose(stats["observation.state"]["mean"], state.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(stats["action"]["max"], [4.0 * frames.max()])


def test_the_set_is_resampled_again_like_any_other(tables, tmp_path):
    made = tmaops.dataset.new_set(tables, tmp_path / "set")
    assert list(made.features) == ["observation.state"] and len(made.features["observation.state"]) == 3
    report = tmaops.dataset.resample(tmp_path / "set", tmp_path / "slow", hz=5)
    assert report.episodes == 2 and not report.warnings
    assert json.loads((tmp_path / "slow" / "meta" / "info.json").read_text())["fps"] == 5


def table(folder, name="a", step=0.1, **columns):
    folder.mkdir(exist_ok=True)
    seconds = np.cumsum(np.full(5, step)) if np.isscalar(step) else np.cumsum(step)
    pq.write_table(
        pa.table({"timestamp": seconds, **(columns or {"x": [1.0, 2, 3, 4, 5]})}), folder / f"{name}.parquet"
    )


@pytest.mark.parametrize(
    ("make", "features", "words"),
    [
        (lambda folder: table(folder, x=[1.0, None, 3, 4, 5]), {}, ["x, row 1", "no value"]),
        (lambda folder: table(folder, step=[0.1, 0.1, 0.3, 0.1, 0.1]), {}, ["steps that differ", "dataset resample"]),
        (lambda folder: table(folder, name="b", step=0.2) or table(folder), {}, ["b.parquet", "5 rows per second"]),
        (lambda folder: table(folder, name="b", y=[1.0] * 5) or table(folder), {}, ["b.parquet", "same columns"]),
        (lambda folder: table(folder), {"action": ["y*"]}, ["--feature action", "no column y*", "one of x"]),
        (lambda folder: table(folder, text=["a"] * 5), {}, ["no column of numbers or images"]),
        (lambda folder: folder.mkdir(), {}, ["no Parquet table"]),
    ],
)
def test_what_cannot_be_a_set_is_refused_by_name_and_leaves_nothing(make, features, words, tmp_path):
    make(tmp_path / "in")
    with pytest.raises(tmaops.dataset.Refused) as refused:
        tmaops.dataset.new_set(tmp_path / "in", tmp_path / "out", features=features)
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_lists_and_flags_are_channels_and_text_is_left_out_and_named(tmp_path):
    turns = pa.array([[1.0, 2.0]] * 5, pa.list_(pa.float64(), 2))
    table(tmp_path / "in", turn=turns, on=[True, False, True, True, False], word=["a"] * 5)
    made = tmaops.dataset.new_set(tmp_path / "in", tmp_path / "out")
    assert made.features == {"observation.state": ["turn[0]", "turn[1]", "on"]} and made.notes == [
        "in no feature: word"
    ]
    assert data_of(tmp_path / "out")["observation.state"].to_pylist()[1] == [1.0, 2.0, 0.0]


def picture(value):
    image = pytest.importorskip("PIL.Image")
    made = io.BytesIO()
    image.new("RGB", (6, 4), (value, 10, 255)).save(made, "PNG")
    return made.getvalue()


def test_encoded_images_are_features_of_their_own(tmp_path):
    """Structs of bytes and path, as LeRobot and Hugging Face store them, files beside the table, and plain bytes."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "3.png").write_bytes(picture(3))
    bytes_of = [picture(value) for value in (0, 1, 2)] + [None, picture(4)]
    structs = pa.array([{"bytes": data, "path": f"{i}.png"} for i, data in enumerate(bytes_of)])
    table(tmp_path / "in", x=[1.0, 2, 3, 4, 5], top=structs, wrist=[picture(9)] * 5)
    made = tmaops.dataset.new_set(tmp_path / "in", tmp_path / "out")
    assert made.images == {"observation.images.top": [4, 6, 3], "observation.images.wrist": [4, 6, 3]}
    info = json.loads((tmp_path / "out" / "meta" / "info.json").read_text())["features"]["observation.images.top"]
    assert info == {"dtype": "image", "shape": [4, 6, 3], "names": ["height", "width", "channels"]}
    stored = data_of(tmp_path / "out")["observation.images.top"].to_pylist()
    assert [each["bytes"] for each in stored] == [picture(value) for value in range(5)]
    stats = json.loads((tmp_path / "out" / "meta" / "stats.json").read_text())["observation.images.top"]
    np.testing.assert_allclose(np.array(stats["mean"]), np.array([2, 10, 255])[:, None, None] / 255)
    np.testing.assert_allclose(np.array(stats["max"])[:, 0, 0], np.array([4, 10, 255]) / 255)
    assert stats["count"] == [5]
    tmaops.dataset.resample(tmp_path / "out", tmp_path / "half", hz=7, workers=1)
    stored = data_of(tmp_path / "half")["observation.images.top"].to_pylist()
    assert [each["bytes"] for each in stored] == [picture(v) for v in (0, 1, 3)]  # the nearest at 0, 1/7 and 2/7 s
    named = {"action": ["x"], "eye": ["top"]}
    made = tmaops.dataset.new_set(tmp_path / "in", tmp_path / "named", features=named)
    assert list(made.images) == ["eye"] and made.notes == ["in no feature: wrist"]


def test_images_that_are_missing_or_stand_beside_numbers_are_refused_by_name(tmp_path):
    (tmp_path / "outside.png").write_bytes(picture(3))
    for name in ("gone.png", "../outside.png", str(tmp_path / "outside.png")):
        structs = pa.array([{"bytes": None, "path": name}] * 5)
        table(tmp_path / "in", x=[1.0] * 5, top=structs)
        with pytest.raises(tmaops.dataset.Refused, match="top, row 0: got no image, and no file .* beside the table"):
            tmaops.dataset.new_set(tmp_path / "in", tmp_path / "out")
    (tmp_path / "in" / "1.png").write_bytes(picture(1))
    table(tmp_path / "in", x=[1.0] * 5, **{"/camera/top": pa.array([{"bytes": None, "path": "1.png"}] * 5)})
    made = tmaops.dataset.new_set(tmp_path / "in", tmp_path / "named", features={"eye": ["/camera/top"]})
    assert made.images == {"eye": [4, 6, 3]}
    table(tmp_path / "in", x=[1.0] * 5, top=[picture(1)] * 5)
    with pytest.raises(tmaops.dataset.Refused, match="an image beside other columns"):
        tmaops.dataset.new_set(tmp_path / "in", tmp_path / "out", features={"state": ["*"]})
    tmaops.dataset.new_set(tmp_path / "in", tmp_path / "out")
    with pytest.raises(tmaops.dataset.Refused, match="a LeRobot data set; needed .*dataset resample"):
        tmaops.dataset.new_set(tmp_path / "out", tmp_path / "again")
