"""Result files of `tmaops bench`, as the report reads them (docs/bench.md, the result file)."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tmaops import _errors


@dataclass(eq=False)
class Row:
    """One timed row of a file."""

    run: Run
    data: dict[str, Any]

    def __getattr__(self, name: str) -> Any:  # operator, case, dtype, temperature, implementation, gbps, tflops, ...
        return self.data.get(name)

    @property
    def us(self) -> float:
        return self.data["us"]["median"]

    @property
    def p10(self) -> float:
        return self.data["us"].get("p10", self.us)

    @property
    def p90(self) -> float:
        return self.data["us"].get("p90", self.us)

    @property
    def kind(self) -> str:
        return self.data.get("kind", "variant")

    @property
    def problem(self) -> tuple[str, str, str]:
        """What rows that can be compared have in common, inside one file and operator."""
        return self.case, self.dtype, self.temperature

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same row in another run."""
        return (self.operator, *self.problem, self.device, self.implementation)

    @property
    def label(self) -> str:
        """The implementation, and what was chosen where the library chose."""
        base = self.implementation.partition("_pdl")[0]
        return f"{self.implementation} ({self.selected})" if base == "tmaops" and self.selected else self.implementation


@dataclass(eq=False)
class Run:
    """One file."""

    path: pathlib.Path
    document: dict[str, Any]
    name: str  # in the lists to choose from
    rows: list[Row]

    def device_name(self, row: Row) -> str:
        """The GPU or the CPU that the row was timed on."""
        machine = self.document.get("machine", {})
        if str(row.device).startswith("cuda"):
            return machine["gpu"]["name"]
        return f"{machine.get('cpu') or 'CPU'}, {machine.get('threads', '?')} threads"


def read(path: pathlib.Path) -> Run | None:
    """The file with its timed rows; None for another kind of JSON file. Raises tmaops.InvalidValue for no JSON."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _errors.invalid_value(str(path), f"no JSON: {error}", "a result file of tmaops bench") from None
    if not isinstance(document, dict) or not document.get("rows"):
        return None
    if document.get("schema") != 1:
        raise _errors.invalid_value(str(path), f"schema {document.get('schema')}", "a result file of schema 1")
    run = Run(path, document, path.stem, [])
    wanted = ("operator", "case", "implementation", "dtype", "device", "temperature", "us")
    run.rows = [Row(run, row) for row in document["rows"] if all(name in row for name in wanted) and row["us"]]
    return run if run.rows else None


def grouped(rows: Iterable[Row], key: Any) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def titled(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)
