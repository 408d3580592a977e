"""tmaops.torch says the same over its native library and over ctypes."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")


def _told(binding):
    script = pathlib.Path(__file__).parent / "wrong_calls.py"
    environment = dict(os.environ, TMAOPS_TORCH=binding)
    run = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_wrong_calls_are_refused_by_name_and_alike_by_both_bindings():
    native, by_ctypes = _told("native"), _told("python")
    assert len(native) > 100
    assert [line for line in native + by_ctypes if len(line) == 2] == [], "these calls are not refused"
    for mine, theirs in zip(native, by_ctypes):
        name, kind, ours, code, where, got, needed, message = mine
        assert ours and int(code) and where and got and needed, f"{name}: no error of tmaops: {mine}"
        assert mine == theirs, f"{name}: the bindings differ"
        choices = {"sampling": "bilinear, nearest", "activation": "none, relu, gelu, silu", "duplicates": "error, last"}
        assert name not in choices or needed == f"one of {choices[name]}"
        assert "tensor(" not in message and "array(" not in message and len(message) < 500, f"{name}: prints data"
