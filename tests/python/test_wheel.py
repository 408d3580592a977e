"""The wheel itself: what it asks of a system, its size, and what is not in it. Needs TMAOPS_WHEEL, which scripts/python_tests.sh sets."""

import ctypes
import importlib.metadata
import inspect
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest
import tmaops

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def wheel():
    if not os.environ.get("TMAOPS_WHEEL"):
        pytest.skip("needs TMAOPS_WHEEL, the file that was installed")
    return pathlib.Path(os.environ["TMAOPS_WHEEL"])


def needed(file):
    """Shared libraries that a program or library asks the system for."""
    listed = subprocess.run(["readelf", "-d", str(file)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", listed))


def test_auditwheel_finds_it_fit_for_glibc_2_28(wheel):
    auditwheel = pytest.importorskip("auditwheel")
    from auditwheel.wheel_abi import analyze_wheel_abi

    found = analyze_wheel_abi(
        None, None, wheel, frozenset(["libtorch_cpu.so"]), disable_isa_ext_check=False, allow_graft=False
    )
    assert re.fullmatch(r"manylinux_2_(1\d|2[0-8])_x86_64", found.overall_policy.name), (auditwheel, found)
    assert found.overall_policy.name in wheel.name


def test_it_asks_for_every_symbol_of_the_c_library_by_its_version(wheel, tmp_path):
    """Without one an old form of a function may be found, and auditwheel does not look at it."""
    libraries = [ctypes.CDLL(name) for name in ("libc.so.6", "libm.so.6")]
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    for file in (path for name in ("tmaops", "libtmaops*.so") for path in (tmp_path / "tmaops").rglob(name)):
        if not file.is_file():
            continue
        table = subprocess.run(["readelf", "-W", "--dyn-syms", str(file)], capture_output=True, text=True, check=True)
        asked = re.findall(r" GLOBAL DEFAULT +UND (\w+)$", table.stdout, re.MULTILINE)
        assert not [name for name in asked if any(hasattr(library, name) for library in libraries)], file.name
        assert "@GLIBC_" in table.stdout


def test_it_is_at_most_14_megabytes(wheel):
    assert wheel.stat().st_size <= 14_000_000


def test_its_libraries_ask_for_nothing_but_the_c_library_and_what_is_in_it(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    libraries = {
        "libc.so.6",
        "libm.so.6",
        "libdl.so.2",
        "libpthread.so.0",
        "librt.so.1",
        "ld-linux-x86-64.so.2",
        "libgcc_s.so.1",
    }
    binaries = [file for file in tmp_path.rglob("*") if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
    assert {"libtmaops.so", "tmaops"} <= {file.name for file in binaries}
    # Debian has Highway as a shared library alone: auditwheel puts it into the wheel. Every manylinux system has zlib.
    bundled = {file.name for file in binaries if file.parent.name == "tmaops.libs"}
    assert {name.partition("-")[0] for name in bundled} <= {"libhwy"}
    libraries |= bundled | {"libz.so.1"}
    assert (
        next(file for file in binaries if file.name == "tmaops").stat().st_size < 100_000
    )  # the kernels are in the library
    for file in binaries:
        if file.name in bundled:  # Debian's own, which ask for the C++ library of the system
            continue
        more = {"libtmaops_torch.so": {"libtorch_cpu.so"}, "tmaops": {"libtmaops.so"}}
        assert needed(file) <= libraries | more.get(file.name, set()), file.name


def test_variants_that_are_only_compared_are_not_in_it():
    studies = {}
    for file in ROOT.glob("study/*/variants.def"):
        for operator, name in re.findall(
            r"^TMAOPS_VARIANT\((\w+), (\w+),", file.read_text(encoding="utf-8"), re.MULTILINE
        ):
            studies.setdefault(operator, set()).add(name)
    assert studies
    for operator in set(tmaops.operators()) & set(studies):
        names = {variant.name for variant in tmaops.variants(operator)}
        assert not names & studies[operator]
    for operator in set(studies) - set(tmaops.operators()):  # all of tile_load
        with pytest.raises(tmaops.InvalidValue, match=f"(?s)'{operator}'.*one of gemm, ms_deform_attn, "):
            tmaops.variants(operator)
    assert next(variant for variant in tmaops.variants("gemm") if variant.name == "onednn").missing


def test_the_last_line_of_make_wheel_says_what_is_in_it_and_how_to_get_the_rest(tmp_path):
    script = (ROOT / "scripts" / "wheel.sh").read_text(encoding="utf-8")
    (tmp_path / "a.whl").write_bytes(bytes(2048))
    parts = {
        "torch": ("the native half of tmaops.torch", "TORCH_FROM="),
        "nvcc": ("the GPU kernels", "CUDA=1 make wheel"),
    }
    for there in ((), ("torch",), ("nvcc",), ("torch", "nvcc")):
        given = "".join(f"{name}={'yes' if name in there else ''}; " for name in parts) + "wheel=a.whl; "
        end = 'set -eu; say() { echo "$*"; }; ' + given + script[script.index("within=") :]
        run = subprocess.run(["sh", "-c", end], capture_output=True, text=True, check=True, cwd=tmp_path)
        within, without = run.stdout.split("; without ")
        assert "KiB with the library, the tool" in within and "oneDNN (" in without
        for name, (part, how) in parts.items():
            assert (part in within) == (name in there) and (part in without) == (how in without) == (name not in there)


def test_pip_install_of_the_sources_gives_the_same_package():
    folder = os.environ.get("TMAOPS_PIP_INSTALLED")
    if not folder:
        pytest.skip("needs TMAOPS_PIP_INSTALLED, a folder with `pip install .`")
    code = "import tmaops, tmaops._library as l; print(tmaops.__file__, tmaops.revision(), l.library._name)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": folder},
    )
    module, revision, library = run.stdout.split()
    assert module.startswith(folder) and library.startswith(folder)
    assert revision == tmaops.revision()
    files = [str(file) for file in importlib.metadata.distribution("tmaops").files]
    package = [file for file in files if file.endswith((".py", ".so", ".json", ".typed")) and ".dist-info/" not in file]
    assert package and not [file for file in package if not (pathlib.Path(folder) / file).exists()]


CLIENT = """\
import numpy as np
import numpy.typing as npt
import tmaops
import tmaops.compat.detr as detr
import tmaops.compat.mmcv as mmcv
import tmaops.compat.transformers as compat
import tmaops.torch as ops
import torch
from tmaops import Error, Plan

Floats = npt.NDArray[np.float32]
a: Floats = np.ones((4, 4), np.float32)
times = np.arange(4.0)

def product(a: Floats, b: torch.Tensor) -> Floats:
    try:
        return tmaops.gemm(a, b, activation="relu", bias_axis="row")
    except Error as error:
        number: int = error.code
        raise SystemExit(number)

tensor: torch.Tensor = tmaops.gemm(torch.ones(4, 4), a)
plan: Plan[Floats] = tmaops.plan_gemm(a, a, activation="gelu")
again: Floats = plan.rebind(a=a).run()
variant: str = plan.variant
names: list[str] = [variant.name for variant in tmaops.variants("gemm")]
counts: dict[str, int] = tmaops.resample_violations(times, times, outside="error")
moved: Floats = tmaops.resample(a[None], times, times, interpolation="cubic", max_gap=np.timedelta64(5, "ns"))
columns: dict[str, Floats] = tmaops.resample({"time": a, "x": a}, hz=10)
planned: Floats = tmaops.plan_resample(a[None], times, grid=(0, 0.1, 5), duplicates="last").run(stream=None)
attended: torch.Tensor = tmaops.ms_deform_attn(tensor, [(2, 2)], tensor, a, sampling="nearest")
gradient = tmaops.ms_deform_attn_backward(tensor, a, a, tensor, a)[1]
assert gradient is not None
kind: Floats = gradient
summed: torch.Tensor = ops.resample(tensor, tensor, tensor, outside="nan") + ops.gemm(tensor, tensor, activation="silu")
layer: torch.nn.Module = ops.Linear(4, 4, activation="relu") if summed.sum() > 0 else ops.MSDeformAttn(16, n_levels=1)
patched: list[str] = compat.patch() + compat.patch(layer) + detr.patch() + mmcv.patch()
compat.unpatch()
used: dict[str, str] = tmaops.compat.active()
sampled: torch.Tensor = mmcv.multi_scale_deformable_attn_pytorch(tensor, tensor, tensor, tensor)
sampled += ops.MSDeformAttnFunction.apply(tensor, tensor, tensor, tensor, tensor) + ops.linear(tensor, tensor)
collated: dict[str, object] = tmaops.data.Resample(hz=30)([{"time": a}])
stepped: dict[str, Floats] = tmaops.data.ResampleStep(hz=30)({"time": a})
"""
# Each is refused by the type checker.
WRONG = (
    "number: int = tmaops.plan_gemm(a, a).variant",
    "tmaops.gemm(a, a, activation='tanh')",
    "tmaops.gemm(a, a, bias_axis='columns')",
    "tmaops.gemm([[1.0]], a)",
    "tmaops.gemm(a, a, activatoin='relu')",
    "tmaops.plan_gemm(a, a, activation='tanh')",
    "tmaops.ms_deform_attn(a, [(2, 2)], a, a, sampling='linear')",
    "tmaops.resample(a, a, a, interpolation='lin')",
    "tmaops.resample(a, a, a, outside='wrap')",
    "tmaops.plan_resample_backward(a, a, a, duplicates='first')",
    "text: str = tmaops.resample(a, a, a)",
    "ops.gemm(tensor, tensor, activation='tanh')",
    "ops.resample(tensor, tensor, tensor, interpolation='lin')",
)


def test_the_package_passes_a_type_check_and_a_client_a_strict_one_but_for_wrong_words(tmp_path):
    pytest.importorskip("mypy")
    client = tmp_path / "client.py"
    client.write_text(CLIENT + "\n".join(WRONG) + "\n", encoding="utf-8")
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    run = subprocess.run([*check, str(client)], capture_output=True, text=True)
    first = CLIENT.count("\n") + 1
    refused = {int(line.split(":")[1]) for line in run.stdout.splitlines() if ": error:" in line}
    assert refused == set(range(first, first + len(WRONG))), run.stdout
    check[check.index("--strict")] = "--ignore-missing-imports"  # of libraries without types
    sources = pathlib.Path(__file__).parents[2] / "python"
    run = subprocess.run([*check, "-p", "tmaops"], capture_output=True, text=True, cwd=sources)
    assert run.returncode == 0, run.stdout


def test_no_public_signature_says_any():
    import tmaops.torch
    from tmaops.compat import detr, extension, mmcv, transformers

    for module in (tmaops, tmaops.data, tmaops.torch, detr, extension, mmcv, transformers):
        for name in getattr(module, "__all__", dir(module)):
            thing = getattr(module, name)
            if name.startswith("_") or not getattr(thing, "__module__", "").startswith("tmaops"):
                continue
            functions = [thing] if inspect.isfunction(thing) else vars(thing).values() if inspect.isclass(thing) else []
            for function in filter(inspect.isfunction, functions):
                if function.__name__.startswith("_") and function.__name__ != "__init__":
                    continue
                parts = inspect.signature(function)
                shown = [*parts.parameters.values(), parts.return_annotation]
                assert not [part for part in shown if re.search(r"\bAny\b", str(part))], (name, parts)
