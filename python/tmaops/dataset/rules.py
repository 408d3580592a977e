"""What happens to a column: found by its type and name, changed by the caller, always said."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa

from tmaops.dataset.errors import Refused

#: Modes that compute new numbers, and modes that take a row as it is. "final" is previous, and the last target takes the last row.
COMPUTED = ("linear", "cubic", "slerp")
TAKEN = ("previous", "next", "nearest", "final")

#: Flags of an episode by their last name: those of its first step, and those that its last step must keep.
BEGIN_FLAGS = ("is_first",)
END_FLAGS = ("is_last", "is_terminal", "done", "dones", "terminal", "terminals", "terminated", "truncated", "success")


@dataclass(frozen=True)
class Part:
    """Channels first to first + count - 1 of a column and their mode."""

    first: int
    count: int
    mode: str


@dataclass
class Rule:
    """How one column is resampled: a mode for all rows taken as they are, or parts that cover its channels in order."""

    parts: tuple[Part, ...]
    why: str

    @property
    def taken(self) -> str | None:
        """The mode, where every row is taken as it is; None where numbers are computed."""
        return self.parts[0].mode if self.parts[0].mode in TAKEN else None

    @property
    def sees_the_ends(self) -> bool:
        """Whether a target depends on more than the samples around it: on where its episode begins and ends."""
        return any(part.mode in ("cubic", "final") for part in self.parts)

    def text(self) -> str:
        if len(self.parts) == 1:
            return self.parts[0].mode
        return ", ".join(f"[{p.first}:{p.first + p.count}] {p.mode}" for p in self.parts)

    def modes(self, column: str) -> dict[str, str]:
        """The rule as what a caller would ask for: {"state[0:3]": "linear", "state[3:7]": "slerp"}."""
        if len(self.parts) == 1:
            return {column: self.parts[0].mode}
        return {f"{column}[{p.first}:{p.first + p.count}]": p.mode for p in self.parts}


def type_name(kind: pa.DataType | str) -> str:
    """The name of a type for people: float64 where Arrow says double."""
    return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(kind), str(kind))


def channels_of(kind: pa.DataType) -> int | None:
    """Channels of a column of real numbers: 1 for a scalar, n for a list of n. 0: a list of any length. None: not real."""
    if pa.types.is_floating(kind):
        return 1
    if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type):
        return kind.list_size
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_floating(kind.value_type):
        return 0
    return None


def find_quaternions(names: list[str]) -> list[int]:
    """Where x y z w (or w x y z) of a quaternion begin in a list of channel names: ["qx", "qy", "qz", "qw"] -> [0]."""
    found = []
    for first in range(len(names) - 3):
        four = [name.lower().rstrip("]) ").split("/")[-1] for name in names[first : first + 4]]
        ends = [name[-1:] for name in four]
        stems = {name[:-1] for name in four}
        word = next(iter(stems)).rstrip("._- [(") if len(stems) == 1 else ""
        named = any(word.endswith(w) for w in ("q", "quat", "quaternion", "orientation", "rotation", "rot"))
        if named and ends in (["x", "y", "z", "w"], ["w", "x", "y", "z"]):
            found.append(first)
    return found


@dataclass
class Rules:
    """The rules of a data set: what the caller asked for, and what follows from types and names for the rest."""

    # Pattern, "name[a:b]" or "type:pattern" -> mode; the last that fits wins.
    asked: dict[str, str] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)  # channel names of columns, where the format has them

    def of(self, column: str, kind: pa.DataType, channels: int | None) -> Rule:
        """The rule of a column with this type and number of channels (None: not real numbers)."""
        modes, why = ["previous"], f"{type_name(kind)} is not interpolated"
        last = column.lower().replace("/", ".").split(".")[-1]
        if last in BEGIN_FLAGS + END_FLAGS and not channels and any(word in str(kind) for word in ("bool", "int")):
            modes, why = (
                (["next"], "the flag of a first step")
                if last in BEGIN_FLAGS
                else (["final"], "a flag of the last step")
            )
        elif (
            "int" in str(kind)
            and last.split("_")[-1] in ("frame", "frames")
            or last in ("frame_index", "image_index", "video_index")
        ):
            modes, why = ["nearest"], "the number of a video frame by its name"
        if channels:
            modes, why = ["linear"] * channels, "real numbers"
            for first in self._quaternions(column, channels):
                modes[first : first + 4] = ["slerp"] * 4
                why = "a quaternion by its name"
        for pattern, mode in self.asked.items():
            if mode not in COMPUTED + TAKEN:
                raise Refused(f"mode of {pattern}", repr(mode), "one of " + ", ".join(COMPUTED + TAKEN))
            name, span = self._span(pattern, len(modes))
            if not _fits(pattern, name, column, kind):
                continue
            if mode in COMPUTED and not channels:
                if name == column:
                    raise Refused(f"mode of {column}", f"{mode} for {why}", "previous, next or nearest")
                continue  # a pattern means those that can have the mode
            if mode in TAKEN and span != range(len(modes)):
                raise Refused(f"mode of {pattern}", mode, "a whole column: rows are taken as they are")
            if mode == "slerp" and len(span) % 4:
                raise Refused(f"mode of {pattern}", f"{len(span)} channels", "four channels per quaternion")
            modes[span.start : span.stop] = [mode] * len(span)
            why = "asked for"
        if modes[0] in TAKEN:
            return Rule((Part(0, len(modes), modes[0]),), why)
        parts = []
        for channel, mode in enumerate(modes):
            if mode in TAKEN:
                raise Refused(f"mode of {column}", f"{mode} beside {modes[0]}", "one of both for the whole column")
            if parts and parts[-1].mode == mode:
                parts[-1] = Part(parts[-1].first, parts[-1].count + 1, mode)
            else:
                parts.append(Part(channel, 1, mode))
        return Rule(tuple(parts), why)

    def check_used(self, columns: dict[str, pa.DataType | str]) -> None:
        """Refuses a name or pattern that fits no column (name -> type)."""
        for pattern in self.asked:
            name, _ = self._span(pattern, 0)
            if not any(_fits(pattern, name, column, kind) for column, kind in columns.items()):
                raise Refused(f"mode of {pattern}", "no such column", "one of " + ", ".join(columns))

    def _quaternions(self, column: str, channels: int) -> list[int]:
        names = self.names.get(column)
        if names and len(names) == channels:
            return find_quaternions(names)
        last = column.lower().replace("/", ".").split(".")[-1]
        return [0] if channels == 4 and last.endswith(("quat", "quaternion", "orientation", "rotation")) else []

    @staticmethod
    def _span(pattern: str, channels: int) -> tuple[str, range]:
        """ "state[3:7]" is ("state", range(3, 7)); without brackets all channels."""
        if not pattern.endswith("]") or "[" not in pattern or pattern.startswith("type:"):
            return pattern, range(channels)
        name, text = pattern[:-1].rsplit("[", 1)
        try:
            ends = [int(part) for part in text.split(":")]
        except ValueError:
            raise Refused(f"mode of {pattern}", f"[{text}]", "channels as [a:b] or [a]") from None
        span = range(ends[0], ends[1] if len(ends) == 2 else ends[0] + 1)
        if channels and not (0 <= span.start < span.stop <= channels):
            raise Refused(f"mode of {pattern}", f"[{text}] of {channels} channels", "channels of the column")
        return name, span


def _fits(pattern: str, name: str, column: str, kind: pa.DataType | str) -> bool:
    if pattern.startswith("type:"):
        return fnmatchcase(type_name(kind), pattern.removeprefix("type:"))
    return fnmatchcase(column, name)


def brackets(times: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows at or before and at or after each target; both clamped to the episode. times (S) and targets (T) increase."""
    found = np.searchsorted(times, targets, side="right") - 1
    before = np.maximum(found, 0)
    return before, np.minimum(found + (times[before] != targets), times.size - 1)


def rows_of(
    mode: str, times: np.ndarray, targets: np.ndarray, around: tuple[np.ndarray, np.ndarray] | None = None
) -> np.ndarray:
    """The row that each target takes: previous, next, the nearest (of two equally near the earlier), or final, where the last
    target takes the last row. around: their brackets(), where they are known.
    """
    before, after = brackets(times, targets) if around is None else around
    if mode == "previous":
        return before
    if mode == "next":
        return after
    if mode == "final":
        return np.append(before[:-1], times.size - 1)[: targets.size]
    return np.where(times[after] - targets < targets - times[before], after, before)
