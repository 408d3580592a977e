"""What a data set's clocks and numbers look like: rates, jitter, gaps, drops, sign flips, values that are not finite."""

import html
import math
import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from tmaops._page import COLORS, SYMBOLS, Page, axis, figure
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Stream, format_of
from tmaops.dataset.options import options_of
from tmaops.dataset.places import place

#: What the page plots of each stream, by episode.
PLOTS = dict(hz="rate, Hz", jitter="jitter, share of a step", longest_gap="longest gap, s", drops="missing samples")


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
    regular, missing = rising[rising < 1.5 * median], np.rint(rising / median) - 1
    drift = None
    if stream.recorded is not None and times.size > 2 and times[-1] > times[0]:
        late = (stream.recorded - times).astype(np.float64)
        drift = float(np.polyfit((times - times[0]).astype(np.float64), late - late[0], 1)[0] * 1e6)
    flips, broken = {}, {}
    for column, values in stream.columns.items():
        broken[column] = int((~np.isfinite(values)).any(axis=1).sum())
        quaternions = [values[:, k : k + 4] for k in stream.quaternions.get(column, ())]
        flips[column] = sum(int(((own[1:] * own[:-1]).sum(1) < 0).sum()) for own in quaternions)
    return Clock(
        stream.episode,
        stream.name,
        samples=int(times.size),
        seconds=float(times[-1] - times[0]) / 1e9 if times.size else 0.0,
        hz=1 / median if rising.size else 0.0,
        jitter=float(regular.std() / median) if regular.size else 0.0,
        longest_gap=float(rising.max(initial=0.0)),
        drops=int(missing[missing > 0].sum()),
        backwards=int((steps <= 0).sum()),
        offset=float(times[0] - episode_begin) / 1e9 if times.size else 0.0,
        drift_ppm=drift,
        not_finite={name: count for name, count in broken.items() if count},
        sign_flips={name: count for name, count in flips.items() if count},
        type=stream.type,
        left_out=stream.left_out,
    )


@dataclass
class Inspection:
    """Everything that was found: a row per stream and episode, sums over all, and what could not be read."""

    clocks: list[Clock]
    unreadable: dict[str, str]

    def streams(self) -> dict[str, list[Clock]]:
        """The findings by the names of streams."""
        found: dict[str, list[Clock]] = {}
        for clock in self.clocks:
            found.setdefault(clock.stream, []).append(clock)
        return found

    def totals(self) -> list[dict[str, Any]]:
        """One row per stream name."""
        rows = []
        for name, mine in self.streams().items():
            rates = [c.hz for c in mine if c.hz] or [0.0]
            row = {"stream": name, "episodes": len(mine)}
            row |= {key: sum(getattr(c, key) for c in mine) for key in ("samples", "seconds", "drops", "backwards")}
            row |= {"hz_lowest": min(rates), "hz_median": float(np.median(rates)), "hz_highest": max(rates)}
            row |= {"jitter_worst": max(c.jitter for c in mine), "longest_gap": max(c.longest_gap for c in mine)}
            drifts = [abs(c.drift_ppm) for c in mine if c.drift_ppm is not None]
            row["drift_ppm_worst"] = max(drifts, default=None)
            for key in ("not_finite", "sign_flips"):
                row[key] = dict(sum((Counter(getattr(c, key)) for c in mine), Counter()))
            row["types"] = list(dict.fromkeys(c.type for c in mine if c.type))
            row["left_out"] = list(dict.fromkeys(what for c in mine for what in c.left_out))
            rows.append(row)
        return rows

    def text(self) -> str:
        """A table for a terminal."""
        titles = ("stream", "episodes", "samples", "Hz", "jitter", "gap, s", "drops", "back")
        lines = ["{:24} {:>8} {:>10} {:>22} {:>7} {:>8} {:>7} {:>5}".format(*titles)]
        for row in self.totals():
            hz = f"{row['hz_median']:.4g} ({row['hz_lowest']:.4g} to {row['hz_highest']:.4g})"
            lines.append(
                f"{row['stream'] or '(all columns)':24} {row['episodes']:8} {row['samples']:10} {hz:>22} "
                f"{100 * row['jitter_worst']:6.2f}% {row['longest_gap']:8.3g} {row['drops']:7} {row['backwards']:5}"
            )
            lines += [f"  {kind}" for kind in row["types"]]
            lines += [f"  left out: {what}" for what in row["left_out"]]
            lines += [f"  {column}: {count} samples are not finite" for column, count in row["not_finite"].items()]
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
        for key, label in PLOTS.items():
            traces = []
            for index, (name, mine) in enumerate(self.streams().items()):
                marker = {"color": COLORS[index % len(COLORS)], "symbol": SYMBOLS[index // len(COLORS) % len(SYMBOLS)]}
                trace = {"type": "scatter", "mode": "markers", "name": name or "all columns", "marker": marker}
                traces.append(trace | {"x": [c.episode for c in mine], "y": [getattr(c, key) for c in mine]})
            axes = {"xaxis": axis("episode", type="category"), "yaxis": axis(label, rangemode="tozero")}
            made.plot(("", "", figure(traces, title=label, height=340, **axes)))
        return made


def inspect(source: str | os.PathLike, **options: Any) -> Inspection:
    """Reads a data set once and measures the clocks and numbers of every stream of every episode.

    Takes the formats and options of resample(): episode_column, time_column, time_unit, input_hz, topics, times. Episodes
    that cannot be read are listed, not raised; a source that is no data set raises Refused.
    """
    source = place(source)
    asked = options_of(1, **options)
    clocks: list[Clock] = []
    unreadable: dict[str, str] = {}
    for streams in format_of(source, asked).episodes(source, asked, unreadable):
        begin = min(int(s.times[0]) for s in streams if s.times.size)
        clocks += [look(stream, begin) for stream in streams]
    if not clocks and not unreadable:
        raise Refused(str(source), "no episodes", "at least one")
    return Inspection(clocks, unreadable)
