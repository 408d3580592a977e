#!/usr/bin/env python3
"""Writes the result tables of README.md and docs/ from the committed result files.

A document says where a table goes and what it shows:

  <!-- table results/cpu/cpu.json operator=resample dtype=f32 -->
  ...replaced...
  <!-- /table -->

Keys after the file filter rows by equality (operator, dtype, device, temperature, kind); `show=copy,cublas` names the
implementations beside the chosen variant, all without it. One line per case: the chosen variant's time, then every other
implementation of the same case with its time and how many times slower it is.

  update_tables.py            rewrite the documents
  update_tables.py --check    exit 1 when a document differs from what its result files say
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- table (?P<spec>[^>]*?) -->\n)(?P<body>.*?)(<!-- /table -->)", re.DOTALL)


def microseconds(value):
    """Three significant digits, in a unit that reads well."""
    for limit, scale, unit in ((1e3, 1, "us"), (1e6, 1e-3, "ms"), (float("inf"), 1e-6, "s")):
        if value < limit:
            scaled = value * scale
            digits = 2 if scaled < 10 else 1 if scaled < 100 else 0
            return f"{scaled:.{digits}f} {unit}"
    raise ValueError(value)


def make_table(spec):
    path, *filters = spec.split()
    wanted = dict(item.split("=", 1) for item in filters)
    shown = wanted.pop("show", "").split(",")
    document = json.loads((ROOT / path).read_text(encoding="utf-8"))
    rows = [row for row in document["rows"] if all(str(row.get(key)) == value for key, value in wanted.items())]
    if not rows:
        raise SystemExit(f"{path}: no row with {wanted}")
    cases, others = {}, []
    for row in rows:
        key = (row["operator"], row["case"], row["dtype"], row["temperature"])
        cases.setdefault(key, {})[row["implementation"]] = row
        name = row["implementation"]
        if name != "tmaops" and name not in others and (shown == [""] or name in shown):
            others.append(name)
    lines = ["| case | dtype | tmaops (variant) |" + "".join(f" {name} |" for name in others),
             "|---|---|---|" + "---|" * len(others)]
    for (operator, case, dtype, _), found in cases.items():
        ours = found.get("tmaops")
        name = case if "operator" in wanted else f"{operator} {case}"
        cell = f"**{microseconds(ours['us']['median'])}** ({ours['selected']})" if ours else "-"
        line = f"| {name} | {dtype} | {cell} |"
        for other in others:
            row = found.get(other)
            if row is None:
                line += " - |"
            elif ours is None:
                line += f" {microseconds(row['us']['median'])} |"
            else:
                line += f" {microseconds(row['us']['median'])} ({row['us']['median'] / ours['us']['median']:.3g}x) |"
        lines.append(line)
    machine = document["machine"]
    on_gpu = all(row["device"].startswith("cuda") for row in rows)
    where = machine["gpu"]["name"] if on_gpu else f"{machine.get('cpu')}, {machine.get('threads', '?')} threads"
    partial = " The run was interrupted: not all cases." if document.get("status") == "partial" else ""
    lines.append("")
    lines.append(f"`{path}`: {where}, revision {document['revision']}.{partial}")
    return "\n".join(lines) + "\n"


def main():
    check = "--check" in sys.argv[1:]
    stale = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        new = BLOCK.sub(lambda match: match[1] + make_table(match["spec"]) + match[4], text)
        if new != text:
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(new, encoding="utf-8")
    for path in stale:
        print(f"{path}: {'differs from its result files' if check else 'updated'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
