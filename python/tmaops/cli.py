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
    """Becomes the tool, with this process's arguments; `dataset` alone is a command of this package."""
    if sys.argv[1:2] == ["dataset"]:
        try:
            from .dataset.cli import main as dataset
        except ImportError as error:
            sys.exit(f"error: tmaops dataset needs Python 3.11 and pyarrow (pip install pyarrow): {error}")
        sys.exit(dataset(sys.argv[2:]))
    os.execv(program(), ["tmaops", *sys.argv[1:]])
