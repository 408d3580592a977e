"""inspect() against defects that were put in by hand."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from browser import check, check_drawn, needs_chromium
from tmaops.dataset import example


def broken_table(path):
    """Two episodes at 100 Hz: 7 samples missing in one place, 3 values not finite, 2 sign flips, one time twice."""
    seconds = np.arange(400) / 100
    keep = np.ones(400, bool)
    keep[100:107] = False
    a = seconds[keep]
    b = seconds.copy()
    b[50] = b[49]
    times = np.concatenate([a, b])
    x = np.sin(times)
    x[[3, 9, 500]] = [np.nan, np.inf, -np.inf]
    half = times * 0.2
    quaternion = np.stack([0 * half, 0 * half, np.sin(half), np.cos(half)], axis=1)
    quaternion[20:60] *= -1
    table = {
        "time": times,
        "episode": ["a"] * a.size + ["b"] * b.size,
        "x": x,
        "quat": pa.FixedSizeListArray.from_arrays(pa.array(quaternion.reshape(-1)), 4),
    }
    pq.write_table(pa.table(table), path)


def test_rates_gaps_drops_flips_and_broken_values_are_counted(tmp_path):
    broken_table(tmp_path / "in.parquet")
    found = tmaops.dataset.inspect(tmp_path / "in.parquet")
    first, second = found.clocks
    assert first.hz == pytest.approx(100, rel=1e-6) and first.drops == 7 and first.longest_gap == pytest.approx(0.08)
    assert first.jitter < 1e-6 and first.backwards == 0
    assert first.sign_flips == {"quat": 2} and first.not_finite == {"x": 2}
    assert second.backwards == 1 and second.not_finite == {"x": 1} and second.sign_flips == {}
    total = found.totals()[0]
    assert total["episodes"] == 2 and total["not_finite"] == {"x": 3}
    assert "sign flips 2 times" in found.text()


def test_a_lerobot_set_has_its_rate(tmp_path):
    example.write(tmp_path / "in", [100, 51, 7])
    found = tmaops.dataset.inspect(tmp_path / "in")
    assert [c.samples for c in found.clocks] == [100, 51, 7]
    assert found.totals()[0]["hz_median"] == pytest.approx(50, rel=1e-4)


def test_the_example_has_a_fault_of_each_kind(tmp_path):
    example.write(tmp_path / "in", [200] * 5, faults=True)
    jitter, gap, drop, flip, again = tmaops.dataset.inspect(tmp_path / "in").clocks
    assert jitter.jitter > 0.001 and again.jitter == pytest.approx(jitter.jitter)
    assert gap.longest_gap == pytest.approx(0.52, abs=1e-3) and drop.drops == 1 and drop.longest_gap < 0.05
    assert list(flip.sign_flips.values()) == [1] and not any(c.sign_flips for c in (jitter, gap, drop, again))


def test_streams_of_hdf5_are_told_apart(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for name, hz, start in (("camera", 30, 0.25), ("imu", 1000, 0.0)):
            file.create_dataset(f"{name}/timestamp", data=start + np.arange(hz) / hz)
            file.create_dataset(f"{name}/value", data=np.zeros((hz, 3)))
    camera, imu = tmaops.dataset.inspect(tmp_path / "in.h5").clocks
    assert (round(camera.hz), round(imu.hz)) == (30, 1000)
    assert camera.offset == pytest.approx(0.25) and imu.offset == 0


def test_a_clock_that_drifts_against_the_recorder_is_found(tmp_path):
    pytest.importorskip("rosbags")
    import recorded

    times = [recorded.BASE + i * 10_000_000 for i in range(500)]
    rows = [("/imu", at + 3_000_000 + i * 500, recorded.imu(at, (0, 0, 0, 1))) for i, at in enumerate(times)]  # 50 ppm
    recorded.write_mcap(tmp_path / "in.mcap", rows)
    (clock,) = tmaops.dataset.inspect(tmp_path / "in.mcap").clocks
    assert clock.drift_ppm == pytest.approx(50, rel=1e-3)


def page(folder):
    pytest.importorskip("plotly")
    from tmaops.dataset.cli import main

    broken_table(folder / "in.parquet")
    assert main(["inspect", str(folder / "in.parquet"), "--html", str(folder / "page.html")]) == 0
    return folder / "page.html"


def test_the_page_holds_everything(tmp_path):
    contents = check(page(tmp_path))
    assert "sign flips 2 times" in contents.text
    drops = next(figure for (figure,) in contents.plots if figure["layout"]["title"]["text"] == "missing samples")
    assert drops["data"][0]["x"] == ["a", "b"] and drops["data"][0]["y"] == [7, 1]


def test_a_page_that_exists_is_kept(tmp_path, capsys):
    page(tmp_path).write_text("mine")
    from tmaops.dataset.cli import main

    assert main(["inspect", str(tmp_path / "in.parquet"), "--html", str(tmp_path / "page.html")]) == 2
    assert "which exists" in capsys.readouterr().err and (tmp_path / "page.html").read_text() == "mine"


@needs_chromium
def test_a_browser_draws_the_page(tmp_path):
    check_drawn(page(tmp_path))
