#!/usr/bin/env python3
"""Draws a sweep of a result file: one line per implementation over what changes from case to case.

  plot_sweep.py RESULT.json OUT.svg --x batch|pixels|loads|size [--y us|gbps|of_peak|tflops|rate]
                [--show NAME,NAME] [--operator NAME] [--dtype f16] [--temperature hot] [--only TEXT] [--title TEXT]

batch: images of an attention, trajectories of a resampling. pixels: of all levels of an attention. loads: of one call of
tile_load; rate: its loads per second. size: the first extent of a gemm. --only keeps the cases that have TEXT in their
name. Bars are the 10th and 90th percentiles of the time. Needs matplotlib.
"""
import argparse
import json
import pathlib
import re
import sys

MOST_BYTES = 60_000


def pixels(row):
    levels = re.findall(r"(\d+)x(\d+)", row["case"])
    return sum(int(height) * int(width) for height, width in levels) or None


def number(pattern):
    def find(row):
        found = re.search(pattern, row["case"])
        return int(found[1]) if found else None

    return find


X = {
    "batch": ("batch", number(r"^N?(\d+)[ ,]")),
    "pixels": ("pixels of all levels", pixels),
    "loads": ("loads of a call", lambda row: row.get("loads", {}).get("count")),
    "size": ("M", number(r"^[RC]{2} (\d+)")),
}
Y = {
    "us": ("microseconds", lambda row: row["us"]["median"]),
    "gbps": ("GB/s of the floor bytes", lambda row: row["gbps"]),
    "of_peak": ("part of the memory's theoretical peak", lambda row: row.get("of_peak")),
    "tflops": ("TFLOP/s", lambda row: row["tflops"]),
    "rate": ("loads per second", lambda row: row.get("loads", {}).get("per_second")),
}


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--x", choices=X, required=True)
    parser.add_argument("--y", choices=Y, default="us")
    parser.add_argument("--show", type=lambda text: text.split(","), default=[])
    for key in ("operator", "dtype", "temperature", "only", "title"):
        parser.add_argument("--" + key, default="")
    return parser.parse_args()


def series(document, options):
    """{implementation: [(x, y, low, high)]}, in the order of the file."""
    found = {}
    for row in document["rows"]:
        if not row["us"] or options.only not in row["case"]:
            continue
        if any(getattr(options, key) not in ("", row[key]) for key in ("operator", "dtype", "temperature")):
            continue
        if options.show and row["implementation"] not in options.show:
            continue
        x, y = X[options.x][1](row), Y[options.y][1](row)
        if x is None or y is None:
            continue
        spread = (y - row["us"]["p10"], row["us"]["p90"] - y) if options.y == "us" else (0, 0)
        found.setdefault(row["implementation"], []).append((x, y, *(max(0, part) for part in spread)))
    for name, points in found.items():
        points.sort()
        if len({x for x, *_ in points}) < len(points):
            sys.exit(f"{options.result}: several rows of {name} have one {options.x}: choose with --operator, --dtype, --temperature or --only")
    return {name: points for name, points in found.items() if len(points) > 1}


def draw(lines, document, options):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tmaops", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    markers = "osD^v<>PX*"
    for index, (name, points) in enumerate(lines.items()):
        x, y, low, high = zip(*points)
        axes.errorbar(x, y, (low, high), label=name, marker=markers[index % len(markers)], markersize=4, linewidth=1.2,
                      linestyle="-" if index < 10 else "--", elinewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel=X[options.x][0], ylabel=Y[options.y][0],
             title=options.title or f"{options.result.stem}, {document['machine']['gpu']['name'] if document['machine'].get('gpu') else document['machine'].get('cpu')}, revision {document['revision']}")
    axes.grid(True, which="major", linewidth=0.4)
    axes.legend(fontsize=7, ncols=2)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.output, metadata={"Date": None, "Creator": None})


def main():
    options = parse()
    document = json.loads(options.result.read_text(encoding="utf-8"))
    lines = series(document, options)
    if not lines:
        sys.exit(f"{options.result}: no implementation has two values of {options.x}")
    draw(lines, document, options)
    size = options.output.stat().st_size
    if size > MOST_BYTES:
        options.output.unlink()
        sys.exit(f"{options.output}: {size} bytes, more than {MOST_BYTES}: show fewer implementations")
    print(f"{options.output}: {', '.join(lines)}")


if __name__ == "__main__":
    main()
