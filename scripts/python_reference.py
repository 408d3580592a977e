#!/usr/bin/env python3
"""Writes docs/python_reference.md from the docstrings of the installed package: python_reference.py [--check]"""

import importlib
import inspect
import pathlib
import sys

TARGET = pathlib.Path(__file__).resolve().parents[1] / "docs" / "python_reference.md"
MODULES = (
    "tmaops",
    "tmaops.torch",
    "tmaops.data",
    "tmaops.compat",
    "tmaops.compat.transformers",
    "tmaops.compat.mmcv",
    "tmaops.compat.detr",
    "tmaops.compat.hub",
)


def signature(name, thing):
    """`name(arguments)`, one argument a line where they are many, without annotations of the module's own types."""
    try:
        parameters = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parts, star = [], False
    for parameter in parameters.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        parts.append(prefix + parameter.name + default)
    return f"{name}({', '.join(parts)})"


def reference():
    lines = [
        "# Python reference",
        "",
        "Made by `scripts/python_reference.py` from the docstrings, which `help()` shows too. [python.md](python.md) is the guide.",
        "",
    ]
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        lines += [f"## {module_name}", "", "```text", inspect.getdoc(module), "```", ""]
        names = getattr(module, "__all__", None) or [
            name
            for name, thing in vars(module).items()
            if not name.startswith("_") and getattr(thing, "__module__", "") == module_name
        ]
        for name in sorted(names):
            thing = getattr(module, name)
            if not (inspect.isfunction(thing) or inspect.isclass(thing)):
                continue
            lines += [
                f"### {name}",
                "",
                "```python",
                signature(name, thing),
                "```",
                "```text",
                inspect.getdoc(thing) or "",
                "```",
                "",
            ]
            for method, function in vars(thing).items() if inspect.isclass(thing) else ():
                if inspect.isfunction(function) and not method.startswith("_"):
                    lines += [
                        "```python",
                        signature(f"{name}.{method}", function),
                        "```",
                        "```text",
                        inspect.getdoc(function) or "",
                        "```",
                        "",
                    ]
    return "\n".join(lines)


def main():
    text = reference()
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") != text:
        print(f"{TARGET} is not what the docstrings say: run scripts/python_reference.py with the package installed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
