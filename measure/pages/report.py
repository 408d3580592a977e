"""The command `tmaops report`: what result files say, as a page with plots."""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterable

from tmaops import _errors
from tmaops._page import Page, check_page, write_page
from tmaops.pages import paragraph, table
from tmaops.pages.plots import changes, ratios, times
from tmaops.pages.results import Row, Run, read


def main(arguments: list[str]) -> int:
    """Runs `tmaops report ARGUMENTS`."""
    parser = argparse.ArgumentParser(
        prog="tmaops report",
        description="Draws result files of tmaops bench as one page: times, ratios to peers, changes.",
    )
    parser.add_argument(
        "results", nargs="+", type=pathlib.Path, metavar="RESULT.json", help="result files of tmaops bench"
    )
    parser.add_argument(
        "-o", "--output", required=True, type=pathlib.Path, metavar="PAGE.html", help="the page; it needs no network"
    )
    parser.add_argument(
        "--compare",
        action="append",
        default=[],
        type=pathlib.Path,
        metavar="OLD.json",
        help="an earlier run, whose rows the same rows are compared with; may be given several times",
    )
    parser.add_argument("--title", default="tmaops report")
    parser.add_argument("-f", "--force", action="store_true", help="replace the page when it exists")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but failures")
    options = parser.parse_args(arguments)
    check_page(options.output, "--output", options.force)
    page = report(options.results, compare=options.compare, title=options.title)
    write_page(page, options.output)
    if not options.quiet:
        print(f"{options.output}: {page.plots} plots of {len(options.results)} files", file=sys.stderr)
    return 0


def report(
    results: Iterable[pathlib.Path], *, compare: Iterable[pathlib.Path] = (), title: str = "tmaops report"
) -> Page:
    """The page of result files. Raises tmaops.InvalidValue when none of them has rows, OSError."""
    page = Page(title)
    runs = _read_all(page, results)
    old = _read_all(page, compare)
    page.add(_files(runs))
    if old:
        changes(page, [row for run in runs for row in run.rows], [row for run in old for row in run.rows])
    devices: dict[str, dict[str, list[Row]]] = {}
    for run in runs:
        for row in run.rows:
            devices.setdefault(run.device_name(row), {}).setdefault(row.operator, []).append(row)
    for device, operators in devices.items():
        for operator, rows in operators.items():
            page.section(f"{operator}, {device}" if len(devices) > 1 else operator)
            times(page, rows)
            ratios(page, rows)
    return page


def _read_all(page: Page, paths: Iterable[pathlib.Path]) -> list[Run]:
    runs, others = [], []
    for path in paths:
        run = read(path)
        runs.append(run) if run else others.append(str(path))
    for run in runs:
        if [other.path.stem for other in runs].count(run.path.stem) > 1:
            run.name = str(run.path)
    if others:
        text = f"Left out, since they have no timed rows: {', '.join(others)}."
        page.add(paragraph(text))
        print(text, file=sys.stderr)
    if others and not runs:
        raise _errors.invalid_value(others[0], "no timed rows", "a result file of tmaops bench")
    return runs


def _files(runs: list[Run]) -> str:
    rows = []
    for run in runs:
        document, devices = run.document, sorted({run.device_name(row) for row in run.rows})
        state = "" if document.get("status", "complete") == "complete" else "interrupted: not all cases"
        left = [f"{len(document[name])} {name}" for name in ("failed", "refused") if document.get(name)]
        note = "; ".join(filter(None, [state, *left]))
        rows.append([str(run.path), "; ".join(devices), document.get("revision", ""), len(run.rows), note])
    return table(["file", "device", "revision", "rows", "note"], rows)
