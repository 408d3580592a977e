#!/usr/bin/env python3
"""Times attention on values (N, S, M, D) beside the same numbers as (N, M, D, S): bench_layouts.py [--rounds N] [--threads N] [--device cuda]

Prints for each case the time of the forward and of the backward call, and their ratio. Calls alternate; the smallest of the rounds
counts, since other programs only ever add time. With one thread it is the time of the processor. Outputs are compared before anything is timed.
On a GPU tmaops.torch is timed, with 8 images, as a CUDA graph of 20 calls. The last column is without its copy, whatever pays.
"""

import argparse
import time

import tmaops
import torch

PYRAMID = {640: [(80, 80), (40, 40), (20, 20)], 800: [(100, 134), (50, 67), (25, 34), (13, 17)]}
CASES = {  # levels, queries, heads, channels, points, dtype
    "RT-DETR 640, decoder": (PYRAMID[640], 300, 8, 32, 4, torch.float32),
    "D-FINE 640, decoder, bf16": (PYRAMID[640], 300, 8, 32, 4, torch.bfloat16),
    "rfdetr 560, decoder": ([(40, 40)], 300, 16, 16, 2, torch.float32),
    "800 x 1066, decoder": (PYRAMID[800], 300, 8, 32, 4, torch.float32),
    "640, encoder": (PYRAMID[640], 8400, 8, 32, 4, torch.float32),
}


def least(calls, rounds, clock):
    """The smallest time of each call, in ms."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for index, call in enumerate(calls):
            start = clock()
            call()
            best[index] = min(best[index], clock() - start)
    return [1000 * seconds for seconds in best]


def captured(call):
    """A CUDA graph of 20 calls."""
    for _ in range(2):
        call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            call()
    return graph.replay


def least_on_gpu(calls, rounds):
    """The smallest time of each call, in ms."""
    runs, best = [captured(call) for call in calls], [float("inf")] * len(calls)
    for _ in range(rounds):
        for index, run in enumerate(runs):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            end.record()
            end.synchronize()
            best[index] = min(best[index], start.elapsed_time(end) / 20)
    return best


def on_gpu(rounds):
    import tmaops.torch as ops

    print(
        f"| case, 8 images | (N, S, M, D) | (N, M, D, S) | ratio | with backward | (N, M, D, S) | ratio | as it lies |\n|{'---|' * 8}"
    )
    for name, (levels, queries, heads, channels, points, dtype) in CASES.items():
        torch.manual_seed(0)
        pixels = sum(height * width for height, width in levels)
        value = torch.randn(8, pixels, heads, channels, device="cuda").to(dtype)
        other = value.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        locations = torch.rand(8, queries, heads, len(levels), points, 2, device="cuda")
        weights = torch.rand(8, queries, heads, len(levels), points, device="cuda")
        given = (levels, locations, weights)
        outputs = [ops.ms_deform_attn(layout, *given) for layout in (value, other)]
        torch.testing.assert_close(*outputs, rtol=1e-2, atol=1e-3 if dtype == torch.float32 else 5e-2)
        raw = tmaops.plan_ms_deform_attn(other, *given)

        def step(layout):
            tensors = [tensor.detach().requires_grad_() for tensor in (layout, locations, weights)]
            torch.autograd.grad(ops.ms_deform_attn(tensors[0], levels, *tensors[1:]).sum(), tensors)

        calls = [lambda layout=layout: ops.ms_deform_attn(layout, *given) for layout in (value, other)]
        plain, turned, lying = least_on_gpu([*calls, raw.run], rounds)
        both, both_turned = least_on_gpu([lambda layout=layout: step(layout) for layout in (value, other)], rounds)
        times = [f"{1000 * ms:.1f} us" for ms in (plain, turned, both, both_turned, lying)]
        print(
            f"| {name} | {times[0]} | {times[1]} | {turned / plain:.2f} | {times[2]} | {times[3]} | {both_turned / both:.2f} | {times[4]} {raw.variant} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    if options.device == "cuda":
        return on_gpu(options.rounds)
    tmaops.set_num_threads(options.threads)
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    print(f"| case | (N, S, M, D) | (N, M, D, S) | ratio | backward | (N, M, D, S) | ratio |\n|{'---|' * 7}")
    for name, (levels, queries, heads, channels, points, dtype) in CASES.items():
        torch.manual_seed(0)
        pixels = sum(height * width for height, width in levels)
        value = torch.randn(1, pixels, heads, channels).to(dtype)
        other = value.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        locations = torch.rand(1, queries, heads, len(levels), points, 2)
        weights = torch.rand(1, queries, heads, len(levels), points)
        grad = torch.randn(1, queries, heads * channels).to(dtype)
        given = (levels, locations, weights)
        outputs = [tmaops.ms_deform_attn(layout, *given) for layout in (value, other)]
        torch.testing.assert_close(*outputs, rtol=1e-2, atol=1e-3 if dtype == torch.float32 else 5e-2)
        plans = [tmaops.plan_ms_deform_attn(layout, *given).run for layout in (value, other)]
        plain, turned = least(plans, options.rounds, clock)
        plans = [tmaops.plan_ms_deform_attn_backward(layout, *given, grad).run for layout in (value, other)]
        back, back_turned = least(plans, max(options.rounds // 3, 3), clock)
        print(
            f"| {name} | {plain:.2f} ms | {turned:.2f} ms | {turned / plain:.2f} | {back:.2f} ms | {back_turned:.2f} ms "
            f"| {back_turned / back:.2f} |"
        )


if __name__ == "__main__":
    main()
