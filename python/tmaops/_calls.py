"""A call that is made once, or as a plan many times. Every operator's module makes one of its arguments."""

from __future__ import annotations

import threading
from ctypes import byref, c_void_p
from typing import Any, Optional, Sequence, Tuple

from . import _arrays as arrays
from ._library import check, library


# For each output the caller's array or None, and what the library writes; None and None for one that is not wanted.
Outputs = Sequence[Tuple[Any, Optional[arrays.Array]]]


class Call:
    """Arguments of an operator that are checked by the library, its outputs, and what must stay alive."""

    def __init__(self, name: str, arguments: tuple, first: arrays.Array, outputs: Outputs, keep: Any, single: bool = True) -> None:
        self.name = name
        self.arguments = arguments
        self.first = first
        self.outputs = outputs
        self.keep = keep
        self.single = single

    def results(self) -> Any:
        """What the caller gets: the arrays that the caller gave, new ones as the caller's library has them, None as None."""
        found = tuple(
            None if made is None else given if given is not None else arrays.handed_back(self.first, made.source)
            for given, made in self.outputs
        )
        return found[0] if self.single else found

    def run(self, stream: Any) -> Any:
        address = arrays.stream_of(self.first.source, stream)
        check(getattr(library, f"tmaops_{self.name}")(*self.arguments, address))
        return self.results()


class Plan:
    """A call whose checks and host work are done. `run()` does it again with what then lies in the same arrays.

    A plan keeps the arrays that it was made of. Runs on the host by several threads follow one another. A run on a GPU
    allocates nothing and waits for nothing, so it can be captured into a CUDA graph.

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
        return call.results()

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
