"""tmaops.torch says the same over its native library and over ctypes."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")


def test_errors_of_tensors_without_memory_are_passed_on():
    import tmaops.torch as ops
    import torch

    class Remote(torch.Tensor):
        """Tensors as DTensor: another library's, which has no way to run the operator."""

        @staticmethod
        def __new__(cls, like):
            return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise NotImplementedError("no strategy for sharding")

    times = torch.arange(3.0)
    with pytest.raises(NotImplementedError, match="no strategy for sharding"):
        ops.resample(Remote(torch.ones(1, 3, 2)), times, times)
    negated = torch.complex(torch.ones(1, 3, 2), torch.ones(1, 3, 2)).conj().imag
    with pytest.raises(ValueError, match="max_gap"):
        ops.resample(negated, times, times, max_gap=-1.0)


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
