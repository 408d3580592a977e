"""Names in imported modules, replaced by others and given back."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def modules_beside(*packages: str) -> list[ModuleType]:
    """The imported modules of all other packages."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    return [module for module in modules if str(module.__name__).partition(".")[0] not in packages]


def is_ours(thing: Any) -> bool:
    """Whether a function, a class or a module is of tmaops."""
    if isinstance(thing, functools.partial):
        thing = thing.func
    home = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
    return str(home).partition(".")[0] == "tmaops"


class Replacements:
    """What one `patch()` replaced."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, new: Any) -> None:
        if (old := vars(owner).get(name)) is not new:
            self._made.append((owner, name, old))
            setattr(owner, name, new)

    def in_layers(self, model: Any, news: dict[str, Any], like: Callable[[Any], str | None]) -> list[str]:
        """Replaces the functions, plain or partial, that layers of a model hold. `like` names the new one for a function."""
        replaced = []
        for path, layer in model.named_modules() if model is not None else ():
            for attribute, held in list(vars(layer).items()):
                function = held.func if isinstance(held, functools.partial) else held
                new = news.get(like(function) or "")
                if new is not None and not is_ours(function):
                    partial = isinstance(held, functools.partial)
                    self.set(layer, attribute, functools.partial(new, *held.args, **held.keywords) if partial else new)
                    replaced.append(f"{path}.{attribute}")
        return replaced

    def undo(self) -> None:
        while self._made:
            owner, name, old = self._made.pop()
            if old is None:
                delattr(owner, name)
            else:
                setattr(owner, name, old)

    def __bool__(self) -> bool:
        return bool(self._made)
