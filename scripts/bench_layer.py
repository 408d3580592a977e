#!/usr/bin/env python3
"""Measures Deformable DETR's attention module on a GPU: projections of value, offsets and weights, attention, output projection.

  bench_layer.py [--kinds encoder,decoder] [--batches 1,2,8] [--dtypes bf16,f32] [--seconds 0.3] -o results/h200/layer.json

tmaops.torch.MSDeformAttn beside the same module by torch's own functions, both eager and by torch.compile, and the layer of deformops
where that is installed. All have the same weights. The encoder has a query per pixel of the four levels of an image of 800 x 1066
pixels, the decoder 300. A forward pass is replayed as a CUDA graph, which leaves the host out. A step, the gradients of query,
features and parameters, is called as a training loop calls it. An output that is farther from the module in f64 (f32 for 16 bits) than its type allows is
not timed, and the exit status is then 1.

Each kind, batch and type has a process. They compile at the same time and are timed one after the other. Rows of operator "timeline_..." say what each kernel
takes of a forward pass, by torch.profiler. scripts/update_tables.py makes the tables in docs/python.md of the file.
"""

import argparse
import collections
import contextlib
import copy
import os
import pathlib
import re
import statistics
import sys
import traceback

import bench_models
import tmaops.torch as ops
import torch

LEVELS = [(100, 134), (50, 67), (25, 34), (13, 17)]
PIXELS = sum(height * width for height, width in LEVELS)
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
MOST_ERROR = {"f32": 1e-3, "bf16": 3e-2, "f16": 4e-3}


class Own(torch.nn.Module):
    """The module by torch's own functions, as models define it."""

    def __init__(self, module):
        super().__init__()
        self.inner = module

    def forward(self, query, references, features, shapes, _starts):
        m, batch = self.inner, query.shape[0]
        value = m.value_proj(features).unflatten(-1, (m.n_heads, -1))
        grid = (*query.shape[:2], m.n_heads, m.n_levels, m.n_points)
        offsets = m.sampling_offsets(query).view(*grid, 2)
        weights = m.attention_weights(query).view(*grid[:3], -1).softmax(-1)
        locations = references[:, :, None, :, None] + offsets / shapes.flip(1)[:, None]
        grids = (2 * locations - 1).transpose(1, 2).flatten(0, 1)  # (N M, Lq, L, P, 2), in f32 as under autocast
        sampled = []
        for level, part in enumerate(value.split([h * w for h, w in LEVELS], 1)):
            image = part.flatten(2).transpose(1, 2).reshape(batch * m.n_heads, -1, *LEVELS[level]).to(grids.dtype)
            sampled.append(torch.nn.functional.grid_sample(image, grids[:, :, level], align_corners=False))
        weights = weights.transpose(1, 2).flatten(0, 1).unsqueeze(1)
        output = (torch.stack(sampled, -2).flatten(-2) * weights).sum(-1).to(value.dtype)
        return m.output_proj(output.view(batch, m.d_model, -1).transpose(1, 2))


class Ours(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.inner = module

    def forward(self, query, references, features, _shapes, _starts):
        return self.inner(query, references, features, LEVELS)


class Deformops(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        from deformops.nn.msda import MultiScaleDeformAttn2d

        self.inner = MultiScaleDeformAttn2d(256, num_heads=8, num_levels=4, num_points=4)
        self.inner.load_state_dict(module.state_dict())
        self.inner.to(next(module.parameters()))

    def forward(self, query, references, features, shapes, starts):
        return self.inner(query, references, features, shapes, starts)


# The names of the rows, and what they are: which module, and whether torch.compile takes it.
WAYS = {
    "tmaops": (Ours, False),
    "tmaops_compiled": (Ours, True),
    "torch": (Own, False),
    "torch_compiled": (Own, True),
    "deformops": (Deformops, False),
}


def inputs(kind, batch, dtype):
    torch.manual_seed(0)
    if kind == "encoder":
        sides = [(torch.arange(w).add(0.5) / w, torch.arange(h).add(0.5) / h) for h, w in LEVELS]
        points = torch.cat([torch.cartesian_prod(down, across).flip(1) for across, down in sides])
        references = points[None, :, None].expand(batch, -1, 4, -1)
    else:
        references = torch.rand(batch, 300, 1, 2).expand(-1, -1, 4, -1)
    query, features = (torch.randn(batch, n, 256) for n in (references.shape[1], PIXELS))
    shapes = torch.tensor(LEVELS)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), shapes.prod(1).cumsum(0)[:-1]])
    tensors = [query.to(dtype), references.contiguous(), features.to(dtype), shapes, starts]
    return [tensor.cuda() for tensor in tensors]


def module_of(dtype):
    torch.manual_seed(1)
    module = ops.MSDeformAttn()
    with torch.no_grad():
        module.sampling_offsets.weight.normal_(0, 0.05)
        module.attention_weights.weight.normal_(0, 0.05)
    return module.to("cuda", dtype)


def stepping(run, given):
    """A function that makes all gradients."""
    query, references, features, *levels = given
    leaves = [tensor.detach().clone().requires_grad_() for tensor in (query, features)]
    grad = torch.randn_like(query)

    def step():
        run.zero_grad(set_to_none=True)
        for leaf in leaves:
            leaf.grad = None
        run(leaves[0], references, leaves[1], *levels).backward(grad)

    return step


def checked(kind, batch, dtype, wrong):
    """{way: (forward pass, step, error)} of those that are right. `wrong` takes a sentence for each other one."""
    module, given = module_of(DTYPES[dtype]), inputs(kind, batch, DTYPES[dtype])
    wide = torch.float64 if dtype == "f32" else torch.float32
    with torch.no_grad():
        double = Own(copy.deepcopy(module).to(wide))
        exact = double(*(tensor.to(wide) if tensor.is_floating_point() else tensor for tensor in given))
    torch.cuda.empty_cache()
    ready, modules = {}, {}
    for name, (kind_of, compiles) in WAYS.items():
        try:
            run = modules[kind_of] = modules.get(kind_of) or kind_of(module)
            run = torch.compile(run, dynamic=False) if compiles else run
            with torch.no_grad():
                error = ((run(*given).to(exact.dtype) - exact).norm() / exact.norm()).item()
            if not error <= MOST_ERROR[dtype]:
                raise bench_models.Wrong(f"{error:.2g} from {wide}: not timed")
            step = stepping(run, given)
            step()
            ready[name] = (lambda run=run: run(*given)), step, error
        except ImportError as why:
            print(f"{name} is left out: {why}", file=sys.stderr)
        except Exception as why:
            wrong(f"{kind} {batch} {dtype} {name}: {type(why).__name__}: {str(why)[:300]}")
    torch.cuda.empty_cache()
    return ready


def replaying(call):
    """A function that replays a forward pass."""
    with torch.no_grad():
        call()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
    return graph.replay


def row_of_calls(call, count):
    """Microseconds of one of so many calls in a row."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return 1e3 * start.elapsed_time(end) / count


def times_in_turn(calls, seconds):
    """Samples of each call in microseconds, of rows of calls that take turns."""
    counts = {name: max(1, int(5e3 / row_of_calls(call, 3))) for name, call in calls.items()}
    turn = sum(row_of_calls(call, counts[name]) * counts[name] for name, call in calls.items())
    turns = max(7, min(41, int(1e6 * seconds * len(calls) / turn)))
    samples = collections.defaultdict(list)
    for _ in range(turns):
        for name, call in calls.items():
            samples[name].append(row_of_calls(call, counts[name]))
    return samples


def summary(us):
    """What a row says of its samples."""
    deciles = statistics.quantiles(us, n=10, method="inclusive")
    times = {"median": statistics.median(us), "p10": deciles[0], "p90": deciles[-1]}
    return {key: round(value, 2) for key, value in times.items()} | {"samples": len(us)}


def peak_of(call):
    """The memory in MiB that a call takes at most, on top of what was there."""
    torch.cuda.synchronize()
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return round((torch.cuda.max_memory_allocated() - base) / 2**20, 1)


def short(kernel):
    """The name of a kernel without its types and arguments; of ours the operator and the variant, of torch.compile's that samples the
    levels one for all of them."""
    if kernel.startswith("triton") and "grid_sampler" in kernel:
        return "triton, grid_sampler_2d"
    path = re.sub(r"\(anonymous namespace\)::|^void |<.*|\(.*", "", kernel).split("::")
    return " ".join(path[-3:-1]) if path[0] == "tmaops" else path[-1] or kernel


def kernels_of(call, calls=10):
    """Microseconds of each kernel in one call, the longest first."""
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    spent = collections.Counter()
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.is_user_annotation:
            spent[short(event.name)] += event.device_time_total / calls
    return dict(spent.most_common())


def rows_of(kind, batch, dtype, seconds, ready):
    case = f"{kind}, {batch} image" + "s" * (batch > 1)
    common = {"dtype": dtype, "device": "cuda:0", "temperature": "hot"}
    forward = {}
    for name, (call, _, _) in ready.items():
        with contextlib.suppress(RuntimeError):  # what waits for the device cannot be captured
            forward[name] = replaying(call)
    for what, calls in {"forward": forward, "step": {name: step for name, (_, step, _) in ready.items()}}.items():
        for name, us in times_in_turn(calls, seconds).items():
            yield {
                **{"operator": "layer", "case": f"{case}, {what}", "implementation": name, **common},
                **{"kind": "layer", "selected": "eager", "error": float(f"{ready[name][2]:.2g}")},
                "us": summary(us),
                "peak_mib": peak_of(calls[name]) if what == "step" else None,
            }
    for name in ("tmaops", "torch_compiled"):
        for kernel, us in kernels_of(ready[name][0]).items() if name in ready else ():
            yield {
                **{"operator": f"timeline_{name}", "case": case, "implementation": kernel, **common},
                **{"kind": "kernel", "us": {"median": round(us, 2)}},
            }


def work(pipe, place, kind, batch, dtype, options):
    """A process: checks one kind, batch and type, says so, waits for its turn, and sends its rows."""
    os.setsid()
    os.nice(min(place, 10))
    try:
        ready = checked(kind, batch, dtype, lambda sentence: pipe.send(("wrong", sentence)))
        pipe.send(("ready", None))
        pipe.recv()
        pipe.send(("rows", list(rows_of(kind, batch, dtype, options.seconds, ready))))
    except Exception:
        pipe.send(("wrong", f"{kind} {batch} {dtype}: {traceback.format_exc()}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    listed = {"type": lambda text: text.split(",")}
    parser.add_argument("--kinds", default=["encoder", "decoder"], **listed)
    parser.add_argument("--batches", default=[1, 2, 8], type=lambda text: [int(one) for one in text.split(",")])
    parser.add_argument("--dtypes", default=["bf16", "f32"], **listed)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each row")
    parser.add_argument("--patience", type=float, default=600, help="seconds that compilation may take")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.failed = []
    tasks = [(kind, batch, dtype) for dtype in options.dtypes for batch in options.batches for kind in options.kinds]
    bench_models.share_processors(len(tasks))
    document = bench_models.new_document("scripts/bench_layer.py", "cuda")
    rows = []
    with contextlib.closing(bench_models.measured(tasks, options, work)) as found:
        for new in found:
            rows += new
            for row in new:
                if row["operator"] == "layer":
                    print(f"{row['case']:28} {row['dtype']:5} {row['implementation']:16} {row['us']}", file=sys.stderr)
            bench_models.write(document, rows, options.output)
    document["status"] = "incomplete" if options.failed else "complete"
    bench_models.write(document, rows, options.output)
    return 1 if options.failed else 0


if __name__ == "__main__":
    sys.exit(main())
