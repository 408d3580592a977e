"""Resampling on a Ray cluster: whole data sets by file, or a Ray Dataset by episode.

tmaops.ray.resample_files("droid", "droid_30hz", hz=30)      # same bytes as on one machine
ds = tmaops.ray.resample(ray.data.read_parquet("t.parquet"), hz=30, episode_column="episode")
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Plan, Unit
from tmaops.dataset.job import Report, begin_worker, run_unit
from tmaops.dataset.job import resample as resample_here
from tmaops.dataset.options import Options, options_of
from tmaops.dataset.parquet import Layout, Resampler, decide_of_table
from tmaops.dataset.places import is_local, place
from tmaops.dataset.rules import Rules, jumps
from tmaops.dataset.tables import FIRST_ROWS, Runs, known_of, runs_of
from tmaops.dataset.workers import tried

import ray


def _unit_on_cluster(source: Path, options: Options, unit: Unit, out: Path) -> dict[str, Any] | Refused:
    """One unit on any node. Written whole under its own name, so that a retry after a lost node does no harm."""
    begin_worker()
    return tried(lambda own: run_unit(source, options, out, own), unit)


def run_on_cluster(
    source: Path, options: Options, units: list[Unit], out: Path
) -> Iterator[tuple[Unit, dict[str, Any] | Refused]]:
    """The runner of a cluster whose nodes all see input and output."""
    task = ray.remote(max_retries=-1)(_unit_on_cluster)
    waiting = {task.remote(source, options, unit, out): unit for unit in units}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        for reference in ready:
            yield waiting.pop(reference), ray.get(reference)


def resample_files(source: str | os.PathLike, out: str | os.PathLike, **options: Any) -> Report:
    """tmaops.dataset.resample() with the units on the nodes of the cluster that `ray.init` connected to.

    The output is the same, byte for byte. A node that is lost costs the units that it had. Takes the options of
    tmaops.dataset.resample() but `workers` and `shard`.
    """
    places = [where.resolve() if is_local(where) else where for where in (place(source), place(out))]
    return resample_here(*places, runner=run_on_cluster, **options)


class _Episodes:
    """One episode at a time; an actor, which makes its resampler once."""

    def __init__(self, options: Options, layout: Layout, rules: Rules):
        begin_worker()
        self._resampler = Resampler(layout, options, rules)

    def __call__(self, table: pa.Table) -> pa.Table:
        name = table.column(self._resampler.layout.episode)[:1].combine_chunks()
        made = self._resampler(Runs(name, np.zeros(1, int), np.array([table.num_rows])), table)
        for said in jumps.values():
            if self._resampler.options.strict:
                raise Refused("strict", f"a warning: {said}", "no warnings")
            warnings.warn(said, stacklevel=1)
        return made


def resample(
    dataset: ray.data.Dataset,
    *,
    hz: str | int | float,
    episode_column: str,
    concurrency: int | tuple[int, int] | None = None,
    **options: Any,
) -> ray.data.Dataset:
    """A Ray Dataset whose rows are samples, with every episode at first timestamp + i / hz.

    Rows are grouped by `episode_column` (a shuffle) and sorted by time. Options as in tmaops.dataset.resample() for tables.
    The rules are decided here, once, by the first rows of the data set; what looks wrong with them is a Python warning.
    concurrency: actors, or (fewest, most).
    """
    asked = options_of(hz, **options | {"episode_column": episode_column, "sort": True})
    asked.check_streams([])
    asked.check_known("topics times copy", "a Ray Dataset")
    layout, plan = Layout(episode=episode_column), Plan()
    first = dataset.take_batch(FIRST_ROWS, batch_format="pyarrow").sort_by(episode_column)
    runs = runs_of(first.column(episode_column), f"column '{episode_column}'")
    known = [each for each in known_of(first) if each.name != episode_column]
    decided, _ = decide_of_table(first, known, np.append(runs.first, first.num_rows), layout, asked, first.schema)
    times, _, _ = layout.in_order(first, runs.rows, runs.labels, asked)
    plan.add(decided)
    plan.count("", times.size, asked.episodes(times, runs.rows, runs.labels).targets.size)
    plan.check(asked)
    for text in plan.warnings:
        warnings.warn(text, stacklevel=2)
    return dataset.groupby(episode_column).map_groups(
        _Episodes,
        fn_constructor_args=(asked, layout, decided.rules),
        batch_format="pyarrow",
        concurrency=concurrency or 1,
    )
