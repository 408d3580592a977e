"""`tmaops resample --plot`: what the page shows, read without a browser, and drawn by one."""

import numpy as np
import pytest

pytest.importorskip("plotly")
from browser import TOOL, check, check_drawn, needs_chromium, run  # noqa: E402


def trajectory(path, gap=(4.0, 6.0)):
    """A TUM trajectory at about 50 Hz with a gap, and its times from 0."""
    times = np.round(np.arange(0, 10, 0.02) + 1e-3 * np.sin(np.arange(500)), 6)
    times = times[(times < gap[0]) | (times > gap[1])]
    turn = times / 5
    columns = [
        times + 1311868163,
        np.sin(times),
        np.cos(times),
        1 + 0 * times,
        0 * times,
        0 * times,
        np.sin(turn),
        np.cos(turn),
    ]
    path.write_text(
        "# timestamp tx ty tz qx qy qz qw\n"
        + "".join(" ".join(f"{value:.6f}" for value in line) + "\n" for line in zip(*columns))
    )
    return times


def test_a_recording_is_drawn_before_and_after_with_its_gap(tmp_path):
    times = trajectory(tmp_path / "run.tum")
    run(
        "resample",
        tmp_path / "run.tum",
        "-o",
        tmp_path / "out.tum",
        "--hz",
        30,
        "--max-gap",
        0.5,
        "--plot",
        tmp_path / "page.html",
    )
    run("resample", tmp_path / "run.tum", "-o", tmp_path / "plain.tum", "--hz", 30, "--max-gap", 0.5)
    assert (tmp_path / "out.tum").read_bytes() == (tmp_path / "plain.tum").read_bytes()
    contents = check(tmp_path / "page.html")
    ((figure,),) = contents.plots
    assert [note["text"] for note in figure["layout"]["annotations"]] == [
        "tx (linear)",
        "ty (linear)",
        "tz (linear)",
        "qx qy qz qw (slerp)",
    ]
    (gap,) = figure["layout"]["shapes"]
    before = times - times[0]
    wide = int(np.argmax(np.diff(before)))
    assert (gap["x0"], gap["x1"]) == pytest.approx((before[wide], before[wide + 1]), abs=2e-6)
    old, new = (next(trace for trace in figure["data"] if trace["name"] == name) for name in ("tx, before", "tx"))
    at = [second for second, value in zip(old["x"], old["y"]) if value is not None]
    np.testing.assert_allclose(at, before, atol=2e-6)
    np.testing.assert_allclose([value for value in old["y"] if value is not None], np.sin(times), atol=1e-6)
    for second, value in zip(new["x"], new["y"]):
        assert (value is None) == (gap["x0"] < second < gap["x1"])
        if value is not None:
            assert abs(value - np.sin(second + times[0])) < 1e-3
    assert "seconds" in figure["layout"]["xaxis"]["title"]["text"]
    assert len((tmp_path / "out.tum").read_text().splitlines()) - 1 == sum(value is not None for value in new["y"])


def test_without_a_limit_a_long_step_is_marked_and_drawn_across(tmp_path):
    trajectory(tmp_path / "run.tum")
    run("resample", tmp_path / "run.tum", "-o", tmp_path / "out.tum", "--hz", 30, f"--plot={tmp_path / 'page.html'}")
    ((figure,),) = check(tmp_path / "page.html").plots
    assert len(figure["layout"]["shapes"]) == 1
    assert None not in next(trace for trace in figure["data"] if trace["name"] == "tx")["y"]


def test_episodes_are_drawn_one_at_a_time_and_text_is_named(tmp_path):
    times = np.concatenate([np.arange(50) * 0.1, np.arange(80) * 0.1])
    arrays = {
        "timestamp": times,
        "state": np.stack([times, 2 * times], 1),
        "open": np.arange(130) % 2,
        "task": np.array(["a"] * 130),
        "image": np.zeros((130, 4, 4), "u1"),
        "offsets": np.array([0, 50, 130]),
    }
    np.savez(tmp_path / "in.npz", **arrays)
    run("resample", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--hz", 20, "--plot", tmp_path / "page.html")
    contents = check(tmp_path / "page.html")
    assert contents.options == ["episode 0", "episode 1"]
    assert "task (text)" in contents.text and "image (4x4)" in contents.text
    (episodes,) = contents.plots
    first, second = (next(trace for trace in episode["data"] if trace["name"] == "state[1]") for episode in episodes)
    assert (len(first["x"]), len(second["x"]), second["x"][0]) == (99, 159, 0)
    np.testing.assert_allclose(second["y"], 2 * np.array(second["x"]), atol=1e-6)
    assert next(trace for trace in episodes[0]["data"] if trace["name"] == "open")["line"]["shape"] == "hv"


def test_a_long_recording_is_thinned_and_keeps_its_peaks(tmp_path):
    rows = 200_000
    values = np.zeros(rows)
    values[[77_777, 123_456]] = 5, -7
    np.savez(tmp_path / "in.npz", timestamp=np.arange(rows) * 1_000_000, x=values)
    run("resample", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--hz", 1000, "--plot", tmp_path / "page.html")
    ((figure,),) = check(tmp_path / "page.html").plots
    for trace in figure["data"]:
        assert len(trace["x"]) <= 20_001 and max(trace["y"]) == 5 and min(trace["y"]) == -7
        assert trace["x"] == sorted(trace["x"])


def test_a_failed_run_draws_nothing_and_keeps_its_exit_code(tmp_path):
    trajectory(tmp_path / "run.tum")
    done = run(
        "resample",
        tmp_path / "run.tum",
        "-o",
        tmp_path / "out.tum",
        "--hz",
        -1,
        "--plot",
        tmp_path / "page.html",
        code=2,
    )
    assert "--hz" in done.stderr and list(tmp_path.iterdir()) == [tmp_path / "run.tum"]
    assert (
        "PAGE.html"
        in run("resample", tmp_path / "run.tum", "-o", tmp_path / "out.tum", "--hz", 1, "--plot", code=2).stderr
    )
    (tmp_path / "page.html").write_text("mine")
    assert (
        "which exists"
        in run(
            "resample",
            tmp_path / "run.tum",
            "-o",
            tmp_path / "out.tum",
            "--hz",
            1,
            "--plot",
            tmp_path / "page.html",
            code=2,
        ).stderr
    )
    assert "--plot PAGE" in run("resample", "--help", "--plot", tmp_path / "none.html").stdout


@needs_chromium
def test_a_browser_draws_the_recording(tmp_path):
    trajectory(tmp_path / "run.tum")
    run(
        "resample",
        tmp_path / "run.tum",
        "-o",
        tmp_path / "out.tum",
        "--hz",
        30,
        "--max-gap",
        0.5,
        "--plot",
        tmp_path / "page.html",
    )
    document = check_drawn(tmp_path / "page.html")
    assert "qx qy qz qw (slerp)" in document


def test_without_plotly_nothing_is_resampled(tmp_path):
    trajectory(tmp_path / "run.tum")
    arguments = (
        "resample",
        tmp_path / "run.tum",
        "-o",
        tmp_path / "out.tum",
        "--hz",
        30,
        "--plot",
        tmp_path / "page.html",
    )
    for package in ("plotly", "numpy"):
        assert f"pip install {package}" in run(*arguments, code=2, without=package).stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "run.tum"]


def test_the_program_alone_says_who_draws():
    done = run("resample", "run.tum", "-o", "out.tum", "--hz", 30, "--plot", "page.html", code=2, command=[TOOL])
    assert "E100" in done.stderr and "Python package" in done.stderr
    said = run("resample", "--help", command=[TOOL]).stdout
    assert "--plot PAGE" in said and "plot-data" not in said
