#!/usr/bin/env python3
"""Checks what a library exports.

check_symbols.py nothing-of-tmaops LIBRARY        no symbol of tmaops: it was linked in, and stays inside
check_symbols.py hidden-archive ARCHIVE           no symbol of tmaops that a library would export into which it is linked
check_symbols.py api LIBRARY INCLUDE_DIR          what the headers mark with TMAOPS_API, and nothing else; and the
                                                  library needs no part of CUDA to be loaded
check_symbols.py studies ARCHIVE FULL SOURCE_DIR  no variant of study/ in the archive, nor an operator with nothing but
                                                  studies; the full archive of the tool and the tests has them
check_symbols.py waits ARCHIVE                    of a build with CUDA: no object calls what waits for the device, or
                                                  takes or frees memory outside the order of the streams
"""

import pathlib
import re
import subprocess
import sys


def exported(library):
    lines = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return [line.split(" ", 2)[2] for line in lines.splitlines()]


def visible(archive):
    """Symbols that are defined in an archive and leave a library into which it is linked."""
    lines = subprocess.run(["readelf", "-sW", archive], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in lines.splitlines()]
    names = {
        row[7]
        for row in rows
        if len(row) > 7 and row[4] in ("GLOBAL", "WEAK", "UNIQUE") and row[5] == "DEFAULT" and row[6] != "UND"
    }
    return subprocess.run(
        ["c++filt"], input="\n".join(sorted(names)), capture_output=True, text=True, check=True
    ).stdout.splitlines()


def declared(include):
    """Names of the functions and classes that the headers mark."""
    names = set()
    for header in sorted(pathlib.Path(include).rglob("*.h*")):
        text = re.sub(r"//.*|^\s*#.*", "", header.read_text(encoding="utf-8"), flags=re.MULTILINE)
        names |= set(re.findall(r"TMAOPS_API\b[^;({]*?(~?\w+|operator=)\s*\(", text))
        for name in re.findall(r"\b(?:class|struct) TMAOPS_API (\w+)", text):
            names |= {name, f"~{name}"}
    return names


def needed(library):
    """Libraries that are loaded with this one."""
    lines = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", lines)


def studies(source):
    """Namespaces of what only studies need."""
    found = []
    for file in sorted(pathlib.Path(source).glob("study/*/variants.def")):
        lines = re.findall(r"^TMAOPS_VARIANT\((\w+), (\w+),", file.read_text(encoding="utf-8"), re.MULTILINE)
        chosen = (pathlib.Path(source) / "src/ops" / file.parent.name).is_dir()
        found += [f"tmaops::ops::{op}::" + (f"{name}::" if chosen else "") for op, name in lines]
    return sorted(set(found))


def check_studies(archive, full, source):
    wanted = studies(source)
    texts = [
        subprocess.run(["nm", "-C", "--defined-only", file], capture_output=True, text=True, check=True).stdout
        for file in (archive, full)
    ]
    wrong = [f"{archive}: holds {name}" for name in wanted if name in texts[0]]
    if not any(name in texts[1] for name in wanted):
        wrong.append(f"{full}: holds none of {', '.join(wanted)}")
    print("\n".join(wrong) or f"{archive}: none of the {len(wanted)} studies")
    return 1 if wrong else 0


WAITS = {
    f"cuda{name}"
    for name in (
        "Malloc",
        "Free",
        "Memcpy",
        "Memset",
        "MallocHost",
        "FreeHost",
        "HostAlloc",
        "DeviceSynchronize",
        "StreamSynchronize",
        "ThreadSynchronize",
        "MemcpyToSymbol",
    )
}
TAKES = {"cudaLaunchKernelExC", "cudaMallocFromPoolAsync", "cudaFreeAsync"}


def check_waits(archive):
    lines = subprocess.run(["nm", "--undefined-only", archive], capture_output=True, text=True, check=True).stdout
    used = {
        line.split()[-1].removesuffix("_ptsz").removesuffix("_ptds") for line in lines.splitlines() if " U " in line
    }
    wrong = [f"{archive}: refers to {name}" for name in sorted(used & WAITS)]
    wrong += [
        f"{archive}: does not refer to {name}, so what else it refers to is not known" for name in sorted(TAKES - used)
    ]
    print("\n".join(wrong) or f"{archive}: none of {len(WAITS)} functions that wait")
    return 1 if wrong else 0


def name_of(symbol):
    """The last part of a symbol's name, without its arguments; the class of a typeinfo or vtable."""
    return re.sub(r"\(.*| const$|\[abi:\w+\]", "", symbol.split(" for ")[-1]).split("::")[-1]


def main():
    what, library = sys.argv[1:3]
    if what == "studies":
        return check_studies(*sys.argv[2:])
    if what == "waits":
        return check_waits(library)
    symbols = visible(library) if what == "hidden-archive" else exported(library)
    if what in ("nothing-of-tmaops", "hidden-archive"):
        wrong = [symbol for symbol in symbols if "tmaops" in symbol]
    else:
        api = declared(sys.argv[3])
        wrong = [
            symbol
            for symbol in symbols
            if not re.match(r"((typeinfo|typeinfo name|vtable) for )?tmaops(::|_\w+$)", symbol)
            or re.search(r"\b(detail|ops)::", symbol)
            or name_of(symbol) not in api
        ]
        wrong += [
            f"not exported: {name}"
            for name in sorted(api - {"ErrorDetails", "~ErrorDetails"} - {name_of(s) for s in symbols})
        ]
        wrong += [f"needs {name}" for name in needed(library) if re.match(r"lib(cuda|cudart|nv)", name)]
    for symbol in wrong:
        print(f"{library}: {symbol}")
    print(f"{library}: {len(symbols)} symbols")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
