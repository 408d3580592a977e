"""Errors of the library as Python exceptions."""

from __future__ import annotations


class Error(Exception):
    """What every failing call raises. ``tmaops explain E012`` on a command line says more about an error.

    Attributes:
        code (int): number of the error: 12 for E012. It never changes.
        number (str): ``"E012"``.
        name (str): ``"dtype_mismatch"``.
        where (str): operator and argument, ``"gemm: b"``.
        got (str): what was found, ``"bf16"``.
        needed (str): what would have been right, ``"f16, as a"``.
        mend (str): what to do about it.

    What is raised is one of its subclasses, which also are the exception that Python has for the case:
    InvalidValue (a ValueError), InvalidType (a TypeError), OutOfMemory (a MemoryError), DeviceError (a RuntimeError).
    """

    code = 0
    number = name = where = got = needed = mend = ""

    def __init__(self, message: str, **parts: object) -> None:
        super().__init__(message)
        for key, value in parts.items():
            setattr(self, key, value)

    def __reduce__(self) -> tuple:  # errors cross from the workers of data loaders
        return _restore, (type(self), self.args[0], self.__dict__)


def _restore(kind: type[Error], message: str, parts: dict) -> Error:
    return kind(message, **parts)


class InvalidValue(Error, ValueError):
    """A shape, a size, a parameter or data that the operator does not take."""


class InvalidType(Error, TypeError):
    """An element type that the operator does not take, or an argument that is no array."""


class OutOfMemory(Error, MemoryError):
    """E080 and E081: memory of the host or of the GPU ran out."""


class DeviceError(Error, RuntimeError):
    """E070 to E077: no driver, no GPU, or one that failed."""


def class_of(code: int) -> type[Error]:
    """The exception for an error's number."""
    if code in (11, 12):
        return InvalidType
    if code in (80, 81):
        return OutOfMemory
    if 70 <= code <= 77 or code == 1:
        return DeviceError
    return InvalidValue


def invalid_value(where: str, got: str, needed: str) -> InvalidValue:
    """bad_parameter, as the library says it, for what Python must look at before the library can."""
    return _made(InvalidValue, 18, "bad_parameter", where, got, needed)  # type: ignore[return-value]


def invalid_type(where: str, got: str, needed: str) -> InvalidType:
    """unsupported_dtype, as the library says it, for what never reaches the library."""
    return _made(InvalidType, 11, "unsupported_dtype", where, got, needed)  # type: ignore[return-value]


def _made(kind: type[Error], code: int, name: str, where: str, got: str, needed: str) -> Error:
    number = f"E{code:03d}"
    message = f"{number} {name}\n  where:  {where}\n  got:    {got}\n  needed: {needed}"
    return kind(message, code=code, number=number, name=name, where=where, got=got, needed=needed, mend="")
