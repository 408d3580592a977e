"""Looks at pages of tmaops.pages: what is in the file, and what a browser makes of it."""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
import tmaops

TOOL = pathlib.Path(tmaops.__file__).parent / "bin" / "tmaops"

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium to open the page in")


def run(*arguments, code=0, command=(sys.executable, "-m", "tmaops"), without=None):
    """The command, which must end with `code`; `without` names a package that it does not find."""
    with tempfile.TemporaryDirectory() as folder:
        if without:
            (pathlib.Path(folder) / f"{without}.py").write_text("raise ImportError")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done


class Contents(html.parser.HTMLParser):
    """The page's plots, as lists of figures, its text, and what it would load from elsewhere."""

    def __init__(self, path):
        super().__init__()
        self.plots, self.words, self.loads, self.options = [], [], [], []
        self.inside = None
        self.feed(path.read_text(encoding="utf-8"))
        self.text = " ".join(self.words)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.inside = (tag, found.get("type"))
        self.loads += [
            found[name] for name in ("src", "data", "href") if name in found and not found[name].startswith("#")
        ]

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == ("script", "application/json"):
            self.plots.append(json.loads(data))
        elif self.inside and self.inside[0] == "option":
            self.options.append(data)
        elif self.inside is None or self.inside[0] not in ("script", "style"):
            self.words.append(data)

    def shown_traces(self):
        return sum(trace.get("visible") != "legendonly" for figures in self.plots for trace in figures[0]["data"])


def check(path):
    """The contents of a page that loads nothing from elsewhere, and whose figures Plotly knows."""
    from plotly.graph_objects import Figure

    contents = Contents(path)
    assert contents.loads == []
    assert contents.plots
    for figures in contents.plots:
        for figure in figures:
            Figure(figure)  # refuses names and values that Plotly does not know
    return contents


def open_page(path):
    """What stands in the page when its scripts have run; no script may report an error. The browser has no network."""
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ]
    done = subprocess.run(
        [*command, "--virtual-time-budget=10000", "--dump-dom", f"file://{path}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = re.findall(r"CONSOLE.*", done.stderr)
    assert not said, said
    return done.stdout


def check_drawn(path):
    """Opens the page: every plot has its axes, and every trace its marks."""
    contents, document = check(path), open_page(path)
    assert len(re.findall(r'<div class="plot js-plotly-plot"', document)) == len(contents.plots)
    assert document.count('class="main-svg"') >= len(contents.plots)
    assert len(re.findall(r'<g class="trace (?:scatter|bars)', document)) == contents.shown_traces()
    return document
