"""One HTML file with plots in it. Plotly draws them; its JavaScript is in the file.

A plot is what Plotly calls a figure: {"data": [traces], "layout": {...}}. Plots of one kind, as of each case of an operator,
share one place in the page and a list to choose from.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import pathlib
from typing import Any

from tmaops import _errors

# Okabe and Ito's colours, which readers with any colour vision tell apart. The yellow is too pale for a line.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F7F7F")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "triangle-down")

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1.5em; color: #222; background: #fff }
h1 { font-size: 1.6em } h2 { font-size: 1.3em; margin-top: 2em; border-bottom: 1px solid #ccc } h3 { font-size: 1.1em; margin-top: 1.6em }
nav { margin-bottom: 1em } nav a { margin-right: 1em } p { max-width: 60em } pre { overflow-x: auto }
table { border-collapse: collapse; font-size: 0.9em; margin-bottom: 1em } td, th { padding: 0.2em 0.9em 0.2em 0; text-align: left; vertical-align: top }
th { border-bottom: 1px solid #999 } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.faint { color: #666 } select { font: inherit; max-width: 100% }
"""

_SCRIPT = """
for (const place of document.querySelectorAll("div.plot")) {
  const plots = JSON.parse(document.getElementById(place.id + "-data").textContent);
  const draw = (index) => Plotly.react(place, plots[index].data, plots[index].layout, {responsive: true, displaylogo: false});
  const choice = document.getElementById(place.id + "-choice");
  if (choice) choice.addEventListener("change", () => draw(choice.value));
  draw(choice ? choice.value : 0);
}
"""


_AXIS = {"automargin": True, "gridcolor": "#e4e4e4", "zeroline": False, "linecolor": "#888", "showline": True}


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with a title."""
    return {"title": {"text": title}, **_AXIS, **more}


def figure(data: list[dict[str, Any]], *, title: str = "", height: int = 400, **layout: Any) -> dict[str, Any]:
    """A plot with the pages' own look; the legend is above it."""
    return {
        "data": data,
        "layout": {
            "title": {"text": title, "font": {"size": 15}, "x": 0, "xref": "container", "pad": {"l": 10}},
            "height": height,
            "showlegend": True,
            "margin": {"l": 70, "r": 30, "t": 90 if title else 60, "b": 60},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.01, "xanchor": "left", "x": 0},
            "plot_bgcolor": "#fff",
            "paper_bgcolor": "#fff",
            "font": {"size": 12, "color": "#222"},
            "hoverlabel": {"align": "left"},
            **layout,
        },
    }


class Page:
    """A page that is put together from the top to the bottom."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.plots = 0
        self._parts: list[str] = []
        self._sections: list[tuple[str, str]] = []

    def add(self, part: str) -> None:
        """HTML: a paragraph, a table."""
        self._parts.append(part)

    def section(self, title: str) -> None:
        """A heading that the list at the top has a link to."""
        self._sections.append((f"section-{len(self._sections)}", title))
        self.add(f"<h2 id='{self._sections[-1][0]}'>{html.escape(title)}</h2>")

    def heading(self, title: str) -> None:
        self.add(f"<h3>{html.escape(title)}</h3>")

    def plot(self, *choices: tuple[str, str, dict[str, Any]]) -> None:
        """One place with a plot. Each choice is (group, label, figure); the first one is shown."""
        name = f"plot-{self.plots}"
        self.plots += 1
        if len(choices) > 1:
            options, group = "", None
            for index, (of, label, _) in enumerate(choices):
                if of != group:
                    options += "</optgroup>" if group else ""
                    options += f"<optgroup label='{html.escape(of)}'>" if of else ""
                    group = of
                options += f"<option value='{index}'>{html.escape(label)}</option>"
            self.add(f"<select id='{name}-choice' aria-label='plot'>{options}{'</optgroup>' if group else ''}</select>")
        data = json.dumps([figure for _, _, figure in choices], allow_nan=False, separators=(",", ":")).replace(
            "<", "\\u003c"
        )
        self.add(
            f"<div class='plot' id='{name}'></div><script type='application/json' id='{name}-data'>{data}</script>"
        )

    def text(self) -> str:
        """The file."""
        from plotly.offline import get_plotlyjs

        title = html.escape(self.title)
        links = "".join(f"<a href='#{name}'>{html.escape(text)}</a> " for name, text in self._sections)
        return (
            f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{title}</title>\n<style>{_STYLE}</style>\n"
            f"<script>{get_plotlyjs()}</script></head>\n<body><h1>{title}</h1>\n<nav>{links}</nav>\n"
            + "\n".join(self._parts)
            + f"\n<script>{_SCRIPT}</script></body></html>\n"
        )


def check_page(path: pathlib.Path, option: str, force: bool = False) -> None:
    """Refuses, before any work, what write_page could not do."""
    try:
        import plotly.offline  # noqa: F401
    except ImportError:
        raise _errors.invalid_value(option, "no package plotly, which draws", "pip install plotly") from None
    if path.exists() and not force:
        raise _errors.invalid_value(option, f"{path}, which exists", "a new path for the page")


def write_page(page: Page, path: pathlib.Path) -> None:
    """Writes the page whole or not at all."""
    trial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        trial.write_text(page.text(), encoding="utf-8")
        os.replace(trial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            trial.unlink()
