"""Resampling of whole data sets: every episode onto a regular clock, file by file, restartable.

    import tmaops.dataset
    report = tmaops.dataset.resample("pusht", "pusht_30hz", hz=30)

The command `tmaops dataset resample IN OUT --hz 30` is the same. Formats: LeRobot v3, Parquet
tables with an episode column, HDF5 (robomimic, ALOHA), recordings of ROS 1, ROS 2 and MCAP.
docs/dataset.md describes the rules.
"""

from tmaops.dataset.errors import Refused
from tmaops.dataset.inspect import Inspection, inspect
from tmaops.dataset.job import Report, resample
from tmaops.dataset.new_set import new_set

__all__ = ["Inspection", "Refused", "Report", "inspect", "new_set", "resample"]
