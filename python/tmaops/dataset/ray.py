"""Resampling on a Ray cluster: whole data sets by file, or a Ray Dataset by episode.

    tmaops.dataset.ray.resample_files("droid", "droid_30hz", hz=30)      # same bytes as on one machine
    ds = tmaops.dataset.ray.resample(ray.data.read_parquet("t.parquet"), hz=30, episode_column="episode")
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray

from tmaops.dataset import clock
from tmaops.dataset.columns import resample_episode
from tmaops.dataset.errors import Refused
from tmaops.dataset.job import Options, Report, Unit, _begin_worker, run_unit
from tmaops.dataset.job import resample as resample_here
from tmaops.dataset.parquet import times_like
from tmaops.dataset.rules import Rules, channels_of
from tmaops.dataset.tables import list_width_of


@ray.remote(max_retries=-1)
def _unit_on_cluster(source: Path, options: Options, unit: Unit, out: Path) -> dict[str, Any] | Refused:
    """One unit on any node. Written whole under its own name, so that a retry after a lost node does no harm."""
    _begin_worker()
    try:
        return run_unit(source, options, unit, out)
    except Refused as error:
        return error


def run_on_cluster(
    source: Path, options: Options, units: list[Unit], out: Path, workers: int
) -> Iterator[tuple[Unit, dict[str, Any] | Refused]]:
    """The runner of a cluster whose nodes share the file system of input and output. `workers` is not used."""
    waiting = {_unit_on_cluster.remote(source, options, unit, out): unit for unit in units}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        for reference in ready:
            yield waiting.pop(reference), ray.get(reference)


def resample_files(source: str | os.PathLike, out: str | os.PathLike, **options: Any) -> Report:
    """tmaops.dataset.resample() with the units on the nodes of the cluster that `ray.init` connected to.

    The output is the same, byte for byte. A node that is lost costs the units that it had. Takes the options of
    tmaops.dataset.resample() but `workers` and `shard`.
    """
    return resample_here(Path(source).resolve(), Path(out).resolve(), runner=run_on_cluster, **options)


class _Resampler:
    """One episode at a time; an actor, so that what it holds (a GPU's context) lives once."""

    def __init__(self, options: Options, time: str, episode: str):
        _begin_worker()
        self._options, self._time, self._episode = options, time, episode
        self._rules = Rules(dict(options.modes))

    def __call__(self, table: pa.Table) -> pa.Table:
        label = f"episode {table.column(self._episode)[0].as_py()}"
        table = table.sort_by(self._time)
        times = clock.nanoseconds(table.column(self._time), self._options.time_unit, label)
        clock.check_increasing(times, label)
        targets = clock.grid(int(times[0]), int(times[-1]), clock.rate(self._options.hz))
        data = [name for name in table.column_names if name not in (self._time, self._episode)]

        def rule_of(name: str):
            kind = table.schema.field(name).type
            width = channels_of(kind)
            return self._rules.of(name, kind, list_width_of(table.column(name)) if width == 0 else width)

        made = resample_episode(table.select(data), times, targets, rule_of, self._options.max_gap_ns, f"{label}: ")
        columns = {name: made.column(name) for name in data}
        columns[self._time] = times_like(targets, table.schema.field(self._time).type, self._options.time_unit)
        columns[self._episode] = table.column(self._episode).take(pa.array([0] * targets.size, pa.int64()))
        return pa.Table.from_arrays([columns[name] for name in table.column_names], schema=table.schema)


def resample(
    dataset: "ray.data.Dataset",
    *,
    hz: str | int | float,
    episode_column: str,
    time_column: str = "timestamp",
    time_unit: str | None = None,
    modes: dict[str, str] | None = None,
    max_gap: float | None = None,
    concurrency: int | tuple[int, int] | None = None,
    num_gpus: float = 0,
) -> "ray.data.Dataset":
    """A Ray Dataset whose rows are samples, with every episode at first timestamp + i / hz.

    Rows are grouped by `episode_column` (a shuffle) and sorted by time. Options as in tmaops.dataset.resample().
    concurrency: actors, or (fewest, most). num_gpus: of each actor.
    """
    options = Options(str(hz), dict(modes or {}), max_gap, episode_column, time_column, time_unit)
    return dataset.groupby(episode_column).map_groups(
        _Resampler,
        fn_constructor_args=(options, time_column, episode_column),
        batch_format="pyarrow",
        concurrency=concurrency or 1,
        num_gpus=num_gpus or None,
    )
