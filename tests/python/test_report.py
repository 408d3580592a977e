"""`tmaops report`: what the page shows, read without a browser, and drawn by one."""

import json
import pathlib

import pytest

pytest.importorskip("plotly")
from browser import TOOL, check, check_drawn, needs_chromium, open_page, run  # noqa: E402
from tmaops.pages import plots  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]


def row(operator, case, implementation, us, kind="variant", spread=0.1, **more):
    return {
        "operator": operator,
        "case": case,
        "implementation": implementation,
        "kind": kind,
        "dtype": "f16",
        "device": "cuda:0",
        "temperature": "hot",
        "gbps": 1e3 / us,
        "tflops": 1 / us,
        "sm_mhz": 1980.0,
        "selected": "wgmma" if implementation == "tmaops" else None,
        "us": {"median": us, "p10": us * (1 - spread), "p90": us * (1 + spread), "n": 5},
        **more,
    }


def result(path, rows, **more):
    gpu = {"name": "NVIDIA H200", "compute_capability": 90, "multiprocessors": 132, "memory_peak_gbps": 4814.304}
    document = {
        "schema": 1,
        "status": "complete",
        "machine": {"cpu": "Xeon", "threads": 4, "gpu": gpu},
        "revision": "0123456789ab",
        "rows": rows,
    }
    path.write_text(json.dumps({**document, **more}))
    return path


def gemms(factor=1.0):
    names = (
        ("tmaops", "variant", 2.0),
        ("tmaops_pdl", "variant", 1.8),
        ("wgmma_persistent", "variant", 3.0),
        ("cublas", "peer", 5.0),
        ("copy", "ceiling", 1.0),
    )
    return [
        row("gemm", f"RC {size}", name, us * size * factor, kind)
        for size in (256, 1024, 4096)
        for name, kind, us in names
    ]


def figures(contents, title):
    """The figures of the place in the page that has one with this title."""
    return next(found for found in contents.plots if title in [figure["layout"]["title"]["text"] for figure in found])


def test_a_report_has_ladders_and_ratios(tmp_path):
    result(tmp_path / "run.json", gemms())
    said = run("report", tmp_path / "run.json", "-o", tmp_path / "page.html")
    assert "2 plots of 1 files" in said.stderr
    contents = check(tmp_path / "page.html")
    assert "NVIDIA H200" in contents.text and "0123456789ab" in contents.text
    ladder, ratio = (found[0] for found in contents.plots)

    assert contents.options[:3] == ["RC 256, f16, hot", "RC 1024, f16, hot", "RC 4096, f16, hot"]
    assert ladder["layout"]["yaxis"]["categoryarray"] == [
        "copy",
        "tmaops_pdl",
        "tmaops (wgmma)",
        "wgmma_persistent",
        "cublas",
    ]
    chosen = ladder["data"][0]
    assert chosen["x"] == pytest.approx([460.8, 512.0]) and chosen["error_x"]["array"][1] == pytest.approx(51.2)
    assert "microseconds" in ladder["layout"]["xaxis"]["title"]["text"]

    (peer,) = ratio["data"]
    assert peer["name"] == "cublas" and peer["x"] == pytest.approx([2.5, 2.5, 2.5])
    assert peer["x"][0] + peer["error_x"]["array"][0] == pytest.approx(5 * 1.1 / (2 * 0.9))
    assert peer["x"][0] - peer["error_x"]["arrayminus"][0] == pytest.approx(5 * 0.9 / (2 * 1.1))


def test_a_comparison_says_what_is_faster_beyond_the_noise(tmp_path):
    now = [
        row("gemm", "RC 256", "tmaops", 1.0),
        row("gemm", "RC 512", "tmaops", 2.0),
        row("gemm", "RC 1024", "tmaops", 9.0),
        row("gemm", "RC 64", "tmaops", 1.0),
    ]
    old = [
        row("gemm", "RC 256", "tmaops", 2.0),
        row("gemm", "RC 512", "tmaops", 2.1),
        row("gemm", "RC 1024", "tmaops", 4.0),
        row("gemm", "RC 32", "tmaops", 1.0),
    ]
    run(
        "report",
        result(tmp_path / "now.json", now),
        "--compare",
        result(tmp_path / "old.json", old),
        "-o",
        tmp_path / "page.html",
    )
    contents = check(tmp_path / "page.html")
    (shown,) = figures(contents, "gemm, tmaops")
    found = {trace["name"]: (trace["y"], trace["x"]) for trace in shown["data"]}
    assert found["faster"] == (["RC 256, f16, hot"], [0.5])
    assert found["slower"] == (["RC 1024, f16, hot"], [2.25])
    assert found["same"][0] == ["RC 512, f16, hot"]
    assert "gemm 1 1 1 1 1" in " ".join(contents.text.split())


def test_every_committed_result_file_has_a_place_in_the_report(tmp_path):
    files = sorted((ROOT / "results").glob("*/*.json"))
    done = run("report", *files, "-o", tmp_path / "page.html", "-q")
    timed = [path for path in files if json.loads(path.read_text()).get("rows")]
    assert len(timed) > 20
    contents = check(tmp_path / "page.html")
    assert all(str(path) in contents.text for path in files)
    assert all(str(path) in done.stderr for path in files if path not in timed)
    assert (tmp_path / "page.html").stat().st_size < 10_000_000


@needs_chromium
def test_a_browser_draws_the_report(tmp_path):
    files = [ROOT / "results" / "h200" / name for name in ("gemm.json", "resample.json", "tile_load.json")]
    run("report", *files, "--compare", ROOT / "results" / "h100" / "gemm.json", "-o", tmp_path / "page.html")
    check_drawn(tmp_path / "page.html")


@needs_chromium
def test_another_case_is_drawn_when_it_is_chosen(tmp_path):
    run("report", result(tmp_path / "run.json", gemms()), "-o", tmp_path / "page.html")
    choose = "<script>const s = document.querySelector('select'); s.value = '2'; s.dispatchEvent(new Event('change'));</script>"
    (tmp_path / "chosen.html").write_text((tmp_path / "page.html").read_text() + choose)
    before, after = (open_page(tmp_path / name).split('id="plot-0-data"')[0] for name in ("page.html", "chosen.html"))
    assert "RC 256, f16, hot</text>" in before and "RC 4096, f16, hot</text>" in after


@needs_chromium
def test_an_error_of_a_script_is_noticed(tmp_path):
    (tmp_path / "page.html").write_text("<!doctype html><script>nothing.at.all()</script>")
    with pytest.raises(AssertionError, match="nothing is not defined"):
        open_page(tmp_path / "page.html")


def test_files_of_one_name_are_told_apart(tmp_path):
    for folder, factor in (("a", 1.0), ("b", 2.0)):
        (tmp_path / folder).mkdir()
        result(tmp_path / folder / "gemm.json", gemms(factor))
    run("report", tmp_path / "a" / "gemm.json", tmp_path / "b" / "gemm.json", "-o", tmp_path / "page.html")
    contents = check(tmp_path / "page.html")
    titles = [figure["layout"]["title"]["text"] for figure in contents.plots[1]]
    assert titles == [f"{tmp_path / folder / 'gemm.json'}, hot" for folder in ("a", "b")]
    assert len(contents.plots[0]) == 6


def test_names_of_a_file_cannot_become_markup(tmp_path):
    rows = [row("gemm", "</script><b>RC 1", "tmaops", 1.0), row("gemm", "</script><b>RC 1", "copy", 1.0, "ceiling")]
    run(
        "report",
        result(tmp_path / "run.json", rows, revision="<i>0</i>"),
        "-o",
        tmp_path / "page.html",
        "--title",
        "<u>",
    )
    contents = check(tmp_path / "page.html")
    assert "<i>0</i>" in contents.text and "<u>" in contents.text
    assert figures(contents, "</script><b>RC 1, f16, hot")


def test_what_cannot_be_reported_is_refused(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text('{"rows": []}')
    result(tmp_path / "new.json", gemms(), schema=2)
    for name, said in (
        ("broken.json", "no JSON"),
        ("other.json", "no timed rows"),
        ("new.json", "schema 2"),
        ("none.json", "No such file"),
    ):
        assert said in run("report", tmp_path / name, "-o", tmp_path / "page.html", code=2).stderr
    (tmp_path / "page.html").write_text("mine")
    result(tmp_path / "run.json", gemms())
    assert "which exists" in run("report", tmp_path / "run.json", "-o", tmp_path / "page.html", code=2).stderr
    assert (tmp_path / "page.html").read_text() == "mine"
    run("report", tmp_path / "run.json", "-o", tmp_path / "page.html", "--force")
    assert "No such file" in run("report", tmp_path / "run.json", "-o", tmp_path / "none" / "page.html", code=2).stderr
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_without_plotly_the_report_is_refused(tmp_path):
    assert (
        "pip install plotly"
        in run(
            "report", ROOT / "results" / "cpu" / "cpu.json", "-o", tmp_path / "page.html", code=2, without="plotly"
        ).stderr
    )
    assert not (tmp_path / "page.html").exists()


def test_the_program_alone_says_where_the_report_is():
    done = run("report", "run.json", "-o", "page.html", code=2, command=[TOOL])
    assert "E100" in done.stderr and "Python package" in done.stderr
    assert "report" in run("--help", command=[TOOL]).stdout


@pytest.mark.parametrize("values", [[1.0], [0.9, 1.1], [1, 4.9], [2, 900], [1e-3, 1e6], [0.01, 0.0101], [0.0]])
def test_a_logarithmic_axis_holds_every_value(values):
    low, high = plots.logarithmic("x", values)["range"]
    assert low < high and all(10**low < value < 10**high for value in values if value > 0)
