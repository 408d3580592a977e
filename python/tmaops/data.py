"""Steps of data pipelines for robot data. They run in forked workers of data loaders, too.

DataLoader(dataset, collate_fn=tmaops.data.Resample(hz=30))       # episodes of a batch at one rate, padded
pipeline = [..., tmaops.data.ResampleStep(hz=30)]                 # a function over dictionaries; tmaops.lerobot has LeRobot's
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from tmaops import _columns, _recording
from tmaops._columns import resample_columns
from tmaops._errors import invalid_value

T = TypeVar("T")


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

    def __init__(self, **options: object) -> None:
        self.options: dict[str, Any] = options

    def __call__(self, transition: T) -> T:
        if not isinstance(transition, Mapping):
            return resample_columns(transition, **self.options)  # type: ignore[type-var]
        places: dict[str, tuple[Any, ...]] = {}
        recording: Any = {}
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
        return result  # type: ignore[return-value]

    def get_config(self) -> dict[str, object]:
        """What makes an equal step, as JSON can hold it: `ResampleStep(**step.get_config())`."""
        return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in self.options.items()}

    def transform_features(self, features: T) -> T:
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
    Rows behind the end repeat the last one. Text and everything else become lists. Recordings have the same arrays, of any types.
    """

    def __init__(self, **options: object) -> None:
        self.options: dict[str, Any] = options

    def __call__(self, batch: list[Mapping]) -> dict[str, object]:
        time, group = self.options.get("time"), self.options.get("group")
        sources = [_columns.read(dict(item) if hasattr(item, "keys") else item, time, group) for item in batch]
        decided = {name: value for name, value in self.options.items() if name not in _NOT_DECIDED}
        rules = _recording.Rules(sources[0].given, **decided) if sources else None
        together = rules is not None and group is None and _alike(sources, rules.time["index"])
        parts = [sources] if together else [[source] for source in sources]
        index = rules.time["index"] if rules is not None else 0
        return _stacked([item for part in parts for item in _resampled(part, index, self.options)])


class _Item(NamedTuple):
    """A resampled recording: what has a row for every timestamp, and everything else."""

    length: int
    rows: dict[str, Any]
    others: dict[str, Any]


_NOT_DECIDED = ("hz", "times", "like", "times_unit", "strict")


def _alike(sources: list[_columns.Columns], time: int) -> bool:
    """Whether recordings have the same columns, so that they can be packed behind one another."""
    kinds = []
    for source in sources:
        count = source.given[time].shape[:1] if time < len(source.given) else None
        kinds.append([(each.name, each.type, each.shape[1:], each.shape[:1] == count) for each in source.given])
    offsets = any(each.name in ("offsets", "episode_offsets") for each in sources[0].given)
    return not offsets and all(each == kinds[0] for each in kinds)


def _resampled(sources: list[_columns.Columns], time: int, options: dict[str, Any]) -> list[_Item]:
    """Recordings of the same columns in one call of the library."""
    import numpy

    named = options | _columns.targets_of(options.get("times"), options.get("like")) | {"time": sources[0].time}
    given, starts = sources[0].given, numpy.zeros(len(sources) + 1, dtype="int64")
    has_rows = [each.shape[:1] == given[time].shape[:1] for each in given]
    if len(sources) > 1:
        numpy.cumsum([source.given[time].shape[0] for source in sources], out=starts[1:])
        together = [[source.given[i] for source in sources] for i in range(len(given))]
        given = [_recording.packed(each) if own else each[0] for each, own in zip(together, has_rows, strict=True)]
        named["offsets"] = starts
    result = _recording.resample(given, **named)
    _columns.say(result, stacklevel=5)
    items = [_Item(b - a, {}, {}) for a, b in zip(result.offsets, result.offsets[1:], strict=False)]
    if len(sources) == 1 and len(items) != 1:  # the recording has episodes of its own
        items = [_Item(result.offsets[-1], {}, {})]
    total = result.offsets[-1]
    for made in result.arrays:
        per_row = len(made.values) == total if made.source < 0 else has_rows[made.source]
        for b, (item, source) in enumerate(zip(items, sources, strict=True)):
            back = source.new if made.source < 0 else source.restore[made.source]
            if not per_row:  # each recording has its own
                own: Any = made if made.source < 0 else source.given[made.source]
                item.others[made.name] = back(numpy.arange(*own.shape or (0,)) if own.values is None else own.values)
                continue
            begin = result.offsets[b] if len(items) == len(result.offsets) - 1 else 0
            values = made.values[begin : begin + item.length]
            if made.kind == "rows":
                item.others[made.name] = back(numpy.where(values < 0, -1, values - starts[b]))
            elif made.kind == "bf16" or values.dtype.kind not in "biuf":
                item.others[made.name] = back(values)
            else:
                item.rows[made.name] = values
    return items


def _stacked(items: list[_Item]) -> dict[str, Any]:
    import sys

    import numpy

    torch = sys.modules.get("torch")
    longest = max((item.length for item in items), default=0)
    shapes = [{name: rows.shape[1:] for name, rows in item.rows.items()} | dict.fromkeys(item.others) for item in items]
    for number, (item, found) in enumerate(zip(items, shapes, strict=True)):
        if found != shapes[0] or longest and not item.length:
            got, needed = dict(found.items() - shapes[0].items()), dict(shapes[0].items() - found.items())
            where, got_rows = f"Resample: recording {number} of the batch", f"{item.length} rows, of shapes {got}"
            raise invalid_value(where, got_rows, f"rows, of shapes {needed} as the first recording has")
    result: dict[str, Any] = {}
    for name in items[0].rows if items else ():
        columns = [item.rows[name] for item in items]
        stacked = numpy.empty((len(items), longest, *columns[0].shape[1:]), numpy.result_type(*columns))
        for to, column in zip(stacked, columns, strict=True):
            to[: len(column)] = column
            to[len(column) :] = column[-1:]
        result[name] = stacked if torch is None else torch.from_numpy(stacked)
    for name in items[0].others if items else ():
        result[name] = [item.others[name] for item in items]
    lengths = numpy.array([item.length for item in items], "int64")
    result["length"] = lengths if torch is None else torch.from_numpy(lengths)
    return result
