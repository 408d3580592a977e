"""Errors, threads, forks, the tool, and what an installed package says about itself."""

import copy
import inspect
import os
import pickle
import subprocess
import sys
import threading
import typing

import numpy as np
import pytest
import tmaops
from tmaops import _library, _types


def test_errors_have_parts_and_python_classes():
    a = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError) as caught:
        tmaops.gemm(a, a)
    error = caught.value
    assert isinstance(error, tmaops.Error)
    assert (error.code, error.number, error.name) == (10, "E010", "shape_mismatch")
    assert error.where and error.got and error.needed and error.mend
    assert "E010" in str(error)
    with pytest.raises(TypeError) as caught:
        tmaops.gemm(a, a.T.astype(np.float16))
    assert caught.value.code == 12
    with pytest.raises(TypeError, match="complex"):
        tmaops.gemm(a.astype(complex), a.T)
    with pytest.raises(TypeError, match="list"):
        tmaops.gemm([[1.0]], a)
    with pytest.raises(ValueError) as caught:
        tmaops.gemm(a, a.T, activation="tanh")
    assert caught.value.needed == "one of none, relu, gelu, silu"


def test_errors_of_memory_are_memory_errors():
    from tmaops._errors import class_of

    assert issubclass(class_of(80), MemoryError) and issubclass(class_of(81), MemoryError)
    assert issubclass(class_of(72), RuntimeError)


def test_memory_that_runs_out_is_a_memory_error():
    """The library's own memory: gradients in f16 are summed in f32. The limit holds in a process of its own."""
    code = (
        "import resource, numpy, tmaops\n"
        "def step(side):\n"
        "    value, weights = numpy.ones((1, side * side, 1, 16), 'f2'), numpy.ones((1, 9, 1, 1, 1), 'f4')\n"
        "    locations, grad = numpy.full((1, 9, 1, 1, 1, 2), 0.3, 'f4'), numpy.ones((1, 9, 16), 'f2')\n"
        "    out = [numpy.empty_like(array) for array in (value, locations, weights)]\n"
        "    used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "    if side > 8:\n"
        "        resource.setrlimit(resource.RLIMIT_AS, (used + 2**22, used + 2**22))\n"
        "    tmaops.ms_deform_attn_backward(value, [(side, side)], locations, weights, grad, out=out)\n"
        "step(8)\n"
        "try:\n"
        "    step(1000)\n"
        "except MemoryError as error:\n"
        "    print(error.number)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "E080", run.stdout + run.stderr


def test_errors_cross_between_processes():
    with pytest.raises(tmaops.Error) as caught:
        tmaops.gemm(np.zeros((2, 3), "f4"), np.zeros((2, 3), "f4"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), copy.code, str(copy)) == (type(caught.value), 10, str(caught.value))


def test_outputs_that_cannot_be_written_are_refused():
    a = np.eye(2, dtype="f4")
    out = np.empty((2, 2), "f4")
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tmaops.gemm(a, a, out=out)


def test_read_only_inputs_are_taken():
    a = np.eye(2, dtype="f4")
    a.flags.writeable = False
    np.testing.assert_array_equal(tmaops.gemm(a, a), a)


def test_many_threads_may_call_at_once():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 64)).astype("f4"), rng.standard_normal((64, 64)).astype("f4")
    wanted = tmaops.gemm(a, b)
    wrong = []

    def work():
        for _ in range(50):
            if not np.array_equal(tmaops.gemm(a, b), wanted):
                wrong.append("value")
            try:
                tmaops.gemm(a, b[:3])
            except tmaops.Error as error:
                if error.code != 10:
                    wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_worker_computes():
    times = np.arange(2000.0)
    values = np.random.default_rng(0).standard_normal((8, 2000, 16))
    wanted = tmaops.resample(values, times, times[:-1] + 0.5)
    child = os.fork()
    if child == 0:
        same = np.array_equal(tmaops.resample(values, times, times[:-1] + 0.5), wanted)
        os._exit(0 if same else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_the_library_lists_what_it_has():
    assert {"gemm", "ms_deform_attn", "ms_deform_attn_backward", "resample", "resample_backward"} <= set(
        tmaops.operators()
    )
    names = [variant.name for variant in tmaops.variants("gemm")]
    assert names[-1] == "reference"
    with pytest.raises(tmaops.Error):
        tmaops.variants("matmul")
    assert len(tmaops.revision()) >= 7


def test_the_number_of_threads_is_set_and_given_back():
    before = tmaops.num_threads()
    tmaops.set_num_threads(1)
    assert tmaops.num_threads() == 1
    tmaops.set_num_threads(0)
    assert tmaops.num_threads() == before
    with pytest.raises(ValueError):
        tmaops.set_num_threads(-1)


def test_a_library_of_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(_library, "__version__", "9.9.9")
    with pytest.raises(ImportError, match="package is 9.9.9, but .* is .*pip uninstall"):
        _library._load()


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("TMAOPS_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(ImportError, match="none.so"):
        _library._load()


def test_importing_needs_no_array_library():
    code = "import sys, tmaops; print(sorted({'numpy', 'torch', 'cupy', 'jax'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_module_and_the_command_are_the_tool():
    run = subprocess.run([sys.executable, "-m", "tmaops", "--version"], capture_output=True, text=True)
    assert run.returncode == 0 and tmaops.__version__ in run.stdout
    command = subprocess.run(
        [os.path.join(os.path.dirname(sys.executable), "tmaops"), "explain", "E012"], capture_output=True, text=True
    )
    assert command.returncode == 0 and "E012" in command.stdout
    shipped = subprocess.run(
        [sys.executable, "-m", "tmaops", "bench", "no-such-configuration"], capture_output=True, text=True
    )
    assert "quick" in shipped.stderr  # it found the configurations that came with it


def test_every_public_function_is_documented_and_typed():
    for name in tmaops.__all__:
        thing = getattr(tmaops, name)
        if inspect.isfunction(thing):
            assert inspect.getdoc(thing), name
            signature = inspect.signature(thing)
            assert signature.return_annotation is not inspect.Signature.empty, name
            for parameter in signature.parameters.values():
                assert parameter.annotation is not inspect.Parameter.empty, (name, parameter)
    assert os.path.exists(os.path.join(os.path.dirname(tmaops.__file__), "py.typed"))


def test_types_and_defaults_are_those_of_the_list_of_options():
    """Words of `Literal` types, and the defaults of Python's functions, against include/tmaops/options.h."""
    functions = {
        "gemm": [tmaops.gemm],
        "ms_deform_attn": [tmaops.ms_deform_attn, tmaops.ms_deform_attn_backward],
        "resample": [tmaops.resample, tmaops.resample_backward, tmaops.resample_violations],
        "recording": [tmaops.resample_columns],
    }
    for operator, options in _library.OPTIONS.items():
        for option in options:
            if option.kind == "word":
                literal = getattr(_types, "".join(part.capitalize() for part in option.name.split("_")))
                assert typing.get_args(literal) == option.words
            for function in functions[operator]:
                parameter = inspect.signature(function).parameters.get(option.name)
                if parameter is None or parameter.default in (None, parameter.empty):
                    continue
                initial = option.words[0] if option.words else option.initial
                assert parameter.default == initial, (function, option)


def test_a_plan_that_is_pickled_says_why_it_cannot_be():
    plan = tmaops.plan_gemm(np.ones((2, 2), "f4"), np.ones((2, 2), "f4"))
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="a plan of tmaops holds addresses"):
            copied(plan)
