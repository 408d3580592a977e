"""Tables of goals beside what the result files hold. update_tables.py writes them where a document says

  <!-- table goals h200/gemm; hot
  case | plain | dependent launch
  RC 256 | cublas / tmaops >= 1.6 | cublas / tmaops_pdl >= 2.1
  seed = h200/ms_deform_attn; seed/uniform | tmaops <= 370 us |
  -->
  ...replaced...
  <!-- /table -->

A cell is a median time or a ratio of two, and its goal if it has one: "1.652 (1.6)". A missed goal is bold. Items separated
by ";" name the result file and values of its rows (case, dtype, temperature, implementation, ...). Those of the first
line hold for all rows, those of the first cell (behind "=" where it has a label) for its row; later ones replace earlier
ones of the same kind. A row that is only its first cell repeats the other cells of the row above. A cell that ends with "?" may come before its
rows do, and says "not run" then.
"""

import json
import re

BLOCK = re.compile(r"(<!-- table goals (?P<items>[^\n]*)\n(?P<rows>.*?)-->\n)(?P<body>.*?)(<!-- /table -->)", re.DOTALL)
KEYS = ("operator", "case", "dtype", "temperature", "implementation", "kind")


def select(items, before, read, other=None):
    """The file and the values of rows that items ask for, on top of those before. other(item): what another item adds."""
    wanted = dict(before)
    for item in filter(None, (item.strip() for item in items.split(";"))):
        if re.fullmatch(r"(h100|h200|cpu)/\w+", item):
            wanted["file"] = item
            continue
        keys = [key for key in KEYS if any(row[key] == item for row in read(wanted.get("file")))]
        if not keys and other is None:
            raise SystemExit(f"goals: results/{wanted['file']}.json has no row with '{item}'")
        wanted.update({keys[0]: item} if keys else other(item))
    return wanted


def median(wanted, read):
    rows = read(wanted["file"])
    found = {
        row["us"]["median"] for row in rows if all(row[key] == value for key, value in wanted.items() if key != "file")
    }
    if len(found) != 1:
        raise SystemExit(f"goals: {len(found)} rows for {wanted}, not one")
    return found.pop()


def cell(text, before, read, time):
    if text.rstrip().endswith("?"):
        try:
            return cell(text.rstrip()[:-1], before, read, time)
        except (SystemExit, FileNotFoundError):
            return "not run"
    match = re.fullmatch(r"(.*?)(?: (<=|>=) ([\d.]+)( us)?)?", text.strip())
    formula, sign, goal, unit = match.groups()
    if not formula:
        return ""
    left, _, right = formula.partition(" / ")
    first = select(left, before, read)
    value = median(first, read)
    if right:
        value /= median(select(right, first, read), read)
    shown = f"{value:.3f}" if right and value < 2 else f"{value:.3g}" if right else time(value)
    if not goal:
        return shown
    value = value if unit else float(shown)  # as a reader compares them
    missed = value > float(goal) if sign == "<=" else value < float(goal)
    return f"{'**' + shown + '**' if missed else shown} ({time(float(goal)) if unit else goal})"


def fill_goals(text, root, time):
    kept = {}

    def read(name):
        if name not in kept:
            kept[name] = json.loads((root / "results" / f"{name}.json").read_text(encoding="utf-8"))["rows"]
        return kept[name]

    def table(match):
        everywhere = select(match["items"], {}, read)
        heading, *rows = match["rows"].strip().split("\n")
        columns = [title.strip() for title in heading.split(" | ")]
        lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        cells = []
        for row in rows:
            name, *own = re.split(r" \|(?: |$)", row)
            cells = own or cells
            label, _, items = name.rpartition(" = ") if " = " in name else (name, "", name)
            here = select(items, everywhere, read)
            lines.append("| " + " | ".join([label.strip(), *(cell(one, here, read, time) for one in cells)]) + " |")
        return match[1] + "\n".join(lines) + "\n" + match[5]

    return BLOCK.sub(table, text)
