"""A call that is made once, or as a plan many times. Every operator's module makes one of its arguments."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import inspect
import threading
from collections.abc import Callable
from ctypes import byref, c_void_p
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

from tmaops import _arrays as arrays
from tmaops._errors import invalid_value
from tmaops._library import OPTIONS, STRUCTS, check, choice, library
from tmaops._types import ArrayLike, Stream

Tensors = dict[str, arrays.Array | None]
Given = dict[str, Any]  # the arguments of a public function by name: its locals() when it begins
P = ParamSpec("P")
T = TypeVar("T")


@dataclasses.dataclass
class Call:
    """Arguments of an operator that are checked by the library, its tensors and outputs, and what must stay alive.

    `tensors` are in the order of tmaops_plan_rebind, None where there is none; `leading` names the one whose library and device
    count. `outputs` has for each of them that is written the caller's array, or None for one that was made here.
    """

    name: str
    arguments: tuple
    given_tensors: dataclasses.InitVar[Tensors]
    leading: str
    outputs: dict[str, Any]
    keep: Any
    single: bool = True

    def __post_init__(self, given_tensors: Tensors) -> None:
        self.tensors = {what: tensor for what, tensor in given_tensors.items() if tensor is not None}

    @property
    def first(self) -> arrays.Array:
        return self.tensors[self.leading]

    def results(self, stream: int | None = None) -> Any:
        """What the caller gets of a run on `stream`: the arrays that the caller gave, new ones as the caller's library has them, None as None."""
        found = []
        for what, given in self.outputs.items():
            made = self.tensors.get(what)
            here = made is None or given is not None
            found.append(made and given if here else arrays.handed_back(self.first, made.source, stream))  # type: ignore[union-attr]
        return found[0] if self.single else tuple(found)

    def replacement(self, what: str, array: Any) -> arrays.Array:
        """The array as a tensor that may stand in the place of the one of this name."""
        where, old = f"{self.name}: {what}", self.tensors.get(what)
        if old is None:
            raise invalid_value(where, "an array", "one of " + ", ".join(self.tensors))
        address = arrays.stream_of(array, None)
        new = (arrays.writable if what in self.outputs else arrays.read)(where, array, address)
        if not arrays.same_fields(new, old) and arrays.layout(new) != arrays.layout(old):
            raise invalid_value(where, arrays.layout(new), arrays.layout(old) + ", as when the plan was made")
        return new

    def run(self, stream: Stream) -> Any:
        address = arrays.stream_of(self.first.source, stream)
        check(getattr(library, f"tmaops_{self.name}")(*self.arguments, address))
        return self.results(address)


class Plan(Generic[T]):
    """A call whose checks and host work are done. `run()` does it again with what then lies in the same arrays.

    A plan keeps the arrays that it was made of; `rebind()` gives it others. Runs on the host by several threads follow one
    another. A run on a GPU allocates nothing and waits for nothing, so it can be captured into a CUDA graph.

    Attributes:
        variant (str): name of the variant that runs, as ``"simd"``.
        config (str): how the variant is set up, as ``"64x32"``; empty where there is one way.
    """

    def __init__(self, call: Call) -> None:
        self._call: Call | None = call
        self._handle = c_void_p()
        self._lock = threading.Lock()
        check(getattr(library, f"tmaops_plan_{call.name}")(*call.arguments, byref(self._handle)))

    def run(self, stream: Stream = None) -> T:
        """Runs the plan on `stream`, by default the current one of the arrays' library. Returns `output`."""
        call = self._call
        if call is None:
            raise ValueError("this plan is closed")
        address = arrays.stream_of(call.first.source, stream)
        if call.first.on_gpu:
            check(library.tmaops_plan_run(self._handle, address))
        else:
            with self._lock:
                check(library.tmaops_plan_run(self._handle, address))
        result: T = call.results(address)
        return result

    def rebind(self, **tensors: ArrayLike) -> Plan[T]:
        """Lets the plan read and write other arrays from its next run on, in less time than a new plan takes.

        Args:
            tensors: arrays by the names that they had when the plan was made: ``plan.rebind(a=a2, out=d2)``. The gradients of
                `plan_ms_deform_attn_backward` are grad_value, grad_sampling_locations and grad_attention_weights. Each has the shape,
                strides, element type and device of the array that it replaces; those not named stay.

        Returns:
            The plan itself.

        Raises:
            tmaops.Error: E018 for a name that the plan has not, and for another layout; E019 for an address on a GPU that is not
                aligned as the old one was, E015 for an output that overlaps an input. The plan is then as it was.
        """
        call = self._call
        if call is None:
            raise ValueError("this plan is closed")
        new = {what: call.replacement(what, array) for what, array in tensors.items()}
        bound = {**call.tensors, **new}
        addresses = (c_void_p * len(bound))(*(arrays.address(array) for array in bound.values()))
        with self._lock:
            check(library.tmaops_plan_rebind(self._handle, addresses, len(bound)))
            call.tensors = bound
            call.outputs.update((what, array) for what, array in tensors.items() if what in call.outputs)
        return self

    @property
    def output(self) -> T | None:
        """What `run` writes and returns: an array, or a tuple of arrays."""
        return self._call.results() if self._call else None

    @property
    def variant(self) -> str:
        return (library.tmaops_plan_variant(self._handle) or b"").decode()

    @property
    def config(self) -> str:
        return (library.tmaops_plan_config(self._handle) or b"").decode()

    def close(self) -> None:
        """Frees the plan, which happens by itself when it is no longer used. On a GPU its runs must have ended."""
        handle, self._handle = self._handle, c_void_p()
        self._call = None
        if handle:
            library.tmaops_plan_destroy(handle)

    def __enter__(self) -> Plan[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and library is not None:
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a plan of tmaops holds addresses of this process: pickle its arguments, and plan where they are loaded"
        )

    def __repr__(self) -> str:
        name = self._call.name if self._call else "closed"
        return f"<tmaops plan of {name}: {self.variant}{' ' + self.config if self.config else ''}>"


def plan_of(function: Callable[P, T], prepare: Callable[[Given], Call], note: str = "") -> Callable[P, Plan[T]]:
    """The function that plans a call of `function`, whose arguments it has; `prepare` makes the call of them."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def plan(*args: P.args, **kwargs: P.kwargs) -> Plan[T]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return Plan(prepare(bound.arguments))

    name = function.__name__
    plan.__name__ = plan.__qualname__ = f"plan_{name}"
    plan.__doc__ = f"A plan of the same call: `run()` reads what then lies in these arrays. Arguments and errors as for `{name}`{note}."
    del plan.__wrapped__  # type: ignore[attr-defined]
    plan.__signature__ = signature.replace(return_annotation="Plan")  # type: ignore[attr-defined]
    return plan


class Options:
    """Makes the C struct of an operator's options from the arguments of the Python functions, where they have the same names.

    What is a list in C, or not as in C, the operator's own module sets.
    """

    def __init__(self, operator: str) -> None:
        self._struct = STRUCTS[operator]
        initial = self._struct(ctypes.sizeof(self._struct))
        self._usual: list[tuple[str, object, str, tuple[str, ...]]] = []
        for option in OPTIONS[operator]:
            usual: object = None
            if option.kind in ("f32", "f64", "i32", "flag"):
                usual = {"i32": int, "flag": bool}.get(option.kind, float)(option.initial)
                setattr(initial, option.name, usual)
            elif option.kind == "word":
                usual = option.words[0]
            elif option.kind not in ("text", "tensor", "time"):
                continue
            self._usual.append((option.name, usual, option.kind, option.words))
        self._initial = bytes(initial)

    def of(self, name: str, given: Given, address: int | None) -> tuple[Any, dict[str, arrays.Array]]:
        """The options of a call of the function `name`, and those that are tensors."""
        made, tensors = self._struct.from_buffer_copy(self._initial), {}
        for option, usual, kind, words in self._usual:
            value = given.get(option, usual)
            if value is usual:
                continue
            if kind == "word":
                value = choice(f"{name}: {option}", value, words)
            elif kind == "text":
                value = value.encode()
            elif kind == "tensor":
                tensors[option] = arrays.read(f"{name}: {option}", value, address)
                value = arrays.reference(tensors[option])
            setattr(made, option, value)
        return made, tensors


def output(where: str, given: Any, like: arrays.Array, shape: tuple[int, ...], dtype: str, stream: Any) -> arrays.Array:
    """The caller's output, or a new one of the caller's library."""
    if given is not None:
        return arrays.writable(where, given, arrays.stream_of(given, stream))
    return arrays.read(where, arrays.new(like, shape, dtype))
