"""The command line tool ``tmaops``, as ``python -m tmaops`` and as the command that the package installs."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def program() -> str:
    """Path of the tool's program."""
    return str(pathlib.Path(__file__).parent / "bin" / "tmaops")


def main() -> NoReturn:
    """Becomes the tool, with this process's arguments."""
    os.execv(program(), ["tmaops", *sys.argv[1:]])
