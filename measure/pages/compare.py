"""Two runs: what became faster, what slower."""

from __future__ import annotations

from tmaops._page import COLORS, SYMBOLS, Page, logarithmic, paragraph, table
from tmaops.pages.ratios import over_cases, ratio_trace
from tmaops.pages.results import Row, grouped, titled

_CHANGES = {"faster": COLORS[2], "same": COLORS[7], "slower": COLORS[1]}


def change(new: Row, old: Row) -> str:
    """Faster or slower where the spreads from the 10th to the 90th percentile do not overlap, as `tmaops bench --compare` says it."""
    return "faster" if new.p90 < old.p10 else "slower" if new.p10 > old.p90 else "same"


def compare(page: Page, rows: list[Row], old_rows: list[Row]) -> None:
    page.section("Against the earlier run")
    before = {row.key: row for row in old_rows}
    pairs = [(row, before[row.key]) for row in rows if row.key in before]
    devices = [sorted({row.run.device_name(row) for row in side}) for side in (rows, old_rows)]
    if devices[0] != devices[1]:
        page.add(paragraph(f"The machines differ: {'; '.join(devices[0])} now, {'; '.join(devices[1])} before."))
    page.add(
        paragraph(
            "The new time over the old one: left of the line at 1 the new run is faster. A row is faster or slower where the spreads from the 10th to the 90th percentile do not overlap."
        )
    )
    counts = []
    new_keys = {row.key for row in rows}
    for operator in dict.fromkeys(row.operator for row in rows + old_rows):
        mine = [change(row, old) for row, old in pairs if row.operator == operator]
        added = sum(row.operator == operator and row.key not in before for row in rows)
        missing = sum(row.operator == operator and row.key not in new_keys for row in old_rows)
        counts.append([operator, *(mine.count(name) for name in _CHANGES), added, missing])
    page.add(table(["operator", *_CHANGES, "new rows", "missing rows"], counts))
    groups = grouped(pairs, lambda pair: (pair[0].operator, pair[0].implementation))
    first = sorted(
        groups,
        key=lambda name: (list(dict.fromkeys(n for n, _ in groups)).index(name[0]), name[1] != "tmaops", name[1]),
    )
    choices = []
    for operator, implementation in first:
        cases, points, across = [], {}, [1.0]
        for row, old in groups[operator, implementation]:
            cases.append(titled(*row.problem))
            spread = row.us / old.us, row.p10 / old.p90, row.p90 / old.p10
            points.setdefault(change(row, old), []).append((cases[-1], *spread))
            across += spread
        traces = [
            ratio_trace(name, color, SYMBOLS[index], points[name])
            for index, (name, color) in enumerate(_CHANGES.items())
            if name in points
        ]
        choices.append(
            (
                operator,
                implementation,
                over_cases(
                    titled(operator, implementation),
                    list(dict.fromkeys(cases)),
                    traces,
                    logarithmic("new time / old time, logarithmic", across),
                ),
            )
        )
    if choices:
        page.plot(*choices)
    else:
        page.add(paragraph("No row is in both runs."))
