"""Peers of `tmaops bench` that live in Python: NumPy on the CPU, PyTorch on the CPU and on a GPU.

Talks to the tool in JSON lines on stdin and stdout, one answer per question:
  {"command": "hello", "threads": 2}                     -> {"versions": "python 3.11.2, numpy 2.4.6, torch 2.13.0"}
  {"command": "load", "workload": 0, "operator": ..., "device": "cuda:0", "tensors": [...]} -> {}   copies the inputs out of
                                                                                   shared memory, beside those of others
  {"command": "make", "workload": 0, "peer": "numpy"}    -> {}
  {"command": "run", "workload": 0, "peer": "numpy", "set": 0} -> {}   the outputs are in shared memory
  {"command": "time", "workload": 0, "peer": "numpy", "first": 0, "count": 3} -> {"seconds": 0.0123}
  {"command": "forget"}                                  -> {}   all workloads
An answer {"refuse": reason} says why a peer does not take a case. The tool checks every output before it asks for times.
"""

import ctypes
import functools
import json
import mmap
import os
import platform
import signal
import sys
import time
import types

import numpy as np

try:
    import torch
except ImportError:
    torch = None

GLIBC = ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
NUMPY_TYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i64": np.int64,
    "i32": np.int32,
    "u8": np.uint8,
}


class Refused(Exception):
    """A peer does not take this case; the text says why."""


def wait_until_quiet():
    """Until this process burns no time any more (at most 50 ms), so that it does not disturb what is timed next."""
    for _ in range(100):
        before = time.process_time()
        time.sleep(0.0005)
        if time.process_time() - before < 1e-4:
            return


def settle_memory():
    """What glibc comes to in a program that has run for a while: freed tensors up to 32 MiB stay with the process, larger ones go
    back to the system. It learns that from the sizes that are freed, so the f32 chain of a decoder took 16 ms by itself and 10
    beside one of f16."""
    if GLIBC is not None:
        m_trim_threshold, m_mmap_threshold = -1, -3
        GLIBC.mallopt(m_mmap_threshold, 32 << 20)
        GLIBC.mallopt(m_trim_threshold, 64 << 20)


def release_memory():
    """What is kept for later: the tool's own tensors are in the same memory."""
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if GLIBC is not None:
        GLIBC.malloc_trim(0)


def as_torch(array, dtype, device):
    tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    return (tensor.view(torch.bfloat16) if dtype == "bf16" else tensor).to(device)


class CpuTimer:
    """Calls one after the other."""

    @staticmethod
    def seconds(calls, first, count):
        start = time.perf_counter()
        for i in range(count):
            calls[(first + i) % len(calls)]()
        return time.perf_counter() - start


class CudaTimer:
    """What the tool does with its own calls (measure/bench/measure): the calls go round the sets in a CUDA graph, and events stand
    around replays of it, after an untimed one. So no launch from Python is in a number."""

    GRAPH_CALLS = 256

    def __init__(self):
        self.graphs = {}

    def seconds(self, calls, first, count):
        del first  # every graph goes round all sets
        sets = len(calls)
        size = (min(max(count, 1), self.GRAPH_CALLS) + sets - 1) // sets * sets
        replays = (count + size - 1) // size
        graph = self.graph(calls, size)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        begin.record()
        for _ in range(replays):
            graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 * count / (size * replays)

    def graph(self, calls, size):
        """Kept: capturing takes longer than a sample. The outputs of one round live at the same time, in different memory
        as ours do."""
        key = (id(calls), size)
        if key not in self.graphs:
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                kept = [None] * len(calls)
                for i in range(size):
                    kept[i % len(calls)] = calls[i % len(calls)]()
            self.graphs[key] = (graph, kept, calls)  # an id is a list's own while the list lives
        return self.graphs[key][0]


class Case:
    """The inputs of one case in `sets` copies on its device, and the memory its outputs go to."""

    def __init__(self, question):
        self.operator = question["operator"]
        self.parameters = types.SimpleNamespace(**question["parameters"])
        self.sets = question["sets"]
        self.device = question["device"]
        self.on_gpu = self.device != "cpu"
        if self.on_gpu and (torch is None or not torch.cuda.is_available()):
            raise Refused("a torch that can use the GPU: install it from PyPI")
        self.timer = CudaTimer() if self.on_gpu else CpuTimer()
        with open(question["memory"]["path"], "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), max(1, question["memory"]["bytes"]))
        self.inputs = [{} for _ in range(self.sets)]
        self.outputs = {}
        self.dtypes = {}
        for tensor in question["tensors"]:
            dtype = NUMPY_TYPES[tensor["dtype"]]
            count = int(np.prod(tensor["shape"], dtype=np.int64))
            flat = np.frombuffer(self.memory, dtype, count, tensor["offset"])
            self.dtypes[tensor["name"]] = tensor["dtype"]
            if tensor["output"]:
                self.outputs[tensor["name"]] = self.strided(flat, tensor)
                continue
            for one in self.inputs:
                if self.on_gpu:
                    one[tensor["name"]] = as_torch(self.strided(flat, tensor), tensor["dtype"], self.device)
                else:
                    one[tensor["name"]] = self.strided(flat.copy(), tensor)

    @staticmethod
    def strided(flat, tensor):
        strides = [stride * flat.itemsize for stride in tensor["strides"]]
        return np.lib.stride_tricks.as_strided(flat, tensor["shape"], strides, writeable=True)

    def numpy(self, number, name):
        if self.dtypes[name] == "bf16":
            raise Refused("f16, f32 or f64: NumPy has no bf16")
        return self.inputs[number][name]

    def torch(self, number, name):
        tensor = self.inputs[number][name]
        return tensor if self.on_gpu else as_torch(tensor, self.dtypes[name], self.device)

    def store(self, results):
        for name, result in results.items():
            output = self.outputs[name]
            if torch is not None and isinstance(result, torch.Tensor):
                result = result.detach().cpu()
                result = result.view(torch.uint16).numpy() if self.dtypes[name] == "bf16" else result.numpy()
            output[...] = result.reshape(output.shape)


# --- multi-scale deformable attention --------------------------------------------------------------------------------
def grid_sample_chain(value, locations, weights, levels, points=None):
    """The usual fallback of detectors without a compiled operator: one grid_sample per level. `points`: of each level,
    where these differ.

    16-bit tensors are computed in f32, as detectors do: in 16 bits the coordinates alone are wrong by up to half a pixel,
    and the CPU's f16 grid_sample of PyTorch 2.13 returns NaN on these shapes.
    """
    dtype = value.dtype
    if dtype in (torch.float16, torch.bfloat16):
        value, locations, weights = value.float(), locations.float(), weights.float()
    batch, _, heads, channels = value.shape
    queries = locations.shape[1]
    if points is None:
        points = [locations.shape[4]] * len(levels)
        locations, weights = locations.flatten(3, 4), weights.flatten(3, 4)
    grids = (2 * locations - 1).split(points, dim=3)
    sampled = []
    for index, part in enumerate(value.split([h * w for h, w in levels], dim=1)):
        height, width = levels[index]
        image = part.flatten(2).transpose(1, 2).reshape(batch * heads, channels, height, width)
        grid = grids[index].transpose(1, 2).flatten(0, 1)
        sampled.append(
            torch.nn.functional.grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        )
    weights = weights.transpose(1, 2).reshape(batch * heads, 1, queries, sum(points))
    output = (torch.cat(sampled, dim=-1) * weights).sum(-1)
    return output.view(batch, heads * channels, queries).transpose(1, 2).contiguous().to(dtype)


@functools.cache
def level_tensors(levels, device):
    """Shapes of the levels and where each starts, as compiled operators take them."""
    shapes = torch.tensor(levels, device=device)
    sizes = shapes.prod(1)
    return shapes, sizes.cumsum(0) - sizes


def deformops_attention(backend):
    """One of the kernels of deformops."""
    try:
        from deformops.registry import Backend, msda
    except ImportError as error:
        raise Refused("the package deformops: install it from PyPI") from error

    def call(value, locations, weights, levels):
        shapes, starts = level_tensors(tuple(levels), value.device)
        return msda(value, shapes, starts, locations, weights.flatten(-2), backend=Backend[backend])

    return call


@functools.cache
def published_triton_kernel():
    """The form of public Triton kernels: a program works on some queries of an image and head, and all their channels."""
    try:
        import triton
        import triton.language as tl
    except ImportError as error:
        raise Refused("triton: PyTorch for a GPU brings it") from error
    globals().update(triton=triton, tl=tl)  # where a kernel looks for names

    @triton.jit
    def kernel(
        value,
        shapes,
        starts,
        locations,
        weights,
        output,
        S,
        Q,
        M,
        D: tl.constexpr,
        L: tl.constexpr,
        P: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        n, m = tl.program_id(1) // M, tl.program_id(1) % M
        q = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        d = tl.arange(0, D)
        item = ((n * Q + q) * M + m).to(tl.int64)
        sums = tl.zeros((BLOCK, D), tl.float32)
        for level in tl.static_range(L):
            height, width = tl.load(shapes + 2 * level), tl.load(shapes + 2 * level + 1)
            start = tl.load(starts + level)
            for point in tl.static_range(P):
                at = item * (L * P) + level * P + point
                x = tl.load(locations + 2 * at, q < Q, 0).to(tl.float32) * width - 0.5
                y = tl.load(locations + 2 * at + 1, q < Q, 0).to(tl.float32) * height - 0.5
                weight = tl.load(weights + at, q < Q, 0).to(tl.float32)
                left, top = tl.floor(x), tl.floor(y)
                for corner in tl.static_range(4):
                    column, row = left + corner % 2, top + corner // 2
                    share = weight * (1 - tl.abs(x - column)) * (1 - tl.abs(y - row))
                    inside = (q < Q) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
                    pixel = n * S + start + row.to(tl.int64) * width + column.to(tl.int64)
                    from_ = value + ((pixel * M + m) * D)[:, None] + d[None, :]
                    sums += share[:, None] * tl.load(from_, inside[:, None], 0).to(tl.float32)
        tl.store(output + (item * D)[:, None] + d[None, :], sums.to(output.dtype.element_ty), (q < Q)[:, None])

    def call(value, locations, weights, levels):
        batch, length, heads, channels = value.shape
        queries, points = locations.shape[1], locations.shape[4]
        output = torch.empty(batch, queries, heads * channels, dtype=value.dtype, device=value.device)
        block = 16
        kernel[triton.cdiv(queries, block), batch * heads](
            value,
            *level_tensors(tuple(levels), value.device),
            locations,
            weights,
            output,
            length,
            queries,
            heads,
            channels,
            len(levels),
            points,
            block,
        )
        return output

    return call


def make_separate_steps(case):
    """Fused steps by PyTorch, one after the other, and then the attention by tmaops, which must be installed beside it."""
    try:
        import tmaops
        from tmaops.torch import ms_deform_attn
    except ImportError as error:
        raise Refused("the package tmaops: install its wheel beside torch") from error
    tmaops.set_num_threads(torch.get_num_threads())
    parameters, steps = case.parameters, case.parameters.fused.split("+")
    if steps == ["none"] or "border" in steps:
        raise Refused("fused steps other than border")
    if case.dtypes["sampling_locations"] in ("f16", "bf16"):
        raise Refused("f32 or f64 locations: 16 bits are too coarse for those between the steps")
    levels = [tuple(level) for level in parameters.levels]
    out_dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}[
        case.dtypes["output"]
    ]

    def call(value, locations, weights, reference=None, mask=None):
        if mask is not None:
            value = value.masked_fill(mask[..., None, None], 0)
        if "softmax" in steps:
            weights = weights.flatten(-2).softmax(-1).view(weights.shape)
        if "reference_points" in steps:
            sides = locations.new_tensor([[width, height] for height, width in levels])
            locations = reference[:, :, None, :, None] + locations / sides[:, None]
        if "reference_boxes" in steps:
            reach = reference[:, :, None, :, None, 2:] * (parameters.offset_scale / locations.shape[-2])
            locations = reference[:, :, None, :, None, :2] + locations * reach
        return {"output": ms_deform_attn(value, levels, locations, weights, out_dtype=out_dtype)}

    calls = []
    for number in range(case.sets):
        inputs = [case.torch(number, name) for name in ("value", "sampling_locations", "attention_weights")]
        reference = case.torch(number, "reference_points") if "reference_points" in case.dtypes else None
        mask = case.torch(number, "padding_mask").bool() if "mask" in steps else None
        calls.append(lambda inputs=inputs, reference=reference, mask=mask: call(*inputs, reference, mask))
    return calls


def make_ms_deform_attn(case, function):
    levels = [tuple(level) for level in case.parameters.levels]
    calls = []
    for number in range(case.sets):
        names = ("value", "sampling_locations", "attention_weights")
        value, locations, weights = (case.torch(number, name) for name in names)
        if locations.dtype not in (value.dtype, torch.float32):
            raise Refused("locations and weights of the value's type or of f32")
        calls.append(lambda v=value, p=locations, w=weights: {"output": function(v, p, w, levels)})
    return calls


def make_ms_deform_attn_backward(case, function):
    levels = [tuple(level) for level in case.parameters.levels]
    calls = []
    for number in range(case.sets):
        names = ("value", "sampling_locations", "attention_weights")
        leaves = [case.torch(number, name).detach().requires_grad_() for name in names]
        grad_output = case.torch(number, "grad_output")

        def call(leaves=leaves, grad_output=grad_output):
            # The graph has to be built anew each time; its forward pass is part of what a training step pays.
            with torch.enable_grad():
                output = function(*leaves, levels)
                gradients = torch.autograd.grad(output, leaves, grad_output)
            return {"grad_" + name: gradient.float() for name, gradient in zip(names, gradients)}

        calls.append(call)
    return calls


# --- resampling ------------------------------------------------------------------------------------------------------
def check_resample(case):
    parameters = case.parameters
    if parameters.interpolation != "linear" or parameters.outside != "hold" or parameters.max_gap != 0:
        raise Refused("linear interpolation that holds the ends, without max_gap")


def numpy_interp(values, source, target):
    output = np.empty((values.shape[0], target.shape[1], values.shape[2]), values.dtype)
    for b in range(values.shape[0]):
        for d in range(values.shape[2]):
            output[b, :, d] = np.interp(target[b], source[b], values[b, :, d])
    return output


def numpy_searchsorted(values, source, target):
    output = np.empty((values.shape[0], target.shape[1], values.shape[2]), values.dtype)
    last = source.shape[1] - 1
    weight_type = np.promote_types(values.dtype, np.float32)
    for b in range(values.shape[0]):
        right = np.clip(np.searchsorted(source[b], target[b], side="right"), 1, last)
        left = right - 1
        weight = (target[b] - source[b, left]) / (source[b, right] - source[b, left])
        weight = np.clip(weight, 0, 1).astype(weight_type)[:, None]
        low = values[b, left]
        output[b] = low + weight * (values[b, right] - low)
    return output


def torch_searchsorted(values, source, target):
    last = source.shape[1] - 1
    right = torch.searchsorted(source, target, right=True).clamp_(1, last)
    left = right - 1
    start = source.gather(1, left)
    weight = ((target - start) / (source.gather(1, right) - start)).clamp(0, 1).unsqueeze(-1)
    channels = values.shape[2]
    low = values.gather(1, left.unsqueeze(-1).expand(-1, -1, channels))
    high = values.gather(1, right.unsqueeze(-1).expand(-1, -1, channels))
    if values.dtype in (torch.float16, torch.bfloat16):  # a 16-bit weight would be wrong in the third digit
        return torch.lerp(low.float(), high.float(), weight.float()).to(values.dtype)
    return torch.lerp(low, high, weight.to(values.dtype))


def make_resample_numpy(case):
    """The faster of the two ways that NumPy offers."""
    check_resample(case)
    names = ("values", "source_times", "target_times")
    sets = [tuple(case.numpy(number, name) for name in names) for number in range(case.sets)]
    if sets[0][1].shape[1] < 2:
        raise Refused("at least two samples")
    best, fastest = None, None
    for function in (numpy_searchsorted, numpy_interp):
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            function(*sets[0])
            seconds.append(time.perf_counter() - start)
        if best is None or min(seconds) < fastest:
            best, fastest = function, min(seconds)
    return [lambda inputs=inputs: {"output": best(*inputs)} for inputs in sets]


def make_resample_torch(case, function):
    check_resample(case)
    names = ("values", "source_times", "target_times")
    sets = [tuple(case.torch(number, name) for name in names) for number in range(case.sets)]
    if sets[0][1].shape[1] < 2:
        raise Refused("at least two samples")
    return [lambda inputs=inputs: {"output": function(*inputs)} for inputs in sets]


# --- matrix multiplication -------------------------------------------------------------------------------------------
def make_gemm(case, function):
    parameters = case.parameters
    if parameters.alpha != 1 or parameters.beta != 0 or parameters.bias != "none" or parameters.activation != "none":
        raise Refused("a plain product")
    if case.dtypes["a"] != case.dtypes["d"]:
        raise Refused("an output of the inputs' type")
    sets = [(case.torch(number, "a"), case.torch(number, "b")) for number in range(case.sets)]
    return [lambda a=a, b=b: {"d": function(a, b)} for a, b in sets]


# --- peers by name ---------------------------------------------------------------------------------------------------
def make(case, peer):
    if peer == "numpy":
        return make_resample_numpy(case)
    if torch is None:
        raise Refused("torch: install it with `pip install torch`")

    def compiled(function):
        """torch.compile for these shapes: without a reset it would go on with one kernel for the shapes of all cases."""
        if peer != "torch_compile":
            return function
        torch._dynamo.reset()
        return torch.compile(function, dynamic=False)

    if case.operator in ("ms_deform_attn", "ms_deform_attn_backward"):
        if case.parameters.sampling != "bilinear":
            raise Refused("bilinear sampling: this chain rounds to another pixel")
        if peer == "separate_steps":
            return make_separate_steps(case)
        if case.parameters.fused != "none":
            raise Refused("nothing fused in: this chain takes weights and locations")
        if case.dtypes["value"] != case.dtypes.get("output", case.dtypes.get("grad_output")):
            raise Refused("an output of the value's type")
        maker = make_ms_deform_attn if case.operator == "ms_deform_attn" else make_ms_deform_attn_backward
        points = case.parameters.level_points
        if points:
            if peer not in ("grid_sample", "torch_compile"):
                raise Refused("as many points in every level")
            return maker(case, compiled(functools.partial(grid_sample_chain, points=points)))
        if peer == "triton":
            return maker(case, published_triton_kernel())
        if peer.startswith("deformops_"):
            return maker(case, deformops_attention(peer.removeprefix("deformops_").upper()))
        return maker(case, compiled(grid_sample_chain))
    if case.operator == "resample":
        return make_resample_torch(case, compiled(torch_searchsorted))
    if case.operator == "gemm":
        return make_gemm(case, compiled(torch.matmul))
    raise Refused(f"an operator that it knows, not {case.operator}")


class Worker:
    def __init__(self):
        self.cases = {}
        self.calls = {}

    def hello(self, question):
        versions = f"python {platform.python_version()}, numpy {np.__version__}"
        if torch is not None:
            torch.set_num_threads(question["threads"])
            torch.set_grad_enabled(False)
            versions += f", torch {torch.__version__}"
        return {"versions": versions}

    def forget(self, question):
        del question
        self.calls = {}
        self.cases = {}
        release_memory()
        return {}

    def load(self, question):
        self.cases[question["workload"]] = Case(question)
        return {}

    def make(self, question):
        case = self.cases[question["workload"]]
        calls = make(case, question["peer"])
        calls[0]()  # compiles
        if case.on_gpu:
            case.timer.seconds(calls, 0, 1)  # refuses what cannot be captured
        self.calls[question["workload"], question["peer"]] = calls
        return {}

    def run(self, question):
        calls = self.calls[question["workload"], question["peer"]]
        self.cases[question["workload"]].store(calls[question["set"]]())
        wait_until_quiet()
        return {}

    def time(self, question):
        calls = self.calls[question["workload"], question["peer"]]
        seconds = self.cases[question["workload"]].timer.seconds(calls, question["first"], question["count"])
        wait_until_quiet()
        return {"seconds": seconds}


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tool decides when to stop
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not end up among the answers
    settle_memory()
    worker = Worker()
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = getattr(worker, question["command"])(question)
        except Refused as refusal:
            answer = {"refuse": str(refusal)}
        except Exception as error:  # a library that lacks a type, an operator or memory says so in its own words
            text = str(error).splitlines()
            answer = {"refuse": f"something else: {type(error).__name__}: {text[0] if text else ''}"}
            release_memory()
        try:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        except BrokenPipeError:  # the tool was interrupted
            os._exit(0)


if __name__ == "__main__":
    main()
