"""A call that is made once, or as a plan many times. Every operator's module makes one of its arguments."""

from __future__ import annotations

import threading
from ctypes import byref, c_void_p
from typing import Any

from tmaops import _arrays as arrays
from tmaops._errors import invalid_value
from tmaops._library import check, library

Tensors = dict[str, arrays.Array | None]


class Call:
    """Arguments of an operator that are checked by the library, its tensors and outputs, and what must stay alive.

    `tensors` are in the order of tmaops_plan_rebind, None where there is none; `leading` names the one whose library and device
    count. `outputs` has for each of them that is written the caller's array, or None for one that was made here.
    """

    def __init__(
        self,
        name: str,
        arguments: tuple,
        tensors: Tensors,
        leading: str,
        outputs: dict[str, Any],
        keep: Any,
        single: bool = True,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.tensors = {what: tensor for what, tensor in tensors.items() if tensor is not None}
        self.leading = leading
        self.outputs = outputs
        self.keep = keep
        self.single = single

    @property
    def first(self) -> arrays.Array:
        return self.tensors[self.leading]

    def results(self, stream: int | None = None) -> Any:
        """What the caller gets of a run on `stream`: the arrays that the caller gave, new ones as the caller's library has them, None as None."""
        found = []
        for what, given in self.outputs.items():
            made = self.tensors.get(what)
            found.append(
                None
                if made is None
                else given
                if given is not None
                else arrays.handed_back(self.first, made.source, stream)
            )
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

    def run(self, stream: Any) -> Any:
        address = arrays.stream_of(self.first.source, stream)
        check(getattr(library, f"tmaops_{self.name}")(*self.arguments, address))
        return self.results(address)


class Plan:
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

    def run(self, stream: Any = None) -> Any:
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
        return call.results(address)

    def rebind(self, **tensors: Any) -> Plan:
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
    def output(self) -> Any:
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

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and library is not None:
            self.close()

    def __repr__(self) -> str:
        name = self._call.name if self._call else "closed"
        return f"<tmaops plan of {name}: {self.variant}{' ' + self.config if self.config else ''}>"


def output(where: str, given: Any, like: arrays.Array, shape: tuple[int, ...], dtype: str, stream: Any) -> arrays.Array:
    """The caller's output, or a new one of the caller's library."""
    if given is not None:
        return arrays.writable(where, given, arrays.stream_of(given, stream))
    return arrays.read(where, arrays.new(like, shape, dtype))
