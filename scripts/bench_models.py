#!/usr/bin/env python3
"""Measures whole models of transformers with their own deformable attention and with tmaops: time and peak memory.

  bench_models.py [--device cuda] [--size 320] [--models deformable_detr,rt_detr_v2@8] [-o results/h200/models.json]
  bench_models.py --device cuda --batch 8 --dtypes bf16 --modes eager,compiled --jobs 16 --rounds 41 -o results/h100/models_compiled.json

A model has its default configuration and random weights; nothing is downloaded. The two ways take turns, and the medians of --rounds
turns are written, with the 10th and 90th percentile. With --modes both are compiled, too. A training step is a forward pass and the gradients of all parameters, without an
optimizer. Outputs are compared with those of the model's own code in f64 before anything is timed: tmaops may be no
farther from them than twice the model's own code in the same types, or 1e-3. A model that fails is not timed, and the exit status
is then 1.

Each model and step has a process. --jobs of them compile at the same time, and those named first have the processors first; when they
have, they are timed one after the other, while nothing else runs. The file is written after each of them, so that an interrupted run keeps what it has; --add keeps the rows that the file has,
of the same machine and revision. Small batches wait for the host, whose time
changes: of 11 rounds the ratios of medians and those of 10th percentiles differ by up to 18 percent, so take 41.

Peak memory is torch's on a GPU (weights included), and the resident memory of the whole process on the CPU.
scripts/update_tables.py makes the table in docs/python.md of the file.
"""

import argparse
import contextlib
import copy
import ctypes
import gc
import json
import multiprocessing
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time
import traceback

import torch
import transformers
from torch._inductor.compile_fx import compile_fx

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
import models  # noqa: E402
import tmaops  # noqa: E402
import tmaops.compat.transformers as compat  # noqa: E402

SIZES = {
    "deformable_detr": (800, 1066),
    "grounding_dino": (800, 1066),
    "mask2former": (384, 512),
    "rf_detr": (560, 560),
}
DTYPES = {"f32": None, "f16": torch.float16, "bf16": torch.bfloat16}


class Wrong(Exception):
    """Outputs that are too far from those in f64."""


class Memory:
    """Peak memory in MiB since `start`; None where the system does not tell."""

    def __init__(self, device):
        self.cuda = device != "cpu"

    def start(self):
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
            return
        ctypes.CDLL(None).malloc_trim(0)
        try:
            pathlib.Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins again at what is resident now
        except OSError:
            pass

    def peak(self):
        if self.cuda:
            return round(torch.cuda.max_memory_allocated() / 2**20)
        for line in pathlib.Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024)
        return None


def step(model, run, given, autocast, training):
    """One run of the model, or of what torch.compile made of it, and its outputs."""
    with torch.autocast(given["pixel_values"].device.type, dtype=autocast, enabled=autocast is not None):
        if not training:
            with torch.no_grad():
                return list(models.floats(run(**given)))
        result = run(**given)
    model.zero_grad(set_to_none=True)
    models.loss(models.outputs(result)).backward()
    return list(models.floats(result))


def distance(got, wanted):
    """The largest relative distance of an output, as a norm over its values in order of size: models that select queries put equals
    in another order. And how many values are not compared: what is masked, by the largest number of a type or an infinity."""

    def ordered(tensor):
        return tensor.detach().double().flatten().clamp(-1e6, 1e6).sort().values

    found, masked = 0.0, 0
    for mine, theirs in zip(got, wanted, strict=True):
        theirs, mine = ordered(theirs), ordered(mine)
        there = (theirs.abs() < 1e6) & (mine.abs() < 1e6)
        found = max(found, ((mine - theirs)[there].norm() / theirs[there].norm().clamp_min(1e-12)).item())
        masked += int((~there).sum())
    return found, masked


def compiled(model, mode, operators):
    """torch.compile's model. A backend of its own keeps the graphs of the two implementations apart; `operators` gets the number of
    tmaops' operators in each graph."""

    def backend(graph, given):
        operators.append(sum("tmaops" in str(node.target) for node in graph.graph.nodes))
        return compile_fx(graph, given, config_patches={"triton.cudagraphs": mode == "cuda graphs"})

    return torch.compile(model, backend=backend)


@contextlib.contextmanager
def running_on(implementation, model, calls):
    """Puts the model on tmaops, or leaves it its own code; `calls` gets an entry for each call of the operator."""
    attention = compat.ops.ms_deform_attn
    if implementation == "tmaops":
        if calls is not None:
            compat.ops.ms_deform_attn = lambda *args, **more: calls.append(1) or attention(*args, **more)
        compat.patch(model)
    try:
        yield
    finally:
        compat.unpatch()
        compat.ops.ms_deform_attn = attention


def check(name, model, given, dtype, training, exact, options):
    """Runs each way once, compilation included. Returns what the rows say of it: {(mode, implementation): ...}."""
    found = {}
    for mode in options.modes:
        for implementation in ("own", "tmaops"):
            calls = []
            run = model if mode == "eager" else compiled(model, mode, calls)
            with running_on(implementation, model, calls if mode == "eager" else None):
                error, masked = distance(step(model, run, given, DTYPES[dtype], training), exact)
            if options.device != "cpu":
                torch.cuda.empty_cache()  # for the models that compile beside this one
            found[mode, implementation] = {"run": run, "error": error, "calls": sum(calls), "ms": [], "mib": []}
            if implementation == "own":
                own_error, own_masked = error, masked
            elif sum(calls) < 1 or masked > own_masked or not error <= max(2 * own_error, 1e-3):
                raise Wrong(
                    f"{name} {dtype} {mode}: tmaops is {error:.2g} from f64, the model's own code {own_error:.2g}: not timed"
                )
    return found


def take_turns(found, model, given, dtype, training, options):
    """Fills in `ms` and `mib` of each way."""
    memory = Memory(options.device)
    for turn in range(options.rounds + options.warm_up):
        if turn == options.warm_up:
            deadline = time.perf_counter() + options.seconds
        for (_, implementation), rows in found.items():
            with running_on(implementation, model, None):
                if options.device != "cpu":
                    torch.cuda.synchronize()
                memory.start()
                start = time.perf_counter()
                step(model, rows["run"], given, DTYPES[dtype], training)
                if options.device != "cpu":
                    torch.cuda.synchronize()
                spent = 1e3 * (time.perf_counter() - start)
                model.zero_grad(set_to_none=True)
            if turn >= options.warm_up:
                rows["ms"].append(spent)
                rows["mib"].append(memory.peak())
        if turn - options.warm_up >= 2 and time.perf_counter() > deadline:
            break


def rows_of(found, name, given, dtype, training, options):
    images, _, height, width = given["pixel_values"].shape
    batch = "" if images == 1 else f"{images} x "
    for (mode, implementation), rows in found.items():
        deciles = statistics.quantiles(rows["ms"], n=10, method="inclusive")
        yield {
            "case": f"{name} {batch}{height}x{width}",
            "step": "training" if training else "inference",
            "dtype": dtype,
            "mode": mode,
            "implementation": implementation,
            "device": options.device,
            "ms": {
                "median": round(statistics.median(rows["ms"]), 3),
                "p10": round(deciles[0], 3),
                "p90": round(deciles[-1], 3),
                "samples": len(rows["ms"]),
            },
            # The memory of a CUDA graph stays, and would count in every way.
            "peak_mib": None if None in rows["mib"] or "cuda graphs" in options.modes else max(rows["mib"]),
            "error": float(f"{rows['error']:.2g}"),
            "operator_calls": rows["calls"] or None,
        }


def with_patience(function, *given):
    """Calls again what found no memory on the GPU, which other processes use as well while they compile."""
    for attempt in range(8):
        try:
            return function(*given)
        except RuntimeError as error:
            full = isinstance(error, torch.OutOfMemoryError) or "ALLOC_FAILED" in str(error)
            if not full or attempt == 7:
                raise
        gc.collect()
        torch.cuda.empty_cache()
        time.sleep(5)


def work(pipe, place, name, batch, training, options):
    """A process: checks one model and step, says so, waits for its turn, and sends its rows."""
    os.setsid()
    os.nice(min(2 * place, 19))
    try:
        torch.manual_seed(0)
        model = models.WHOLE[name]().eval()
        models.scramble(model)
        model = model.to(options.device)
        height, width = (options.size, options.size) if options.size else SIZES.get(name, (640, 640))
        given = models.inputs(name, height, width, batch=batch, device=options.device)
        wide = models.inputs(name, height, width, batch=batch, device=options.device, dtype=torch.float64)
        double = copy.deepcopy(model).double()
        exact = [tensor.detach().clone() for tensor in with_patience(step, double, double, wide, None, False)]
        del double, wide
        ready = {}
        for dtype in options.dtypes:
            try:
                ready[dtype] = with_patience(check, name, model, given, dtype, training, exact, options)
            except Wrong as wrong:
                pipe.send(("wrong", str(wrong)))
        del exact
        gc.collect()
        if options.device != "cpu":
            torch.cuda.empty_cache()
        pipe.send(("ready", None))
        pipe.recv()
        gc.collect()
        gc.freeze()  # what torch.compile left on the heap would be looked through again and again
        rows = []
        for dtype, found in ready.items():
            take_turns(found, model, given, dtype, training, options)
            rows += rows_of(found, name, given, dtype, training, options)
        pipe.send(("rows", rows))
    except Exception:
        pipe.send(("wrong", f"{name}: {traceback.format_exc()}"))


def ended(process):
    """Ends a worker, with what torch.compile started there."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # one that has no group of its own yet


def measured(tasks, options, work=work):
    """The rows of each task, in turn. Tasks are checked together and timed alone; `work` is what a process does for one."""
    context = multiprocessing.get_context("spawn")
    workers = []
    for place, task in enumerate(tasks):
        mine, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, place, *task, options))
        process.start()
        theirs.close()
        workers.append((task, process, mine))

    def heard(pipe, process, wanted, seconds):
        """What a worker sends under the name `wanted`; None where it fails or takes too long, and the worker is then ended."""
        deadline = time.monotonic() + seconds
        while pipe.poll(max(0, deadline - time.monotonic())):
            try:
                what, content = pipe.recv()
            except EOFError:
                break
            if what == wanted:
                return content or True
            options.failed.append(content)
            print(content, file=sys.stderr)
        ended(process)
        return None

    try:
        start = time.monotonic()
        for task, process, pipe in list(workers):
            if heard(pipe, process, "ready", max(1, start + options.patience - time.monotonic())) is None:
                options.failed.append(f"{task}: not measured")
                print(options.failed[-1], file=sys.stderr)
                workers.remove((task, process, pipe))
        print(f"checked {len(workers)} in {time.monotonic() - start:.0f} s", file=sys.stderr)
        for _, process, pipe in workers:
            pipe.send("go")
            yield heard(pipe, process, "rows", 600) or []
            ended(process)
    finally:  # Python would wait for those that are left when the run is interrupted
        for _, process, _ in workers:
            ended(process)


def share_processors(jobs):
    """For so many processes that compile at the same time; each has others that compile kernels."""
    if jobs > 1:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(max(2, 2 * (os.cpu_count() or 1) // jobs)))


def machine(device):
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in open("/proc/cpuinfo", encoding="utf-8")
            if line.startswith("model name")
        ),
        None,
    )
    found = {
        "cpu": cpu,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "gpu": None,
    }
    if device != "cpu":
        query = [
            "nvidia-smi",
            "--query-gpu=driver_version,clocks.sm",
            "--format=csv,noheader",
            f"--id={torch.cuda.current_device()}",
        ]
        driver, clock = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().split(", ")
        found |= {"gpu": {"name": torch.cuda.get_device_name(), "sm_clock": clock}, "driver": driver}
    return found


def new_document(script, device):
    """The result file of a script before its rows."""
    return {
        "schema": 1,
        "status": "incomplete",
        "machine": machine(device),
        "revision": tmaops.revision(),
        "config": {"command": " ".join([script, *sys.argv[1:]])},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--models",
        default=",".join(models.WHOLE),
        help="names, with a batch and a step of their own if wanted: rt_detr_v2@8/training",
    )
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="models that compile at the same time")
    parser.add_argument("--patience", type=float, default=3600, help="seconds that they may take")
    parser.add_argument("--add", action="store_true", help="keep the rows of the output file")
    parser.add_argument("--size", type=int, help="side of the image in pixels; by default the usual one of the model")
    parser.add_argument(
        "--dtypes",
        type=lambda text: text.split(","),
        help="f32, f16, bf16: the latter by autocast; default f32,f16, on the CPU f32,bf16",
    )
    parser.add_argument(
        "--modes",
        default=["eager"],
        type=lambda text: text.replace("_", " ").split(","),
        help="eager, compiled (torch.compile) and cuda_graphs (its mode reduce-overhead); default eager",
    )
    parser.add_argument(
        "--steps",
        default=[False, True],
        type=lambda text: [step == "training" for step in text.split(",")],
        help="inference, training; default both",
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=30, help="after so many seconds a row has enough of three rounds"
    )
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    steps = []
    for wanted in options.models.split(","):
        name, _, step = wanted.partition("/")
        name, _, batch = name.partition("@")
        trainings = [step == "training"] if step else options.steps
        steps += [(name, int(batch or options.batch), training) for training in trainings]
    options.dtypes = options.dtypes or (["f32", "bf16"] if options.device == "cpu" else ["f32", "f16"])
    if options.output is None:
        found = (
            re.search(r"\b[A-Z]+\d+\w*", torch.cuda.get_device_name()) if options.device != "cpu" else None
        )  # "NVIDIA H100 80GB HBM3"
        place = "cpu" if options.device == "cpu" else found[0].lower() if found else "gpu"
        options.output = (
            ROOT / "results" / place / ("models.json" if options.batch == 1 else f"models_batch{options.batch}.json")
        )
    options.failed = []
    options.jobs = min(options.jobs, len(steps))
    share_processors(options.jobs)
    os.environ.setdefault("TORCHINDUCTOR_UNIQUE_KERNEL_NAMES", "0")  # what both ways run is then compiled once
    document = new_document("scripts/bench_models.py", options.device)
    rows = {}
    if options.add and options.output.exists():
        before = json.loads(options.output.read_text(encoding="utf-8"))
        for key in ("machine", "revision"):
            if {**before, "machine": same(before)}[key] != {**document, "machine": same(document)}[key]:
                parser.error(f"--add: {options.output} has another {key}: {before[key]}")
        document["config"]["command"] = before["config"]["command"] + "; " + document["config"]["command"]
        rows = {identity(row): row for row in before["rows"]}
    for first in range(0, len(steps), options.jobs):
        with contextlib.closing(measured(steps[first : first + options.jobs], options)) as found:
            for new in found:
                rows |= {identity(row): row for row in new}
                for row in new:
                    shown = f"{row['ms']['median']:9.1f} ms {row['peak_mib']} MiB, {row['error']:.2g} from f64"
                    print(
                        f"{row['case']:28} {row['step']:10} {row['dtype']:5} {row['mode']:11} {row['implementation']:7} {shown}",
                        file=sys.stderr,
                    )
                write(document, rows.values(), options.output)
    document["status"] = "incomplete" if options.failed else "complete"
    write(document, rows.values(), options.output)
    return 1 if options.failed else 0


def same(document):
    """What must be the same of the machine of all rows."""
    return {key: document["machine"][key] for key in ("cpu", "threads", "torch", "transformers")} | {
        "gpu": (document["machine"]["gpu"] or {}).get("name")
    }


def identity(row):
    return tuple(row[key] for key in ("case", "step", "dtype", "mode", "implementation"))


def write(document, rows, path):
    cases = list(dict.fromkeys(row["case"] for row in rows))
    ordered = sorted(rows, key=lambda row: (cases.index(row["case"]), row.get("step", "")))
    head = json.dumps(document, indent=2)[:-2]
    lines = ",\n".join("    " + json.dumps(row) for row in ordered)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(f'{head},\n  "rows": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    new.replace(path)


if __name__ == "__main__":
    sys.exit(main())
