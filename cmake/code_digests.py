#!/usr/bin/env python3
"""Writes what identifies the code of every variant: result files keep it beside their times (docs/bench.md).

  code_digests.py --source DIR --cuda COMPILER --cpu COMPILER --json FILE --include FILE [OBJECT ...]

For a variant on a GPU it is the machine code of its kernels, read from the OBJECTs, one digest for each architecture. For one
on the CPU it is its sources: its folder, the shared files of its operator that it includes, and their .cpp files, without
comments and white space. What checks arguments and chooses is left out: it takes no part in what is timed.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from machine_code import Compressed, cubins, sections

LINE = re.compile(r"^TMAOPS_VARIANT\((\w+), (\w+), (cpu|cuda), ", re.MULTILINE)
INCLUDE = re.compile(r'^#include "((?:ops|study)/[^"]+)"', re.MULTILINE)
# A comment, or a text that may hold its signs.
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
NOT_TIMED = re.compile(r"/(problem|select|api|configs|supports|estimate)\.[ch]pp$")


def digest(parts):
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:16]


def variants(source):
    """(operator, name, device, folder of its operator) of every line of every variants.def."""
    for definitions in [*sorted(source.glob("src/ops/*/variants.def")), *sorted(source.glob("study/*/variants.def"))]:
        room = definitions.parent
        for op, name, device in LINE.findall(definitions.read_text(encoding="utf-8")):
            part = re.sub(f"^{room.name}_?", "", op) or "forward"  # as tmaops_home() in cmake/TmaopsVariants.cmake
            yield op, name, device, room / part if (room / part).is_dir() else room


def namespaces(mangled):
    """The names in front of a kernel's own: ["tmaops", "ops", "gemm", "wgmma_tma", ...]."""
    found, at = [], mangled.find("N") + 1
    while match := re.compile(r"\d+").match(mangled, at):
        at = match.end() + int(match[0])
        found.append(mangled[match.end() : at])
    return found


def of_kernels(objects):
    """{(operator, variant): {architecture: digest}} of the kernels in objects. Empty where the code is compressed."""
    code = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in objects:
        try:
            for arch, elf in cubins(pathlib.Path(path).read_bytes()):
                for name, _, content, _ in sections(elf):
                    if name.startswith(".text.") and content:
                        words = namespaces(name[6:])
                        if words[:2] == ["tmaops", "ops"] and len(words) > 3:
                            code[words[2], words[3]][arch].append(content)
        except Compressed:
            return {}
    return {key: {arch: digest(sorted(parts)) for arch, parts in of.items()} for key, of in code.items()}


def sources_of(source, place):
    """The files that a variant on the CPU is built from, below src/ops and study."""
    start = sorted(place.glob("*.[ch]pp")) if place.is_dir() else [place]
    found, waiting = set(), start
    while waiting:
        file = waiting.pop()
        if file in found or not file.exists() or NOT_TIMED.search(file.as_posix()):
            continue
        found.add(file)
        for included in INCLUDE.findall(file.read_text(encoding="utf-8")):
            header = source / ("src" if included.startswith("ops/") else "") / included
            waiting += [header, header.with_suffix(".cpp")]
    return sorted(found)


def bare(text):
    """C++ without comments and white space."""
    return re.sub(r"\s+", "", COMMENT.sub(lambda match: match[1] or "", text))


def of_sources(source, place):
    return digest(bare(file.read_text(encoding="utf-8")).encode() for file in sources_of(source, place))


def main():
    parser = argparse.ArgumentParser()
    for option in ("--source", "--json", "--include"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    parser.add_argument("--cuda", default="")
    parser.add_argument("--cpu", default="")
    parser.add_argument("objects", nargs="*")
    options = parser.parse_args()

    kernels = of_kernels(options.objects)
    found = {}
    for op, name, device, home in variants(options.source):
        if device == "cuda":
            made = kernels.get((op, name), {})
        else:
            made = {
                0: of_sources(
                    options.source, home / ("reference.cpp" if name.startswith("reference") else f"cpu/{name}")
                )
            }
        for arch, value in sorted(made.items()):
            found.setdefault(op, {}).setdefault(name, {})[str(arch)] = value
    compilers = {"cuda": options.cuda if kernels else "", "cpu": options.cpu}
    options.json.write_text(json.dumps({"compilers": compilers, "digests": found}, indent=1) + "\n", encoding="utf-8")
    rows = [
        f'    CodeDigestRow{{"{op}", "{name}", {arch}, "{value}"}},'
        for op, of in found.items()
        for name, made in of.items()
        for arch, value in made.items()
    ]
    lines = [
        "// Made by cmake/code_digests.py.",
        f'constexpr const char* kCudaCompiler = "{compilers["cuda"]}";',
        f'constexpr const char* kCpuCompiler = "{compilers["cpu"]}";',
        f"constexpr std::array<CodeDigestRow, {len(rows)}> kCodeDigests{{{{",
        *rows,
        "}};",
    ]
    options.include.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
