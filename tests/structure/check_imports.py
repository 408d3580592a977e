#!/usr/bin/env python3
"""Checks that the modules of the Python package import each other in one direction, and that the package does without wings.

  check_imports.py SOURCE_DIR            prints every circle of imports, those inside functions counted, and every import of a
                                         wing by the package (python/) or by another wing; exits 1 when there is one
  check_imports.py --self-test           show that both are found

What is imported for a type checker alone (`if TYPE_CHECKING:`) is not counted.
"""

import ast
import pathlib
import re
import sys


def statements(tree):
    """Every node of a module but those below `if TYPE_CHECKING:`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        children = ast.iter_child_nodes(node)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            children = node.orelse
        waiting += children


def imported(text, modules):
    """The modules of the package that a module imports."""
    found = set()
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & modules) or {node.module}
    return found & modules


def circles(imports):
    """Modules that reach themselves, as sorted groups: {"a": {"b"}, "b": {"a"}} holds the circle (a, b)."""

    def reach(start):
        seen, waiting = set(), [start]
        while waiting:
            for module in imports.get(waiting.pop(), set()) - seen:
                seen.add(module)
                waiting.append(module)
        return seen

    reached = {module: reach(module) for module in imports}
    groups = {
        tuple(sorted(other for other in reached[module] if module in reached.get(other, set())))
        for module in imports
        if module in reached[module]
    }
    return sorted(groups)


def across(imports, wing_of):
    """Imports of a wing's module by another wing or by the package itself, whose wing is "python"."""
    return [
        f"{module} of {wing_of[module]}/ imports {other} of {wing_of[other]}/"
        for module, others in sorted(imports.items())
        for other in sorted(others)
        if wing_of[other] not in ("python", wing_of[module])
    ]


def check(root):
    names, wing_of = {}, {}
    for package, folder in re.findall(r'^"(tmaops[\w/]*)" = "([\w/]+)"$', (root / "pyproject.toml").read_text(), re.M):
        for path in sorted((root / folder).rglob("*.py")):
            name = (package / path.relative_to(root / folder)).with_suffix("").as_posix()
            name = name.replace("/", ".").removesuffix(".__init__")
            names[name] = path.read_text(encoding="utf-8")
            wing_of[name] = folder.split("/")[0]
    modules = set(names) - {"tmaops"}  # the package itself imports them all, and is there before each of them
    imports = {name: imported(names[name], modules) for name in names}
    found = across(imports, wing_of)
    found += [
        f"these modules import each other: {', '.join(circle)}"
        for circle in circles({name: imports[name] for name in modules})
    ]
    return found


def self_test():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [("b", "c")]
    assert circles({"a": {"a"}}) == [("a",)]
    modules = {"tmaops.x", "tmaops.x.y", "tmaops.z"}
    assert imported("from tmaops.x import y\nimport os", modules) == {"tmaops.x.y"}
    assert imported("if TYPE_CHECKING:\n    import tmaops.z\nelse:\n    import tmaops.x", modules) == {"tmaops.x"}
    assert imported("def f():\n    from tmaops.z import name", modules) == {"tmaops.z"}
    wing_of = {"tmaops.a": "python", "tmaops.w": "one", "tmaops.v": "two"}
    assert across({"tmaops.w": {"tmaops.a"}, "tmaops.a": set()}, wing_of) == []
    assert len(across({"tmaops.a": {"tmaops.w"}, "tmaops.v": {"tmaops.w", "tmaops.a"}}, wing_of)) == 2
    print("circles and wings are found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = check(pathlib.Path(sys.argv[1]))
    for line in found:
        print(f"python: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
