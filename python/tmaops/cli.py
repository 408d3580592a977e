"""The command line tool ``tmaops``, as ``python -m tmaops`` and as the command that the package installs.

The program in the package does the work. Three things are the package's own: the commands `dataset` and `report`, and the
page of `resample --plot`. The program lists them, and refuses them where it runs without the package.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from tmaops._program import guarded, program


def _own(arguments: list[str]) -> Callable[[list[str]], int] | None:
    """What in this package runs these arguments; None: the program does."""
    plot = any(word == "--plot" or word.startswith("--plot=") for word in arguments)
    module = {"report": "tmaops.pages.report", "dataset": "tmaops.dataset.cli"}.get(arguments[0] if arguments else "")
    if arguments[:1] == ["resample"] and plot:
        module = "tmaops.pages.recording"
    if module is None:
        return None
    package = module.rpartition(".")[0]
    if importlib.util.find_spec(package) is None:
        sys.exit(f"error: tmaops {arguments[0]} is not in this package: it was built without {package}")
    try:
        main: Callable[[list[str]], int] = importlib.import_module(module).main
    except ImportError as error:
        if package != "tmaops.dataset":
            raise
        sys.exit(f"error: tmaops dataset needs Python 3.11 and pyarrow (pip install pyarrow): {error}")
    return main


def main() -> NoReturn:
    """Becomes the tool, with this process's arguments, or runs a command of this package."""
    own = _own(sys.argv[1:])
    if own is None:
        os.execv(program(), ["tmaops", *sys.argv[1:]])
    sys.exit(guarded(lambda: own(sys.argv[2:])))
