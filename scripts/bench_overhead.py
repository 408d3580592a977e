#!/usr/bin/env python3
"""What a call of ms_deform_attn costs beside its work: from C, by tmaops.torch, and with gradients recorded.

  bench_overhead.py [--device cuda] [--queries 12]

The C loop calls tmaops_ms_deform_attn of the installed package with everything prepared, as a fresh call each time. On a GPU the
time is that of enqueueing. The row of empty_like is what torch takes to call an operator of one argument, which only allocates
the output. Rows are interleaved, and the median of --rounds rounds is printed, with the 10th and 90th percentile.
"""

import argparse
import ctypes
import pathlib
import statistics
import subprocess
import tempfile
import time

import tmaops
import tmaops.torch as ops
import torch
from tmaops._library import library

SOURCE = """
#include <time.h>
#include <tmaops/tmaops.h>
typedef int function(const tmaops_tensor*, const tmaops_level_shape*, int64_t, const tmaops_tensor*, const tmaops_tensor*,
                     const tmaops_tensor*, const tmaops_ms_deform_attn_options*, tmaops_stream);
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
double seconds(function* call, const tmaops_tensor* value, const tmaops_level_shape* levels, int64_t count,
               const tmaops_tensor* locations, const tmaops_tensor* weights, const tmaops_tensor* output,
               const tmaops_ms_deform_attn_options* options, tmaops_stream stream, int repeats) {
  const double start = now();
  for (int i = 0; i < repeats; ++i)
    if (call(value, levels, count, locations, weights, output, options, stream) != 0) return -1;
  return now() - start;
}
"""


def compiled_loop(folder):
    include = pathlib.Path(__file__).resolve().parents[1] / "include"
    source, target = folder / "loop.c", folder / "loop.so"
    source.write_text(SOURCE, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(target)], check=True)
    loop = ctypes.CDLL(str(target)).seconds
    loop.restype = ctypes.c_double
    return loop


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--queries", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    levels = [(8, 8), (4, 4), (2, 2), (1, 1)]
    value = torch.randn(1, 85, 8, 32, device=options.device)
    locations = torch.rand(1, options.queries, 8, 4, 4, 2, device=options.device)
    weights = torch.rand(1, options.queries, 8, 4, 4, device=options.device)
    recorded = [tensor.clone().requires_grad_() for tensor in (value, locations, weights)]
    out = torch.empty(1, options.queries, 256, device=options.device)
    flat = [side for level in levels for side in level]
    call = tmaops.plan_ms_deform_attn(value, levels, locations, weights, out=out)._call
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream if options.device != "cpu" else None)
    entry = ctypes.cast(library.tmaops_ms_deform_attn, ctypes.c_void_p)

    def timed(function):
        def seconds(repeats):
            start = time.perf_counter()
            for _ in range(repeats):
                function()
            return time.perf_counter() - start

        return seconds

    with tempfile.TemporaryDirectory() as folder:
        loop = compiled_loop(pathlib.Path(folder))
        rows = {
            "C ABI, fresh": lambda repeats: loop(entry, *call.arguments, stream, ctypes.c_int(repeats)),
            "torch.ops.aten.empty_like": timed(lambda: torch.ops.aten.empty_like.default._op(out)),
            "torch.ops.tmaops.ms_deform_attn": timed(
                lambda: torch.ops.tmaops.ms_deform_attn.default(value, flat, locations, weights)
            ),
            "tmaops.torch.ms_deform_attn": timed(lambda: ops.ms_deform_attn(value, levels, locations, weights)),
            "tmaops.torch, gradients recorded": timed(lambda: ops.ms_deform_attn(recorded[0], levels, *recorded[1:])),
            "tmaops.ms_deform_attn (ctypes)": timed(lambda: tmaops.ms_deform_attn(value, levels, locations, weights)),
        }
        wanted = ops.ms_deform_attn(value, levels, locations, weights)
        tmaops.ms_deform_attn(value, levels, locations, weights, out=out)
        torch.testing.assert_close(out, wanted)
        taken = {name: [] for name in rows}
        for turn in range(options.rounds + 2):  # two rounds to warm up
            for name, seconds in rows.items():
                spent = seconds(options.calls)
                if options.device != "cpu":
                    torch.cuda.synchronize()
                if turn >= 2:
                    taken[name].append(1e6 * spent / options.calls)
    print(
        f"torch {torch.__version__}, native {ops.native}, {options.device}, {tmaops.num_threads()} threads, {options.queries} queries"
    )
    base = statistics.median(taken["C ABI, fresh"])
    for name, times in taken.items():
        deciles = statistics.quantiles(times, n=10)
        median = statistics.median(times)
        print(f"{name:34} {median:7.2f} us ({deciles[0]:.2f} - {deciles[-1]:.2f})  {median - base:+.2f} us")


if __name__ == "__main__":
    main()
