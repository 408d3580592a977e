"""Calls of tmaops.torch that are wrong in one thing each; run by test_bindings.py, which compares what they raise.

Prints for each call [name, exception, code, where, got, needed, message].
"""

import json

import numpy as np
import tmaops
import tmaops.torch as ops
import torch

LEVELS = [(6, 5), (3, 2)]
value, locations, weights = torch.ones(2, 36, 2, 4), torch.zeros(2, 7, 2, 2, 3, 2), torch.zeros(2, 7, 2, 2, 3)
ragged = (torch.zeros(2, 7, 2, 5, 2), torch.zeros(2, 7, 2, 5))
values, times, targets = torch.ones(2, 5, 3), torch.arange(5.0), torch.arange(3.0)
a, b = torch.ones(4, 5), torch.ones(5, 3)


def attend(value=value, levels=LEVELS, locations=locations, weights=weights, **options):
    return ops.ms_deform_attn(value, levels, locations, weights, **options)


def resample(values=values, times=times, targets=targets, **options):
    return ops.resample(values, times, targets, **options)


CALLS = {
    "value None": lambda: attend(None),
    "value NumPy": lambda: attend(value.detach().numpy()),
    "value complex": lambda: attend(value.to(torch.complex64)),
    "value of bytes": lambda: attend(value.to(torch.int8)),
    "value of rank 3": lambda: attend(value[0]),
    "value sparse": lambda: attend(value.to_sparse()),
    "value a list": lambda: attend([[1.0]]),
    "locations None": lambda: attend(locations=None),
    "locations of whole numbers": lambda: attend(locations=locations.long()),
    "locations of rank 5": lambda: attend(locations=locations[0]),
    "locations complex": lambda: attend(locations=locations.to(torch.complex64)),
    "weights NumPy": lambda: attend(weights=weights.detach().numpy()),
    "weights of another shape": lambda: attend(weights=weights[..., :2]),
    "other heads": lambda: attend(weights=weights[:, :, :1], locations=locations[:, :, :1]),
    "levels None": lambda: attend(levels=None),
    "levels that do not add up": lambda: attend(levels=[(6, 5), (3, 3)]),
    "levels of floats": lambda: attend(levels=[(6.0, 5.0), (3.0, 2.0)]),
    "a tensor of float levels": lambda: attend(levels=torch.tensor(LEVELS).float()),
    "levels that are no pairs": lambda: attend(levels=[(6, 5, 3), (2,)]),
    "a flat list of levels": lambda: attend(levels=[6, 5, 3, 2]),
    "levels of text": lambda: attend(levels=[("6", "5"), ("3", "2")]),
    "no levels": lambda: attend(levels=[]),
    "an empty level": lambda: attend(levels=[(6, 6), (0, 2)]),
    "sampling": lambda: attend(sampling="linear"),
    "sampling None": lambda: attend(sampling=None),
    "starts of another number": lambda: attend(level_start_index=[0]),
    "starts outside": lambda: attend(level_start_index=[0, 31]),
    "starts of floats": lambda: attend(level_start_index=[0.0, 30.0]),
    "points of another number": lambda: attend(locations=ragged[0], weights=ragged[1], points_per_level=[5]),
    "points that do not add up": lambda: attend(locations=ragged[0], weights=ragged[1], points_per_level=[2, 2]),
    "points of floats": lambda: attend(locations=ragged[0], weights=ragged[1], points_per_level=[2.5, 2.5]),
    "points NumPy": lambda: attend(locations=ragged[0], weights=ragged[1], points_per_level=np.array([2, 3])),
    "references NumPy": lambda: attend(reference_points=np.zeros((2, 7, 2, 2), np.float32)),
    "softmax of text": lambda: attend(softmax="yes"),
    "scale None": lambda: attend(reference_points=locations[:, :, 0, :, 0].detach(), offset_scale=None),
    "mask NumPy": lambda: attend(padding_mask=np.zeros((2, 36), bool)),
    "mask beside no value": lambda: attend(None, padding_mask=torch.zeros(2, 36, dtype=torch.bool)),
    "locations on another device": lambda: attend(locations=torch.zeros(2, 7, 2, 2, 3, 2, device="meta")),
    "value on another device": lambda: attend(torch.ones(2, 36, 2, 4, device="meta")),
    "output of text": lambda: attend(out_dtype="float32"),
    "output of whole numbers": lambda: attend(out_dtype=torch.int64),
    "values None": lambda: resample(None),
    "values complex": lambda: resample(values.to(torch.complex64)),
    "values of rank 1": lambda: resample(values[0, 0]),
    "interpolation": lambda: resample(interpolation="lin"),
    "outside": lambda: resample(outside="wrap"),
    "duplicates": lambda: resample(duplicates="first"),
    "times NumPy": lambda: resample(times=times.detach().numpy()),
    "times on another device": lambda: resample(times=torch.zeros(5, device="meta")),
    "times of another length": lambda: resample(times=times[:4]),
    "times that are not sorted": lambda: resample(times=times.flip(0)),
    "targets of another type": lambda: resample(targets=targets.double()),
    "gap of text": lambda: resample(max_gap="1s"),
    "gap that is negative": lambda: resample(max_gap=-1.0),
    "offsets that do not end": lambda: resample(values[0], source_offsets=[0, 4]),
    "offsets of floats": lambda: resample(values[0], source_offsets=[0.0, 5.0]),
    "a NumPy": lambda: ops.gemm(a.detach().numpy(), b),
    "a complex": lambda: ops.gemm(a.to(torch.complex64), b),
    "x NumPy": lambda: ops.linear(a.detach().numpy(), b.t()),
    "b of another type": lambda: ops.gemm(a, b.half()),
    "shapes of a and b": lambda: ops.gemm(a, b.t()),
    "bias of another length": lambda: ops.gemm(a, b, torch.ones(4)),
    "activation": lambda: ops.gemm(a, b, activation="tanh"),
}


def main() -> None:
    for name, call in CALLS.items():
        for gradients in (False, True):
            for tensor in (value, locations, weights, values, a, b):
                tensor.requires_grad_(gradients)
            try:
                call()
                print(json.dumps([name, "nothing"]))
            except Exception as error:
                parts = [str(getattr(error, part, None)) for part in ("code", "where", "got", "needed")]
                shown = error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
                message = str(error) + ("" if shown else str(error.__context__))
                print(json.dumps([name, type(error).__name__, isinstance(error, tmaops.Error), *parts, message]))


if __name__ == "__main__":
    main()
