#!/usr/bin/env python3
"""How many broken kernels the executor names: removes or alters one wait, arrival, fence, barrier, parity, count, box, size
of a bulk copy or copy group at a time, in every kernel and in the ring of the device layer, and runs the variants that
reach it.

mutations.py FOLDER [--only PATH...] [--share N/M] [--out FILE] [--jobs N]
mutations.py --check [--out FILE]    whether FILE has a row for each mutant of today's sources, and no other row

FOLDER gets a copy of the tree whose one build holds all mutants; the variable TMAOPS_MUTANT chooses one. A mutant is
caught if `tmaops verify --device executor`, or a test of tests/executor/calls_test.cu, fails or does not end.
tests/executor/equivalent.tsv lists those that change nothing that the kernel promises, each with its reason; they are not
counted. The file of results holds one row for each, with a digest of the file that it was judged in.
FOLDER/verdicts.jsonl has them as they come: another run keeps what was caught in the same sources. --only judges the
mutants of these files alone, and keeps the other rows of the results.
"""

import argparse
import collections
import concurrent.futures
import functools
import hashlib
import json
import operator
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = (
    "src/ops/**/*.cu",
    "src/ops/**/*.cuh",
    "study/**/*.cu",
    "study/**/*.cuh",
    "study/**/maps.cpp",
    "src/device/pipeline.cuh",
)
# A whole statement that may go.
REMOVED = re.compile(
    r"(?<=[;{})\n])(?P<lead>\s*(?:else |//[^\n]*\n\s*)*)(?P<call>(?:\(void\))?(?:[\w.:\[\]]+(?:\.|->|::))?"
    r"(?:wait\w*|arrive\w*|__syncthreads|__syncwarp|sync_\w+|fence\w*|commit_\w+|wgmma_\w+|cluster_\w+|pass_on|release\w*|"
    r"expect\w*|acquire|skip|init_barrier)(?:<[\w\s+*,-]*>)?)\("
)
# What an argument becomes: function, number of the argument, and the alterations of it by a flag.
ALTERED = (
    (r"\bwait", 1, {"parity": "({0}) ^ static_cast<std::uint32_t>({1})"}),
    (r"\binit_barrier", 1, {"count": "({0}) + {1}"}),
    (r"\bring\.init", 1, {"count": "({0}) + {1}"}),
    (r"\barrive_expect_bytes", 1, {"bytes more": "({0}) + 16 * {1}", "bytes less": "({0}) - 16 * {1}"}),
    (r"\.expect", 1, {"bytes more": "({0}) + 16 * {1}", "bytes less": "({0}) - 16 * {1}"}),
    (r"\bbulk_load", 2, {"bytes more": "({0}) + 16 * {1}", "bytes less": "({0}) - 16 * {1}"}),
    (r"\bbulk_store", 2, {"bytes more": "({0}) + 16 * {1}", "bytes less": "({0}) - 16 * {1}"}),
    (r"\bsync_threads<[\w\s+]+>", 0, {"count": "({0}) + 32 * {1}"}),
    (r"\barrive_threads<[\w\s+]+>", 0, {"count": "({0}) + 32 * {1}"}),
)
WAIT_GROUPS = re.compile(
    r"(?<![\w:])(?P<name>(?:device::)?(?:wgmma_wait|wait_copies|wait_stores_read))<(?P<count>[\w\s+-]+)>\(\)"
)
# What stands in front of the extents of a box, in braces, or of one of them.
BOX = re.compile(
    r"\.box(?:\[\d\])? = (?=(?P<braces>\{)?)|level_map\([^;{)]*(?P<call>\{)|tiled_spec\([^;{]*\{[^}]*\}, (?P<spec>\{)"
)
# The loops over more matrices than a grid takes would want 65,536 of them.
SHORTER = (re.compile(r"(constexpr \w+ kMostGridRows = )[^;]+;"), r"\g<1>4;")
PARITY = re.compile(r"(?P<all>phase_? \^= (?P<value>[^;]+));")
PLAIN = ("--no-dependent-launch",)
TARGETS = ("tmaops_tool", "test_executor")
CALLS = "executor_calls."  # the suite of tests/executor/calls_test.cu
RANDOM = ("--schedule", "random")
HEADER = """#pragma once
#include <cstdio>
#include <cstdlib>
#include <ctime>
struct TmaopsMutants {
  int active = std::getenv("TMAOPS_MUTANT") ? std::atoi(std::getenv("TMAOPS_MUTANT")) : -1;
  unsigned char reached[8192] = {};
  ~TmaopsMutants() {
    const char* file = std::getenv("TMAOPS_MUTANTS_REACHED");
    std::FILE* out = file ? std::fopen(file, "a") : nullptr;
    for (int i = 0; out && i < 8192; ++i)
      if (reached[i]) std::fprintf(out, "%d ", i);
    if (out) std::fprintf(out, "\\n%f\\n", 1.0 * std::clock() / CLOCKS_PER_SEC);
    if (out) std::fclose(out);
  }
};
inline TmaopsMutants tmaops_mutants;
[[gnu::noinline, gnu::no_sanitize("thread")]] inline int tmaops_mutant(int number) {
  tmaops_mutants.reached[number] = 1;
  return tmaops_mutants.active == number;
}
"""


def closing(text, at):
    """The place after the parenthesis that closes the one before `at`."""
    depth = 1
    while depth:
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(text[at], 0)
        at += 1
    return at


def arguments(text, begin, end):
    """The places of the arguments between two parentheses."""
    places, depth, start = [], 0, begin
    for at in range(begin, end):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(text[at], 0)
        if text[at] == "," and depth == 0:
            places.append((start, at))
            start = at + 1
    return [*places, (start, end)]


def sites(path, text):
    """What can be changed in a file: (begin, end, replacement with {n}, line, what)."""
    line = lambda at: text.count("\n", 0, at) + 1  # noqa: E731
    comment = lambda at: "//" in text[text.rfind("\n", 0, at) + 1 : at]  # noqa: E731
    found = []
    for match in REMOVED.finditer(text):
        end = closing(text, match.end())
        begin = match.start("call")
        if text[end : end + 1] == ";" and not comment(begin):
            whole = text[begin:end]
            new = f"(tmaops_mutant({{n}}) ? void() : void({whole.removeprefix('(void)')}))"
            found.append((begin, end, new, line(begin), f"without {whole.split('(void)')[-1].split('(')[0]}"))
    for name, number, changes in ALTERED:
        for match in re.finditer(name + r"\(", text):
            end = closing(text, match.end()) - 1
            places = arguments(text, match.end(), end)
            if (
                number >= len(places)
                or comment(match.start())
                or text[match.start() - 6 : match.start()].endswith("void ")
            ):
                continue
            begin, end = places[number]
            if "[&]" in text[begin:end]:
                continue
            for what, new in changes.items():
                found.append(
                    (
                        begin,
                        end,
                        new.replace("{1}", "tmaops_mutant({n})"),
                        line(begin),
                        f"{what} of {re.search(r'(?<=[b.])[a-z_.]+', name)[0]}",
                    )
                )
    for match in WAIT_GROUPS.finditer(text):
        new = f"(tmaops_mutant({{n}}) ? {match['name']}<({match['count']}) + 1>() : {match[0]})"
        found.append(
            (match.start(), match.end(), new, line(match.start()), f"one group less waited for by {match['name']}")
        )
    for match in BOX.finditer(text):
        if match["braces"] or match["call"] or match["spec"]:
            inside = match.end() + 1 if match["braces"] else match.end()
            places = arguments(text, inside, closing(text, inside) - 1)
        else:
            places = [(match.end(), text.index(";", match.end()))]
        for begin, end in places:
            if text[begin:end].strip() not in ("1", "std::move(box)"):
                new = "({0}) / (1 + tmaops_mutant({n}))"
                found.append((begin, end, new, line(begin), f"box with half of {' '.join(text[begin:end].split())}"))
    for match in PARITY.finditer(text):
        new = f"phase_ ^= tmaops_mutant({{n}}) ? 0u : ({match['value']})"
        if "phase_" in match["all"]:
            found.append((match.start(), match.end() - 1, new, line(match.start()), "parity not flipped"))
    return found


def apply(text, chosen):
    """The text with all of its mutants, the outer ones around the inner ones."""

    def inside(begin, end, some):
        out, at = "", begin
        some = sorted(some, key=lambda one: (one[1][0], -one[1][1]))
        while some:
            (number, (b, e, new, *_)), *rest = some
            within = [one for one in rest if one[1][0] >= b and one[1][1] <= e]
            some = [one for one in rest if one not in within]
            old = inside(b, e, within) if within else text[b:e]
            new = new.replace("{n}", str(number))
            original = text[b:e]
            new = (
                new.replace("{0}", old)
                if "{0}" in new
                else new.replace(original.removeprefix("(void)"), old.removeprefix("(void)"))
            )
            out, at = out + text[at:b] + new, e
        return out + text[at:end]

    return inside(0, len(text), chosen)


def all_sites():
    files = sorted({path for pattern in PLACES for path in ROOT.glob(pattern)})
    numbered, number = [], 0
    for path in files:
        text = path.read_text()
        for site in sites(path, text):
            numbered.append((number, str(path.relative_to(ROOT)), site))
            number += 1
    return numbered


def described(path, site):
    """What a row says of a mutant besides its verdict."""
    text = (ROOT / path).read_text()
    begin, _, _, at, what = site
    lines = text.count("\n", 0, begin)
    statement = " | ".join(" ".join(line.split()) for line in text.splitlines()[lines : lines + 2])
    return {"file": path, "line": at, "statement": statement, "change": what}


def source(path):
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:12]


def check(out):
    mutant = operator.itemgetter("file", "statement", "change")
    rows = json.loads(out.read_text())["rows"]
    judged = collections.Counter(mutant(row) for row in rows)
    today = collections.Counter(mutant(described(path, site)) for _, path, site in all_sites())
    old = {row["file"] for row in rows if (ROOT / row["file"]).exists() and row["source"] != source(row["file"])}
    for file in sorted(old):
        print(f"{file} has changed since its mutants were judged")
    wrong = [f"no row for {one}" for one in today - judged] + [f"a row for {one}" for one in judged - today]
    if wrong:
        sys.exit("\n".join(wrong) + "\nmutations.py FOLDER --only FILE judges the mutants of a file")


def write_tree(folder, numbered, left_out):
    for path in {one[1] for one in numbered}:
        text = (ROOT / path).read_text()
        chosen = [(number, site) for number, at, site in numbered if at == path and number not in left_out]
        new = '#include "core/mutants.hpp"\n#line 1\n' + apply(text, chosen)
        file = folder / path
        if file.read_text() != new:
            file.write_text(new)


def build(folder, numbered):
    """Builds all mutants, or takes what an earlier run built of the same; leaves out those that do not compile."""
    left_out = set()
    made = folder / "mutants.json"
    same = digest(numbered)
    if made.exists() and json.loads(made.read_text())["same"] == same:
        return set(json.loads(made.read_text())["left_out"])
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    (folder / "src/core/mutants.hpp").write_text(HEADER)
    for file in (folder / "src").rglob("*.hpp"):
        if SHORTER[0].search(text := file.read_text()):
            file.write_text(SHORTER[0].sub(SHORTER[1], text))
    write_tree(folder, numbered, left_out)
    environment = {**os.environ, "BUILD": "1", "TARGETS": " ".join(TARGETS)}
    subprocess.run(["sh", "scripts/executor.sh"], cwd=folder, check=False, stdout=sys.stderr, env=environment)
    for _ in range(6):
        write_tree(folder, numbered, left_out)
        done = subprocess.run(
            ["ninja", "-C", "build-executor", "-k", "0", *TARGETS], cwd=folder, capture_output=True, text=True
        )
        if done.returncode == 0:
            made.write_text(json.dumps({"same": same, "left_out": sorted(left_out)}))
            return left_out
        errors = {
            (path, int(at)) for path, at in re.findall(r"((?:src|study)/[\w/.]+\.cuh?):(\d+):\d+: error", done.stdout)
        }
        more = {number for number, path, site in numbered if (path, site[3]) in errors} - left_out
        print(f"{len(more)} mutants do not compile", file=sys.stderr, flush=True)
        if not more:
            sys.exit(done.stdout[-4000:])
        left_out |= more
    sys.exit("the mutants do not compile")


def digest(numbered):
    """Of the mutants and the files that they are in."""
    files = sorted({path for _, path, _ in numbered})
    return hashlib.sha256(
        "".join([json.dumps(numbered)] + [(ROOT / path).read_text() for path in files]).encode()
    ).hexdigest()[:16]


def tests_of(tool):
    return tool.removesuffix("bin/tmaops") + "tests/executor/test_executor"


def problems(tool):
    """Every problem of configs/executor.yaml with each of its operator's variants, and the calls that are tests."""
    listed = json.loads(subprocess.run([tool, "list", "--json"], capture_output=True, text=True, check=True).stdout)
    variants = {one["operator"]: [v["name"] for v in one["variants"] if v["device"] == "cuda"] for one in listed}
    made, of = [], ""
    for text in (ROOT / "configs/executor.yaml").read_text().splitlines():
        of = text.removesuffix(":") if re.fullmatch(r"\w+:", text) else of
        if not text.startswith("  - {"):
            continue
        one = text.removeprefix("  - ").removesuffix("}")
        names = variants[of + "_backward" * ("direction: backward" in one)]
        if "variant: " in one:
            made.append(f"{of}: {one}}}")
        else:
            made += [f"{of}: {one}, variant: {name}}}" for name in names]
    listing = [tests_of(tool), "--gtest_list_tests", f"--gtest_filter={CALLS}*"]
    listed = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    return made + [CALLS + name for name in re.findall(r"^  (\w+)", listed, re.MULTILINE)]


def verify(tool, problem, mutant=None, *more, limit=600):
    """How a run of a problem ends ("right", or what is wrong), its CPU seconds and the mutants that it reached. A run with a
    mutant ends at the first finding."""
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "reached"
        environment = {**os.environ, "TMAOPS_MUTANTS_REACHED": str(file)}
        if mutant is not None:
            environment = {**os.environ, "TMAOPS_MUTANT": str(mutant), "TMAOPS_EXECUTOR_BREAK": "1"}
        command = [tool, "verify", "-q", "--device", "executor", *more, "-p", problem]
        if problem.startswith(CALLS):  # runs under every schedule by itself
            command = [tests_of(tool), f"--gtest_filter={problem}"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            preexec_fn=lambda: (
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
            ),
        )
        reached, seconds = file.read_text().splitlines() if file.exists() else ("", limit)
        reached = {int(one) for one in reached.split()}
        if done.returncode in (0, 3):  # 3: the variant takes some of the problem's cases
            return "right", float(seconds), reached
        if done.returncode == 4 and mutant is None:
            return "right", float(seconds), set()  # the variant leaves the problem out
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return "does not end", limit, reached
        rules = re.findall(r"^\s*(?!got|needed|mend)(\w+): (?=[a-z])", done.stderr, re.MULTILINE)
        word = rules[0] if rules else "wrong values" if done.returncode == 1 else f"ends with {done.returncode}"
        return word, float(seconds), reached


def strict_findings(tool, problem, mutant=-1):
    """The rules that a problem breaks with --strict, each with its line; and whether the run ends."""
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "findings.json"
        command = [tool, "verify", "-q", "--device", "executor", *RANDOM, *PLAIN, "--strict", "-p", problem]
        environment = {**os.environ, "TMAOPS_MUTANT": str(mutant)}
        done = subprocess.run([*command, "--findings", str(file)], capture_output=True, env=environment, timeout=600)
        if not file.exists():
            return {(f"ends with {done.returncode}", "")}
        return {(one["rule"], one["line"]) for one in json.loads(file.read_text())["findings"]}


@functools.cache
def strict_without_mutant(tool, problem):
    return strict_findings(tool, problem)


def judge_in_strict(tool, number, problems):
    for problem in problems:
        more = strict_findings(tool, problem, number) - strict_without_mutant(tool, problem)
        if more:
            return "caught", f"{min(more)[0]}, with --strict"
    return None


def judge(tool, number, what, reaching):
    """Whether the executor catches a mutant, from the cheapest run to the dearest."""
    if not reaching:
        return "not reached", ""
    by_time = sorted(reaching, key=reaching.get)
    in_strict = [one for one in by_time if not one.startswith(CALLS)][:2]
    # What brings the lanes of a warp together often orders nothing else.
    if what == "without __syncwarp" and (outcome := judge_in_strict(tool, number, in_strict)):
        return outcome
    plain = () if "previous_kernel" in what else PLAIN
    tries = [(one, (*plain, "--schedule", schedule)) for schedule in ("random", "lazy") for one in by_time]
    tries += [(one, ("--schedule", schedule)) for schedule in ("starving", "eager") for one in by_time[:3]]
    for problem, how in tries:  # a ring goes round in some problems alone
        if problem.startswith(CALLS) and "random" not in how:
            continue
        outcome, *_ = verify(tool, problem, number, *how, limit=int(10 + 10 * reaching[problem]))
        if outcome != "right":
            return "caught", outcome
    return judge_in_strict(tool, number, in_strict) or ("missed", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--check", action="store_true", help="judge nothing")
    parser.add_argument("--only", nargs="+", default=[], help="files of the tree, or ends of their paths")
    parser.add_argument("--share", default="1/1", help="judge every M-th mutant, from the N-th on")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/executor/mutations.json")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.check:
        return check(given.out)
    if given.folder is None:
        parser.error("needs FOLDER")
    folder = given.folder.resolve()
    numbered = [one for one in all_sites() if one[1].endswith(tuple(given.only) or "")]
    left_out = build(folder, numbered)
    tool = str(folder / "build-executor/bin/tmaops")
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        alone = problems(tool)
        runs = dict(zip(alone, pool.map(lambda problem: verify(tool, problem, None, *RANDOM, *PLAIN), alone)))
        wrong = [f"{problem}: {run[0]}" for problem, run in runs.items() if run[0] != "right"]
        if wrong:
            sys.exit("without a mutant:\n" + "\n".join(wrong))
        first, every = map(int, given.share.split("/"))
        chosen = [one for one in numbered if one[0] not in left_out]
        chosen = chosen[first - 1 :: every]
        equivalent = {}
        for row in (ROOT / "tests/executor/equivalent.tsv").read_text().splitlines():
            path, statement, what, reason = row.split("\t")
            equivalent[path, statement, what] = reason

        journal = folder / "verdicts.jsonl"
        verdicts = [json.loads(row) for row in journal.read_text().splitlines()] if journal.exists() else []
        same = digest(numbered)
        kept = {one["number"]: one for one in verdicts if one.pop("sources") == same and one["outcome"] == "caught"}

        def row(one):
            number, path, site = one
            made = {"number": number, **described(path, site)}
            at, what = made["line"], made["change"]
            if number in kept:
                return kept[number]
            if (path, made["statement"], what) in equivalent:
                outcome = "equivalent", equivalent[path, made["statement"], what]
            else:
                reaching = {problem: run[1] for problem, run in runs.items() if number in run[2]}
                outcome = judge(tool, number, what, reaching)
            print(f"{path}:{at}: {what}: {': '.join(filter(None, outcome))}", file=sys.stderr, flush=True)
            made |= {"outcome": outcome[0], "said": outcome[1]}
            with journal.open("a") as file:
                file.write(json.dumps({"sources": same, **made}) + "\n")
            return made

        rows = list(pool.map(row, chosen))
    if given.only:
        kept_rows = [
            one
            for one in json.loads(given.out.read_text())["rows"]
            if not one["file"].endswith(tuple(given.only)) and (ROOT / one["file"]).exists()
        ]
        rows = sorted(kept_rows + rows, key=lambda one: (one["file"], one["line"]))
    counts = {
        outcome: sum(one["outcome"] == outcome for one in rows)
        for outcome in ("caught", "missed", "not reached", "equivalent")
    }
    head = {"schema": 1, "share": given.share, "not_compiled": len(left_out), **counts}
    for one in rows:  # numbers are of one run alone
        one["source"] = one.get("source", source(one["file"]))
        one.pop("number", None)
    lines = ",\n".join("  " + json.dumps(one) for one in rows)
    given.out.write_text(json.dumps(head)[:-1] + ', "rows": [\n' + lines + "\n]}\n")
    print(counts)


if __name__ == "__main__":
    main()
