"""The documents' example, and what the wheel says about itself."""

import contextlib
import importlib.metadata
import io
import pathlib
import re
import subprocess
import sys

import pytest
import tmaops


@pytest.mark.parametrize("document", ["README.md", "docs/python.md"])
def test_the_example_of_a_document_prints_what_it_says(document):
    text = (pathlib.Path(__file__).parents[2] / document).read_text(encoding="utf-8")
    example = re.search(r"```python\n(import numpy.*?)```", text, re.DOTALL)[1]
    said = re.findall(r"^print.*# (.*)$", example, re.MULTILINE)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, document, "exec"), {})
    assert len(said) >= 2
    assert printed.getvalue().splitlines() == said


def test_every_block_of_the_guide_runs():
    """One after the other, as a reader types them."""
    for library in ("torch", "pandas"):
        pytest.importorskip(library)
    text = (pathlib.Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 4
    namespace = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for number, block in enumerate(blocks, 1):
            exec(compile(block, f"docs/python.md, block {number}", "exec"), namespace)
    assert namespace["value"].grad is not None and namespace["batch"]["joints"].shape[0] == 3


def test_the_package_is_one_wheel_for_every_python():
    distribution = importlib.metadata.distribution("tmaops")
    assert distribution.version == tmaops.__version__
    tags = re.findall(r"^Tag: (.*)$", distribution.read_text("WHEEL"), re.MULTILINE)
    assert len(tags) == 1 and re.fullmatch(r"py3-none-manylinux_2_\d+_x86_64", tags[0])
    names = {pathlib.Path(str(file)).name for file in distribution.files}
    assert {"libtmaops.so", "tmaops", "py.typed", "MultiScaleDeformableAttention.py"} <= names
    assert not [name for name in names if name.startswith(("libdnnl", "libgomp", "libcudart", "libcuda"))]


def test_the_reference_is_what_the_docstrings_say():
    pytest.importorskip("torch")
    script = pathlib.Path(__file__).parents[2] / "scripts" / "python_reference.py"
    run = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
