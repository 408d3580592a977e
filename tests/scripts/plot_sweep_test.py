#!/usr/bin/env python3
"""Draws sweeps of a small result file: plot_sweep_test.py ROOT. Exit code 77 (skipped) without matplotlib."""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

if importlib.util.find_spec("matplotlib") is None:
    print("skipped: no matplotlib")
    sys.exit(77)

SCRIPT = pathlib.Path(sys.argv[1]) / "scripts" / "plot_sweep.py"


def row(operator, case, implementation, us, temperature="hot", **more):
    return {"operator": operator, "case": case, "implementation": implementation, "kind": "variant", "dtype": "f16",
            "device": "cuda:0", "temperature": temperature, "gbps": 1e3 / us, "tflops": 1 / us, "of_peak": 0.5 / us,
            "us": {"median": us, "p10": us * 0.9, "p90": us * 1.1, "n": 5}, **more}


ROWS = [row("ms_deform_attn", f"N{n} M1 D32 Lq100 P8 92x160+46x80/uniform", name, n * us)
        for n in (1, 2, 4, 48) for name, us in (("tmaops", 1.5), ("vector16", 2.5))]
ROWS += [row("ms_deform_attn", f"N1 M1 D32 Lq100 P8 {side}x{side}+8x8/uniform", "tmaops", side) for side in (16, 32, 64)]
ROWS += [row("tile_load", f"{tiles} tiles random", "tensor_levels", tiles / 1e3, temperature,
             loads={"count": tiles, "per_second": 1e9}) for tiles in (80, 800, 8000) for temperature in ("hot", "cold")]
DOCUMENT = {"schema": 1, "machine": {"gpu": {"name": "NVIDIA H200"}}, "revision": "0123456789ab", "rows": ROWS}


def run(folder, *arguments):
    result = folder / "sweep.json"
    result.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    picture = folder / "images" / "sweep.svg"
    done = subprocess.run([sys.executable, SCRIPT, result, picture, *arguments], capture_output=True, text=True)
    return done, picture.read_text(encoding="utf-8") if picture.exists() else ""


def expect(fact, done):
    if not fact:
        sys.exit(f"{done.args}: {done.returncode}\n{done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    done, picture = run(folder, "--x", "batch", "--only", "92x160")
    expect(done.returncode == 0 and len(picture) < 60_000, done)
    expect(all(text in picture for text in ("<svg", "tmaops", "vector16", "NVIDIA H200", "0123456789ab")), done)
    expect("tensor_levels" not in picture, done)
    done, picture = run(folder, "--x", "pixels", "--only", "+8x8", "--y", "of_peak")
    expect(done.returncode == 0 and "theoretical peak" in picture and "vector16" not in picture, done)
    done, picture = run(folder, "--x", "loads", "--y", "rate", "--temperature", "cold")
    expect(done.returncode == 0 and "loads per second" in picture, done)
    done, _ = run(folder, "--x", "loads")
    expect(done.returncode == 1 and "--temperature" in done.stderr, done)  # hot and cold at one x
    done, _ = run(folder, "--x", "size")
    expect(done.returncode == 1 and "no implementation" in done.stderr, done)
