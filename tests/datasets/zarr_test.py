"""Zarr replay buffers of diffusion policy and UMI: formats 2 and 3, folders and zip files."""

import json
import shutil
import zipfile

import known
import numpy as np
import pytest

zarr = pytest.importorskip("zarr")

import tmaops.dataset
from tmaops.dataset import Refused

LENGTHS = [41, 7, 23]


def write(path, version=2, chunk=16, image_chunk=1, **more):
    """A buffer at 10 Hz: a state of f32, a quaternion, a counter, images."""
    rng = np.random.default_rng(5)
    rows = sum(LENGTHS)
    root = zarr.open_group(str(path), mode="w", zarr_format=version)
    quaternion = rng.normal(size=(rows, 4)) * 0.1 + [0, 0, 0, 1]
    arrays = {
        "state": (rng.normal(size=(rows, 5)).astype(np.float32), (chunk, 5)),
        "robot0_eef_quat": (quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True), (chunk, 4)),
        "step": (np.arange(rows), (chunk,)),
        "img": (rng.integers(0, 255, (rows, 6, 4, 3), np.uint8), (image_chunk, 6, 4, 3)),
    }
    for name, values in more.items():
        arrays[name] = (values, (chunk, *values.shape[1:]))
    for name, (values, chunks) in arrays.items():
        root.create_array(f"data/{name}", shape=values.shape, chunks=chunks, dtype=values.dtype)[...] = values
    ends = np.cumsum(LENGTHS)
    root.create_array("meta/episode_ends", shape=ends.shape, chunks=ends.shape, dtype=ends.dtype)[...] = ends
    root.attrs["fps"] = 10
    return {name: values for name, (values, _) in arrays.items()}


def check(made, arrays, was, now):
    """Every episode against float64 numbers computed apart."""
    ends = made["meta/episode_ends"][:]
    first = row = 0
    for length, end in zip(LENGTHS, ends.tolist(), strict=True):
        times = np.arange(length) / was
        targets = np.arange(int((length - 1) / was * now + 1e-9) + 1) / now
        assert end - row == targets.size
        own = {name: values[first : first + length] for name, values in arrays.items()}
        new = {name: made[f"data/{name}"][row:end] for name in arrays}
        np.testing.assert_allclose(new["state"], known.linear(own["state"], times, targets), atol=1e-6)
        np.testing.assert_allclose(
            new["robot0_eef_quat"], known.slerp(own["robot0_eef_quat"], times, targets), atol=1e-7
        )
        for name in ("step", "img"):
            np.testing.assert_array_equal(new[name], known.previous(own[name], times, targets + 1e-9))
        first, row = first + length, end


@pytest.mark.parametrize("version,image_chunk", [(2, 1), (2, 5), (3, 1), (3, 5)])
def test_every_array_comes_onto_the_new_rate_with_its_chunks_and_codecs(tmp_path, version, image_chunk):
    arrays = write(tmp_path / "in.zarr", version, image_chunk=image_chunk)
    report = tmaops.dataset.resample(tmp_path / "in.zarr", tmp_path / "out.zarr", hz=15, workers=2)
    assert report.rows_read == sum(LENGTHS) and report.episodes == 3
    assert report.notes[0] == "time: counted at 10 per second (attribute fps)"
    made, old = (zarr.open_group(str(tmp_path / name), mode="r") for name in ("out.zarr", "in.zarr"))
    check(made, arrays, 10, 15)
    for name in arrays:
        new, was = made[f"data/{name}"].metadata.to_dict(), old[f"data/{name}"].metadata.to_dict()
        assert {**new, "shape": ()} == {**was, "shape": ()}
    assert made.attrs["fps"] == 15
    report = tmaops.dataset.resample(tmp_path / "out.zarr", tmp_path / "half.zarr", hz=5, workers=1)
    half = zarr.open_group(str(tmp_path / "half.zarr"), mode="r")
    np.testing.assert_array_equal(half["data/state"][:21], arrays["state"][:41:2])


def test_a_zip_file_whose_images_have_a_codec_that_is_not_installed(tmp_path):
    arrays = write(tmp_path / "in.zarr")
    about = tmp_path / "in.zarr" / "data" / "img" / ".zarray"
    text = json.loads(about.read_text())
    about.write_text(json.dumps(text | {"compressor": {"id": "imagecodecs_jpegxl", "level": 99}}))
    with zipfile.ZipFile(tmp_path / "in.zarr.zip", "w") as to:
        for path in sorted((tmp_path / "in.zarr").rglob("*")):
            if path.is_file():
                to.write(path, path.relative_to(tmp_path / "in.zarr"))
    for name in ("a.zarr.zip", "b.zarr.zip"):
        report = tmaops.dataset.resample(tmp_path / "in.zarr.zip", tmp_path / name, hz=20, workers=1)
    assert report.columns["data/img"].startswith("previous")
    assert (tmp_path / "a.zarr.zip").read_bytes() == (tmp_path / "b.zarr.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zarr.zip") as made:
        made.extractall(tmp_path / "made")
    assert json.loads((tmp_path / "made/data/img/.zarray").read_text())["compressor"]["level"] == 99
    (tmp_path / "made/data/img/.zarray").write_text(
        json.dumps(
            text | {"shape": [int(zarr.open_group(str(tmp_path / "made"), mode="r")["meta/episode_ends"][-1]), 6, 4, 3]}
        )
    )
    check(zarr.open_group(str(tmp_path / "made"), mode="r"), arrays, 10, 20)


def test_times_of_an_array_are_read_sorted_and_written(tmp_path):
    times = 1.7e9 + np.concatenate([100 * i + np.arange(n) / 10 for i, n in enumerate(LENGTHS)])
    times[3:5] = times[[4, 3]]
    write(tmp_path / "in.zarr", timestamp=times)
    with pytest.raises(Refused, match="--sort"):
        tmaops.dataset.resample(tmp_path / "in.zarr", tmp_path / "out.zarr", hz=10, workers=1)
    report = tmaops.dataset.resample(
        tmp_path / "in.zarr", tmp_path / "out.zarr", hz=10, sort=True, snap=1e-6, workers=1
    )
    assert report.notes[0] == "time: array 'data/timestamp' in s (since they are then dates between 1990 and 2100)"
    made = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    np.testing.assert_allclose(made["data/timestamp"][:5], np.sort(times[:5]), atol=1e-6)
    assert made["data/step"][:6].tolist() == [0, 1, 2, 4, 3, 5]


def test_what_is_no_replay_buffer_or_has_an_array_of_another_length_is_named(tmp_path):
    write(tmp_path / "in.zarr", odd=np.zeros((sum(LENGTHS) - 1, 2)))
    report = tmaops.dataset.resample(tmp_path / "in.zarr", tmp_path / "out.zarr", hz=5, workers=1)
    assert [warning for warning in report.warnings if "[other_length]" in warning] == [
        f"array 'data/odd' stays as it is: it has {sum(LENGTHS) - 1} rows beside {sum(LENGTHS)} samples [other_length]"
    ]
    with pytest.raises(Refused, match="a warning"):
        tmaops.dataset.resample(tmp_path / "in.zarr", tmp_path / "no.zarr", hz=5, strict=True, workers=1)
    (tmp_path / "set").mkdir()
    shutil.copytree(tmp_path / "in.zarr", tmp_path / "set" / "one.zarr")
    with pytest.raises(Refused, match="NAME.zarr"):
        tmaops.dataset.resample(tmp_path / "set", tmp_path / "no.zarr", hz=5, workers=1)
    assert [clock.samples for clock in tmaops.dataset.inspect(tmp_path / "in.zarr").clocks] == LENGTHS
    shutil.rmtree(tmp_path / "in.zarr" / "meta" / "episode_ends")
    with pytest.raises(Refused, match="no meta/episode_ends"):
        tmaops.dataset.resample(tmp_path / "in.zarr", tmp_path / "no.zarr", hz=5, workers=1)


def test_ends_that_no_array_reaches_are_refused_with_the_lengths(tmp_path):
    root = zarr.open_group(str(tmp_path / "in.zarr"), mode="w", zarr_format=2)
    for name, values in (("data/x", np.zeros(50)), ("meta/episode_ends", np.array([30, 60]))):
        root.create_array(name, shape=values.shape, chunks=values.shape, dtype=values.dtype)[...] = values
    with pytest.raises(Refused, match=r"data/x of \(50,\); needed arrays below data/ of 60 rows"):
        tmaops.dataset.resample(tmp_path / "in.zarr", tmp_path / "out.zarr", hz=5, input_hz=10, workers=1)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["U", "S", "text"])
@pytest.mark.filterwarnings("ignore")  # of types that format 3 has not settled
def test_times_may_be_text_which_becomes_as_long_as_it_must(tmp_path, version, kind):
    rows = sum(LENGTHS)
    moments = np.datetime64("2026-01-01") + np.arange(rows) * np.timedelta64(100, "ms")
    text = np.array([f"{moment}Z" for moment in moments.astype("M8[ms]")])
    write(tmp_path / "in.zarr", version)
    data = zarr.open_group(str(tmp_path / "in.zarr"))["data"]
    values = text.astype(kind) if kind != "text" else text.astype(object)
    made = data.create_array("timestamp", shape=(rows,), dtype=str if kind == "text" else values.dtype, chunks=(16,))
    made[...] = values
    report = tmaops.dataset.resample(tmp_path / "in.zarr", tmp_path / "out.zarr", hz=30, workers=1)
    assert report.notes[0].startswith("time: array 'data/timestamp'"), report.notes
    found = [
        each.decode() if isinstance(each, bytes) else str(each)
        for each in zarr.open_group(str(tmp_path / "out.zarr"))["data/timestamp"][:3]
    ]
    assert [each[:29] for each in found] == [
        "2026-01-01T00:00:00.000000000",
        "2026-01-01T00:00:00.033333333",
        "2026-01-01T00:00:00.066666667",
    ]
    tmaops.dataset.resample(tmp_path / "out.zarr", tmp_path / "half.zarr", hz=5, workers=1)


@pytest.mark.filterwarnings("ignore")  # of types that format 3 has not settled
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("form", ["durations", "dates of datetime64 and text", "dates and text"])
def test_times_may_be_durations_or_have_their_dates_beside_them(form, version, tmp_path):
    moments = np.datetime64("2024-02-28T23:59:58") + (np.concatenate([np.arange(n) for n in LENGTHS]) * 100).astype(
        "m8[ms]"
    )
    times = {"time": (moments - moments[0]).astype("m8[us]")}
    if form != "durations":
        days = moments.astype("M8[D]")
        times = {"date": days.astype("M8[s]") if "datetime64" in form else days.astype(str)}
        times["time"] = np.array([str(each)[11:] for each in moments])
    write(tmp_path / "in.zarr", version, **times)
    tmaops.dataset.resample(tmp_path / "in.zarr", tmp_path / "out.zarr", hz=5, workers=1)
    made = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    ends, first = made["meta/episode_ends"][:].tolist(), np.cumsum(LENGTHS) - LENGTHS
    for begin, end, row, length in zip([0, *ends], ends, first, LENGTHS, strict=False):
        new = {name: made[f"data/{name}"][begin:end] for name in times}
        old = {name: values[row : row + length : 2] for name, values in times.items()}
        assert all(new[name].dtype.kind == old[name].dtype.kind for name in times)
        if form == "durations":
            assert (new["time"] == old["time"]).all()
            continue
        assert (new["date"] == old["date"]).all()
        assert [text[:12] for text in new["time"]] == [str(each)[11:] for each in moments[row : row + length : 2]]
