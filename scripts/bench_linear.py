#!/usr/bin/env python3
"""Measures what tmaops.torch.linear chooses between on a GPU: gemm and torch's own functions, eager and compiled.

  bench_linear.py [--dtypes bf16,f16] [--seconds 0.1] -o results/h200/linear.json

The products are linear layers of DETR, ViT-B and an 8B language model, with a bias and what follows it. Forward passes are replayed
as CUDA graphs, which leaves the host out. A step, the gradients of x, weight and bias, is called as a training loop calls it. "tmaops"
is tmaops.torch.gemm with bias and activation. An output that is farther from the one in f64 than its
type allows is not timed, and the exit status is then 1.
"""

import argparse
import pathlib
import sys

import bench_layer
import bench_models
import tmaops.torch as ops
import torch

ACTIVATIONS = {
    "none": lambda sums: sums,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
}
PRODUCTS = {  # M x N x K: what follows
    (35642, 256, 256): ["none"],
    (22223, 1024, 256): ["none", "relu", "gelu"],
    (22223, 256, 1024): ["none"],
    (900, 256, 256): ["none"],
    (300, 1024, 256): ["none", "relu", "gelu"],
    (6304, 768, 768): ["none"],
    (6304, 3072, 768): ["gelu", "silu"],
    (1576, 3072, 768): ["none", "gelu"],
    (197, 3072, 768): ["gelu"],
    (16, 4096, 4096): ["none", "silu"],
    (64, 14336, 4096): ["none", "silu"],
    (4096, 4096, 4096): ["none", "silu"],
}


def ways(activation):
    """What is timed: a function of x, weight and bias."""

    def torch_own(x, weight, bias):
        return ACTIVATIONS[activation](torch.nn.functional.linear(x, weight, bias))

    return {
        "tmaops": lambda x, weight, bias: ops.gemm(x, weight.t(), bias, activation=activation),
        "torch": torch_own,
        "torch_compiled": torch.compile(torch_own, dynamic=False),
    }


def rows_of(product, activation, dtype, seconds):
    torch.manual_seed(0)
    m, n, k = product
    of_type = {"device": "cuda", "dtype": bench_layer.DTYPES[dtype]}
    given = [torch.randn(m, k, **of_type), torch.randn(n, k, **of_type) / k**0.5, torch.randn(n, **of_type)]
    exact = ACTIVATIONS[activation](torch.nn.functional.linear(*(one.double() for one in given)))
    calls = {"forward": {}, "step": {}}
    errors = {}
    for name, call in ways(activation).items():
        with torch.no_grad():
            errors[name] = ((call(*given).double() - exact).norm() / exact.norm()).item()
        if not errors[name] <= bench_layer.MOST_ERROR[dtype]:
            raise bench_models.Wrong(f"{product} {activation} {dtype} {name}: {errors[name]:.2g} from f64: not timed")
        calls["forward"][name] = bench_layer.replaying(lambda call=call: call(*given))
        leaves = [one.clone().requires_grad_() for one in given]
        grad = torch.randn_like(exact, dtype=leaves[0].dtype)

        def step(call=call, leaves=leaves, grad=grad):
            for leaf in leaves:
                leaf.grad = None
            call(*leaves).backward(grad)

        step()
        calls["step"][name] = step
    for what, some in calls.items():
        for name, us in bench_layer.times_in_turn(some, seconds).items():
            yield {
                **{
                    "operator": "linear",
                    "case": f"{m}x{n}x{k}{'' if activation == 'none' else ' ' + activation}, {what}",
                    "implementation": name,
                    "dtype": dtype,
                },
                **{"device": "cuda:0", "temperature": "hot", "kind": "linear", "selected": "gemm"},
                **{"error": float(f"{errors[name]:.2g}")},
                "us": bench_layer.summary(us),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", default=["bf16"], type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=0.1, help="of each row")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    document = bench_models.new_document("scripts/bench_linear.py", "cuda")
    rows, failed = [], False
    for dtype in options.dtypes:
        for product, activations in PRODUCTS.items():
            for activation in activations:
                torch.compiler.reset()
                try:
                    rows += rows_of(product, activation, dtype, options.seconds)
                except bench_models.Wrong as wrong:
                    failed = print(wrong, file=sys.stderr) is None
    document["status"] = "incomplete" if failed else "complete"
    bench_models.write(document, rows, options.output)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
