"""The page of `tmaops resample --plot`: a recording before and after, with its gaps."""

from __future__ import annotations

import argparse
import json
import pathlib
import signal
import subprocess
import tempfile
from typing import Any

from tmaops import _errors
from tmaops._page import COLORS, Page, axis, check_page, figure, write_page
from tmaops._program import program
from tmaops.pages import paragraph, table

_MOST_POINTS = 20_000  # of a line
_MOST_MARKERS = 1_000  # of a line that shows its points
_MOST_CHANNELS = 8  # of a column, as many as there are colours
_MOST_EPISODES = 50
_SHAPES = {"previous": "hv", "next": "vh", "nearest": "hvh"}
_LONG_STEP = 20  # median steps: marked where there is no --max-gap, as the tool's summary remarks on them

_TITLE = {"xref": "paper", "yref": "paper", "x": 0, "xanchor": "left", "yanchor": "bottom", "showarrow": False}
_LEGEND = {"x": 1.01, "xanchor": "left", "yanchor": "top", "font": {"size": 11}, "tracegroupgap": 0}
_GAP = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "fillcolor": COLORS[5], "opacity": 0.25, "layer": "below"}


def main(arguments: list[str]) -> int:
    """Runs `tmaops resample ARGUMENTS` with --plot among them: the program resamples, this draws."""
    path, rest = _without_plot(arguments)
    if {"-h", "--help"} & set(rest):
        return subprocess.call([program(), "resample", *rest])
    check_page(path, "--plot", bool({"-f", "--force"} & set(rest)))
    try:
        import numpy  # noqa: F401
    except ImportError:
        lacks = "no package numpy, which reads what is drawn"
        raise _errors.invalid_value("--plot", lacks, "pip install numpy") from None
    with tempfile.TemporaryDirectory(prefix="tmaops-plot-") as folder:
        code = _run([program(), "resample", *rest, "--plot-data", folder])
        if code == 0:
            write_page(page(pathlib.Path(folder)), path)
    return code


def _without_plot(arguments: list[str]) -> tuple[pathlib.Path, list[str]]:
    """The page that --plot names, and the other arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--plot", action="append", nargs="?", const="", default=[])
    found, rest = parser.parse_known_args(arguments)
    if len(found.plot) != 1 or not found.plot[0]:
        raise _errors.invalid_value("--plot", f"{len([*filter(None, found.plot)])} pages", "one page: --plot PAGE.html")
    return pathlib.Path(found.plot[0]), rest


def _run(command: list[str]) -> int:
    """The program's exit code. It ends by itself when it is interrupted, and then leaves nothing behind."""
    process = subprocess.Popen(command)
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the terminal has sent it to the program, too
                continue
    finally:
        signal.signal(signal.SIGTERM, before)


def page(folder: pathlib.Path) -> Page:
    """The page of what `tmaops resample --plot-data FOLDER` wrote."""
    said = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    made = Page(f"{said['input']} to {said['output']}")
    time, gaps = said["time"], said["gaps"]
    limit = gaps["max_gap_ns"] or _LONG_STEP * max(time["median_step_ns"], 1)
    median = f"{1e9 / time['median_step_ns']:.4g} Hz" if time["median_step_ns"] else "-"
    in_gaps = f"{gaps['targets']:,}, with samples further apart than {limit / 1e9:.4g} s"
    rows = [
        ["samples", f"{said['samples']:,}, {median} median"],
        ["rows written", f"{said['rows']:,} of {said['targets']:,} targets"],
        ["times", f"'{time['name']}' in {time['unit']}"],
        ["longest step", f"{said['longest_step_ns'] / 1e9:.4g} s"],
        ["targets in gaps", in_gaps if gaps["max_gap_ns"] else "all are interpolated: no --max-gap was given"],
        ["targets outside", f"{said['outside']['targets']:,} ({said['outside']['policy']})"],
        *(["note", note["text"]] for note in said["notes"]),
        *(["warning", warning["text"]] for warning in said["warnings"]),
    ]
    made.add(table(["", ""], rows))
    before, after = _load(folder / "before.npz", valid=False), _load(folder / "after.npz", valid=True)
    mark = "no data between them (--max-gap)" if gaps["max_gap_ns"] else f"{_LONG_STEP} times the median step"
    shaded = f"Shaded: neighbouring samples further apart than {limit / 1e9:.4g} s, {mark}."
    made.add(paragraph(f"Pale: the samples. Thin lines: the targets. {shaded} Lines break where a target has no data."))
    drawn, others = _panels(before, said)
    if others:
        made.add(paragraph(f"Not drawn: {', '.join(others)}."))
    if not drawn:
        return made
    episodes = len(before["offsets"]) - 1
    if episodes > _MOST_EPISODES:
        made.add(paragraph(f"The first {_MOST_EPISODES} of {episodes:,} episodes."))
    shown = range(min(episodes, _MOST_EPISODES))
    made.plot(*(("", f"episode {e}", _figure(e, before, after, drawn, limit)) for e in shown))
    return made


def _load(path: pathlib.Path, valid: bool) -> dict[str, Any]:
    """The arrays by their place: the times, the columns, the offsets, and then whether a target is valid."""
    import numpy

    with numpy.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
        arrays = [archive[name] for name in names]
    for k, name in enumerate(names):
        if name.endswith(".bf16") and arrays[k].dtype == "u2":  # as the tool stores bfloat16
            arrays[k] = (arrays[k].astype("u4") << 16).view("f4")
    end = len(arrays) - (2 if valid else 1)
    return {
        "times": arrays[0],
        "columns": dict(zip(names[1:end], arrays[1:end])),
        "offsets": arrays[end],
        "valid": arrays[-1] if valid else numpy.ones(len(arrays[0]), bool),
    }


def _panels(
    before: dict[str, Any], said: dict[str, Any]
) -> tuple[list[tuple[str, str, list[tuple[str, int, str]]]], list[str]]:
    """[(title, mode, [(column, channel, label)])], one panel for each column and each quaternion of several columns; what is left out."""
    modes = {column["name"]: column["mode"] for column in said["columns"]}
    columns, others = before["columns"], []
    together = {
        names[0]: names
        for names in (q["columns"].split(" ") for q in said["quaternions"])
        if len(names) == 4 and all(name in columns for name in names)
    }
    inside = {name for names in together.values() for name in names}
    panels: list[tuple[str, str, list[tuple[str, int, str]]]] = []
    for name, values in columns.items():
        mode = modes.get(name, "")
        if name in together:
            panels.append((f"{' '.join(together[name])} ({mode})", mode, [(part, 0, part) for part in together[name]]))
        elif name in inside:
            continue
        elif values.dtype.kind not in "biuf" or values.ndim > 2:
            kind = "text" if values.dtype.kind in "US" else "x".join(map(str, values.shape[1:])) or values.dtype
            others.append(f"{name} ({kind})")
        else:
            width = 1 if values.ndim == 1 else values.shape[1]
            shown = min(width, _MOST_CHANNELS)
            if shown < width:
                others.append(f"{width - shown} of {width} channels of {name}")
            labels = [name] if values.ndim == 1 else [f"{name}[{k}]" for k in range(shown)]
            title = f"{name} ({mode})" if mode else name
            panels.append((title, mode, [(name, k, label) for k, label in enumerate(labels)]))
    return panels, others


def _figure(
    episode: int, before: dict[str, Any], after: dict[str, Any], panels: list[Any], limit: int
) -> dict[str, Any]:
    """Panels one under the other over one axis of seconds since the episode's first sample."""
    import numpy

    first, end = (int(edge) for edge in before["offsets"][episode : episode + 2])
    samples = before["times"][first:end]
    zero = samples[0] if len(samples) else 0
    steps = numpy.diff(samples)
    wide = numpy.flatnonzero(steps > limit)
    a, b = (int(edge) for edge in after["offsets"][episode : episode + 2])
    height, gap = 190, 45
    total = len(panels) * (height + gap) - gap
    layout: dict[str, Any] = {"shapes": [], "annotations": []}
    traces = []
    for index, (title, mode, channels) in enumerate(panels):
        suffix = "" if index == 0 else str(index + 1)
        top = 1 - index * (height + gap) / total
        layout["yaxis" + suffix] = axis("", domain=[max(0.0, top - height / total), top], anchor="x")
        layout["annotations"].append(_TITLE | {"text": title, "y": top, "font": {"size": 13}})
        layout["legend" + suffix] = _LEGEND | {"y": top}
        for place, (column, channel, label) in enumerate(channels):
            old, new = (
                side["columns"][column][x:y].reshape(y - x, -1)[:, channel]
                for side, x, y in ((before, first, end), (after, a, b))
            )
            color = COLORS[place % len(COLORS)]
            old_line = _line(samples - zero, old, numpy.ones(len(old), bool), wide)
            new_line = _line(after["times"][a:b] - zero, new, after["valid"][a:b], [])
            shared = {"type": "scatter", "yaxis": "y" + suffix, "legend": "legend" + suffix, "legendgroup": label}
            pale = {"opacity": 0.35, "marker": {"color": color, "size": 8}, "line": {"color": color, "width": 5}}
            pale |= {"name": f"{label}, before", "showlegend": False}
            pale["mode"] = "markers" if len(old) <= _MOST_MARKERS else "lines"
            thin = {"name": label, "showlegend": len(channels) > 1, "marker": {"color": color, "size": 4}}
            thin["mode"] = "lines+markers" if len(new) <= _MOST_MARKERS else "lines"
            thin["line"] = {"color": color, "width": 1.3, "shape": _SHAPES.get(mode, "linear")}
            traces += [shared | old_line | pale, shared | new_line | thin]
    for at in wide.tolist():
        x0, x1 = (float(samples[row] - zero) / 1e9 for row in (at, at + 1))
        layout["shapes"].append(_GAP | {"x0": x0, "x1": x1, "line": {"width": 0}})
    layout["xaxis"] = axis("seconds since the first sample", anchor=f"y{len(panels) if len(panels) > 1 else ''}")
    return figure(traces, height=total + 110, margin={"l": 70, "r": 30, "t": 40, "b": 60}, **layout)


def _line(times: Any, values: Any, valid: Any, breaks: Any) -> dict[str, list[Any]]:
    """Seconds and values of a line. It breaks behind the rows in `breaks` and where a row is not valid. Of many points it
    keeps the least and the greatest of each stretch."""
    import numpy

    values = numpy.where(valid, values.astype("f8"), numpy.nan)
    behind = numpy.asarray(breaks, int) + 1
    times, values = numpy.insert(times, behind, times[behind - 1]), numpy.insert(values, behind, numpy.nan)
    if len(values) > _MOST_POINTS:
        stretch = -(-len(values) // (_MOST_POINTS // 2))
        broken = numpy.isnan(values)
        kept = set(numpy.flatnonzero(broken[1:] & ~broken[:-1]) + 1)
        for find, filler in ((numpy.argmin, numpy.inf), (numpy.argmax, -numpy.inf)):
            filled = numpy.where(broken, filler, values)
            kept |= {edge + int(find(filled[edge : edge + stretch])) for edge in range(0, len(values), stretch)}
        index = numpy.array(sorted(kept))
        times, values = times[index], values[index]
    return {
        "x": [float(f"{second:.9g}") for second in times / 1e9],
        "y": [float(f"{value:.7g}") if numpy.isfinite(value) else None for value in values],
    }
