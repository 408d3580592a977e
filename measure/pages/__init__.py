"""Pages with plots, each one file that needs no network: `tmaops report`, `tmaops resample --plot`, `tmaops dataset inspect --html`."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any


def table(heads: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table; numbers stand at the right. Without heads it has no first line."""
    rows = [list(row) for row in rows]
    numbers = [bool(rows) and all(isinstance(row[k], (int, float)) for row in rows) for k in range(len(heads))]
    kind = [' class="number"' if number else "" for number in numbers]
    text = "".join(f"<th{k}>{html.escape(head)}</th>" for head, k in zip(heads, kind)) if any(heads) else ""
    for row in rows:
        cells = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        text += "<tr>" + "".join(f"<td{k}>{html.escape(cell)}</td>" for cell, k in zip(cells, kind))
    return f"<table>{text}</table>"


def paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"
