"""What a resampled column must be, computed in float64 apart from the code under test."""

import numpy as np


def linear(values, times, targets):
    """values (S, D) at times (S) to targets (T), in float64; outside the first or last row."""
    return np.stack([np.interp(targets, times, column) for column in np.asarray(values, np.float64).T], axis=1)


def slerp(values, times, targets):
    """Unit quaternions (S, 4) along the shortest arc, normalised."""
    q = np.asarray(values, np.float64)
    out = np.empty((len(targets), 4))
    for i, t in enumerate(targets):
        k = min(max(np.searchsorted(times, t, side="right") - 1, 0), len(times) - 2)
        w = (t - times[k]) / (times[k + 1] - times[k])
        a, b = q[k] / np.linalg.norm(q[k]), q[k + 1] / np.linalg.norm(q[k + 1])
        b = -b if a @ b < 0 else b
        angle = np.arccos(min(a @ b, 1.0))
        v = a + w * (b - a) if angle < 1e-9 else (np.sin((1 - w) * angle) * a + np.sin(w * angle) * b) / np.sin(angle)
        out[i] = v / np.linalg.norm(v)
    return out


def previous(values, times, targets):
    return [values[max(np.searchsorted(times, t, side="right") - 1, 0)] for t in targets]


def nearest(values, times, targets):
    return [values[int(np.argmin(np.abs(np.asarray(times) - t)))] for t in targets]
