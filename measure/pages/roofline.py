"""Rooflines: operations per second over operations per byte."""

from __future__ import annotations

import math
from typing import Any

from tmaops._page import COLORS, SYMBOLS, Page, figure, logarithmic, paragraph
from tmaops.pages.ladders import time_text
from tmaops.pages.results import Row, grouped, titled

# Operations of one multiprocessor in one cycle, dense, by compute capability: NVIDIA H100 Tensor Core GPU Architecture, table 2.
_OPERATIONS = {90: {"f16 and bf16 on tensor cores": 4096, "f32": 256}}


def roofline(page: Page, device: str, rows: list[Row], named: bool) -> None:
    """Operations per second over operations per byte, below what memory and arithmetic units can do."""
    rows = [row for row in rows if row.gbps and row.tflops or row.implementation == "copy" and row.gbps]
    choices = []
    for temperature, group in grouped(rows, lambda row: row.temperature).items():
        points = [row for row in group if row.implementation == "tmaops"]
        if points:
            choices.append(
                (
                    "",
                    temperature or "",
                    _roofline_plot(
                        titled(device, temperature), points, [row for row in group if row.implementation == "copy"]
                    ),
                )
            )
    if not choices:
        return
    page.section(f"Roofline, {device}" if named else "Roofline")
    page.add(
        paragraph(
            "Each point is a case of what tmaops runs. Operations and floor bytes are those of the definition, not what the hardware counted: inputs in the caches may lie above the roof of the memory."
        )
    )
    page.plot(*choices)


def _roofline_plot(title: str, points: list[Row], copies: list[Row]) -> dict[str, Any]:
    traces = []
    for index, (operator, mine) in enumerate(grouped(points, lambda row: row.operator).items()):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": operator,
                "marker": {"symbol": SYMBOLS[index % 8], "color": COLORS[index % 8], "size": 8, "opacity": 0.8},
                "x": [1e3 * row.tflops / row.gbps for row in mine],
                "y": [row.tflops for row in mine],
                "text": [f"{titled(row.case, row.dtype)}: {time_text(row.us)}, {row.selected}" for row in mine],
                "hovertemplate": "%{text}<br>%{x:.3g} operations per byte, %{y:.3g} TFLOP/s<extra>"
                + operator
                + "</extra>",
            }
        )
    machine = points[0].run.document["machine"]
    gpu = machine.get("gpu") if str(points[0].device).startswith("cuda") else None
    xs = [x for trace in traces for x in trace["x"]]
    left, right = min(xs) / 2, max(xs) * 2
    flat = {}
    if gpu:
        clock = max((row.sm_mhz or 0 for row in points), default=0)
        for name, per_cycle in _OPERATIONS.get(gpu.get("compute_capability"), {}).items():
            flat[f"{name}: {gpu['multiprocessors']} x {per_cycle:,} operations x {clock:,.0f} MHz"] = (
                gpu["multiprocessors"] * per_cycle * clock * 1e-6
            )
    flat = {name: tflops for name, tflops in flat.items() if tflops}
    slopes = {}
    if gpu and gpu.get("memory_peak_gbps"):
        slopes[f"memory, theoretical: {gpu['memory_peak_gbps']:,.0f} GB/s"] = gpu["memory_peak_gbps"]
    if copies:
        best = max(row.gbps for row in copies)
        slopes[f"the fastest copy here: {best:,.0f} GB/s"] = best
    top = max(flat.values(), default=math.inf)
    for index, (name, gbps) in enumerate(slopes.items()):
        end = min(right, 1e3 * top / gbps)
        traces.append(
            _roof(name, [left, end], [gbps * left / 1e3, gbps * end / 1e3], ("solid", "dash")[index], COLORS[6])
        )
    for index, (name, tflops) in enumerate(flat.items()):
        begin = max(left, 1e3 * tflops / max(slopes.values(), default=math.inf))
        if begin < right:
            traces.append(_roof(name, [begin, right], [tflops, tflops], ("solid", "dash")[index % 2], COLORS[7]))
    ys = [y for trace in traces for y in trace["y"]]
    legend = {"orientation": "h", "x": 0, "y": -0.16, "xanchor": "left", "yanchor": "top"}
    return figure(
        traces,
        title=title,
        height=560,
        legend=legend,
        xaxis=logarithmic("operations per floor byte, logarithmic", [left, right]),
        yaxis=logarithmic("TFLOP/s, logarithmic", ys),
        margin={"l": 70, "r": 30, "t": 50, "b": 150},
    )


def _roof(name: str, x: list[float], y: list[float], dash: str, color: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": y,
        "line": {"color": color, "width": 1.5, "dash": dash},
        "hoverinfo": "name",
    }
