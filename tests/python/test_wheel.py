"""The wheel itself: what it asks of a system, its size, and what is not in it. Needs TMAOPS_WHEEL, which scripts/python_tests.sh sets."""

import importlib.metadata
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


def test_auditwheel_finds_it_fit_for_glibc_2_34(wheel):
    auditwheel = pytest.importorskip("auditwheel")
    from auditwheel.wheel_abi import analyze_wheel_abi

    found = analyze_wheel_abi(
        None, None, wheel, frozenset(["libtorch_cpu.so"]), disable_isa_ext_check=False, allow_graft=False
    )
    assert re.fullmatch(r"manylinux_2_(1\d|2\d|3[0-4])_x86_64", found.overall_policy.name), (auditwheel, found)
    assert found.overall_policy.name in wheel.name


def test_it_is_at_most_20_megabytes(wheel):
    assert wheel.stat().st_size <= 20_000_000


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
    # Debian has Highway and what the tool reads npz files with as shared libraries: auditwheel puts them into the wheel. Every manylinux system has zlib.
    bundled = {file.name for file in binaries if file.parent.name == "tmaops.libs"}
    assert {name.partition("-")[0] for name in bundled} <= {"libhwy", "libzip", "libzstd", "libbz2", "libcrypto"}
    libraries |= bundled | {"libz.so.1"}
    for file in binaries:
        if file.name in bundled:  # Debian's own, which ask for the C++ library of the system
            continue
        allowed = libraries | {"libtorch_cpu.so"} if file.name == "libtmaops_torch.so" else libraries
        assert needed(file) <= allowed, file.name


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
    assert next(variant for variant in tmaops.variants("gemm") if variant.name == "onednn").missing


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


def test_a_client_passes_a_strict_type_check(tmp_path):
    pytest.importorskip("mypy")
    client = tmp_path / "client.py"
    client.write_text(
        "import tmaops\n"
        "from tmaops import Error, Plan\n"
        "\n"
        "def product(a: object, b: object) -> object:\n"
        "    try:\n"
        "        return tmaops.gemm(a, b, activation='relu')\n"
        "    except Error as error:\n"
        "        number: int = error.code\n"
        "        raise SystemExit(number)\n"
        "\n"
        "plan: Plan = tmaops.plan_gemm(1, 2)\n"
        "variant: str = plan.variant\n"
        "names: list[str] = [variant.name for variant in tmaops.variants('gemm')]\n"
        "counts: dict[str, int] = tmaops.resample_violations(1, 2)\n",
        encoding="utf-8",
    )
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import tmaops\n\nnumber: int = tmaops.plan_gemm(1, 2).variant\ntmaops.gemm(1, 2, activation=3)\n",
        encoding="utf-8",
    )
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    run = subprocess.run([*check, str(client)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    run = subprocess.run([*check, str(wrong)], capture_output=True, text=True)
    assert run.returncode == 1 and run.stdout.count("error:") == 2, run.stdout
