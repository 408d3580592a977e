#!/usr/bin/env python3
"""Checks that the modules of the Python package import each other in one direction.

  check_imports.py SOURCE_DIR            prints every circle of imports, those inside functions counted; exits 1 when there is one
  check_imports.py --self-test           show that circles are found

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


def check(root):
    names = {}
    for package, folder in re.findall(r'^"(tmaops[\w/]*)" = "([\w/]+)"$', (root / "pyproject.toml").read_text(), re.M):
        for path in sorted((root / folder).rglob("*.py")):
            name = (package / path.relative_to(root / folder)).with_suffix("").as_posix()
            names[name.replace("/", ".").removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    modules = set(names) - {"tmaops"}  # the package itself imports them all, and is there before each of them
    return circles({name: imported(names[name], modules) for name in modules})


def self_test():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [("b", "c")]
    assert circles({"a": {"a"}}) == [("a",)]
    modules = {"tmaops.x", "tmaops.x.y", "tmaops.z"}
    assert imported("from tmaops.x import y\nimport os", modules) == {"tmaops.x.y"}
    assert imported("if TYPE_CHECKING:\n    import tmaops.z\nelse:\n    import tmaops.x", modules) == {"tmaops.x"}
    assert imported("def f():\n    from tmaops.z import name", modules) == {"tmaops.z"}
    print("circles are found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = check(pathlib.Path(sys.argv[1]))
    for circle in found:
        print(f"python: these modules import each other: {', '.join(circle)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
