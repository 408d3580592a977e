"""A new option is six lines: shown by adding one to gemm in a copy of the tree.

The copy is built without optimisation and with the reference of each operator. Wherever the option is set, the library refuses the
call by its name: from C++, C, ctypes, and torch with and without its native half.
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# Each place: a file, what stands there, and what comes behind it.
PLACES = (
    ("include/tmaops/options.h", "  option(text, tuning, none, NULL)", " option(flag, toy, both, 0)"),
    ("include/tmaops/gemm.hpp", "  Stream stream = nullptr;\n", "  bool toy = false;\n"),
    (
        "src/ops/gemm/problem.cpp",
        '  const ArgumentChecks check("gemm");\n',
        '  if (options.toy) check.fail(ErrorCode::bad_parameter, "toy", "true", "false");\n',
    ),
    ("python/tmaops/_gemm.py", "    out_dtype: DType = None,\n", "    toy: bool = False,\n"),
    (
        "python/tmaops/torch.py",
        '    out_dtype: torch.dtype | None = None,\n) -> Tensor:\n    """activation(a @ b',
        None,
    ),
    ("python/tmaops/torch.py", '_call("gemm", (a, b), {', '"toy": toy, '),
)
PROGRAM = """
#include <cstring>
#include "tmaops/gemm.hpp"
#include "tmaops/error.hpp"
#include "tmaops/tmaops.h"
int main() {
  float data[1] = {1};
  const std::int64_t shape[2] = {1, 1};
  const tmaops_tensor one{data, {tmaops_device_cpu, 0}, 2, TMAOPS_F32, shape, nullptr, 0};
  float sum[1];
  const tmaops_tensor d{sum, {tmaops_device_cpu, 0}, 2, TMAOPS_F32, shape, nullptr, 0};
  tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
  if (tmaops_gemm(&one, &one, &d, &options, nullptr) != 0) return 1;
  options.toy = 1;
  if (tmaops_gemm(&one, &one, &d, &options, nullptr) == 0) return 2;
  if (std::strcmp(tmaops_last_error()->where, "gemm: toy") != 0) return 3;
  const tmaops::TensorView view(data, tmaops::DType::f32, tmaops::Layout::contiguous({1, 1}));
  const tmaops::TensorView to(sum, tmaops::DType::f32, tmaops::Layout::contiguous({1, 1}));
  try {
    tmaops::gemm(view, view, to, {.toy = true});
  } catch (const tmaops::Error& error) {
    return std::strstr(error.what(), "gemm: toy") == nullptr ? 4 : 0;
  }
  return 5;
}
"""
SCRIPT = """
import sys
import numpy, torch, tmaops
import tmaops.torch as ops

def refused(call):
    try:
        call()
    except tmaops.Error as error:
        assert error.where == "gemm: toy", error
    else:
        raise AssertionError("the option did not arrive")

a, t = numpy.ones((2, 2), "f4"), torch.ones(2, 2)
assert ops.native == (sys.argv[1] == "native")
assert "bool toy=False" in str(torch.ops.tmaops.gemm.default._schema)
assert (tmaops.gemm(a, a) == 2).all() and (ops.gemm(t, t) == 2).all()
refused(lambda: tmaops.gemm(a, a, toy=True))
refused(lambda: tmaops.plan_gemm(a, a, toy=True))
refused(lambda: ops.gemm(t, t, toy=True))
refused(lambda: ops.gemm(t.requires_grad_(), t, toy=True))
"""


def run(*command, **environment):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, (done.returncode, command, done.stdout[-4000:], done.stderr[-4000:])


def copied(tree):
    """The product, with one variant for each operator."""
    spec = importlib.util.spec_from_file_location("new_variant_test", ROOT / "tests/new_variant/new_variant_test.py")
    helper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    for part in ("include", "src", "cmake", "python/tmaops", "python/torch"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("lib", "bin", "__pycache__"))
    for file in ("CMakeLists.txt", "LICENSE"):
        shutil.copy(ROOT / file, tree / file)
    for room in sorted(path.parent for path in tree.glob("src/ops/*/variants.def")):
        helper.leave_out_variants(
            room, lambda name, device: device == "cpu" and name.startswith(("reference", "blocked"))
        )


def test_an_option_is_six_lines_and_arrives_everywhere(tmp_path):
    torch = pytest.importorskip("torch")
    if not all(map(shutil.which, ("cmake", "ninja", "c++"))):
        pytest.skip("needs cmake, ninja and c++")
    tree, build, libraries = tmp_path / "tree", tmp_path / "build", tmp_path / "tree/python/tmaops/lib"
    copied(tree)
    assert len(PLACES) <= 6
    for name, before, line in PLACES:
        text = (tree / name).read_text(encoding="utf-8")
        assert text.count(before) >= 1, (name, before)
        made = before + line if line else before.replace(",\n)", ",\n    toy: bool = False,\n)", 1)
        (tree / name).write_text(text.replace(before, made, 1), encoding="utf-8")
    settings = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DBUILD_SHARED_LIBS=ON"]
    settings += [f"-DTMAOPS_{part}=OFF" for part in ("CUDA", "HIGHWAY", "ONEDNN", "BUILD_TESTS", "BUILD_TOOL")]
    run("cmake", "-G", "Ninja", "-S", tree, "-B", build, *settings)
    run("cmake", "--build", build, "--target", "tmaops")
    libraries.mkdir()
    shutil.copy(build / "src/libtmaops.so", libraries)
    compiled = ["c++", "-std=c++20", "-O0", f"-I{tree}/include"]

    (tmp_path / "program.cpp").write_text(PROGRAM, encoding="utf-8")
    run(*compiled, "-DTMAOPS_SHARED", tmp_path / "program.cpp", "-o", tmp_path / "program", build / "src/libtmaops.so")
    run(tmp_path / "program", LD_LIBRARY_PATH=str(build / "src"))

    environment = {"PYTHONPATH": str(tree / "python"), "LD_LIBRARY_PATH": str(libraries)}
    run(sys.executable, "-c", SCRIPT, "python", **environment, TMAOPS_TORCH="python")
    folder = pathlib.Path(torch.__file__).parent
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 10):
        target = ["-fPIC", "-shared", "-DTORCH_TARGET_VERSION=0x020a000000000000ull", "-isystem", folder / "include"]
        linked = ["-o", libraries / "libtmaops_torch.so", f"-L{folder / 'lib'}", "-ltorch_cpu", "-ldl"]
        run(*compiled, *target, tree / "python/torch/operators.cpp", *linked)
        run(sys.executable, "-c", SCRIPT, "native", **environment, TMAOPS_TORCH="")
