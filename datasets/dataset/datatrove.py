"""A step for datatrove, whose executors run it on one machine, on Slurm or on Ray.

from datatrove.executor import LocalPipelineExecutor  # or SlurmPipelineExecutor
LocalPipelineExecutor([tmaops.dataset.datatrove.Resample("droid", "droid_30hz", hz=30)], tasks=64).run()
"""

import os
from typing import Any

from datatrove.pipeline.base import PipelineStep
from tmaops.dataset.job import resample


class Resample(PipelineStep):
    """Every task does its share of the files; the task that finds all of them done ends the job.

    source, out: paths that every task sees. Further options are those of tmaops.dataset.resample() but `shard`. A task
    that datatrove starts again goes on where it was.
    """

    name = "tmaops resample"
    type = "robot data"

    def __init__(self, source: str | os.PathLike, out: str | os.PathLike, **options: Any):
        super().__init__()
        self._source, self._out, self._options = source, out, options

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Any:
        with self.track_time():
            asked = self._options | {"shard": (rank, world_size), "resume": True, "workers": 1}
            report = resample(self._source, self._out, **asked)
        self.stat_update("episodes", value=report.episodes)
        self.stat_update("rows", value=report.rows_written)
        return data
