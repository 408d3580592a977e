"""tmaops.resample, its backward, its plans, and what counts violations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import byref, c_int64
from typing import Any, NamedTuple

from tmaops import _arrays as arrays
from tmaops import _jax
from tmaops._calls import Call, Given, Options, Tensors, output, plan_of
from tmaops._errors import invalid_value
from tmaops._library import OPTIONS, ChannelGroup, Time, UniformGrid, check, choice, integers, library
from tmaops._types import A, ArrayLike, Duplicates, Interpolation, Moment, Outside, R, Stream

_OPTIONS = Options("resample")
_INTERPOLATIONS = next(option.words for option in OPTIONS["resample"] if option.name == "interpolation")
_OPERANDS = ("values", "source_times", "target_times")
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
    options: Any
    target_count: int  # targets of a trajectory, or rows of packed ones
    source_offsets: _Offsets
    target_offsets: _Offsets
    tensors: dict[str, arrays.Array]  # of the options

    @property
    def inputs(self) -> Tensors:
        return {"source_times": self.times, "target_times": self.targets}

    @property
    def option_tensors(self) -> Tensors:
        """Those that a plan reads in every run."""
        there = {"source_offsets": self.source_offsets.there, "target_offsets": self.target_offsets.there}
        return {**self.tensors, **there}

    def arguments(self) -> tuple:
        return (
            byref(self.times.tensor),
            None if self.targets is None else byref(self.targets.tensor),
            None if self.grid is None else byref(self.grid),
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


def _problem(name: str, given: Given, address: int | None) -> _Problem:
    times = arrays.read(f"{name}: source_times", given["source_times"], address)
    whole = times.dtype == "int64"
    target_times, grid = given["target_times"], given["grid"]
    targets, uniform, count = None, None, 0
    if (target_times is None) == (grid is None):
        what = "both" if grid is not None else "neither"
        raise invalid_value(f"{name}: target_times and grid", what, "one of the two")
    if target_times is not None:
        targets = arrays.read(f"{name}: target_times", target_times, address)
        count = targets.tensor.shape[targets.tensor.ndim - 1] if targets.tensor.ndim else 0
    else:
        start, period, count = grid
        where = f"{name}: grid"
        uniform = UniformGrid(_time(where, start, whole), _time(where, period, whole), int(count))
    if given.get("max_gap") is not None:
        given["max_gap"] = _time(f"{name}: max_gap", given["max_gap"], whole)
    given["outside"] = given["outside"] or "hold"
    options, tensors = _OPTIONS.of(name, given, address)
    groups = given.get("groups")
    if groups is not None:
        made = [ChannelGroup(int(a), int(b), choice("resample: groups", c, _INTERPOLATIONS)) for a, b, c in groups]
        options.channel_groups, options.channel_group_count = (ChannelGroup * len(made))(*made), len(made)
    packed = []
    for side in ("source", "target"):
        offsets = _offsets(f"{name}: {side}_offsets", given[f"{side}_offsets"], address)
        if offsets.known is not None:
            setattr(options, f"{side}_offsets", offsets.known)
            setattr(options, f"{side}_offset_count", len(offsets.known))
        elif offsets.there is not None:
            setattr(options, f"{side}_offset_tensor", arrays.reference(offsets.there))
        packed.append(offsets)
    return _Problem(times, targets, uniform, options, int(count), packed[0], packed[1], tensors)


def _shape(values: arrays.Array, problem: _Problem) -> tuple[int, ...]:
    """Shape of the output."""
    shape = values.shape
    channels = shape[-1:] or (0,)
    if problem.target_offsets.given:
        return (problem.target_count, *channels)
    batch = problem.source_offsets.trajectories if problem.source_offsets.given else (shape or (0,))[0]
    return (batch, problem.target_count, *channels)


def _prepare(given: Given) -> Call:
    # Those of options have another meaning there.
    values, valid, out, stream = given.pop("values"), given.pop("valid"), given["out"], given["stream"]
    address = arrays.stream_of(values, stream)
    source = arrays.read("resample: values", values, address)
    problem = _problem("resample", given, address)
    shape = _shape(source, problem)
    result = output("resample: output", out, source, shape, source.dtype or "float32", stream)
    tensors: Tensors = {"values": source, **problem.inputs, "out": result}
    outputs = {"out": out}
    if valid is not None and valid is not False:
        outputs["valid"] = None if valid is True else valid
        mask = output("resample: valid", outputs["valid"], source, shape[:-1], "bool", stream)
        problem.options.valid = arrays.reference(mask)
        tensors["valid"] = mask
    tensors.update(problem.option_tensors)
    arguments = (byref(source.tensor), *problem.arguments(), byref(result.tensor), byref(problem.options))
    return Call("resample", arguments, tensors, "values", outputs, problem, single=len(outputs) == 1)


def resample(
    values: R,
    source_times: ArrayLike | None = None,
    target_times: ArrayLike | None = None,
    *,
    grid: tuple[Moment, Moment, int] | None = None,
    interpolation: Interpolation = "linear",
    groups: Sequence[tuple[int, int, Interpolation]] | None = None,
    outside: Outside | None = None,
    duplicates: Duplicates = "error",
    max_gap: Moment | None = None,
    source_offsets: Sequence[int] | ArrayLike | None = None,
    target_offsets: Sequence[int] | ArrayLike | None = None,
    out: ArrayLike | None = None,
    valid: ArrayLike | bool | None = None,
    dependent_launch: bool = False,
    variant: str | None = None,
    stream: Stream = None,
    axis: int | None = None,
    **columns: object,
) -> R:
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
        outside: targets before the first or after the last sample: "hold" that sample (default), "nan", "extrapolate", or "error".
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
    given = dict(locals())  # a copy, since a debugger writes to locals()
    if type(values).__module__.startswith(("pandas.", "polars.")) or not arrays.is_array(values):
        from tmaops._columns import is_recording, resample_columns

        if is_recording(values):
            if source_times is not None:
                columns["times"] = source_times
            columns.update(outside=outside, duplicates=duplicates, max_gap=max_gap)
            return resample_columns(values, **columns)  # type: ignore[arg-type]
    if given.pop("columns"):
        raise TypeError(f"resample() of an array got an unexpected keyword argument {next(iter(columns))!r}")
    if arrays.is_array(values) and lies_along_axis(values, axis, source_offsets, target_offsets):
        return _along_axis(given)
    del given["axis"]
    return _called(given)


def _called(given: Given) -> Any:
    values, source_times, target_times = map(given.__getitem__, _OPERANDS)
    if _jax.traced(values, source_times, target_times):
        return _jax.call(
            "resample", resample, given, _OPERANDS, _traced_result, None if given["groups"] else _traced_gradients
        )
    return _prepare(given).run(given["stream"])


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
    if not hasattr(axis, "__index__") or not -rank <= axis < rank:
        raise invalid_value("resample: axis", f"{axis!r} of {rank} dimensions", f"one from {-rank} to {rank - 1}")
    return int(axis) % rank


def _along_axis(given: Given) -> Any:
    """One trajectory whose channels are all other dimensions."""
    values, axis, out, valid = given.pop("values"), given.pop("axis"), given.pop("out"), given.pop("valid")
    place, rank = axis_of(values, axis), len(values.shape)
    order = [place, *(dim for dim in range(rank) if dim != place)]
    first = values if place == 0 else _permuted(values, order)
    others = tuple(first.shape[1:])
    if out is not None and (axis is not None or rank > 2):
        raise invalid_value("resample: out", "an array beside axis", "nothing: a new array is made")
    written = None if out is None else out[None] if rank == 2 else out[None, :, None]
    mask = valid if valid is None or isinstance(valid, bool) else valid[None]
    values = first.reshape((1, first.shape[0], math.prod(others)))
    made = _called({"values": values, "out": written, "valid": mask, **given})
    result = made[0] if isinstance(made, tuple) else made
    result = result.reshape((result.shape[1], *others)) if out is None else out
    result = _permuted(result, [order.index(dim) for dim in range(rank)]) if place else result
    if not isinstance(made, tuple):
        return result
    return result, made[1][0] if isinstance(valid, bool) else valid


def _permuted(array: Any, order: list[int]) -> Any:
    return array.permute(*order) if hasattr(array, "permute") else array.transpose(order)


def _traced_result(given: Given) -> tuple[tuple[int, ...], str]:
    values, target_times, source_offsets = given["values"], given["target_times"], given["source_offsets"]
    count = given["grid"][2] if target_times is None else target_times.shape[-1]
    shape: tuple[int, ...] = (count, values.shape[-1])
    if given["target_offsets"] is None:
        shape = (values.shape[0] if source_offsets is None else len(source_offsets) - 1, *shape)
    return shape, arrays.dtype_name(values.dtype)


def _traced_gradients(grad: Any, given: Given) -> tuple[Any, ...]:
    """To the values; times have none."""
    values = given["values"]
    options = {what: value for what, value in given.items() if what not in ("values", "out", "valid", "groups")}
    extreme = values if given["interpolation"] in EXTREMES else None
    return resample_backward(grad, samples=values.shape[-2], values=extreme, **options), None, None


def _prepare_plan(given: Given) -> Call:
    for what in ("axis", "columns"):
        if given.pop(what, None):
            raise invalid_value(f"plan_resample: {what}", "one", "none: a plan is of (B, S, D) or packed arrays")
    return _prepare(given)


def resample_backward(
    grad_output: A,
    source_times: ArrayLike,
    target_times: ArrayLike | None = None,
    *,
    samples: int | None = None,
    values: ArrayLike | None = None,
    grid: tuple[Moment, Moment, int] | None = None,
    interpolation: Interpolation = "linear",
    groups: Sequence[tuple[int, int, Interpolation]] | None = None,
    outside: Outside = "hold",
    duplicates: Duplicates = "error",
    max_gap: Moment | None = None,
    source_offsets: Sequence[int] | ArrayLike | None = None,
    target_offsets: Sequence[int] | ArrayLike | None = None,
    out: A | None = None,
    dependent_launch: bool = False,
    variant: str | None = None,
    stream: Stream = None,
) -> A:
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
    return _prepare_backward(locals()).run(stream)


def _prepare_backward(given: Given) -> Call:
    name, out = "resample_backward", given["out"]
    address = arrays.stream_of(given["grad_output"], given["stream"])
    grad = arrays.read(f"{name}: grad_output", given["grad_output"], address)
    problem = _problem(name, given, address)
    rows = given["samples"] if given["samples"] is not None else (problem.times.shape or (0,))[-1]
    shape = (*(() if problem.source_offsets.given else grad.shape[:1]), rows, *grad.shape[-1:])
    result = output(f"{name}: grad_values", out, grad, shape, grad.dtype or "float32", given["stream"])
    arguments = (*problem.arguments(), byref(grad.tensor), byref(result.tensor), byref(problem.options))
    tensors = {**problem.inputs, "grad_output": grad, "out": result, **problem.option_tensors}
    groups = given["groups"]
    if not EXTREMES.intersection([given["interpolation"]] if groups is None else [mode for *_, mode in groups]):
        tensors.pop("values", None)
    return Call(name, arguments, tensors, "grad_output", {"out": out}, problem)


def resample_violations(
    source_times: ArrayLike,
    target_times: ArrayLike | None = None,
    *,
    grid: tuple[Moment, Moment, int] | None = None,
    outside: Outside = "hold",
    duplicates: Duplicates = "error",
    source_offsets: Sequence[int] | ArrayLike | None = None,
    target_offsets: Sequence[int] | ArrayLike | None = None,
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
    given = dict(locals())  # a copy, since a debugger writes to locals()
    address = arrays.stream_of(source_times, None)
    problem = _problem("resample_violations", given, address)
    counts = arrays.read("counts", arrays.new(problem.times, (len(_VIOLATIONS),), "int64"))
    arguments = (*problem.arguments(), byref(counts.tensor), byref(problem.options), address)
    check(library.tmaops_resample_violations(*arguments))
    return dict(zip(_VIOLATIONS, counts.source.tolist()))


plan_resample = plan_of(resample, _prepare_plan, ", for arrays without `axis`; errors about times come with `run()`")
plan_resample_backward = plan_of(resample_backward, _prepare_backward)
