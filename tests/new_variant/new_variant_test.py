#!/usr/bin/env python3
"""A new variant is one folder and one line: shown by adding one to every operator of a copy of the tree.

  new_variant_test.py --source DIR --work DIR --objects BUILD [--cmake CMAKE] [--cxx CXX] [--launcher CCACHE] [--nvcc NVCC]

Into the copy goes, for each operator, the folder cpu/toy with toy.cpp, and a line on top of variants.def; with nvcc also
gpu/toy_kernel with kernel.cu for gemm. Nothing else is touched: configured and built, the tool must list the variants, choose
them where nobody names one, check them against the reference and time them. A GPU runs what is for it where there is one.

The library of the copy must have one more object for each new variant. These and the tables of variants are compiled; they
go before the other objects, those of the folder BUILD of the same tree, into the tool.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

LINE = re.compile(r"^TMAOPS_VARIANT\((\w+), (\w+), (cpu|cuda), .*\n", re.MULTILINE)
CPU_LINE = 'TMAOPS_VARIANT({op}, toy, cpu, any, "a variant of a test")\n'
GPU_LINE = 'TMAOPS_VARIANT(gemm, toy_kernel, cuda, sm90, "a variant of a test", regs(64), smem(0), sass("LDG"))\n'
# A variant may do anything: this one does what the operator's reference does.
CPU_VARIANT = """// A variant of a test.
#include "ops/{problem}"

namespace tmaops::ops::{op} {{

namespace {reference} {{
Work plan(const Problem&, const Arguments&, const Config&);
}}

namespace toy {{

Support supports(const Problem&, const DeviceInfo&) {{ return Support::yes(); }}

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {{
  return {reference}::plan(problem, arguments, config);
}}

}}  // namespace toy
}}  // namespace tmaops::ops::{op}
"""
GPU_VARIANT = """// A variant of a test: one thread per element of D.
#include <cuda_fp16.h>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm::toy_kernel {
namespace {

struct Job {
  const __half* a;
  const __half* b;
  float* d;
  std::int64_t n, k, a_row, a_column, b_row, b_column, d_row, d_column;
};

__global__ void kernel(const __grid_constant__ Job job) {
  const std::int64_t i = blockIdx.x;
  for (std::int64_t j = threadIdx.x; j < job.n; j += blockDim.x) {
    float sum = 0;
    for (std::int64_t k = 0; k < job.k; ++k)
      sum += __half2float(job.a[i * job.a_row + k * job.a_column]) * __half2float(job.b[k * job.b_row + j * job.b_column]);
    job.d[i * job.d_row + j * job.d_column] = sum;
  }
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  const bool plain = problem.batch == 1 && problem.alpha == 1 && problem.beta == 0 && !problem.bias_dtype &&
                     problem.activation == Activation::none && !problem.empty();
  if (plain && problem.a.dtype == DType::f16 && problem.b.dtype == DType::f16 && problem.d.dtype == DType::f32)
    return Support::yes();
  return Support::no("multiplies f16 to f32 alone");
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device);
  work.add(kernel, {.grid = static_cast<unsigned>(problem.m), .block = 128},
           Job{static_cast<const __half*>(arguments.a), static_cast<const __half*>(arguments.b),
               static_cast<float*>(arguments.d), problem.n, problem.k, problem.a.row_stride, problem.a.column_stride,
               problem.b.row_stride, problem.b.column_stride, problem.d.row_stride, problem.d.column_stride});
  return work;
}

}  // namespace tmaops::ops::gemm::toy_kernel
"""
# A small problem of every operator that bench knows.
PROBLEMS = {
    "gemm": "gemm: {mode: RC, size: 32, dtype: f32}",
    "ms_deform_attn": "ms_deform_attn: {levels: '8x8 4x4', queries: 16, heads: 2, channels: 8, points: 2}",
    "ms_deform_attn_backward": "ms_deform_attn: {levels: '8x8 4x4', queries: 16, heads: 2, channels: 8, points: 2, direction: backward}",
    "resample": "resample: {case: '4,50->60,8'}",
    "resample_backward": "resample: {case: '4,50->60,8', direction: backward}",
}
GPU_PROBLEM = "gemm: {mode: RC, size: 256, dtype: f16, out: f32}"


def run(*command, code=0, cwd=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode != code:
        sys.exit(f"FAILED ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def copy_tree(source, to):
    to.mkdir(parents=True)
    for part in ("include", "src", "study", "cmake", "scripts", "CMakeLists.txt", "LICENSE"):
        if (source / part).is_dir():
            shutil.copytree(source / part, to / part)
        else:
            shutil.copy(source / part, to / part)


def home_of(room, op):
    """As tmaops_home() in cmake/TmaopsVariants.cmake."""
    part = re.sub(f"^{room.name}_?", "", op) or "forward"
    return room / part if (room / part).is_dir() else room


def leave_out_variants(room, kept):
    """Takes away the variants of which kept(name, device) is false."""
    definitions = room / "variants.def"
    text = definitions.read_text(encoding="utf-8")
    for line in LINE.finditer(text):
        op, name, device = line.groups()
        if not kept(name, device):
            text = text.replace(line.group(0), "")
            shutil.rmtree(home_of(room, op) / ("gpu" if device == "cuda" else "cpu") / name)
    definitions.write_text(text, encoding="utf-8")


def add(room, folder, file, content, line):
    """One folder and one line."""
    folder.mkdir(parents=True)
    (folder / file).write_text(content, encoding="utf-8")
    definitions = room / "variants.def"
    text = definitions.read_text(encoding="utf-8")
    first = text.index(re.search(r"^TMAOPS_.*$", text, re.MULTILINE).group(0))
    definitions.write_text(text[:first] + line + text[first:], encoding="utf-8")


def add_variants(tree, with_gpu):
    """Adds a variant to every operator; returns the operators."""
    operators = []
    for room in sorted(path.parent for path in tree.glob("src/ops/*/variants.def")):
        lines = [line.groups() for line in LINE.finditer((room / "variants.def").read_text(encoding="utf-8"))]
        for op in dict.fromkeys(op for op, _, _ in lines):
            home = home_of(room, op)
            problem = home if (home / "problem.hpp").exists() else room
            reference = next(name for of, name, _ in lines if of == op and name.startswith("reference"))
            add(
                room,
                home / "cpu" / "toy",
                "toy.cpp",
                CPU_VARIANT.format(
                    problem=(problem / "problem.hpp").relative_to(tree / "src/ops").as_posix(),
                    op=op,
                    reference=reference,
                ),
                CPU_LINE.format(op=op),
            )
            operators.append(op)
        if with_gpu and room.name == "gemm":
            add(room, room / "gpu" / "toy_kernel", "kernel.cu", GPU_VARIANT, GPU_LINE)
    return operators


LIBRARY = "src/libtmaops_with_studies.a"


def objects_of(folder):
    """What the library consists of in a build folder."""
    return set(re.findall(r"^    (\S+[.]o)$", run("ninja", "-C", folder, "-t", "query", LIBRARY), re.MULTILINE))


def build(tree, folder, options, variants):
    cache = (options.objects / "CMakeCache.txt").read_text(encoding="utf-8")
    settings = [
        f"-D{setting}"
        for setting in re.findall(r"^(?:TMAOPS|CMAKE_BUILD_TYPE)\w*:(?!INTERNAL).*=.*$", cache, re.MULTILINE)
    ]
    settings += [f"-DCMAKE_CXX_COMPILER={options.cxx}", "-DTMAOPS_BUILD_TESTS=OFF"]
    if options.launcher:
        settings += [
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={options.launcher}",
            f"-DCMAKE_CUDA_COMPILER_LAUNCHER={options.launcher}",
        ]
    if options.nvcc:
        settings.append(f"-DCMAKE_CUDA_COMPILER={options.nvcc}")
    run(options.cmake, "-G", "Ninja", "-S", tree, "-B", folder, *settings)
    whole, before = objects_of(folder), objects_of(options.objects)
    new = whole - before
    expect(len(new) == variants and before <= whole, f"new objects: {new}, and gone: {before - whole}")
    made = sorted(new | {name for name in whole if re.search(r"tables_cxx|_table[.]cpp|registry[.]cpp", name)})
    run("ninja", "-C", folder, *made)
    kernels = [folder / name for name in made if name.endswith(".cu.o")]
    digests = ("--json", folder / "digests.json", "--include", folder / "digests.inc")
    run(sys.executable, tree / "cmake/code_digests.py", "--source", tree, *digests, *kernels)

    link = run("ninja", "-C", options.objects, "-t", "commands", "tool/tmaops").splitlines()[-1]
    tool = folder / "tmaops"
    words = shlex.split(re.sub(r"^: && | && :$", "", link.strip()))
    words[words.index("-o") + 1] = tool
    place = next(i for i, word in enumerate(words) if str(word).endswith(LIBRARY))
    run(*words[:place], *(folder / name for name in made), *words[place:], cwd=options.objects)
    return tool


def check_listed(tool, op, name):
    variants = json.loads(run(tool, "list", op, "--json"))[0]["variants"]
    mine = [variant for variant in variants if variant["name"] == name]
    expect(len(mine) == 1 and mine[0]["built"], f"{op} does not list {name} as built: {variants}")
    digests = json.loads((tool.parent / "digests.json").read_text(encoding="utf-8"))["digests"]
    expect(name in digests[op], f"nothing identifies the code of {name}: {digests[op]}")


def check_runs(tool, problem, device, name):
    """Chosen where nobody names one, right, and timed."""
    listed = json.loads(run(tool, "list", "-p", problem, "--device", device, "--json"))[0]
    expect(listed["selected"] == name, f"{problem}: {listed['selected']} is chosen, not {name}")
    verified = json.loads(run(tool, "verify", "-p", problem, "--device", device, "--json"))["rows"]
    expect(verified[0]["selected"] == name and verified[0]["verified"], f"{problem}: verify says {verified[0]}")
    timed = json.loads(
        run(
            tool,
            "bench",
            "-p",
            problem,
            "--device",
            device,
            "--peers",
            "",
            "--samples",
            "5",
            "--min-time",
            "0",
            "-o",
            "-",
        )
    )["rows"]
    expect(timed[0]["selected"] == name and timed[0]["us"]["median"] > 0, f"{problem}: bench says {timed[0]}")


def main():
    parser = argparse.ArgumentParser()
    for option in ("--source", "--work", "--objects"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    for option, default in (("--cmake", "cmake"), ("--cxx", "c++"), ("--launcher", ""), ("--nvcc", "")):
        parser.add_argument(option, default=default)
    options = parser.parse_args()

    tree = options.work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    copy_tree(options.source, tree)
    operators = add_variants(tree, bool(options.nvcc))
    os.environ["TMAOPS_GEMM_TUNING"] = "off"
    tool = build(tree, options.work / "build", options, len(operators) + bool(options.nvcc))
    for op in operators:
        check_listed(tool, op, "toy")
        if op in PROBLEMS:
            check_runs(tool, PROBLEMS[op], "cpu", "toy")
    gpu = ""
    if options.nvcc and "gemm" in operators:
        check_listed(tool, "gemm", "toy_kernel")
        gpu = ", toy_kernel was built"
        if (
            subprocess.run(
                [tool, "list", "-p", GPU_PROBLEM, "--device", "cuda"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            check_runs(tool, GPU_PROBLEM, "cuda", "toy_kernel")
            gpu += " and chosen, verified and timed"
    print(f"toy was listed, chosen, verified and timed: {', '.join(operators)}{gpu}")


if __name__ == "__main__":
    main()
