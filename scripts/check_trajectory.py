#!/usr/bin/env python3
"""Checks a resampled TUM trajectory against a computation of its own, in float64, that shares no code with tmaops.

  tmaops resample IN.txt -o OUT.txt --hz 30 --max-gap 1 --duplicates last
  check_trajectory.py IN.txt OUT.txt --hz 30 --max-gap 1

Positions are interpolated linearly, rotations along the shortest arc (as exp(w log(...)), not by the sine formula that
tmaops uses), weights from exact integer nanoseconds. Checks that every row agrees (1e-6 m, 1e-6 rad), that no row lies
inside a gap wider than --max-gap, and with --hz or --like that no other target is missing. Exits 1 when one differs.
"""

import argparse
import sys
from decimal import ROUND_HALF_UP, Decimal

import numpy as np


def read(path):
    """Times in nanoseconds (exact) and the seven columns of a TUM trajectory."""
    times, rows = [], []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            fields = line.split()
            if not fields or fields[0].startswith("#"):
                continue
            times.append(int((Decimal(fields[0]) * 10**9).to_integral_value(ROUND_HALF_UP)))
            rows.append([float(field) for field in fields[1:8]])
    return np.array(times, dtype=np.int64), np.array(rows)


def product(a, b):
    """Hamilton product of quaternions x y z w."""
    ax, ay, az, aw = np.moveaxis(a, -1, 0)
    bx, by, bz, bw = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def inverse(q):
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def unit(q):
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def rotation_vector(q):
    """Axis times angle, the angle in [0, pi]."""
    q = np.where(q[..., 3:] < 0, -q, q)
    sine = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(sine, q[..., 3:])
    return np.where(sine > 0, q[..., :3] / np.where(sine > 0, sine, 1), 0) * angle


def from_rotation_vector(v):
    angle = np.linalg.norm(v, axis=-1, keepdims=True)
    axis = np.where(angle > 0, v / np.where(angle > 0, angle, 1), 0)
    return np.concatenate([axis * np.sin(angle / 2), np.cos(angle / 2)], axis=-1)


def grid(times, hz):
    """First stamp + i / hz rounded to the nanosecond, up to the last stamp."""
    period = Decimal(10**9) / Decimal(hz)
    count = int(Decimal(int(times[-1] - times[0])) / period) + 2
    points = [int(times[0]) + int((i * period).to_integral_value(ROUND_HALF_UP)) for i in range(count)]
    return np.array([p for p in points if p <= times[-1]], dtype=np.int64)


def inside_gap(times, targets, max_gap):
    """Targets strictly between two samples further apart than max_gap, and those outside the recording."""
    left = np.searchsorted(times, targets, side="right") - 1
    outside = (targets < times[0]) | (targets > times[-1])
    left = np.clip(left, 0, len(times) - 2)
    wide = (times[left + 1] - times[left] > max_gap) if max_gap else np.zeros(len(targets), dtype=bool)
    return outside | (wide & (targets > times[left]) & (targets < times[left + 1])), left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("resampled")
    parser.add_argument("--hz", help="the option tmaops was given")
    parser.add_argument("--like", help="the option tmaops was given")
    parser.add_argument("--max-gap", type=Decimal, default=Decimal(0), help="seconds; 0: none")
    parser.add_argument("--position-tolerance", type=float, default=1e-6, help="metres")
    parser.add_argument("--rotation-tolerance", type=float, default=1e-6, help="radians")
    arguments = parser.parse_args()

    times, rows = read(arguments.source)
    got_times, got = read(arguments.resampled)
    max_gap = int(arguments.max_gap * 10**9)
    failures = []

    missing, left = inside_gap(times, got_times, max_gap)
    if missing.any():
        failures.append(f"{missing.sum()} rows lie inside a gap or outside the recording")
    step = times[left + 1] - times[left]
    weight = ((got_times - times[left]) / np.where(step > 0, step, 1))[:, None]
    position = rows[left, :3] * (1 - weight) + rows[left + 1, :3] * weight
    start, end = unit(rows[left, 3:]), unit(rows[left + 1, 3:])
    rotation = product(start, from_rotation_vector(weight * rotation_vector(product(inverse(start), end))))
    position_error = np.abs(position - got[:, :3]).max(initial=0)
    rotation_error = np.linalg.norm(rotation_vector(product(inverse(rotation), unit(got[:, 3:]))), axis=-1).max(
        initial=0
    )
    norm_error = np.abs(np.linalg.norm(got[:, 3:], axis=-1) - 1).max(initial=0)
    if not position_error <= arguments.position_tolerance:
        failures.append("positions differ")
    if not rotation_error <= arguments.rotation_tolerance or not norm_error <= 1e-9:
        failures.append("rotations differ")

    targets = grid(times, arguments.hz) if arguments.hz else read(arguments.like)[0] if arguments.like else None
    if targets is not None:
        wanted = targets[~inside_gap(times, targets, max_gap)[0]]
        if not np.array_equal(wanted, got_times):
            failures.append(f"{len(got_times)} rows at other times than the {len(wanted)} targets outside gaps")
    flips = int((np.sum(rows[1:, 3:] * rows[:-1, 3:], axis=1) < 0).sum())
    print(
        f"{len(got)} rows from {len(rows)} samples ({flips} sign flips, longest step {np.diff(times).max() / 1e9:.3f} s): "
        f"positions within {position_error:.2e} m, rotations within {rotation_error:.2e} rad, "
        f"norms within {norm_error:.1e} of 1"
    )
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures or len(got) == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
