"""Steps of data pipelines for robot data. They run in forked workers of data loaders, too.

    DataLoader(dataset, collate_fn=tmaops.data.Resample(hz=30))       # episodes of a batch at one rate, padded
    pipeline = [..., tmaops.data.ResampleStep(hz=30)]                 # a step over dictionaries, as LeRobot's processors have
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, List

from ._columns import resample_columns


class ResampleStep:
    """A function from a recording to the recording at other times.

    It may stand in a LeRobot processor pipeline: it is called with a transition or a dictionary of arrays, changes only
    what has a row for every timestamp, and describes itself by `get_config`.

    Args:
        key: where the recording lies in what the step is called with, as "observation"; None: it is what it is called with.
        options: as for `tmaops.resample_columns` (hz, times, mode, max_gap, outside, ...).
    """

    def __init__(self, *, key: str | None = None, **options: Any) -> None:
        self.key = key
        self.options = options

    def __call__(self, transition: Any) -> Any:
        if self.key is None:
            return resample_columns(transition, **self.options)
        return {**transition, self.key: resample_columns(transition[self.key], **self.options)}

    def get_config(self) -> Dict[str, Any]:
        """What makes an equal step: `ResampleStep(**step.get_config())`."""
        return {"key": self.key, **self.options}

    def state_dict(self) -> Dict[str, Any]:
        """Nothing: the step learns nothing."""
        return {}

    def load_state_dict(self, state: Mapping) -> None:
        """Takes what `state_dict` gives."""

    def reset(self) -> None:
        """Between episodes nothing is kept."""

    def transform_features(self, features: Any) -> Any:
        """Names, types and shapes of a row stay as they are."""
        return features


class Resample:
    """Collates a batch of recordings: each is resampled, then they are padded to the longest and stacked.

    Args:
        options: as for `tmaops.resample_columns`.

    Called with a list of dictionaries of arrays, it returns one dictionary of torch tensors (NumPy arrays where torch is not
    imported): (batch, longest, ...) for arrays with a row for every timestamp, and "length" (batch), their numbers of rows.
    Rows behind the end repeat the last one. Text and everything else become lists.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options

    def __call__(self, batch: List[Mapping]) -> Dict[str, Any]:
        import sys

        import numpy

        pairs = [resample_columns(dict(item), report=True, **self.options) for item in batch]
        lengths = [report.json["rows"] for _, report in pairs]
        longest = max(lengths, default=0)
        names = {column for _, report in pairs for column, _ in report.modes}
        names = {name.partition("[")[0] for name in names} | {report.time["name"] for _, report in pairs} | {"valid"}
        torch = sys.modules.get("torch")
        result: Dict[str, Any] = {}
        for name in pairs[0][0] if pairs else ():
            columns = [numpy.asarray(recording[name]) for recording, _ in pairs]
            if name not in names or columns[0].dtype.kind not in "biuf":
                result[name] = [recording[name] for recording, _ in pairs]
                continue
            padding = [[(0, longest - len(column))] + [(0, 0)] * (column.ndim - 1) for column in columns]
            stacked = numpy.stack([numpy.pad(column, pad, mode="edge") for column, pad in zip(columns, padding)])
            result[name] = stacked if torch is None else torch.from_numpy(stacked)
        result["length"] = numpy.array(lengths) if torch is None else torch.tensor(lengths)
        return result
