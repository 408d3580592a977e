#!/usr/bin/env python3
"""Breaks every kernel that can be chosen in every way that is about waiting, and asks whether the executor notices.

  python3 tests/executor/mutations.py build-executor            every mutant that has no verdict yet
  python3 tests/executor/mutations.py build-executor --sample 40 --kernel wgmma_tma
  python3 tests/executor/mutations.py --report                  the share that is caught

A mutant removes or alters one wait, arrival, expected number of bytes, fence, barrier, parity, count, box or commit of a
kernel or of a header that it includes. It is compiled for one element type, put in front of the tool's objects, and
runs the kernel's problems of configs/executor.yaml under every schedule. It is caught when the executor finds
something, when a result is wrong, or when the run crashes or never ends.

Verdicts are kept in mutations.tsv beside this file, one line per mutant, so that a run goes on where it was stopped.
equivalent.tsv lists the mutants that change nothing, each with the reason.
"""

import argparse
import json
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
VERDICTS = HERE / "mutations.tsv"
EQUIVALENT = HERE / "equivalent.tsv"
SECONDS = 120  # of processor time; what runs longer never ends

# Calls that a mutant leaves out where they are a statement of their own.
REMOVED = """wait arrive arrive_expect_bytes arrive_at expect init_barrier init fence_barrier_init fence_async_shared
wgmma_fence wgmma_commit wgmma_wait commit_stores commit_copies wait_copies wait_stores_read sync_threads arrive_threads
cluster_sync cluster_arrive cluster_arrive_relaxed cluster_wait __syncthreads __syncwarp __threadfence
__threadfence_block wait_for_previous_kernel release release_to acquire skip advance""".split()
# Calls whose last argument is a number of arrivals or threads, or which argument is a number of bytes or a parity.
COUNTS = {"init_barrier": 1, "sync_threads": 0, "arrive_threads": 0}
BYTES = {"arrive_expect_bytes": 1, "expect": 1, "bulk_load": 2, "bulk_store": 2}
PARITIES = {"wait": 1, "test_wait": 1, "try_wait": 1}
GROUPS = ("wgmma_wait", "wait_copies", "wait_stores_read")
CALL = re.compile(
    r"(?:\b|(?<=_))(?:(?:\w+(?:\.|::))*)("
    + "|".join(sorted({*REMOVED, *COUNTS, *BYTES, *PARITIES}, key=len, reverse=True))
    + r")\b(<[^;{}()]*>)?\("
)
ASSIGNED = re.compile(r"\b\w*(?:phase|parity)\w*(?:\[[^\]]*\])?\s*\^=\s*[^;]+;")
EXTENT = re.compile(
    r"(\.(?:box|a_extent|b_extent|a_depth|b_depth|shared_bytes)\s*=\s*)(\{[^{};]*\}|[^,;{}()]+(?:\([^()]*\))?)"
)


def blank_comments(text):
    """The text with comments and strings replaced by blanks of the same length."""
    return re.sub(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.DOTALL
    )


def arguments_of(code, opening):
    """The ranges of a call's arguments, and where it is closed."""
    depth, begin, ranges = 0, opening + 1, []
    for at in range(opening, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
            if depth == 0:
                if code[begin:at].strip():
                    ranges.append((begin, at))
                return ranges, at
        elif code[at] == "," and depth == 1:
            ranges.append((begin, at))
            begin = at + 1
    return [], len(code)


def is_statement(code, begin, end):
    """Whether the call stands alone: behind ; { } ) or `else`, in front of ;"""
    before = re.sub(r"\(void\)\s*$", "", code[:begin].rstrip()).rstrip()
    return code[end + 1 :].lstrip().startswith(";") and (
        before[-1:] in ";{})" or before.endswith("else") or "#" in before.splitlines()[-1]
    )


def edits_of(text):
    """(kind, begin, end, replacement) of every mutant of a file."""
    code = blank_comments(text)
    for call in CALL.finditer(code):
        name, opening = call[1], call.end() - 1
        if re.search(r"__device__[^;{}()]*$", code[: call.start()]) or re.search(
            r"\b(?:auto|void|int|bool)\s+$", code[: call.start()]
        ):
            continue  # a declaration
        ranges, end = arguments_of(code, opening)
        if name in REMOVED and is_statement(code, call.start(), end):
            yield "without " + name, call.start(), end + 1, "(void)0"

        def argument(table, change, kind):
            index = table.get(name)
            if index is not None and index < len(ranges):
                begin, stop = ranges[index]
                yield kind + " of " + name, begin, stop, " (" + text[begin:stop].strip() + ")" + change

        step = "32" if name.endswith("threads") else "1"
        yield from argument(COUNTS, " + " + step, "one more")
        yield from argument(COUNTS, " - " + step, "one fewer")
        if name == "init" and len(ranges) == 2:  # of a ring
            for (begin, stop), who in zip(ranges, ("producer", "consumer")):
                yield f"one more {who} of a ring", begin, stop, " (" + text[begin:stop].strip() + ") + 1"
                yield f"one fewer {who} of a ring", begin, stop, " (" + text[begin:stop].strip() + ") - 1"
        yield from argument(BYTES, " + 16", "16 more bytes")
        yield from argument(BYTES, " - 16", "16 fewer bytes")
        yield from argument(PARITIES, " ^ 1", "the other parity")
        if name in GROUPS:
            groups = call[2]
            if groups is None:
                yield "one group late: " + name, opening, opening, "<1>"
            else:
                begin = call.start(2)
                yield "one group late: " + name, begin, call.end(2), "<(" + text[begin + 1 : call.end(2) - 1] + ") + 1>"
    for one in ASSIGNED.finditer(code):
        yield "parity not flipped", one.start(), one.end(), ";"
    for one in EXTENT.finditer(code):
        value, begin = one[2].rstrip(), one.start(2)
        if value.startswith("{"):
            for number, (first, last) in enumerate(arguments_of(code, begin)[0]):
                yield f"half the box along {number}", first, last, " (" + text[first:last].strip() + ") / 2"
        elif "shared_bytes" in one[1]:
            if value not in ("0", "bytes"):
                yield "128 bytes less shared memory", begin, begin + len(value), "static_cast<int>(" + value + ") - 128"
        else:
            yield "half the box", begin, begin + len(value), "(" + value + ") / 2"


class Kernel:
    """A variant on the GPU that can be chosen."""

    def __init__(self, op, name, folder):
        self.op, self.name, self.folder = op, name, folder
        self.files = self.closure()

    def closure(self):
        seen, open_files = [], sorted(self.folder.glob("*.cu"))
        while open_files:
            path = open_files.pop()
            if path in seen:
                continue
            seen.append(path)
            for include in re.findall(r'#include "([^"]+)"', path.read_text()):
                file = ROOT / "src" / include
                if file.exists() and (include.startswith("ops/") or include == "device/pipeline.cuh"):
                    open_files.append(file)
        return [path for path in seen if path.suffix in (".cu", ".cuh", ".hpp")]


def kernels():
    found = []
    for table in sorted((ROOT / "src/ops").glob("*/variants.def")):
        for line in table.read_text().splitlines():
            match = re.match(r"TMAOPS_VARIANT\((\w+), (\w+), cuda, \w+, \"[^\"]*\"(.*)\)", line)
            if not match or re.search(r"\bstudy\b", match[3]):
                continue
            folders = list(table.parent.rglob(f"gpu/{match[2]}"))
            found.append(Kernel(match[1], match[2], folders[0]))
    return found


class Mutant:
    def __init__(self, path, text, number, kind, begin, end, replacement):
        self.path, self.kind = path, kind
        self.mutated = text[:begin] + replacement + text[end:]
        self.line = text.count("\n", 0, begin) + 1
        statement = " ".join(text[text.rfind("\n", 0, begin) + 1 : (text.find("\n", end) + 1 or len(text))].split())
        self.key = "\t".join([str(path.relative_to(ROOT / "src")), kind, statement, str(number)])


def mutants(all_kernels):
    """Each mutant once, with the kernels that have its file."""
    files = {}
    for kernel in all_kernels:
        for path in kernel.files:
            files.setdefault(path, []).append(kernel)
    for path, having in sorted(files.items()):
        text, numbers = path.read_text(), {}
        for kind, begin, end, replacement in edits_of(text):
            mutant = Mutant(path, text, 0, kind, begin, end, replacement)
            number = numbers[mutant.key] = numbers.get(mutant.key, -1) + 1
            yield Mutant(path, text, number, kind, begin, end, replacement), having


class Builder:
    """Compiles a kernel again as the build does, and links the tool with it in front."""

    def __init__(self, build):
        self.build = build
        commands = subprocess.run(
            ["ninja", "-C", build, "-t", "commands", "tmaops_tool"], capture_output=True, text=True, check=True
        ).stdout
        self.compiles = [line for line in commands.splitlines() if "/generated/kernels/" in line and " -c " in line]
        self.link = next(
            line
            for line in reversed(commands.splitlines())
            if re.search(r" -o \S*bin/tmaops\b| -o \S*cli/tmaops\b", line)
        )

    def compile(self, kernel, overlay, dtype):
        home = str(kernel.folder.relative_to(ROOT / "src/ops")).replace("/gpu/", "_").replace("/", "_")
        source = overlay / "kernel.cu"
        parts = [f'#include "sites/{home}.hpp"'] + [
            f'#include "{p.relative_to(ROOT / "src")}"' for p in sorted(kernel.folder.glob("*.cu"))
        ]
        source.write_text("\n".join(parts) + "\n")
        command = shlex.split(self.compiles[0].split(" && ")[-1])
        command = command[
            next(i for i, word in enumerate(command) if re.search(r"(g\+\+|c\+\+|clang\+\+)[-\d]*$", word)) :
        ]
        kept, skip = [], False
        for word in command:
            if skip:
                skip = False
            elif word in ("-o", "-c", "-MF", "-MT", "-x"):
                skip = True
            elif word not in ("-MD", "-g1"):
                kept.append(word)
        command = [
            kept[0],
            f"-I{overlay / 'src'}",
            *kept[1:],
            "-g0",
            f'-DTMAOPS_TYPES="{dtype}"',
            "-x",
            "c++",
            "-c",
            str(source),
            "-o",
            str(overlay / "kernel.o"),
        ]
        return subprocess.run(command, cwd=self.build, capture_output=True, text=True)

    def link_tool(self, overlay):
        words = shlex.split(
            self.link.split("&& ", 1)[1].rsplit(" && ", 1)[0] if self.link.startswith(":") else self.link
        )
        at = words.index("-o")
        words[at + 1] = str(overlay / "tmaops")
        words[at:at] = ["-Wl,--allow-multiple-definition", "-Wl,-S"]
        first = next(i for i, word in enumerate(words) if word.endswith(".o"))
        words.insert(first, str(overlay / "kernel.o"))
        return subprocess.run(words, cwd=self.build, capture_output=True, text=True)


def with_variant(problem, kernel):
    return f"{problem[:-1]}, variant: {kernel.name}}}"


class Problems:
    """The problems of configs/executor.yaml that a kernel takes, of the element type of most of them."""

    def __init__(self, tool):
        self.tool, self.known = tool, {}
        self.all, section = [], ""
        for line in (ROOT / "configs/executor.yaml").read_text().splitlines():
            section = line[:-1] if re.fullmatch(r"\w+:", line) else section
            if line.startswith("  - {"):
                self.all.append(f"{section}: {line[4:].strip()}")

    def takes(self, kernel, problem):
        is_backward = "direction: backward" in problem
        if not problem.startswith(kernel.op.removesuffix("_backward") + ":") or is_backward != kernel.op.endswith(
            "_backward"
        ):
            return False
        command = [str(self.tool), "verify", "-p", with_variant(problem, kernel), "--schedule", "eager", "--json", "-q"]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode in (0, 3) and bool(json.loads(done.stdout)["rows"])

    def of(self, kernel):
        if kernel not in self.known:
            taken = [problem for problem in self.all if self.takes(kernel, problem)]
            dtypes = [re.search(r"dtype: (\w+)", problem)[1] for problem in taken]
            dtype = max(sorted(set(dtypes)), key=dtypes.count, default=None)
            self.known[kernel] = dtype, [problem for problem, own in zip(taken, dtypes) if own == dtype]
        return self.known[kernel]


def run(tool, kernel, problems, seeds, findings):
    """ "caught" with the reason, or "missed"."""
    text = [word for problem in problems for word in ("-p", with_variant(problem, kernel))]
    command = [
        "bash",
        "-c",
        f'ulimit -t {SECONDS}; exec "$@"',
        "run",
        str(tool),
        "verify",
        "--device",
        "executor",
        "--seeds",
        str(seeds),
        "--findings",
        str(findings),
        "-q",
        *text,
    ]
    findings.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode in (0, 3):
        return "missed", ""
    if done.returncode == 1:
        rules = {one["rule"] for one in json.loads(findings.read_text())["findings"]} if findings.exists() else set()
        return "caught", ", ".join(sorted(rules)) or "wrong result"
    if done.returncode < 0 or done.returncode > 128:
        return "caught", f"ends by signal {abs(done.returncode) % 128}"
    return "error", (done.stderr.strip().splitlines() or ["?"])[-1][:200]


def judge(builder, mutant, having, problems):
    for kernel in having[:3]:
        dtype, taken = problems.of(kernel)
        if not taken:
            continue
        with tempfile.TemporaryDirectory() as folder:
            overlay = pathlib.Path(folder)
            copy = overlay / "src" / mutant.path.relative_to(ROOT / "src")
            copy.parent.mkdir(parents=True)
            copy.write_text(mutant.mutated)
            if builder.compile(kernel, overlay, dtype).returncode != 0:
                return "does not compile", "", kernel.name
            linked = builder.link_tool(overlay)
            if linked.returncode != 0:
                return "error", linked.stderr.strip().splitlines()[-1][:200], kernel.name
            for seeds in (1, 4):
                verdict, by = run(overlay / "tmaops", kernel, taken, seeds, overlay / "findings.json")
                if verdict != "missed":
                    return verdict, by, kernel.name
    return "missed", "", having[0].name


def read_table(path):
    if not path.exists():
        return {}
    lines = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {"\t".join(line[:4]): line[4:] for line in lines}


def report():
    verdicts, equivalent = read_table(VERDICTS), read_table(EQUIVALENT)
    counted = {key: one for key, one in verdicts.items() if one[0] in ("caught", "missed")}
    missed = [key for key, one in counted.items() if one[0] == "missed"]
    open_ones = [key for key in missed if key not in equivalent]
    caught = len(counted) - len(missed)
    whole = caught + len(open_ones)
    print(
        f"{len(verdicts)} mutants: {caught} caught, {len(missed) - len(open_ones)} equivalent, {len(open_ones)} missed, "
        f"{len(verdicts) - len(counted)} do not compile; caught of those that are not equivalent: {100 * caught / max(1, whole):.1f} %"
    )
    by_numbers = sum(one[1] == "wrong result" for one in counted.values())
    print(f"{caught - by_numbers} by a rule or an end, {by_numbers} by a wrong result alone")
    for key in open_ones:
        print("missed: " + key.replace("\t", " | "))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--kernel", action="append", help="only mutants of this variant's own folder")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn by --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="only name the mutants")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        return report()
    wanted = list(mutants(kernels()))
    if options.kernel:
        wanted = [(m, having) for m, having in wanted if m.path.parent.name in options.kernel]
    if options.list:
        for mutant, having in wanted:
            print(f"{mutant.path.relative_to(ROOT)}:{mutant.line}: {mutant.kind} ({', '.join(k.name for k in having)})")
        return
    known = read_table(VERDICTS)
    wanted = [(m, having) for m, having in wanted if m.key not in known]
    if options.sample:
        wanted = random.Random(options.seed).sample(wanted, min(options.sample, len(wanted)))
    builder = Builder(options.build)
    tool = pathlib.Path(options.build) / "bin/tmaops"
    problems = Problems(tool)
    for number, (mutant, having) in enumerate(wanted, 1):
        verdict, by, kernel = judge(builder, mutant, having, problems)
        print(
            f"{number}/{len(wanted)} {verdict} {by}: {mutant.path.relative_to(ROOT)}:{mutant.line}: {mutant.kind} [{kernel}]",
            flush=True,
        )
        if verdict != "error":
            with VERDICTS.open("a") as file:
                file.write("\t".join([mutant.key, verdict, by, kernel]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
