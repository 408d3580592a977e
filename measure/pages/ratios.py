"""How many times as long as tmaops its peers take."""

from __future__ import annotations

from typing import Any

from tmaops._page import COLORS, SYMBOLS, Page, categories, figure, logarithmic, paragraph
from tmaops.pages.results import Row, grouped, titled

Point = tuple[str, float, float, float]  # case, ratio, its least and its greatest


def ratios(page: Page, rows: list[Row]) -> None:
    """How many times as long as the chosen variant a peer takes."""
    choices = []
    for (run, temperature), group in grouped(rows, lambda row: (row.run.name, row.temperature)).items():
        points: dict[str, list[Point]] = {}
        cases: list[str] = []
        types = len({row.dtype for row in group}) > 1
        for (case, dtype, _), same in grouped(group, lambda row: row.problem).items():
            ours = next((row for row in same if row.implementation == "tmaops"), None)
            peers = [row for row in same if row.kind == "peer"]
            if ours is None or not peers:
                continue
            cases.append(f"{case}, {dtype}" if types else case)
            for peer in peers:
                points.setdefault(peer.implementation, []).append(
                    (cases[-1], peer.us / ours.us, peer.p10 / ours.p90, peer.p90 / ours.p10)
                )
        if cases:
            choices.append((run, temperature or "", _ratio_plot(titled(run, temperature), cases, points)))
    if choices:
        page.heading("Ratio to peers")
        page.add(
            paragraph(
                "The peer's time over the time of tmaops: right of the line at 1 tmaops is faster. Bars reach from the peer's 10th percentile over our 90th to the reverse."
            )
        )
        page.plot(*choices)


def _ratio_plot(title: str, cases: list[str], points: dict[str, list[Point]]) -> dict[str, Any]:
    traces, across = [], [1.0]
    for index, (peer, values) in enumerate(points.items()):
        traces.append(ratio_trace(peer, COLORS[1:][index % 7], SYMBOLS[index % 8], values))
        across += [value for _, _, low, high in values for value in (low, high)]
    return over_cases(title, cases, traces, logarithmic("times as long as tmaops, logarithmic", across))


def ratio_trace(name: str, color: str, symbol: str, values: list[Point]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "marker": {"color": color, "symbol": symbol, "size": 9},
        "x": [ratio for _, ratio, _, _ in values],
        "y": [case for case, _, _, _ in values],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [max(0, high - ratio) for _, ratio, _, high in values],
            "arrayminus": [max(0, ratio - low) for _, ratio, low, _ in values],
            "thickness": 1,
            "width": 3,
        },
        "hovertemplate": "%{y}: %{x:.3f}<extra>" + name + "</extra>",
    }


def over_cases(title: str, cases: list[str], traces: list[dict[str, Any]], x: dict[str, Any]) -> dict[str, Any]:
    """Markers at cases, which stand one under the other, with a line at 1."""
    line = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": "#222", "width": 1}}
    return figure(
        traces,
        title=title,
        height=160 + 24 * len(cases),
        xaxis=x,
        yaxis=categories(cases[::-1], cases[::-1]),
        shapes=[line],
    )
