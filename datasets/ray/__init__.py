"""Resampling on a Ray cluster: whole data sets by file, or a Ray Dataset by episode.

tmaops.ray.resample_files("droid", "droid_30hz", hz=30)      # same bytes as on one machine
ds = tmaops.ray.resample(ray.data.read_parquet("t.parquet"), hz=30, episode_column="episode")
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tmaops.dataset import clock
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Unit
from tmaops.dataset.job import Report, begin_worker, run_unit
from tmaops.dataset.job import resample as resample_here
from tmaops.dataset.options import Options, options_of
from tmaops.dataset.parquet import Layout, Resampler
from tmaops.dataset.places import is_local, place
from tmaops.dataset.rules import Rules, decide
from tmaops.dataset.tables import Runs, known_of

import ray


def _unit_on_cluster(source: Path, options: Options, unit: Unit, out: Path) -> dict[str, Any] | Refused:
    """One unit on any node. Written whole under its own name, so that a retry after a lost node does no harm."""
    begin_worker()
    try:
        return run_unit(source, options, out, unit)
    except Refused as error:
        return error


def run_on_cluster(
    source: Path, options: Options, units: list[Unit], out: Path
) -> Iterator[tuple[Unit, dict[str, Any] | Refused]]:
    """The runner of a cluster whose nodes all see input and output."""
    task = ray.remote(max_retries=-1, num_gpus=0 if options.device == "cpu" else 1)(_unit_on_cluster)
    waiting = {task.remote(source, options, unit, out): unit for unit in units}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        for reference in ready:
            yield waiting.pop(reference), ray.get(reference)


def resample_files(source: str | os.PathLike, out: str | os.PathLike, **options: Any) -> Report:
    """tmaops.dataset.resample() with the units on the nodes of the cluster that `ray.init` connected to.

    The output is the same, byte for byte. A node that is lost costs the units that it had. Takes the options of
    tmaops.dataset.resample() but `workers` and `shard`. With device="cuda" every task has a GPU.
    """
    places = [where.resolve() if is_local(where) else where for where in (place(source), place(out))]
    return resample_here(*places, runner=run_on_cluster, **options)


class _Episodes:
    """One episode at a time; an actor, so that what it holds (a GPU's context) lives once."""

    def __init__(self, options: Options, time: str, episode: str):
        begin_worker()
        self._options, self._time, self._episode = options, time, episode
        self._known: tuple[Layout, Rules] | None = None

    def __call__(self, table: pa.Table) -> pa.Table:
        if self._known is None:
            known = [each for each in known_of(table) if each.name != self._episode]
            decided = decide(known, self._options.modes, time=self._time, unit=self._options.time_unit)
            unit, _ = clock.unit_of(decided.time, table.schema.field(self._time).type)
            self._known = Layout(self._time, unit, self._episode), decided.rules
        layout, rules = self._known
        table = table.sort_by(self._time)
        run = Runs(table.column(self._episode)[:1].combine_chunks(), np.zeros(1, int), np.array([table.num_rows]))
        return Resampler(layout, self._options, rules)(run, table)


def resample(
    dataset: ray.data.Dataset,
    *,
    hz: str | int | float,
    episode_column: str,
    time_column: str = "timestamp",
    time_unit: str | None = None,
    modes: dict[str, str] | None = None,
    max_gap: float | None = None,
    concurrency: int | tuple[int, int] | None = None,
    num_gpus: float = 0,
) -> ray.data.Dataset:
    """A Ray Dataset whose rows are samples, with every episode at first timestamp + i / hz.

    Rows are grouped by `episode_column` (a shuffle) and sorted by time. Options as in tmaops.dataset.resample().
    concurrency: actors, or (fewest, most). num_gpus: of each actor, which then resamples there; 0 stays on the CPU.
    """
    options = options_of(
        hz, modes=modes, max_gap=max_gap, episode_column=episode_column, time_column=time_column, time_unit=time_unit
    )
    options.device = "cuda" if num_gpus else "cpu"  # of the actors: this machine may have none
    return dataset.groupby(episode_column).map_groups(
        _Episodes,
        fn_constructor_args=(options, time_column, episode_column),
        batch_format="pyarrow",
        concurrency=concurrency or 1,
        num_gpus=num_gpus or None,
    )
