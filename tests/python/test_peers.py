"""Peers of `tmaops bench` that need this package in the interpreter. The tool checks every output before it times."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")


def rows(tmp_path, problem, peers, code=0):
    file = tmp_path / "r.json"
    command = [
        sys.executable,
        "-m",
        "tmaops",
        "bench",
        "-p",
        f"ms_deform_attn: {{{problem}}}",
        "--peers",
        peers,
        "--python",
        sys.executable,
    ]
    command += ["--device", "cpu", "--samples", "5", "--min-time", "0", "-o", str(file), "--force"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == code, run.stdout + run.stderr
    return {row["implementation"]: row for row in json.loads(file.read_text())["rows"]}, run.stderr


@pytest.mark.parametrize(
    "more",
    [
        "fused: softmax",
        "fused: reference_points+mask",
        "fused: softmax+reference_boxes+mask, offset_scale: 0.25",
        "fused: softmax+reference_points, dtype: bf16, location_dtype: f32",
        "fused: softmax+reference_boxes, offset_scale: 2, dtype: f16, location_dtype: f32, output_dtype: f32",
    ],
)
def test_separate_steps_agree_with_the_fused_attention(tmp_path, more):
    found, _ = rows(tmp_path, f"levels: '9x7 4x3', batch: 2, queries: 75, locations: detr, {more}", "separate_steps")
    assert set(found) == {"tmaops", "separate_steps"}
    assert found["separate_steps"]["kind"] == "peer"


@pytest.mark.parametrize(
    "more, peer, reason",
    [
        ("fused: none", "separate_steps", "fused steps other than border"),
        ("fused: softmax+border", "separate_steps", "fused steps other than border"),
        ("fused: softmax, dtype: f16", "separate_steps", "too coarse"),
        ("dtype: bf16, output_dtype: f32", "grid_sample", "an output of the value's type"),
    ],
)
def test_a_peer_says_what_it_does_not_take(tmp_path, more, peer, reason):
    found, said = rows(tmp_path, f"levels: '9x7 4x3', queries: 75, {more}", peer, code=3)
    assert set(found) == {"tmaops"}
    assert reason in said
