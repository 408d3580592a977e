"""tmaops.resample, its backward, its plans, and what counts violations."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from ctypes import c_int64
from typing import Any, NamedTuple, get_args

from tmaops import _arrays as arrays
from tmaops import _jax
from tmaops._calls import Call, Plan, Tensors, output
from tmaops._errors import invalid_value
from tmaops._gemm import choice
from tmaops._library import ChannelGroup, ResampleOptions, Time, UniformGrid, check, encoded, integers, library
from tmaops._types import Duplicates, Interpolation, Outside

_INTERPOLATIONS = get_args(Interpolation)
_OUTSIDE = get_args(Outside)
_DUPLICATES = get_args(Duplicates)
EXTREMES = frozenset(("min", "max"))  # modes whose gradient depends on the values
_VIOLATIONS = (
    "source_not_finite",
    "source_not_sorted",
    "source_duplicate",
    "target_not_finite",
    "target_outside",
    "empty_trajectory",
    "bad_offsets",
)


class _Offsets(NamedTuple):
    """Offsets of packed rows: a copy of those on the host, or an array on a GPU, which nobody waits for."""

    known: Any = None
    there: arrays.Array | None = None

    @property
    def given(self) -> bool:
        return self.known is not None or self.there is not None

    @property
    def trajectories(self) -> int:
        if self.there is not None:
            return max((self.there.shape or (0,))[0] - 1, 0)
        return max(len(self.known) - 1, 0)


_NO_OFFSETS = _Offsets()


def _offsets(where: str, offsets: Any, address: int | None) -> _Offsets:
    if offsets is None:
        return _NO_OFFSETS
    if arrays.lies_on_gpu(offsets):
        return _Offsets(there=arrays.read(where, offsets, address))
    known = integers(where, offsets, c_int64)
    return _Offsets(known if known else None)  # an empty list is none


class _Problem(NamedTuple):
    """What forward, backward and violations have in common."""

    times: arrays.Array
    targets: arrays.Array | None
    grid: UniformGrid | None
    options: ResampleOptions
    count: int  # targets of a trajectory, or rows of packed ones
    source_offsets: _Offsets
    target_offsets: _Offsets

    @property
    def offset_tensors(self) -> Tensors:
        """Those that a plan reads in every run."""
        return {"source_offsets": self.source_offsets.there, "target_offsets": self.target_offsets.there}

    def arguments(self) -> tuple:
        return (
            ctypes.byref(self.times.tensor),
            None if self.targets is None else ctypes.byref(self.targets.tensor),
            None if self.grid is None else ctypes.byref(self.grid),
        )


def _time(where: str, value: Any, whole: bool) -> Time:
    """A time beside i64 times (nanoseconds, whole), or beside f32 and f64 times (seconds)."""
    try:
        if not whole:
            return Time(seconds=float(value))
        if hasattr(value, "astype"):  # numpy.timedelta64, numpy.datetime64
            value = value.astype(f"{value.dtype.kind}8[ns]" if value.dtype.kind in "mM" else value.dtype).astype(
                "int64"
            )
        nanoseconds = int(value)
    except (TypeError, ValueError):
        raise invalid_value(where, repr(value), "a number of nanoseconds" if whole else "a number of seconds") from None
    if nanoseconds != value:
        raise invalid_value(where, repr(value), "whole nanoseconds, as the times are")
    return Time(nanoseconds=nanoseconds)


def _groups(groups: Any) -> Any:
    if groups is None:
        return None
    made = [
        ChannelGroup(int(first), int(count), choice("resample", "groups", mode, _INTERPOLATIONS))
        for first, count, mode in groups
    ]
    return (ChannelGroup * len(made))(*made)


def _problem(
    name: str,
    source_times: Any,
    target_times: Any,
    grid: Any,
    interpolation: Interpolation,
    groups: Any,
    outside: Outside,
    duplicates: Duplicates,
    max_gap: Any,
    source_offsets: Any,
    target_offsets: Any,
    valid: arrays.Array | None,
    dependent_launch: bool,
    variant: str | None,
    address: int | None,
) -> _Problem:
    times = arrays.read(f"{name}: source_times", source_times, address)
    whole = times.dtype == "int64"
    targets, uniform, count = None, None, 0
    if (target_times is None) == (grid is None):
        raise invalid_value(
            f"{name}: target_times and grid", "both" if grid is not None else "neither", "one of the two"
        )
    if target_times is not None:
        targets = arrays.read(f"{name}: target_times", target_times, address)
        count = targets.shape[-1] if targets.shape else 0
    else:
        start, period, count = grid
        where = f"{name}: grid"
        uniform = UniformGrid(_time(where, start, whole), _time(where, period, whole), int(count))
    channels = _groups(groups)
    source = _offsets(f"{name}: source_offsets", source_offsets, address)
    target = _offsets(f"{name}: target_offsets", target_offsets, address)
    # What is zero by itself is not set: ctypes takes as long for each field as the call does for ten samples.
    options = ResampleOptions(
        ctypes.sizeof(ResampleOptions),
        choice(name, "interpolation", interpolation, _INTERPOLATIONS),
        choice(name, "outside", outside, _OUTSIDE),
        choice(name, "duplicates", duplicates, _DUPLICATES),
        dependent_launch,
    )
    if channels is not None:
        options.channel_groups, options.channel_group_count = channels, len(channels)
    if max_gap is not None:
        options.max_gap = _time(f"{name}: max_gap", max_gap, whole)
    for what, offsets in (("source", source), ("target", target)):
        if offsets.known is not None:
            setattr(options, f"{what}_offsets", offsets.known)
            setattr(options, f"{what}_offset_count", len(offsets.known))
        if offsets.there is not None:
            setattr(options, f"{what}_offset_tensor", arrays.reference(offsets.there))
    if valid is not None:
        options.valid = arrays.reference(valid)
    if variant is not None:
        options.variant = encoded(variant)
    return _Problem(times, targets, uniform, options, int(count), source, target)


def _shape(values: arrays.Array, problem: _Problem) -> tuple[int, ...]:
    """Shape of the output."""
    channels = values.shape[-1:] or (0,)
    if problem.target_offsets.given:
        return (problem.count, *channels)
    batch = problem.source_offsets.trajectories if problem.source_offsets.given else (values.shape or (0,))[0]
    return (batch, problem.count, *channels)


def _call(
    values: Any,
    source_times: Any,
    target_times: Any,
    grid: Any,
    interpolation: Interpolation,
    groups: Any,
    outside: Outside,
    duplicates: Duplicates,
    max_gap: Any,
    source_offsets: Any,
    target_offsets: Any,
    out: Any,
    valid: Any,
    dependent_launch: bool,
    variant: str | None,
    stream: Any,
) -> Call:
    address = arrays.stream_of(values, stream)
    source = arrays.read("resample: values", values, address)
    problem = _problem(
        "resample",
        source_times,
        target_times,
        grid,
        interpolation,
        groups,
        outside,
        duplicates,
        max_gap,
        source_offsets,
        target_offsets,
        None,
        dependent_launch,
        variant,
        address,
    )
    shape = _shape(source, problem)
    result = output("resample: output", out, source, shape, source.dtype or "float32", stream)
    tensors: Tensors = {"values": source, "source_times": problem.times, "target_times": problem.targets, "out": result}
    outputs = {"out": out}
    if valid is not None and valid is not False:
        given = None if valid is True else valid
        mask = output("resample: valid", given, source, shape[:-1], "bool", stream)
        problem.options.valid = arrays.reference(mask)
        tensors["valid"] = mask
        outputs["valid"] = given
    tensors.update(problem.offset_tensors)
    arguments = (
        ctypes.byref(source.tensor),
        *problem.arguments(),
        ctypes.byref(result.tensor),
        ctypes.byref(problem.options),
    )
    return Call("resample", arguments, tensors, "values", outputs, problem, single=len(outputs) == 1)


def resample(
    values: Any,
    source_times: Any = None,
    target_times: Any = None,
    *,
    grid: tuple[Any, Any, int] | None = None,
    interpolation: Interpolation = "linear",
    groups: Sequence[tuple[int, int, Interpolation]] | None = None,
    outside: Outside = "hold",
    duplicates: Duplicates = "error",
    max_gap: Any = None,
    source_offsets: Any = None,
    target_offsets: Any = None,
    out: Any = None,
    valid: Any = None,
    dependent_launch: bool = False,
    variant: str | None = None,
    stream: Any = None,
    axis: int | None = None,
    **columns: Any,
) -> Any:
    """Values of trajectories with irregular timestamps at other times: output[b, t, :] = values[b] at target_times[b, t].

    A dictionary of arrays, a pandas or a polars frame goes to `resample_columns` with its arguments.

    Args:
        values: (B, S, D), (S, D) or (S), or packed (rows, D) with `source_offsets`; f16, bf16, f32 or f64. With `axis`, of any rank.
        source_times: (B, S), (S) for all trajectories, or packed (rows); f32 or f64 seconds, or i64 nanoseconds (or
            datetime64[ns]). They increase along S.
        target_times: (B, T), (T) for all, or packed with `target_offsets`; dtype of `source_times`, in any order.
        grid: instead of `target_times`, (start, period, count): targets start + i period, in the unit of the times.
        interpolation: "linear", "previous", "next", "nearest", "cubic" (PCHIP) or "slerp" (quaternions x, y, z, w); on the CPU
            also over the interval of a target: "mean" (by time), "sum", "min", "max", "any", "count" (of values that are not
            NaN), or "lowpass" (a windowed sinc, cut off at half the rate of the targets). docs/resample.md has the intervals.
        groups: instead, (first channel, number of channels, interpolation) for runs of channels that cover all in order.
        outside: targets before the first or after the last sample: "hold" that sample, "nan", "extrapolate", or "error".
        duplicates: two samples at one time are an "error", or a step where the "last" wins.
        max_gap: samples further apart than this have nothing between them (NaN); in the unit of the times.
        source_offsets, target_offsets: B + 1 offsets of packed trajectories, from 0 to the number of rows. An i64 array on the
            GPU of `values` stays there: nothing waits for it, and only variants that take everything run. Where it does not begin
            at 0, decreases somewhere or does not end at the number of rows, every output is then NaN and invalid.
        axis: optional, the dimension of the samples, for times (S) and (T) that serve all of `values`.
        out: (B, T, D), (T, D), (T) or packed (rows, D) to write, without `axis`; else a new array of the library of `values`.
        valid: True for a mask, or a u8 or bool array (B, T) or (rows) to write: false where the output is NaN by policy.
        dependent_launch, variant, stream: as for `tmaops.gemm`.

    Returns:
        (B, T, D), (T, D), (T) or packed (rows, D), or `values` with T in the place of S; dtype of `values`; with `valid` the pair (output, mask). On a GPU the call is enqueued and has not yet
        run, and does not look at times: see `resample_violations`.

    Raises:
        tmaops.Error: E010 wrong shape, E011 and E012 element types (TypeErrors), E014, E015, E018, E024, E025, E030 to E039
            about times, quaternions and offsets (ValueErrors), E080 and E081 (MemoryErrors), E07x (RuntimeErrors).
    """
    if not arrays.is_array(values) or hasattr(values, "columns"):
        from tmaops._columns import is_recording, resample_columns

        if is_recording(values):
            if source_times is not None:
                columns["times"] = source_times
            named = {"outside": (outside, "hold"), "duplicates": (duplicates, "error"), "max_gap": (max_gap, None)}
            columns.update({name: given for name, (given, default) in named.items() if given != default})
            return resample_columns(values, **columns)
    if columns:
        raise TypeError(f"resample() of an array got an unexpected keyword argument {next(iter(columns))!r}")
    if arrays.is_array(values) and lies_along_axis(values, axis, source_offsets, target_offsets):
        options: dict[str, Any] = {
            "interpolation": interpolation,
            "groups": groups,
            "outside": outside,
            "duplicates": duplicates,
            "max_gap": max_gap,
            "dependent_launch": dependent_launch,
            "variant": variant,
            "stream": stream,
        }
        return _along_axis(values, axis, out, valid, source_times, target_times, grid=grid, **options)
    if arrays.is_traced(values) or arrays.is_traced(source_times) or arrays.is_traced(target_times):
        plain = {"interpolation": interpolation, "outside": outside, "duplicates": duplicates, "max_gap": max_gap}
        known = {"source_offsets": source_offsets, "target_offsets": target_offsets, "grid": grid}
        return _jax.call(
            "resample",
            functools.partial(resample, groups=groups, variant=variant, **plain, **known),  # type: ignore[arg-type]
            {"values": values, "source_times": source_times, "target_times": target_times},
            functools.partial(_traced_result, **known),
            {**known, "max_gap": max_gap, "out": out, "valid": valid, "stream": stream},
            None if groups else functools.partial(_traced_gradients, **plain, **known),
        )
    return _call(
        values,
        source_times,
        target_times,
        grid,
        interpolation,
        groups,
        outside,
        duplicates,
        max_gap,
        source_offsets,
        target_offsets,
        out,
        valid,
        dependent_launch,
        variant,
        stream,
    ).run(stream)


def lies_along_axis(values: Any, axis: int | None, source_offsets: Any, target_offsets: Any) -> bool:
    """Whether the samples are one dimension of a plain array, and not that of (B, S, D) or of packed rows."""
    if axis is not None and (source_offsets is not None or target_offsets is not None):
        raise invalid_value("resample: axis", f"{axis} beside offsets", "one of the two")
    packed = source_offsets is not None or target_offsets is not None
    return axis is not None or (0 < len(values.shape) < 3 and not packed)


def axis_of(values: Any, axis: int | None) -> int:
    rank = len(values.shape)
    if axis is None:
        return 0
    if not -rank <= axis < rank:
        raise invalid_value("resample: axis", f"{axis} for values of {rank} dimensions", f"from {-rank} to {rank - 1}")
    return axis % rank


def _along_axis(values: Any, axis: int | None, out: Any, valid: Any, *times: Any, **options: Any) -> Any:
    """One trajectory whose channels are all other dimensions."""
    place, rank = axis_of(values, axis), len(values.shape)
    order = [place, *(dim for dim in range(rank) if dim != place)]
    first = values if place == 0 else _permuted(values, order)
    others = tuple(first.shape[1:])
    if out is not None and (axis is not None or rank > 2):
        raise invalid_value("resample: out", "an array beside axis", "nothing: a new array is made")
    written = None if out is None else out[None] if rank == 2 else out[None, :, None]
    mask = valid if valid is None or isinstance(valid, bool) else valid[None]
    made = resample(first.reshape((1, first.shape[0], math.prod(others))), *times, out=written, valid=mask, **options)
    result = made[0] if isinstance(made, tuple) else made
    result = result.reshape((result.shape[1], *others)) if out is None else out
    result = _permuted(result, [order.index(dim) for dim in range(rank)]) if place else result
    if not isinstance(made, tuple):
        return result
    return result, made[1][0] if isinstance(valid, bool) else valid


def _permuted(array: Any, order: list[int]) -> Any:
    return array.permute(*order) if hasattr(array, "permute") else array.transpose(order)


def _traced_result(
    values: Any, target_times: Any = None, *, grid: Any, source_offsets: Any, target_offsets: Any, **_: Any
) -> tuple[tuple[int, ...], str]:
    count = grid[2] if target_times is None else target_times.shape[-1]
    shape: tuple[int, ...] = (count, values.shape[-1])
    if target_offsets is None:
        shape = (values.shape[0] if source_offsets is None else len(source_offsets) - 1, *shape)
    return shape, arrays.dtype_name(values.dtype)


def _traced_gradients(grad: Any, values: Any, **given: Any) -> tuple[Any, ...]:
    """To the values; times have none."""
    return resample_backward(grad, samples=values.shape[-2], **given), None, None


def plan_resample(
    values: Any,
    source_times: Any,
    target_times: Any = None,
    *,
    grid: tuple[Any, Any, int] | None = None,
    interpolation: Interpolation = "linear",
    groups: Sequence[tuple[int, int, Interpolation]] | None = None,
    outside: Outside = "hold",
    duplicates: Duplicates = "error",
    max_gap: Any = None,
    source_offsets: Any = None,
    target_offsets: Any = None,
    out: Any = None,
    valid: Any = None,
    dependent_launch: bool = False,
    variant: str | None = None,
) -> Plan:
    """A plan of the same call, of arrays. Arguments and errors as for `resample`; errors about times come with `run()`."""
    return Plan(
        _call(
            values,
            source_times,
            target_times,
            grid,
            interpolation,
            groups,
            outside,
            duplicates,
            max_gap,
            source_offsets,
            target_offsets,
            out,
            valid,
            dependent_launch,
            variant,
            None,
        )
    )


def _backward_call(
    grad_output: Any,
    source_times: Any,
    target_times: Any,
    samples: int | None,
    values: Any,
    grid: Any,
    interpolation: Interpolation,
    groups: Any,
    outside: Outside,
    duplicates: Duplicates,
    max_gap: Any,
    source_offsets: Any,
    target_offsets: Any,
    out: Any,
    dependent_launch: bool,
    variant: str | None,
    stream: Any,
) -> Call:
    name = "resample_backward"
    address = arrays.stream_of(grad_output, stream)
    grad = arrays.read(f"{name}: grad_output", grad_output, address)
    problem = _problem(
        name,
        source_times,
        target_times,
        grid,
        interpolation,
        groups,
        outside,
        duplicates,
        max_gap,
        source_offsets,
        target_offsets,
        None,
        dependent_launch,
        variant,
        address,
    )
    given = None if values is None else arrays.read(f"{name}: values", values, address)
    problem.options.values = arrays.reference(given)
    rows = samples if samples is not None else (problem.times.shape or (0,))[-1]
    batch = () if problem.source_offsets.given else grad.shape[:1]
    result = output(
        f"{name}: grad_values", out, grad, (*batch, rows, *grad.shape[-1:]), grad.dtype or "float32", stream
    )
    arguments = (*problem.arguments(), arrays.reference(grad), arrays.reference(result), ctypes.byref(problem.options))
    tensors: Tensors = {
        "source_times": problem.times,
        "target_times": problem.targets,
        "grad_output": grad,
        "out": result,
    }
    if EXTREMES.intersection([interpolation] if groups is None else [mode for *_, mode in groups]):
        tensors["values"] = given
    tensors.update(problem.offset_tensors)
    return Call(name, arguments, tensors, "grad_output", {"out": out}, (problem, given))


def resample_backward(
    grad_output: Any,
    source_times: Any,
    target_times: Any = None,
    *,
    samples: int | None = None,
    values: Any = None,
    grid: tuple[Any, Any, int] | None = None,
    interpolation: Interpolation = "linear",
    groups: Sequence[tuple[int, int, Interpolation]] | None = None,
    outside: Outside = "hold",
    duplicates: Duplicates = "error",
    max_gap: Any = None,
    source_offsets: Any = None,
    target_offsets: Any = None,
    out: Any = None,
    dependent_launch: bool = False,
    variant: str | None = None,
    stream: Any = None,
) -> Any:
    """Gradient of `resample` to the values, for all modes but "cubic", "slerp", "any" and "count".

    Args:
        grad_output: (B, T, D), or packed (rows, D) with `target_offsets`.
        samples: S, where it is not the last extent of `source_times`.
        values: those of the forward pass, which "min" and "max" alone need: the gradient goes to the sample that was the
            extreme, the first of equal ones.
        out: (B, S, D) or packed (rows, D) to write (not added to), dtype of `grad_output`, or f32 where that is f16 or bf16;
            else a new array of the library of `grad_output`.
        All others: as for `resample`.

    Returns:
        The gradient; the same bits from run to run. NaN where offsets on a GPU are wrong.

    Raises:
        tmaops.Error: as `resample`; E018 for "cubic", "slerp", "any" and "count", and for "min" and "max" without `values`.
    """
    return _backward_call(
        grad_output,
        source_times,
        target_times,
        samples,
        values,
        grid,
        interpolation,
        groups,
        outside,
        duplicates,
        max_gap,
        source_offsets,
        target_offsets,
        out,
        dependent_launch,
        variant,
        stream,
    ).run(stream)


def plan_resample_backward(
    grad_output: Any,
    source_times: Any,
    target_times: Any = None,
    *,
    samples: int | None = None,
    values: Any = None,
    grid: tuple[Any, Any, int] | None = None,
    interpolation: Interpolation = "linear",
    groups: Sequence[tuple[int, int, Interpolation]] | None = None,
    outside: Outside = "hold",
    duplicates: Duplicates = "error",
    max_gap: Any = None,
    source_offsets: Any = None,
    target_offsets: Any = None,
    out: Any = None,
    dependent_launch: bool = False,
    variant: str | None = None,
) -> Plan:
    """A plan of the same call. Arguments and errors as for `resample_backward`."""
    return Plan(
        _backward_call(
            grad_output,
            source_times,
            target_times,
            samples,
            values,
            grid,
            interpolation,
            groups,
            outside,
            duplicates,
            max_gap,
            source_offsets,
            target_offsets,
            out,
            dependent_launch,
            variant,
            None,
        )
    )


def resample_violations(
    source_times: Any,
    target_times: Any = None,
    *,
    grid: tuple[Any, Any, int] | None = None,
    outside: Outside = "hold",
    duplicates: Duplicates = "error",
    source_offsets: Any = None,
    target_offsets: Any = None,
    variant: str | None = None,
) -> dict[str, int]:
    """How often times break the rules of `resample`, counted where they lie. On a GPU it waits for the counts.

    Args:
        All: as for `resample`.

    Returns:
        {"source_not_finite", "source_not_sorted", "source_duplicate" (unless duplicates is "last"), "target_not_finite",
        "target_outside" (with outside "error"), "empty_trajectory" (unless outside is "nan"), "bad_offsets" (of offsets on a
        GPU, and nothing else is then counted)}, each with a number.

    Raises:
        tmaops.Error: E010, E011 and E012 (TypeErrors), E018, E024, E025, E039 (ValueErrors), E07x (RuntimeErrors).
    """
    address = arrays.stream_of(source_times, None)
    problem = _problem(
        "resample_violations",
        source_times,
        target_times,
        grid,
        "linear",
        None,
        outside,
        duplicates,
        None,
        source_offsets,
        target_offsets,
        None,
        False,
        variant,
        address,
    )
    counts = arrays.read("counts", arrays.new(problem.times, (len(_VIOLATIONS),), "int64"))
    check(
        library.tmaops_resample_violations(
            *problem.arguments(), arrays.reference(counts), ctypes.byref(problem.options), address
        )
    )
    return dict(zip(_VIOLATIONS, counts.source.tolist()))
