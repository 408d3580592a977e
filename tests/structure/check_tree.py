#!/usr/bin/env python3
"""Checks the source tree against the architecture: who may include whom, and what a committed file may not hold.

  check_tree.py SOURCE_DIR            check the tree; prints every violation, exits 1 when there is one
  check_tree.py --self-test           show that each rule catches its violation

Dependency direction (left may include right): core -> nothing; tma -> core; device -> CUDA only;
ops -> device (CUDA files only), tma, core; c_api -> recording, core; executor -> device (its twins), tma, core;
offers -> core: what a wing offers to others, declared there and defined in the wing.
recording -> core and, of the operators, resample's public interface and the names of its options;
ops -> device (CUDA files only), tma, core; device -> nothing; tma -> core. One operator never includes another.
A wing includes the product, never another wing; the product includes no wing:
tool: cli -> io, executor (the words of its rules), and io -> recording; study -> ops, device (CUDA files only);
measure: commands -> bench, probe, config, executor; bench -> config, ops; probe -> device (CUDA files only). All of them -> offers, tma, core.
The executor's twins of the device layer declare what the layer declares.
"""

import pathlib
import re
import subprocess
import sys

ALLOWED = {
    "core": {"core"},
    "tma": {"tma", "core"},
    "device": {"device"},
    "ops": {"ops", "tma", "core"},
    "recording": {"recording", "core"},
    "c_api": {"c_api", "recording", "core"},
    "offers": {"offers", "core"},
    "study": {"study", "ops", "offers", "tma", "core"},
    "io": {"io", "offers", "recording", "core"},
    "config": {"config", "offers", "core"},
    "bench": {"bench", "config", "ops", "offers", "core"},
    "probe": {"probe", "tma", "core"},
    "commands": {"commands", "bench", "probe", "config", "executor", "offers", "ops", "tma", "core"},
    "executor": {"executor", "device", "tma", "core"},
    "cli": {"cli", "io", "offers", "recording", "ops", "executor", "tma", "core"},
}
ROOMS = ("gemm", "ms_deform_attn", "resample", "tile_load")
TOPS = ("src", "include", "tool", "measure", "study")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCES = (".hpp", ".cpp", ".cu", ".cuh", ".inc")
LONGEST = 400
LARGEST = 1_000_000  # bytes; the result files of a GPU run are the largest, with 400 kB
# What ThreadSanitizer is run on (TMAOPS_TESTED_FOLDERS in cmake/TmaopsCompiler.cmake): threads start nowhere else.
THREADED = ("core", "ops", "study", "bench")
THREADS = re.compile(r"\b(parallel_for|std::j?thread|std::async|pthread_create)\b")
# A variant's launches and its dynamic shared memory are held to the smem(...) of its line: by Work, and by kSite.
OUTSIDE_LIMIT = re.compile(r"launch_kernel<|launch_by_runtime\(|<<<|dynamic_shared<((?!smem)[^;])*?>\(\)")
# A block's fixed memory lies where the layer says, so that the executor knows of it (device::block_shared).
SHARED_VARIABLE = re.compile(r"(?<!extern )__shared__\s")
FUNCTION = re.compile(
    r"__device__ __forceinline__ (?:constexpr |explicit )?([\w:<>&*]+(?: [&*]+)?) (\w+)\(([^{;]*?)\)(?: const)? \{"
)
INTERNAL = ("check", "shared")  # of Watchdog and of WgmmaShape: no kernel calls them
THIRD_PARTY = re.compile(r"^(cuda|cub/|thrust/|nv/|CLI/|fmt/|yaml-cpp/|nlohmann/|hwy/|oneapi/|gtest/|zlib)")


def includes(text):
    return [(quote, name) for quote, name in INCLUDE.findall(text)]


def holds_kernels(path):
    return layer_of(path) in ("ops", "study") and path.suffix in (".cu", ".cuh")


def layer_of(path):
    """core, ops, ... of src; cli, bench and others of tool and measure; study; include."""
    return path.parts[0] if path.parts[0] in ("study", "include") else path.parts[1]


def check_source(path, text):
    """Violations of one file of C++ or CUDA (path relative to the root, as a PurePosixPath)."""
    found = []
    parts = path.parts
    layer = layer_of(path)
    for quote, name in includes(text):
        if parts[0] == "include":
            if THIRD_PARTY.match(name):
                found.append(f"{path}: a public header includes <{name}>")
            continue
        target = name.split("/")[0]
        if layer == "recording" and THIRD_PARTY.match(name):
            found.append(f"{path}: recording depends on the standard library only, not on <{name}>")
        if quote == '"' and target in ALLOWED and target != "tmaops":
            allowed = ALLOWED[layer] | (
                {"device"} if layer in ("ops", "study") and path.suffix in (".cu", ".cuh") else set()
            )
            allowed |= {"device"} if layer in ("bench", "probe") and path.suffix in (".cu", ".cuh") else set()
            if target not in allowed and not (layer == "recording" and name == "ops/resample/options.hpp"):
                found.append(f"{path}: {layer} may not include {name}")
        if layer == "device" and quote == '"' and name.startswith("tmaops/"):
            found.append(f"{path}: the device layer depends on CUDA only, not on {name}")
        own = parts[2:3] if layer == "ops" else parts[1:2]
        if layer in ("ops", "study") and len(parts) > 3:
            for room in ROOMS:
                if room != own[0] and name.startswith((f"ops/{room}/", f"study/{room}/")):
                    found.append(f"{path}: operator {own[0]} includes operator {room} ({name})")
    if layer in ("ops", "study", "bench", "probe") and "asm volatile" in text:
        found.append(f"{path}: inline PTX belongs into src/device")
    if layer in ("ops", "study", "probe") and SHARED_VARIABLE.search(text):
        found.append(f"{path}: a __shared__ variable instead of device::block_shared()")
    if holds_kernels(path) and OUTSIDE_LIMIT.search(text):
        found.append(f"{path}: a launch that is not in a Work, or dynamic_shared() without kSite.smem")
    if layer not in (*THREADED, "include") and THREADS.search(text):
        found.append(f"{path}: threads, but ThreadSanitizer does not test {layer} (cmake/TmaopsCompiler.cmake)")
    lines = text.count("\n")
    if lines > LONGEST and not holds_kernels(path):  # of a variant, check_variants.py counts what one must read
        found.append(f"{path}: {lines} lines, more than {LONGEST}")
    return found


def check_tree(root):
    found = []
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                relative = pathlib.PurePosixPath(path.relative_to(root).as_posix())
                found += check_source(relative, path.read_text(encoding="utf-8"))
    return found


def declarations(text):
    """The functions of a file of the device layer: result, name, and the types of the parameters."""
    found = set()
    for result, name, parameters in FUNCTION.findall(re.sub(r"//[^\n]*", "", text)):
        if name in INTERNAL:
            continue
        types = []
        for one in re.sub(r"\s+", " ", parameters).split(", "):
            one = one.split(" = ")[0]
            # A name ends a parameter, or stands in the parentheses of an array.
            one = re.sub(r"\((&)\w*\)", r"(\1)", one)
            types.append(
                re.sub(r"(?<=[\w>&*]) ?\b(?!int\b|bool\b|float\b|double\b|CacheHint\b)[a-z]\w*$", "", one).strip()
            )
        found.add(f"{result} {name}({', '.join(types)})")
    return found


def check_twins(root):
    """A host twin stands in for a file of the layer, so it has the same functions."""
    found = []
    for twin in sorted((root / "src/executor/shim/device").glob("*.cuh")):
        layer = declarations((root / "src/device" / twin.name).read_text(encoding="utf-8"))
        same = declarations(twin.read_text(encoding="utf-8"))
        found += [f"{twin.name}: the executor's twin has no {one}" for one in sorted(layer - same)]
        found += [f"{twin.name}: the executor's twin alone has {one}" for one in sorted(same - layer)]
    return found


def check_content(path, content):
    """Violations of one committed file of any kind: archives and programs are downloads or products of a build."""
    if len(content) > LARGEST:
        return [f"{path}: {len(content)} bytes, more than {LARGEST}"]
    picture = str(path).startswith("docs/images/") and content.startswith(b"\x89PNG")
    return [f"{path}: a binary file"] if b"\0" in content and not picture else []


def check_committed(root):
    """Every file git knows; nothing where the tree is no checkout."""
    listing = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=False)
    if listing.returncode != 0:
        return []
    paths = [root / name for name in listing.stdout.decode().split("\0") if name]
    return [
        line
        for path in paths
        if path.is_file()
        for line in check_content(path.relative_to(root).as_posix(), path.read_bytes())
    ]


def self_test():
    cases = [
        ("src/core/a.cpp", '#include "ops/registry.hpp"\n', "core may not include"),
        ("src/tma/a.cpp", '#include "ops/x.hpp"\n', "tma may not include"),
        ("src/ops/gemm/api.cpp", '#include "device/mbarrier.cuh"\n', "ops may not include"),
        ("src/ops/gemm/api.cpp", '#include "ops/resample/problem.hpp"\n', "includes operator resample"),
        ("src/ops/gemm/gpu/a/kernel.cu", '#include "study/gemm/shared/a.cuh"\n', "ops may not include"),
        ("study/gemm/gpu/a/kernel.cu", '#include "study/resample/shared/a.cuh"\n', "includes operator resample"),
        ("study/gemm/gpu/a/kernel.cu", '#include "bench/run/options.hpp"\n', "study may not include"),
        ("src/recording/a.cpp", "#include <fmt/format.h>\n", "standard library only"),
        ("src/recording/a.cpp", '#include "io/recording.hpp"\n', "recording may not include"),
        ("src/recording/a.cpp", '#include "ops/resample/problem.hpp"\n', "recording may not include"),
        ("measure/bench/a.cpp", '#include "cli/commands.hpp"\n', "bench may not include"),
        ("tool/cli/a.cpp", '#include "bench/x.hpp"\n', "cli may not include"),
        ("measure/commands/a.cpp", '#include "cli/main.hpp"\n', "commands may not include"),
        ("measure/bench/a.cpp", '#include "study/gemm/x.hpp"\n', "bench may not include"),
        ("src/core/a.cpp", '#include "offers/table.hpp"\n', "core may not include"),
        ("src/device/a.cuh", '#include "core/checks.hpp"\n', "device may not include"),
        ("tool/cli/a.cpp", '#include "bench/x.hpp"\n', "cli may not include"),
        ("measure/commands/a.cpp", '#include "cli/main.hpp"\n', "commands may not include"),
        ("measure/bench/a.cpp", '#include "study/gemm/x.hpp"\n', "bench may not include"),
        ("src/core/a.cpp", '#include "offers/table.hpp"\n', "core may not include"),
        ("src/device/a.cuh", '#include "tmaops/tensor.hpp"\n', "CUDA only"),
        ("include/tmaops/a.hpp", "#include <cuda_runtime.h>\n", "public header includes"),
        ("src/ops/gemm/gpu/a/kernel.cu", 'asm volatile("");\n', "inline PTX"),
        ("src/ops/gemm/gpu/a/kernel.cu", 'launch_kernel<kernel<T, 2>>("gemm: a", shape);', "not in a Work"),
        ("src/ops/gemm/gpu/a/kernel.cu", "kernel<<<1, 1>>>();", "not in a Work"),
        ("src/ops/gemm/gpu/a/more.cuh", "auto& s = device::dynamic_shared<Storage<2>>();", "without kSite"),
        ("measure/probe/a.cpp", '#include "bench/measure/machine.hpp"\n', "probe may not include"),
        ("measure/probe/a.cpp", '#include "device/barrier.cuh"\n', "probe may not include"),
        ("src/tma/a.cpp", '#include "probe/report.hpp"\n', "tma may not include"),
        ("tool/io/a.cpp", "std::thread worker;", "ThreadSanitizer does not test io"),
        ("src/ops/gemm/gpu/a/kernel.cu", "  __shared__ int sum;", "instead of device::block_shared"),
        ("src/ops/gemm/api.cpp", '#include "executor/findings.hpp"\n', "ops may not include"),
        ("src/core/long.cpp", "\n" * (LONGEST + 1), "lines, more than"),
    ]
    good = [
        ("src/ops/gemm/gpu/a/kernel.cu", '#include "device/mbarrier.cuh"\n#include "core/registry.hpp"\n'),
        ("tool/cli/a.cpp", '#include "io/x.hpp"\n#include "offers/x.hpp"\n#include <CLI/CLI.hpp>\n'),
        ("src/ops/gemm/gpu/a/kernel.cu", "work.add(kernel<T>, shape); dynamic_shared<Storage<2>, kSite.smem>();"),
        ("src/ops/gemm/gpu/a/kernel.cu", "\n" * (LONGEST + 1)),
        ("measure/probe/cuda/a.cu", '#include "device/barrier.cuh"\n#include "tma/tile.hpp"\n'),
    ]
    for name, text, expected in cases:
        found = check_source(pathlib.PurePosixPath(name), text)
        assert len(found) == 1 and expected in found[0], (name, found)
    layer = "__device__ __forceinline__ void load(void* to, const Hint hint, int (&at)[4]) {"
    assert declarations(layer) == declarations(layer.replace(" hint", "").replace("&at", "&")) != set()
    assert declarations(layer) != declarations(layer.replace("[4]", "[5]"))
    assert "binary" in check_content("a.whl", b"PK\3\4\0")[0]
    assert "more than" in check_content("a.json", b" " * (LARGEST + 1))[0]
    assert check_content("README.md", b"text") == []
    for name, text in good:
        assert check_source(pathlib.PurePosixPath(name), text) == [], name


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1])
    found = check_tree(root) + check_twins(root) + check_committed(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
