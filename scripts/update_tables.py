#!/usr/bin/env python3
"""Writes the result tables of README.md and docs/ from the committed result files.

A document says where a table goes and what it shows:

  <!-- table results/cpu/cpu.json operator=resample dtype=f32 -->
  ...replaced...
  <!-- /table -->

`results/{h100,h200}/X.json` takes the machine with the most cases of today's code, the first one where they are equal, and the one that
the document shows where there are none. In README.md such a table shows these cases alone.
Keys after the file filter rows by equality (operator, dtype, device, temperature, kind); `show=copy,cublas` names the
implementations beside the chosen variant, all without it; `cases=RC_256|RC_1024` (_ stands for a space) keeps some
cases. One line per case: the chosen variant's time, then every other implementation of the same case with its time and
how many times slower it is. `ratios=cublas/tmaops>=1.05` adds the quotient of two times, with a goal where one is set: a
missed goal is bold. With `ratios` alone the table has no times. `rows=implementations` makes one line per implementation of
`show` and one column per case, times alone.
`<!-- counters FILE ... -->` makes a table of hardware counters, one line per implementation;
`columns=us,GHz,tensor` chooses among COLUMNS. Those from `mean` on are for tile_load, whose rows need no counters. With `run=FILE`
the table may come before its rows do, and names the configuration to run.
`<!-- models FILE -->` makes the table of a file of bench_models.py. `<!-- picture NAME -->` keeps the picture that it holds, and says
below it where its numbers come from (scripts/pictures.py).

Below a table stands whether the code of its variants has changed since it was measured. Each row has a digest of the code that
ran (cmake/code_digests.py); --digests names the file with those of a build. Where the build cannot tell, because it has no
kernels or another compiler made them, the document keeps what it says. README.md may show no row of other code.

  update_tables.py [--digests build/generated/code_digests.json]            rewrite the documents
  update_tables.py [--digests build/generated/code_digests.json] --check    exit 1 when a document differs from what its
                                                                            result files say
"""

import argparse
import json
import pathlib
import re
import sys

from pictures import SOURCES

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"(<!-- (?P<what>table|counters|models|picture) (?P<spec>[^\n]*?) -->\n)(?P<body>.*?)(<!-- /(?P=what) -->)",
    re.DOTALL,
)


def microseconds(value):
    """Three significant digits, in a unit that reads well."""
    value = float(f"{value:.3g}")  # 999.6 us are 1.00 ms
    for limit, scale, unit in ((1e3, 1, "us"), (1e6, 1e-3, "ms"), (float("inf"), 1e-6, "s")):
        if value < limit:
            scaled = value * scale
            digits = 2 if scaled < 10 else 1 if scaled < 100 else 0
            return f"{scaled:.{digits}f} {unit}"
    raise ValueError(value)


def of_peak(counter):
    return lambda row: f"{row['counters'][counter + '.avg.pct_of_peak_sustained_elapsed']:.0f} %"


def count(value):
    """Three significant digits."""
    for limit, scale, unit in ((1e4, 1, ""), (1e6, 1e-3, " k"), (1e9, 1e-6, " M"), (float("inf"), 1e-9, " G")):
        if value < limit:
            return f"{float(f'{value * scale:.3g}'):g}{unit}"
    raise ValueError(value)


def total(counter, scale=1, unit=""):
    return lambda row: count(row["counters"][counter + ".sum"] * scale) + unit


def part(counter, of):
    """Both are medians of their own: a part may come out a little above the whole."""
    return lambda row: (
        f"{min(100, 100 * row['counters'][counter + '.sum'] / max(row['counters'][of + '.sum'], 1)):.0f} %"
    )


def longest_wait(row):
    names = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active.ratio")
    waits = [(value, names.fullmatch(key)[1]) for key, value in row["counters"].items() if names.fullmatch(key)]
    warps, reason = max(waits)
    return f"{reason.replace('_', ' ')} {warps:.1f}"


COLUMNS = {
    "us": ("us, timed", lambda row: f"{row['us']['median']:.4g}"),
    "GPU us": ("us, counted", lambda row: f"{row['counters']['gpu__time_duration.sum'] / 1e3:.4g}"),
    "GHz": ("GHz, counted", lambda row: f"{row['counters']['sm__cycles_elapsed.avg.per_second'] / 1e9:.2f}"),
    "clock": (
        "cycles per timed ns",
        lambda row: f"{row['counters']['sm__cycles_elapsed.max'] / row['us']['median'] / 1e3:.2f}",
    ),
    "cycles": ("cycles", lambda row: count(row["counters"]["sm__cycles_elapsed.max"])),
    "active": ("SMs at work", of_peak("sm__cycles_active")),
    "dram": ("DRAM", lambda row: f"{row['counters']['dram__throughput.avg.pct_of_peak_sustained_elapsed']:.1f} %"),
    "dram back": (
        "DRAM, back to back",
        lambda row: f"{row['counters']['back_to_back']['dram__throughput.avg.pct_of_peak_sustained_elapsed']:.1f} %",
    ),
    "read": ("read", total("dram__bytes_read", 1, "B")),
    "l2": ("L2", of_peak("lts__throughput")),
    "l1": ("L1", of_peak("l1tex__throughput")),
    "sm": ("SM", of_peak("sm__throughput")),
    "issue": ("issue slots", of_peak("smsp__issue_active")),
    "tensor": ("tensor pipes", of_peak("sm__pipe_tensor_cycles_active")),
    "pipe": ("data pipe", of_peak("l1tex__data_pipe_lsu_wavefronts")),
    "passes": ("its passes", total("l1tex__data_pipe_lsu_wavefronts")),
    "instructions": ("instructions", total("smsp__inst_executed")),
    "requests": ("requests to the L2", total("lts__t_requests_srcunit_tex")),
    "sectors": ("sectors", total("lts__t_sectors_srcunit_tex")),
    "l1hits": ("L1 hits", part("l1tex__t_sectors_lookup_hit", "l1tex__t_sectors")),
    "l2hits": ("L2 hits", part("lts__t_sectors_srcunit_tex_lookup_hit", "lts__t_sectors_srcunit_tex")),
    "bytes": ("into the SMs", total("l1tex__m_xbar2l1tex_read_bytes", 1, "B")),
    "inflow": ("of their way in", of_peak("l1tex__m_xbar2l1tex_read_bytes")),
    "conflicts": ("bank conflicts", total("l1tex__data_bank_conflicts_pipe_lsu_mem_shared")),
    "wait": ("longest wait, warps per issue", longest_wait),
    "mean": ("mean, us", lambda row: f"{row['us']['mean']:.3g}"),
    "peak": ("of the memory's peak", lambda row: f"{100 * row['of_peak']:.1f} %"),
    "bandwidth": ("GB/s", lambda row: f"{row['gbps']:.0f}"),
    "rate": ("loads/s", lambda row: count(row["loads"]["per_second"])),
    "ns each": ("ns per load", lambda row: f"{row['loads']['ns_each']:.3f}"),
    "vs manual": ("of the fastest loads to registers", lambda row: f"{row['loads']['vs_manual']:.2f}x"),
    "block": (
        "cycles per block",
        lambda row: "{mean:.0f} ({min:.0f} - {max:.0f})".format(**row["loads"]["cycles_per_block"]),
    ),
}


# What stands below a table behind the revision.
NOTE = re.compile(r"revision [\w-]+\.(?: The run was interrupted: not all cases\.)?(.*)$", re.MULTILINE)


class Digests:
    """What identifies the code of a build."""

    def __init__(self, path):
        document = json.loads(path.read_text(encoding="utf-8")) if path else {"compilers": {}, "digests": {}}
        self.compilers, self.digests = document["compilers"], document["digests"]
        self.unknown = set()  # files whose rows could not be compared

    def changed(self, row):
        """Whether the variant of a row is other code today: True, False, or None where this build cannot tell."""
        code = row.get("code")
        device = "cuda" if row["device"].startswith("cuda") else "cpu"
        name = row["selected"].partition("/")[0]
        today = self.digests.get(row["operator"], {}).get(name, {})
        if code is None:
            return True  # older than the digests
        if device == "cuda" and self.compilers.get("cuda") != code["compiler"]:
            return None
        if self.digests and not today:
            return True  # a variant that is gone
        return code["digest"] not in today.values() if today else None

    def note(self, path, rows, before):
        """A sentence where the code of rows has changed; what stood there `before` where this build cannot tell."""
        variants = [row for row in rows if row.get("kind") == "variant"]
        answers = {row["selected"]: self.changed(row) for row in variants}
        if None in answers.values():
            self.unknown.add(path)
            found = NOTE.search(before)
            stood = found[1] if found else ""
            answers = {name: f"`{name}`" in stood if one is None else one for name, one in answers.items()}
        if not any(answers.values()):
            return ""
        if all("code" not in row for row in variants):
            return " The rows are older than the digests of the code: other code may run today."
        names = ", ".join(f"`{name}`" for name, changed in answers.items() if changed)
        return f" The code has changed since: {names}."


MACHINES = re.compile(r"results/\{(?P<machines>[\w,]+)\}/")


def fresh_cases(rows, shown, before, digests):
    """The cases whose shown rows are all of today's code. What a build cannot compare stays as it stands in `before`."""
    fresh = {}
    for row in rows:
        if row.get("kind") == "variant" and row["implementation"] in shown:
            changed = digests.changed(row)
            stale = f" {row['case']} |" not in before if changed is None else changed
            fresh[row["case"]] = fresh.get(row["case"], True) and not stale
    return [case for case, holds in fresh.items() if holds]


def on_one_machine(spec, before, digests, fresh_only):
    """The spec with one machine for `{h100,h200}`, and what is left out; `fresh_only`: takes cases of today's code alone."""
    found = MACHINES.search(spec)
    if found is None:
        return spec, ""
    offers = []
    for machine in found["machines"].split(","):
        one = spec.replace(found[0], f"results/{machine}/", 1)
        try:
            path, wanted, options, _, rows = read_rows(re.sub(r" run=\S+", "", one))
        except (SystemExit, FileNotFoundError):
            continue
        shown = {"tmaops", *options["show"]} if options["show"] != [""] else {row["implementation"] for row in rows}
        cases = fresh_cases(rows, shown, before if f"`{path}`" in before else "", digests)
        offers.append(((len(cases), not cases and f"`{path}`" in before), one, cases))
    if not offers:
        return spec.replace(found[0], f"results/{found['machines'].split(',')[0]}/", 1), ""
    _, one, cases = max(offers, key=lambda offer: offer[0])
    if not fresh_only:
        return one, ""
    if not cases:
        page = f"docs/{wanted['operator']}.md"
        return None, f"Not timed yet with today's kernels: [{page}]({page}) has the times of earlier ones.\n"
    asked = re.search(r" cases=(\S+)", one)
    left_out = [case for case in asked[1].replace("_", " ").split("|") if case not in cases]
    note = f"Left out, since other code was timed: {', '.join(left_out)}.\n" if left_out else ""
    return one.replace(asked[0], " cases=" + "|".join(cases).replace(" ", "_")), note


def source_line(path, document, rows, before, digests):
    machine = document["machine"]
    on_gpu = all(row["device"].startswith("cuda") for row in rows)
    where = machine["gpu"]["name"] if on_gpu else f"{machine.get('cpu')}, {machine.get('threads', '?')} threads"
    partial = " The run was interrupted: not all cases." if document.get("status") == "partial" else ""
    earlier = {}  # rows that were taken over from another run
    for row in rows:
        if row.get("revision", document["revision"]) != document["revision"]:
            earlier.setdefault(row["revision"], set()).add(f"`{row['implementation']}`")
    where += "".join(f" ({', '.join(sorted(names))}: revision {revision})" for revision, names in earlier.items())
    return f"`{path}`: {where}, revision {document['revision']}.{partial}{digests.note(path, rows, before)}"


def read_rows(spec):
    path, *filters = spec.split()
    wanted = dict(item.split("=", 1) for item in filters)
    options = {key: wanted.pop(key, "").split(",") for key in ("show", "columns", "ratios", "rows")}
    cases = [case for case in wanted.pop("cases", "").split("|") if case]
    document = json.loads((ROOT / path).read_text(encoding="utf-8"))
    rows = [
        row
        for row in document["rows"]
        if all(str(row.get(key)) == value for key, value in wanted.items())
        and (not cases or row["case"].replace(" ", "_") in cases)
    ]
    if not rows:
        raise SystemExit(f"{path}: no row with {wanted}")
    return path, wanted, options, document, rows


def once_run(make, spec, before, digests, has=lambda row: True):
    """A table whose rows may be there already; else the configuration that makes them. None: it names none."""
    configuration = re.search(r" run=(\S+)", spec)
    if configuration is None:
        return None
    spec = spec.replace(configuration[0], "")
    try:
        if any(map(has, read_rows(spec)[-1])):
            return make(spec, before, digests)
    except (SystemExit, FileNotFoundError):
        pass
    return f"Not run yet: `tmaops bench {configuration[1]}`.\n"


def make_counters(spec, before, digests):
    if (text := once_run(make_counters, spec, before, digests, lambda row: "counters" in row)) is not None:
        return text
    path, _, options, document, rows = read_rows(spec)
    columns = [COLUMNS[name.replace("_", " ")] for name in options["columns"]]
    lines = ["| case | |" + "".join(f" {title} |" for title, _ in columns), "|---|---|" + "---|" * len(columns)]
    last = None
    dtypes = len({row["dtype"] for row in rows}) > 1
    shown = [
        row
        for row in rows
        if (options["show"] == [""] or row["implementation"] in options["show"])
        and ("counters" in row or "loads" in row)
    ]
    for row in shown:
        name = f"**{row['selected']}**" if row["implementation"] == "tmaops" else row["implementation"]
        case = f"{row['case']} {row['dtype']}" if dtypes else row["case"]
        case, last = case if case != last else "", case
        lines.append(f"| {case} | {name} |" + "".join(f" {cell(row)} |" for _, cell in columns))
    return "\n".join(lines) + f"\n\n{source_line(path, document, shown, before, digests)}\n"


RATIO = re.compile(r"(?P<above>[^/<>]+)/(?P<below>[^<>]+?)(?:(?P<sign><=|>=)(?P<goal>[\d.]+))?")


def row_of(name, found):
    """The row of an implementation; where it was the chosen variant, that is the row of tmaops."""
    ours = found.get("tmaops")
    return found.get(name, ours if ours and ours["selected"].partition("/")[0] == name else None)


def ratio_cell(ratio, found):
    above, below = (row_of(ratio[side], found) for side in ("above", "below"))
    if above is None or below is None:
        return "-"
    value = above["us"]["median"] / below["us"]["median"]
    shown = f"{value:.3g}"
    if not ratio["goal"]:
        return shown
    missed = float(shown) > float(ratio["goal"]) if ratio["sign"] == "<=" else float(shown) < float(ratio["goal"])
    return f"{'**' + shown + '**' if missed else shown} ({ratio['goal']})"


def time_cell(row, ours):
    time = microseconds(row["us"]["median"]) if row else "-"
    return f"{time} ({row['us']['median'] / ours['us']['median']:.3g}x)" if row and ours else time


def own_cell(ours):
    return f"**{microseconds(ours['us']['median'])}** ({ours['selected']})" if ours else "-"


def make_table(spec, before, digests):
    if (text := once_run(make_table, spec, before, digests)) is not None:
        return text
    path, wanted, options, document, rows = read_rows(spec)
    cases = {}
    for row in rows:
        names = [row["case"]] if "operator" in wanted else [row["operator"], row["case"]]
        cases.setdefault((" ".join(names), row["dtype"], row["temperature"]), {})[row["implementation"]] = row
    ratios = [RATIO.fullmatch(text) for text in filter(None, options["ratios"])]
    quotients = [f"{ratio['above']} / {ratio['below']}" for ratio in ratios]
    shown = options["show"]
    if shown == [""]:
        shown = [] if ratios else list(dict.fromkeys(row["implementation"] for row in rows))
    dtypes, temperatures = ({row[key] for row in rows} for key in ("dtype", "temperature"))

    def title(case, dtype, temperature):
        return case + f" {dtype}" * (len(dtypes) > 1) + f", {temperature}" * (len(temperatures) > 1)

    untimed = []
    if options["rows"] == ["implementations"]:
        lines = [["", *(title(*key) for key in cases)]]
        lines += [
            [
                "default" if name == "tmaops" else name,
                *(time_cell(row_of(name, found), None) for found in cases.values()),
            ]
            for name in shown
        ]
        for quotient, ratio in zip(quotients, ratios, strict=True):
            lines.append([quotient, *(ratio_cell(ratio, found) for found in cases.values())])
    else:
        present = {name for found in cases.values() for name in found} - {"tmaops"}
        others = [name for name in shown if name in present]
        own = ["tmaops (variant)"] * (
            (others != [] or not ratios) and any("tmaops" in found for found in cases.values())
        )
        lines = [["case", "dtype", *own, *others, *quotients]]
        for (case, dtype, temperature), found in cases.items():
            ours = found.get("tmaops")
            untimed.append(own and not ours)
            name = title(case, "", temperature) if len(temperatures) > 1 else case
            lines.append(
                [name, dtype, *[own_cell(ours)][: len(own)]]
                + [time_cell(found.get(other), ours) for other in others]
                + [ratio_cell(ratio, found) for ratio in ratios]
            )
    of_ratios = {ratio[side] for ratio in ratios for side in ("above", "below")}
    used = [row for row in rows if row["implementation"] in {"tmaops", *shown, *of_ratios}]
    head, *rest = (f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
    text = "\n".join([head, "|" + "---|" * len(lines[0]), *rest])
    text += f"\n\n{source_line(path, document, used, before, digests)}\n"
    if any(untimed):
        text += "Where `tmaops` has no time, another kernel is chosen since.\n"
    return text


MODES = {"eager": "", "compiled": ", compiled", "cuda graphs": ", CUDA graphs"}


def make_models(spec, before, digests):
    path, _, _, document, rows = read_rows(spec)
    found = {}
    for row in rows:
        pair = row.get("mode", "eager"), row["implementation"]
        found.setdefault((row["case"], row["step"], row["dtype"]), {})[pair] = row
    modes = [mode for mode in MODES if any((mode, "own") in ways for ways in found.values())]
    with_memory = any(row["peak_mib"] is not None for row in rows)
    titles = ["model", "", "dtype"] + [f"{name}{MODES[mode]}" for mode in modes for name in ("its own code", "tmaops")]
    if with_memory:
        titles += ["memory, its own code", "tmaops"]
    lines = [f"| {' | '.join(titles)} |".replace("|  |", "| |"), "|---" * len(titles) + "|"]
    last = None
    for (case, step, dtype), ways in found.items():
        shown, last = case if case != last else "", case
        cells = [shown, step, dtype if dtype == "f32" else f"{dtype} autocast"]
        for mode in modes:
            own, ours = (ways.get((mode, name)) for name in ("own", "tmaops"))
            if own is None:
                cells += ["-", "-"]
                continue
            times = [microseconds(1e3 * row["ms"]["median"]) for row in (own, ours)]
            cells += [times[0], f"**{times[1]}** ({own['ms']['median'] / ours['ms']['median']:.3g}x)"]
        if with_memory:
            last_mode = next(mode for mode in reversed(modes) if (mode, "own") in ways)
            memory = (ways[last_mode, name]["peak_mib"] for name in ("own", "tmaops"))
            cells += ["-" if mib is None else f"{mib:,} MiB" for mib in memory]
        lines.append(f"| {' | '.join(cells)} |")
    versions = f"torch {document['machine']['torch']}, transformers {document['machine']['transformers']}"
    return (
        "\n".join(lines)
        + f"\n\n{source_line(path, document, rows, before, digests)} {versions}, `{document['config']['command']}`.\n"
    )


def make_picture(spec, before, digests):
    """What stands there, which is the picture, and below it the source of its numbers."""
    file, shows = SOURCES[spec]
    document = json.loads((ROOT / "results" / file).read_text(encoding="utf-8"))
    rows = [row for row in document.get("rows", []) if shows(row)]
    shown = rows or [{"device": "cuda"}]  # a list of products has no rows
    line = source_line(f"results/{file}", document, shown, before, digests)
    return f"{before.splitlines()[0]}\n\n{line}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--digests", type=pathlib.Path)
    options = parser.parse_args()
    digests = Digests(options.digests)
    problems = []
    makers = {"table": make_table, "counters": make_counters, "models": make_models, "picture": make_picture}

    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        readme = path.name == "README.md" and path.parent == ROOT

        def fill(match, readme=readme):
            spec, left_out = on_one_machine(match["spec"], match["body"], digests, readme)
            table = makers[match["what"]](spec, match["body"], digests) if spec else ""
            return match[1] + table + left_out + match[5]

        text = path.read_text(encoding="utf-8")
        new = BLOCK.sub(fill, text)
        if new != text:
            if options.check:
                problems.append(f"{path.relative_to(ROOT)} differs from its result files")
            else:
                path.write_text(new, encoding="utf-8")
                print(f"{path.relative_to(ROOT)}: updated")
        if readme:
            tables = re.sub(r"<!-- picture .*?<!-- /picture -->", "", new, flags=re.DOTALL)
            problems += [f"README.md shows rows of other code:{line}" for line in NOTE.findall(tables) if line]
    if digests.unknown and options.digests:
        print(f"not compared with this build, which has no kernels or others: {', '.join(sorted(digests.unknown))}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
