"""Times of every implementation, case by case."""

from __future__ import annotations

import math
from typing import Any

from tmaops._page import COLORS, Page, axis, categories, figure, logarithmic, paragraph
from tmaops.pages.results import Row, grouped, titled

_KINDS = {
    "chosen": ("what tmaops runs", COLORS[0]),
    "variant": ("other variants", COLORS[4]),
    "peer": ("peers", COLORS[1]),
    "ceiling": ("ceilings", COLORS[7]),
}


def ladders(page: Page, rows: list[Row]) -> None:
    """Per case the time of every implementation, the slowest first."""
    page.heading("Times")
    page.add(
        paragraph(
            "Medians, with the 10th and the 90th percentile of the samples. A name that ends in _pdl is launched dependently."
        )
    )
    page.plot(
        *(
            (run.name, titled(*problem), _ladder(titled(*problem), group))
            for (run, problem), group in grouped(rows, lambda row: (row.run, row.problem)).items()
        )
    )


def _kind(row: Row) -> str:
    return "chosen" if row.implementation in ("tmaops", "tmaops_pdl") else row.kind


def _ladder(title: str, rows: list[Row]) -> dict[str, Any]:
    rows = sorted(rows, key=lambda row: row.us)
    wide = rows[-1].us > 20 * rows[0].us
    style = {"type": "scatter", "mode": "markers"} if wide else {"type": "bar", "orientation": "h"}
    traces = []
    for kind, (name, color) in _KINDS.items():
        mine = [row for row in rows if _kind(row) == kind]
        if mine:
            traces.append(
                {
                    **style,
                    "name": name,
                    "marker": {"color": color, **({"size": 10} if wide else {})},
                    "x": [row.us for row in mine],
                    "y": [row.label for row in mine],
                    "error_x": spread(mine, color="#222"),
                    "hovertemplate": "%{y}: %{x:.4g} us<extra></extra>",
                }
            )
    across = [value for row in rows for value in (row.p10, row.p90)]
    x = logarithmic("microseconds, logarithmic", across) if wide else axis("microseconds", rangemode="tozero")
    labels = [row.label for row in rows]
    y = categories(labels, [f"{row.label}   {time_text(row.us)}" for row in rows])
    return figure(traces, title=title, height=160 + 24 * len(rows), xaxis=x, yaxis=y, bargap=0.25)


def spread(rows: list[Row], **more: Any) -> dict[str, Any]:
    """Error bars from the 10th to the 90th percentile."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [row.p90 - row.us for row in rows],
        "arrayminus": [row.us - row.p10 for row in rows],
        "thickness": 1,
        "width": 3,
        **more,
    }


def time_text(us: float) -> str:
    for limit, scale, unit in ((1e3, 1, "us"), (1e6, 1e-3, "ms"), (math.inf, 1e-6, "s")):
        if float(f"{us:.3g}") < limit:
            break
    scaled = float(f"{us:.3g}") * scale
    return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {unit}"
