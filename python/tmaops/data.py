"""Steps of data pipelines for robot data. They run in forked workers of data loaders, too.

DataLoader(dataset, collate_fn=tmaops.data.Resample(hz=30))       # episodes of a batch at one rate, padded
pipeline = [..., tmaops.data.ResampleStep(hz=30)]                 # a function over dictionaries; tmaops.lerobot has LeRobot's
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tmaops._columns import resample_columns
from tmaops._errors import invalid_value


class ResampleStep:
    """A function from a recording to the recording at other times, which may stand in a pipeline of such functions.

    It takes a dictionary of arrays, of which some may stand in dictionaries of their own, as a transition of LeRobot has
    them: {"observation": {"timestamp": (S), "observation.state": (S, 7)}, "action": (S, 7), "info": {}}. Every array with a
    row for every timestamp is resampled, by the rule of its name, and takes its place again; everything else stays. Where
    targets can have no data, "valid" stands beside the times. `tmaops.lerobot.ResampleStep` is the same as a step of LeRobot.

    Args:
        options: as for `tmaops.resample_columns` (hz, times, time, mode, max_gap, outside, ...).

    Raises:
        tmaops.Error: as `tmaops.resample_columns`; a name that stands in two places.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options

    def __call__(self, transition: Any) -> Any:
        if not isinstance(transition, Mapping):
            return resample_columns(transition, **self.options)
        places: dict[str, tuple[Any, ...]] = {}
        recording: dict[str, Any] = {}
        for path, value in _arrays(transition):
            name = str(getattr(path[-1], "value", path[-1]))  # LeRobot's keys are members of an Enum
            if name in places:
                raise invalid_value("ResampleStep", f"'{name}' in two places", "names of their own")
            places[name], recording[name] = path, value
        made, report = resample_columns(recording, **{**self.options, "report": True})
        result = {key: dict(value) if isinstance(value, Mapping) else value for key, value in transition.items()}
        beside = places[report.time["name"]]
        for name, value in made.items():
            path = places.get(name, (*beside[:-1], name))
            (result if len(path) == 1 else result[path[0]])[path[-1]] = value
        return result

    def get_config(self) -> dict[str, Any]:
        """What makes an equal step, as JSON can hold it: `ResampleStep(**step.get_config())`."""
        return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in self.options.items()}

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the step learns nothing."""
        return {}

    def load_state_dict(self, state: Mapping) -> None:
        """Takes what `state_dict` gives."""

    def reset(self) -> None:
        """Between episodes nothing is kept."""

    def transform_features(self, features: Any) -> Any:
        """Names, types and shapes of a row stay as they are."""
        return features


def _arrays(transition: Mapping) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """What can have a row for every timestamp, and where it stands: arrays, and lists of numbers or text."""
    for key, value in transition.items():
        for path, each in (
            [((key, name), inner) for name, inner in value.items()] if isinstance(value, Mapping) else [((key,), value)]
        ):
            row = each[0] if isinstance(each, (list, tuple)) and each else None
            if isinstance(row, (int, float, str)) or len(getattr(each, "shape", ())) > 0:
                yield path, each


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

    def __call__(self, batch: list[Mapping]) -> dict[str, Any]:
        import sys

        import numpy

        pairs = [resample_columns(dict(item), report=True, **self.options) for item in batch]
        lengths = [report.json["rows"] for _, report in pairs]
        longest = max(lengths, default=0)
        names = {column for _, report in pairs for column, _ in report.modes}
        names = {name.partition("[")[0] for name in names} | {report.time["name"] for _, report in pairs} | {"valid"}
        torch = sys.modules.get("torch")
        result: dict[str, Any] = {}
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
