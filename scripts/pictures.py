#!/usr/bin/env python3
"""Draws the pictures of README.md and docs/published.md from committed result files, and that of docs/barriers.md.

pictures.py            draws them into docs/images; needs matplotlib
pictures.py --check    exit 1 when a picture is older than the rows that it shows; needs nothing
"""

import hashlib
import json
import pathlib
import re
import sys

from gemm_map import extents, fastest_choices, kept_products

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


STEPS = {
    "wgmma_cp_async": "wgmma, cp.async",
    "wgmma_tma": "+ TMA",
    "tmaops": "+ a producer, two consumers",
    "cublaslt": "cuBLASLt, its fastest",
}


def ladder():
    """What each step of the gemm ladder brings."""
    bars = []
    for implementation, label in STEPS.items():
        row = one("h200/gemm.json", case="RC 2048", dtype="f16", temperature="hot", implementation=implementation)
        bars.append((label, row["us"]["median"], THEIRS if implementation == "cublaslt" else OURS))
    return "gemm 2048 x 2048 x 2048, f16, H200", "µs", bars


BARS = {"detector": detector, "data_set": data_set, "ladder": ladder}
# The pictures of README.md: their file, and which of its rows they show. scripts/update_tables.py says it below them.
SOURCES = {
    "detector": ("h100/models_batch4.json", lambda row: True),
    "data_set": ("cpu/dataset.json", lambda row: True),
    "ladder": (
        "h200/gemm.json",
        lambda row: row["case"] == "RC 2048" and row["temperature"] == "hot" and row["implementation"] in STEPS,
    ),
    "gemm_distribution": ("h200/gemm_choices.json", lambda row: True),
}


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


def gemm_ratios(peer):
    """Of each product of models in use: M, N, K, and how many times as long as the shipped choice the peer takes.

    The shipped choice is the fastest over the types: a line of measured.inc says it where the costs choose another one.
    """
    products = kept_products(ROOT / "results/h200/gemm_choices.json")
    chosen = fastest_choices(products)
    return [[*extents(one["case"]), one["us"][peer] / one["us"][chosen[one["case"]]]] for one in products]


def gemm_distribution():
    peers = (("cublaslt", "fastest of cuBLASLt's algorithms"), ("cublas", "cublasGemmEx"))
    curves = [(name, sorted(one[3] for one in gemm_ratios(peer))) for peer, name in peers]
    return "share of the products (%)", "times as long as tmaops", curves


def gemm_extents():
    panels = [(name, [(one[i], one[3]) for one in gemm_ratios("cublaslt")]) for i, name in enumerate("MNK")]
    return "fastest of cuBLASLt, times as long as tmaops", panels


CURVES = {"gemm_distribution": gemm_distribution}
PANELS = {"gemm_extents": gemm_extents}


def digests():
    """What identifies the numbers of every picture."""
    made = {name: make() for name, make in (BARS | LINES | CURVES | PANELS).items()}
    return {name: hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16] for name, value in made.items()}


# --- a ring of two stages in time -----------------------------------------------------------------------------------
STAGES, BOXES, ISSUE, LOAD, READ = 2, 6, 0.6, 3.0, 2.2  # units of time
STRIPES = ("#cfe3f3", "#a9cbe8")


def ring_in_time():
    """Issue and arrival of every box, begin and end of its reading: what the barriers let through."""
    issued, arrived, begun, read = [], [], [], []
    for box in range(BOXES):
        free = read[box - STAGES] if box >= STAGES else 0
        issued.append(max(free, issued[-1] + ISSUE if issued else 0))
        arrived.append(issued[-1] + LOAD)
        begun.append(max(arrived[-1], read[-1] if read else 0))
        read.append(begun[-1] + READ)
    return issued, arrived, begun, read


def barrier_phases():
    """The SVG file: for each stage what lies in it, and the phases of its two barriers."""
    issued, arrived, begun, read = ring_in_time()
    left, unit, row, top = 92, 44, 26, 44
    end = read[-1] + 1.2
    width, height = left + int(end * unit) + 10, top + STAGES * 4 * row + 24
    lines = []

    def text(x, y, words, anchor="middle"):
        lines.append(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>')

    def bar(begin, stop, line, color, words):
        x, y = left + begin * unit, top + line * row
        lines.append(
            f'<rect x="{x:.0f}" y="{y}" width="{(stop - begin) * unit:.0f}" height="{row - 6}" fill="{color}"/>'
        )
        text(x + (stop - begin) * unit / 2, y + 14, words)

    text(left, 20, "A ring of two stages. Time goes to the right. Every phase has its parity in parentheses.", "start")
    for stage in range(STAGES):
        first = 4 * stage
        for line, words in enumerate((f"stage {stage}", f"full[{stage}]", f"empty[{stage}]")):
            text(left - 8, top + (first + line) * row + 14, words, "end")
        ends = {"full": [], "empty": []}
        for box in range(stage, BOXES, STAGES):
            bar(issued[box], arrived[box], first, "#f6d9a8", f"load {box}")
            bar(begun[box], read[box], first, "#bfe0bd", f"read {box}")
            ends["full"].append(arrived[box])
            ends["empty"].append(read[box])
        for line, name in enumerate(("full", "empty"), first + 1):
            stops = [0, *ends[name], end]
            for phase, (begin, stop) in enumerate(zip(stops, stops[1:], strict=False)):
                words = f"phase {phase} ({phase % 2})" if stop - begin > 2 else f"{phase} ({phase % 2})"
                bar(begin, stop, line, STRIPES[phase % 2], words)
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' font-family="sans-serif" font-size="12">\n<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


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


def ratio_axis(axes):
    axes.axhline(1, color="#444444", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_yticks([0.7, 0.8, 0.9, 1, 1.25, 1.5, 2, 3], ["0.7", "0.8", "0.9", "1", "1.25", "1.5", "2", "3"])
    axes.minorticks_off()
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)


def draw_curves(plot, across, up, curves):
    """Values in rising order, over the share that they make up."""
    figure, axes = plot.subplots(figsize=(6.4, 3.6))
    for i, (name, values) in enumerate(curves):
        shares = [100 * (place + 0.5) / len(values) for place in range(len(values))]
        axes.plot(shares, values, color=(OURS, "#c46a1b")[i], linewidth=1.6, label=name)
    ratio_axis(axes)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.legend(fontsize=8, frameon=False)
    return figure


def draw_panels(plot, up, panels):
    figure, row = plot.subplots(1, len(panels), figsize=(9.6, 3.2), sharey=True)
    for axes, (name, points) in zip(row, panels, strict=True):
        axes.scatter(*zip(*points, strict=True), s=9, color=OURS, alpha=0.6, linewidths=0)
        axes.set_xscale("log", base=2)
        ratio_axis(axes)
        axes.set_xlabel(name)
    row[0].set_ylabel(up, fontsize=8)
    return figure


def draw():
    (IMAGES / "barrier_phases.svg").write_text(barrier_phases(), encoding="utf-8")
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "tmaops", "svg.fonttype": "none", "font.family": "sans-serif"})
    import matplotlib.pyplot as plot

    made = digests()
    for name in made:
        kinds = ((BARS, draw_bars), (LINES, draw_lines), (CURVES, draw_curves), (PANELS, draw_panels))
        [figure] = [draw_one(plot, *makers[name]()) for makers, draw_one in kinds if name in makers]
        metadata = {"Date": None, "Creator": None, "Source": f"rows {made[name]}"}
        figure.savefig(IMAGES / f"{name}.svg", bbox_inches="tight", metadata=metadata)
        plot.close(figure)


def check():
    old = []
    for name, wanted in digests().items():
        file = IMAGES / f"{name}.svg"
        if not file.exists() or f"rows {wanted}" not in file.read_text(encoding="utf-8"):
            old.append(f"docs/images/{name}.svg is older than its result file: run scripts/pictures.py")
    if (IMAGES / "barrier_phases.svg").read_text(encoding="utf-8") != barrier_phases():
        old.append("docs/images/barrier_phases.svg is not what scripts/pictures.py draws")
    print("\n".join(old) or "every picture shows the rows of its result file")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(check() if "--check" in sys.argv[1:] else draw())
