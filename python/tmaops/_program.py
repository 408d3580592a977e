"""The tool's program, and what the commands of this package have in common with it."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable

from tmaops._errors import Error


def program() -> str:
    """Path of the tool's program."""
    return str(pathlib.Path(__file__).parent / "bin" / "tmaops")


def guarded(run: Callable[[], int]) -> int:
    """The exit code of a command of this package: what it refuses, and what the system refuses, is a message and 2."""
    try:
        return run()
    except Error as error:
        print(f"error: {error.where}\n  got:    {error.got}\n  needed: {error.needed}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
