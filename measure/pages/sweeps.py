"""Sweeps: cases that differ in one number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tmaops._page import COLORS, SYMBOLS, Page, figure, logarithmic, paragraph
from tmaops.pages.ladders import spread
from tmaops.pages.results import Row, grouped, titled


@dataclass
class Sweep:
    """Cases that differ in one number."""

    over: str  # what the number is: "images"
    fixed: str  # the case with a * for the number
    lines: dict[str, list[tuple[float, Row]]]  # by implementation, rising


_AXES = {
    "gemm": ("M", "N", "K"),
    "resample": ("trajectories", "samples of a trajectory", "targets of a trajectory", "channels"),
    "tile_load": ("loads",),
}
_LETTERS = {"N": "images", "M": "heads", "D": "channels of a head", "Lq": "queries", "P": "points"}


def _over(operator: str, before: str, index: int, count: int) -> str:
    """What the number `index` of a case is; `before` is the text in front of it."""
    family = operator.replace("_backward", "")
    if family == "ms_deform_attn":
        letter = re.search(r"([A-Za-z]+)$", before)
        return _LETTERS.get(letter[1], letter[1]) if letter else "pixels of all levels"
    if family == "gemm" and count == 1:
        return "M = N = K"
    names = _AXES.get(family, ())
    return names[index] if index < len(names) else f"number {index + 1} of the case"


def _numbers(operator: str, case: str) -> list[str]:
    """The case cut at its numbers, which stand at the odd places. The levels of an attention count as their pixels."""
    if operator.startswith("ms_deform_attn"):
        levels = re.search(r"(?<![\w+])\d+x\d+(\+\d+x\d+)*", case)
        if levels:
            sides = [level.split("x") for level in levels[0].split("+")]
            case = case.replace(levels[0], str(sum(int(height) * int(width) for height, width in sides)))
    return re.split(r"(\d+)", case)


def sweeps(rows: list[Row], least: int = 3) -> list[Sweep]:
    """Every series of at least `least` cases that differ in one number, of the rows of one operator, type and temperature."""
    found: dict[tuple[str, str], dict[str, list[tuple[float, Row]]]] = {}
    for row in rows:
        parts = _numbers(row.operator, row.case)
        count = len(re.findall(r"\d+", row.case.split()[-1])) if row.operator == "gemm" else len(parts) // 2
        for place in range(1, len(parts), 2):
            fixed = "".join(parts[:place] + ["*"] + parts[place + 1 :])
            over = _over(row.operator, "".join(parts[:place]), place // 2, count)
            found.setdefault((over, fixed), {}).setdefault(row.implementation, []).append((float(parts[place]), row))
    made = []
    for (over, fixed), lines in found.items():
        lines = {
            name: sorted(points, key=lambda point: point[0])
            for name, points in lines.items()
            if len({x for x, _ in points}) >= least
        }
        if lines:
            made.append(Sweep(over, fixed, lines))
    return made


_MEASURES = {
    "time, microseconds": lambda row: row.us,
    "GB/s of the floor bytes": lambda row: row.gbps,
    "TFLOP/s": lambda row: row.tflops,
    "loads per second": lambda row: (row.loads or {}).get("per_second"),
}


def draw_sweeps(page: Page, rows: list[Row]) -> None:
    """Cases that differ in one number, as lines."""
    choices = []
    for (run, dtype, temperature), group in grouped(
        rows, lambda row: (row.run.name, row.dtype, row.temperature)
    ).items():
        for sweep in sweeps(group):
            held = titled(sweep.fixed, dtype, temperature)
            for measure in _MEASURES:
                plot = sweep_plot(titled(run, sweep.fixed, dtype, temperature), sweep, measure)
                if plot:
                    choices.append((run, f"{held}: {measure} over {sweep.over}", plot))
    if choices:
        page.heading("Sweeps")
        page.add(
            paragraph(
                "Cases that differ in one number, a * in the title. Bars of the times reach from the 10th to the 90th percentile. A click on a name in the legend shows or hides its line; those of dependent launches are hidden at first."
            )
        )
        page.plot(*choices)


def _is_dependent(name: str) -> bool:
    return name.endswith("_pdl")


def sweep_plot(title: str, sweep: Sweep, measure: str) -> dict[str, Any] | None:
    """A line per implementation of what is measured, "time, microseconds" for example; None where no row has it."""
    value = _MEASURES[measure]
    traces, xs, ys = [], [], []
    names = sorted(sweep.lines, key=_is_dependent)
    colored = list(dict.fromkeys(name.partition("_pdl")[0] for name in names))
    for name in names:
        points = [(x, row) for x, row in sweep.lines[name] if value(row)]
        index = colored.index(name.partition("_pdl")[0])
        if len(points) < 2:
            continue
        trace = {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": [x for x, _ in points],
            "y": [value(row) for _, row in points],
            "marker": {"symbol": SYMBOLS[index % 8], "color": COLORS[index % 8], "size": 7},
            "line": {
                "color": COLORS[index % 8],
                "width": 1.5,
                "dash": "dot" if _is_dependent(name) else ("solid", "dash", "dashdot")[index // 8 % 3],
            },
            "hovertemplate": "%{x:,}: %{y:.4g}<extra>" + name + "</extra>",
        }
        if _is_dependent(name):
            trace["visible"] = "legendonly"
        if value is _MEASURES["time, microseconds"]:
            trace["error_y"] = spread([row for _, row in points])
        traces.append(trace)
        xs += trace["x"]
        ys += trace["y"]
    if not traces:
        return None
    ticks: list[float] = []
    for at in sorted(set(xs)):
        if not ticks or at > ticks[-1] * (max(xs) / min(xs)) ** 0.04:  # apart enough for their texts
            ticks.append(at)
    x = logarithmic(f"{sweep.over}, logarithmic", xs)
    x.update(tickvals=ticks, ticktext=[f"{tick:,.0f}" for tick in ticks])
    legend = {"orientation": "v", "x": 1.02, "y": 1, "xanchor": "left", "yanchor": "top"}
    return figure(
        traces,
        title=title,
        height=max(480, 170 + 19 * len(traces)),
        xaxis=x,
        yaxis=logarithmic(f"{measure}, logarithmic", ys),
        legend=legend,
    )
