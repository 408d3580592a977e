"""The plots of a report: the times of every case, the ratios to peers, and what changed since an earlier run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tmaops._page import COLORS, SYMBOLS, Page, axis, figure
from tmaops.pages import paragraph, table
from tmaops.pages.results import Row, grouped, titled

_KINDS = {
    "chosen": ("what tmaops runs", COLORS[0]),
    "variant": ("other variants", COLORS[4]),
    "peer": ("peers", COLORS[1]),
    "ceiling": ("ceilings", COLORS[7]),
}
_CHANGES = {"faster": COLORS[2], "same": COLORS[7], "slower": COLORS[1]}
_OF_TIMES = (
    "Medians, with the 10th and the 90th percentile of the samples. A name that ends in _pdl is launched dependently."
)
_OF_RATIOS = "The peer's time over the time of tmaops: right of the line at 1 tmaops is faster. Bars reach from the peer's 10th percentile over our 90th to the reverse."
_OF_CHANGES = "The new time over the old one: left of the line at 1 the new run is faster. A row is faster or slower where the spreads from the 10th to the 90th percentile do not overlap."

Point = tuple[str, float, float, float]  # what stands at the left, a value, its least and its greatest


def times(page: Page, rows: list[Row]) -> None:
    """Per case the time of every implementation, the slowest first."""
    page.heading("Times")
    page.add(paragraph(_OF_TIMES))
    cases = grouped(rows, lambda row: (row.run, row.problem)).items()
    page.plot(*((run.name, titled(*case), _times_of_case(titled(*case), group)) for (run, case), group in cases))


def _times_of_case(title: str, rows: list[Row]) -> dict[str, Any]:
    rows = sorted(rows, key=lambda row: row.us)
    wide = rows[-1].us > 20 * rows[0].us
    style = {"type": "scatter", "mode": "markers"} if wide else {"type": "bar", "orientation": "h"}
    groups = grouped(rows, lambda row: "chosen" if row.implementation in ("tmaops", "tmaops_pdl") else row.kind)
    traces = [
        _trace(
            name,
            {"color": color, **({"size": 10} if wide else {})},
            [(row.label, row.us, row.p10, row.p90) for row in groups[kind]],
            hovertemplate="%{y}: %{x:.4g} us<extra></extra>",
            **style,
        )
        for kind, (name, color) in _KINDS.items()
        if kind in groups
    ]
    across = [value for row in rows for value in (row.p10, row.p90)]
    x = logarithmic("microseconds, logarithmic", across) if wide else axis("microseconds", rangemode="tozero")
    y = categories([row.label for row in rows], [f"{row.label}   {time_text(row.us)}" for row in rows])
    return figure(traces, title=title, height=160 + 24 * len(rows), xaxis=x, yaxis=y, bargap=0.25)


def ratios(page: Page, rows: list[Row]) -> None:
    """How many times as long as the chosen variant a peer takes."""
    choices = []
    for (run, temperature), group in grouped(rows, lambda row: (row.run.name, row.temperature)).items():
        points: dict[str, list[Point]] = {}
        cases: dict[str, None] = {}  # in their order
        types = len({row.dtype for row in group}) > 1
        for (case, dtype, _), same in grouped(group, lambda row: row.problem).items():
            ours = next((row for row in same if row.implementation == "tmaops"), None)
            for peer in same:
                if ours and peer.kind == "peer":
                    name = f"{case}, {dtype}" if types else case
                    points.setdefault(peer.implementation, []).append((name, *_ratio(peer, ours)))
                    cases[name] = None
        if points:
            looks = {peer: (COLORS[1:][i % 7], SYMBOLS[i % 8]) for i, peer in enumerate(points)}
            x = "times as long as tmaops, logarithmic"
            choices.append((run, temperature or "", _over_cases(titled(run, temperature), [*cases], points, looks, x)))
    if choices:
        page.heading("Ratio to peers")
        page.add(paragraph(_OF_RATIOS))
        page.plot(*choices)


def changes(page: Page, rows: list[Row], old_rows: list[Row]) -> None:
    """What became faster since an earlier run, and what slower, as `tmaops bench --compare` says it."""
    page.section("Against the earlier run")
    before = {row.key: row for row in old_rows}
    pairs = [(row, before[row.key]) for row in rows if row.key in before]
    devices = [sorted({row.run.device_name(row) for row in side}) for side in (rows, old_rows)]
    if devices[0] != devices[1]:
        page.add(paragraph(f"The machines differ: {'; '.join(devices[0])} now, {'; '.join(devices[1])} before."))
    page.add(paragraph(_OF_CHANGES))
    counts = []
    new_keys = {row.key for row in rows}
    for operator in dict.fromkeys(row.operator for row in rows + old_rows):
        mine = [_change(row, old) for row, old in pairs if row.operator == operator]
        added = sum(row.operator == operator and row.key not in before for row in rows)
        missing = sum(row.operator == operator and row.key not in new_keys for row in old_rows)
        counts.append([operator, *(mine.count(name) for name in _CHANGES), added, missing])
    page.add(table(["operator", *_CHANGES, "new rows", "missing rows"], counts))
    groups = grouped(pairs, lambda pair: (pair[0].operator, pair[0].implementation))
    operators = list(dict.fromkeys(operator for operator, _ in groups))
    looks = {name: (color, SYMBOLS[i]) for i, (name, color) in enumerate(_CHANGES.items())}
    choices = []
    for operator, name in sorted(groups, key=lambda key: (operators.index(key[0]), key[1] != "tmaops", key[1])):
        points: dict[str, list[Point]] = {}
        for row, old in groups[operator, name]:
            points.setdefault(_change(row, old), []).append((titled(*row.problem), *_ratio(row, old)))
        cases = list(dict.fromkeys(titled(*row.problem) for row, _ in groups[operator, name]))
        x = "new time / old time, logarithmic"
        choices.append((operator, name, _over_cases(titled(operator, name), cases, points, looks, x)))
    if choices:
        page.plot(*choices)
    else:
        page.add(paragraph("No row is in both runs."))


def _change(new: Row, old: Row) -> str:
    return "faster" if new.p90 < old.p10 else "slower" if new.p10 > old.p90 else "same"


def _ratio(above: Row, below: Row) -> tuple[float, float, float]:
    return above.us / below.us, above.p10 / below.p90, above.p90 / below.p10


def _over_cases(
    title: str, cases: list[str], points: dict[str, list[Point]], looks: dict[str, tuple[str, str]], x: str
) -> dict[str, Any]:
    """Markers at cases, which stand one under the other, with a line at 1. `looks`: colour and symbol of each name."""
    traces = [
        _trace(
            name,
            {"color": color, "symbol": symbol, "size": 9},
            points[name],
            type="scatter",
            mode="markers",
            hovertemplate="%{y}: %{x:.3f}<extra>" + name + "</extra>",
        )
        for name, (color, symbol) in looks.items()
        if name in points
    ]
    every = [point for some in points.values() for point in some]
    line = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": "#222", "width": 1}}
    return figure(
        traces,
        title=title,
        height=160 + 24 * len(cases),
        xaxis=logarithmic(x, [1.0, *(end for _, _, low, high in every for end in (low, high))]),
        yaxis=categories(cases[::-1], cases[::-1]),
        shapes=[line],
    )


def logarithmic(title: str, values: Iterable[float]) -> dict[str, Any]:
    """A logarithmic axis around `values`, whose ticks Plotly finds."""
    logs = [math.log10(value) for value in values if value > 0] or [0.0]
    margin = max(0.02, 0.06 * (max(logs) - min(logs)))
    return axis(title, type="log", range=[min(logs) - margin, max(logs) + margin], tickformat=",.3~r")


def categories(values: list[str], texts: list[str]) -> dict[str, Any]:
    """An axis with each value, the first one at the bottom."""
    shown = {"categoryarray": values, "tickvals": values, "ticktext": texts}
    return axis("", type="category", categoryorder="array", range=[-0.7, len(values) - 0.3], **shown)


def _trace(name: str, marker: dict[str, Any], points: Iterable[Point], **more: Any) -> dict[str, Any]:
    """Values with bars to their least and their greatest."""
    labels, values, least, greatest = zip(*points)
    return {
        "name": name,
        "marker": marker,
        "x": list(values),
        "y": list(labels),
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [max(0, high - value) for value, high in zip(values, greatest)],
            "arrayminus": [max(0, value - low) for value, low in zip(values, least)],
            "thickness": 1,
            "width": 3,
            **({"color": "#222"} if more["type"] == "bar" else {}),
        },
        **more,
    }


def time_text(us: float) -> str:
    for limit, scale, unit in ((1e3, 1, "us"), (1e6, 1e-3, "ms"), (math.inf, 1e-6, "s")):
        if float(f"{us:.3g}") < limit:
            break
    scaled = float(f"{us:.3g}") * scale
    return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {unit}"
