"""What a data set's clocks and numbers look like: rates, jitter, gaps, drops, sign flips, values that are not finite."""

import html
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Stream, format_of
from tmaops.dataset.options import options_of
from tmaops.dataset.places import place
from tmaops.pages.page import COLORS, SYMBOLS, Page, axis, figure


@dataclass
class Clock:
    """The findings about one stream of one episode. Steps and gaps in seconds."""

    episode: str
    stream: str
    samples: int
    seconds: float
    hz: float  # 1 / median step
    jitter: float  # standard deviation of the steps over their median; gaps left out
    longest_gap: float
    drops: int  # samples that are missing by the median step
    backwards: int  # steps of 0 or below
    offset: float  # first sample after the first one of the episode
    drift_ppm: float | None  # of the stream's clock against the recorder's
    not_finite: dict[str, int]
    sign_flips: dict[str, int]
    type: str = ""
    left_out: list[str] = field(default_factory=list)


def look(stream: Stream, episode_begin: int) -> Clock:
    """Measures one stream."""
    times = stream.times
    steps = np.diff(times) / 1e9
    rising = steps[steps > 0]
    median = float(np.median(rising)) if rising.size else math.nan
    regular = rising[rising < 1.5 * median] if rising.size else rising
    missing = np.rint(rising / median) - 1 if rising.size else rising
    drift = None
    if stream.recorded is not None and times.size > 2 and times[-1] > times[0]:
        late = (stream.recorded - times).astype(np.float64)
        drift = float(np.polyfit((times - times[0]).astype(np.float64), late - late[0], 1)[0] * 1e6)
    flips = {}
    for column, firsts in stream.quaternions.items():
        values = stream.columns[column]
        turned = sum(int(((values[1:, k : k + 4] * values[:-1, k : k + 4]).sum(1) < 0).sum()) for k in firsts)
        if turned:
            flips[column] = turned
    broken = {name: int((~np.isfinite(values)).any(axis=1).sum()) for name, values in stream.columns.items()}
    return Clock(
        stream.episode,
        stream.name,
        int(times.size),
        float(times[-1] - times[0]) / 1e9 if times.size else 0.0,
        1 / median if rising.size else 0.0,
        float(regular.std() / median) if regular.size else 0.0,
        float(rising.max()) if rising.size else 0.0,
        int(missing[missing > 0].sum()),
        int((steps <= 0).sum()),
        float(times[0] - episode_begin) / 1e9 if times.size else 0.0,
        drift,
        {name: count for name, count in broken.items() if count},
        flips,
        stream.type,
        stream.left_out,
    )


@dataclass
class Inspection:
    """Everything that was found: a row per stream and episode, sums over all, and what could not be read."""

    clocks: list[Clock]
    unreadable: dict[str, str]

    def totals(self) -> list[dict[str, Any]]:
        """One row per stream name."""
        rows = []
        for name in dict.fromkeys(c.stream for c in self.clocks):
            mine = [c for c in self.clocks if c.stream == name]
            rates = [c.hz for c in mine if c.hz]
            rows.append(
                {
                    "stream": name,
                    "episodes": len(mine),
                    "samples": sum(c.samples for c in mine),
                    "seconds": sum(c.seconds for c in mine),
                    "hz_lowest": min(rates, default=0.0),
                    "hz_median": float(np.median(rates)) if rates else 0.0,
                    "hz_highest": max(rates, default=0.0),
                    "jitter_worst": max((c.jitter for c in mine), default=0.0),
                    "longest_gap": max((c.longest_gap for c in mine), default=0.0),
                    "drops": sum(c.drops for c in mine),
                    "backwards": sum(c.backwards for c in mine),
                    "drift_ppm_worst": max((abs(c.drift_ppm) for c in mine if c.drift_ppm is not None), default=None),
                    "not_finite": _sum(c.not_finite for c in mine),
                    "sign_flips": _sum(c.sign_flips for c in mine),
                    "types": list(dict.fromkeys(c.type for c in mine if c.type)),
                    "left_out": list(dict.fromkeys(what for c in mine for what in c.left_out)),
                }
            )
        return rows

    def text(self) -> str:
        """A table for a terminal."""
        lines = [
            f"{'stream':24} {'episodes':>8} {'samples':>10} {'Hz':>22} {'jitter':>7} {'gap, s':>8} {'drops':>7} {'back':>5}"
        ]
        for row in self.totals():
            hz = f"{row['hz_median']:.4g} ({row['hz_lowest']:.4g} to {row['hz_highest']:.4g})"
            lines.append(
                f"{row['stream'] or '(all columns)':24} {row['episodes']:8} {row['samples']:10} {hz:>22} "
                f"{100 * row['jitter_worst']:6.2f}% {row['longest_gap']:8.3g} {row['drops']:7} {row['backwards']:5}"
            )
            lines += [f"  {kind}" for kind in row["types"]]
            lines += [f"  left out: {what}" for what in row["left_out"]]
            for column, count in row["not_finite"].items():
                lines.append(f"  {column}: {count} samples are not finite")
            for column, count in row["sign_flips"].items():
                lines.append(f"  {column}: the quaternion's sign flips {count} times (slerp takes the shortest arc)")
            if row["drift_ppm_worst"] is not None:
                lines.append(f"  its clock drifts by at most {row['drift_ppm_worst']:.3g} ppm against the recorder's")
        lines += [f"unreadable: {name}: {why}" for name, why in self.unreadable.items()]
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        return {"streams": self.totals(), "episodes": [asdict(c) for c in self.clocks], "unreadable": self.unreadable}

    def page(self, title: str) -> Page:
        """The table and plots over the episodes, for write_page of tmaops.pages."""
        made = Page(title)
        made.add(f"<pre id='summary'>{html.escape(self.text())}</pre>")
        plots = (
            ("hz", "rate, Hz"),
            ("jitter", "jitter, share of a step"),
            ("longest_gap", "longest gap, s"),
            ("drops", "missing samples"),
        )
        for key, label in plots:
            traces = []
            for index, name in enumerate(dict.fromkeys(c.stream for c in self.clocks)):
                mine = [c for c in self.clocks if c.stream == name]
                marker = {"color": COLORS[index % len(COLORS)], "symbol": SYMBOLS[index // len(COLORS) % len(SYMBOLS)]}
                traces.append(
                    {
                        "type": "scatter",
                        "mode": "markers",
                        "name": name or "all columns",
                        "marker": marker,
                        "x": [c.episode for c in mine],
                        "y": [getattr(c, key) for c in mine],
                    }
                )
            made.plot(
                (
                    "",
                    "",
                    figure(
                        traces,
                        title=label,
                        height=340,
                        xaxis=axis("episode", type="category"),
                        yaxis=axis(label, rangemode="tozero"),
                    ),
                )
            )
        return made


def _sum(counts: Iterator[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total


def inspect(source: str | os.PathLike, **options: Any) -> Inspection:
    """Reads a data set once and measures the clocks and numbers of every stream of every episode.

    Takes the formats and options of resample(): episode_column, time_column, time_unit, input_hz, topics, times. Episodes
    that cannot be read are listed, not raised; a source that is no data set raises Refused.
    """
    source = place(source)
    asked = options_of(1, **options)
    clocks: list[Clock] = []
    unreadable: dict[str, str] = {}
    for streams in format_of(source).episodes(source, asked, unreadable):
        begin = min(int(s.times[0]) for s in streams if s.times.size)
        clocks += [look(stream, begin) for stream in streams]
    if not clocks and not unreadable:
        raise Refused(str(source), "no episodes", "at least one")
    return Inspection(clocks, unreadable)
