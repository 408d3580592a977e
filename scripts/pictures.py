#!/usr/bin/env python3
"""Draws the pictures of README.md and docs/published.md from committed result files.

pictures.py            draws them into docs/images; needs matplotlib
pictures.py --check    exit 1 when a picture is older than the rows that it shows; needs nothing
"""

import hashlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
OURS, THEIRS = "#1b6ca8", "#b0b7bf"


def rows_of(path, **wanted):
    document = json.loads((ROOT / "results" / path).read_text(encoding="utf-8"))
    return [row for row in document["rows"] if all(row.get(key) == value for key, value in wanted.items())]


def one(path, **wanted):
    [row] = rows_of(path, **wanted)
    return row


# --- what each picture shows ----------------------------------------------------------------------------------------
def detector():
    """Deformable DETR as it is and on tmaops."""
    path, case = "h100/models_batch4.json", "deformable_detr 4 x 800x1066"
    bars = []
    for step in ("inference", "training"):
        for implementation, label in (("own", "transformers"), ("tmaops", "with tmaops")):
            row = one(path, case=case, step=step, dtype="f16", implementation=implementation)
            bars.append((f"{step}, {label}", row["ms"]["median"], OURS if implementation == "tmaops" else THEIRS))
    return "Deformable DETR, 4 images of 800 x 1066, f16 autocast, H100", "ms", bars


def data_set():
    """A data set on another clock, beside reading and writing the files alone."""
    bars = []
    for case, label in (
        ("LeRobot, 4000 episodes, job", "LeRobot, 4,000 long episodes"),
        ("LeRobot, 20000 episodes of 150 frames, job", "LeRobot, 20,000 short episodes"),
        ("Parquet with images, 666 episodes, job", "Parquet with images, 6.7 GB"),
    ):
        for implementation, who in (("read and write alone", "pyarrow copies"), ("tmaops", "tmaops resamples")):
            for row in rows_of("cpu/dataset.json", case=case, implementation=implementation):
                bars.append(
                    (f"{label}: {who}", row["us"]["median"] / 1e6, OURS if implementation == "tmaops" else THEIRS)
                )
    return "50 Hz to 30 Hz on two processors", "s", bars


def ladder():
    """What each step of the gemm ladder brings."""
    shown = (
        ("wgmma_cp_async", "wgmma, cp.async"),
        ("wgmma_tma", "+ TMA"),
        ("tmaops", "+ two consumers, clusters"),
        ("cublaslt", "cuBLASLt, its fastest"),
    )
    bars = []
    for implementation, label in shown:
        row = one("h100/gemm.json", case="RC 2048", dtype="f16", temperature="hot", implementation=implementation)
        bars.append((label, row["us"]["median"], THEIRS if implementation == "cublaslt" else OURS))
    return "gemm 2048 x 2048 x 2048, f16, H100", "µs", bars


BARS = {"detector": detector, "data_set": data_set, "ladder": ladder}


def images(case):
    return int(re.match(r"N(\d+) ", case)[1])


def pixels(case):
    return sum(int(height) * int(width) for height, width in re.findall(r"(\d+)x(\d+)", case))


def tile_load_queries():
    rows = [row for row in rows_of("h100/seed_tile_load_sweep.json") if row.get("loads")]
    points = [
        (row["implementation"], row["loads"]["count"], row["loads"]["per_second"])
        for row in rows
        if not row["implementation"].endswith("_pdl") and row["implementation"] not in ("tmaops", "empty")
    ]
    return "tiles loaded by one launch", "loads per second", points


def attention_sweep(over, held, wanted):
    rows = rows_of("h100/seed_ms_deform_attn_sweep.json")
    points = [
        (row["implementation"], over(row["case"]), row["us"]["median"]) for row in rows if held(row["case"]) == wanted
    ]
    return points


def ms_deform_attn_images():
    return "images", "time of a call (µs)", attention_sweep(images, pixels, 19560)


def ms_deform_attn_pixels():
    return "pixels of all levels, 48 images", "time of a call (µs)", attention_sweep(pixels, images, 48)


LINES = {
    "tile_load_queries": tile_load_queries,
    "ms_deform_attn_images": ms_deform_attn_images,
    "ms_deform_attn_pixels": ms_deform_attn_pixels,
}


def digests():
    """What identifies the numbers of every picture."""
    made = {name: make() for name, make in (BARS | LINES).items()}
    return {name: hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16] for name, value in made.items()}


# --- drawing --------------------------------------------------------------------------------------------------------
def draw_bars(plot, title, unit, bars):
    figure, axes = plot.subplots(figsize=(6.4, 0.42 * len(bars) + 0.9))
    names, values, colors = zip(*reversed(bars), strict=True)
    axes.barh(names, values, color=colors, height=0.72)
    for place, value in enumerate(values):
        axes.text(value, place, f" {value:.3g} {unit}", va="center", fontsize=9)
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlim(0, 1.16 * max(values))
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    return figure


def draw_lines(plot, across, up, points):
    figure, axes = plot.subplots(figsize=(7, 4.4))
    names = list(dict.fromkeys(name for name, _, _ in points))
    styles = [(color, line) for line in ("-", "--") for color in plot.get_cmap("tab10").colors]
    for name, (color, line) in zip(names, styles, strict=False):
        xs, ys = zip(*sorted((x, y) for of, x, y in points if of == name), strict=True)
        axes.plot(xs, ys, line, color=color, marker="o", markersize=3, linewidth=1.3, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def draw():
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "tmaops", "svg.fonttype": "none", "font.family": "sans-serif"})
    import matplotlib.pyplot as plot

    made = digests()
    for name in made:
        figure = draw_bars(plot, *BARS[name]()) if name in BARS else draw_lines(plot, *LINES[name]())
        metadata = {"Date": None, "Creator": None, "Source": f"rows {made[name]}"}
        figure.savefig(IMAGES / f"{name}.svg", bbox_inches="tight", metadata=metadata)
        plot.close(figure)


def check():
    old = []
    for name, wanted in digests().items():
        file = IMAGES / f"{name}.svg"
        if not file.exists() or f"rows {wanted}" not in file.read_text(encoding="utf-8"):
            old.append(f"docs/images/{name}.svg is older than its result file: run scripts/pictures.py")
    print("\n".join(old) or "every picture shows the rows of its result file")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(check() if "--check" in sys.argv[1:] else draw())
