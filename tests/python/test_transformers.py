"""Models of transformers with and without tmaops: small, random weights, irregular offsets, f64, outputs and all gradients."""

import copy
import importlib

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tmaops.compat.transformers as compat

RESNET = dict(embeddings_size=10, hidden_sizes=[10, 20, 30, 40], depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"])
RT_DETR = dict(
    encoder_hidden_dim=32, encoder_in_channels=[20, 30, 40], feat_strides=[8, 16, 32], encoder_layers=1, encoder_ffn_dim=32,
    encoder_attention_heads=2, num_feature_levels=3, d_model=32, num_queries=9, decoder_in_channels=[32, 32, 32],
    decoder_ffn_dim=32, decoder_n_levels=3, decoder_layers=2, decoder_attention_heads=2, num_denoising=0, num_labels=5,
    anchor_image_size=None,
)  # fmt: skip


def deformable_detr(**more):
    return transformers.DeformableDetrForObjectDetection(transformers.DeformableDetrConfig(
        use_timm_backbone=False, backbone_config=transformers.ResNetConfig(**RESNET), d_model=32, encoder_layers=2,
        decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=16, decoder_ffn_dim=16,
        num_queries=6, num_labels=5, num_feature_levels=4, encoder_n_points=2, decoder_n_points=3, **more,
    ))  # fmt: skip


def rt_detr():
    backbone = transformers.RTDetrResNetConfig(**RESNET)
    return transformers.RTDetrForObjectDetection(transformers.RTDetrConfig(backbone_config=backbone, **RT_DETR))


def rt_detr_v2(**more):
    backbone = transformers.RTDetrResNetConfig(**RESNET)
    return transformers.RTDetrV2ForObjectDetection(transformers.RTDetrV2Config(backbone_config=backbone, **RT_DETR, **more))


def d_fine(**more):
    backbone = transformers.HGNetV2Config(
        stage_in_channels=[16, 16, 32, 64], stage_mid_channels=[8, 8, 16, 32], stage_out_channels=[16, 32, 64, 128],
        stage_num_blocks=[1, 1, 1, 1], stage_downsample=[False, True, True, True], stage_light_block=[False, False, True, True],
        stage_kernel_size=[3, 3, 5, 5], stage_numb_of_layers=[3, 3, 3, 3], stem_channels=[3, 8, 16],
        hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1], embeddings_size=8, out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    options = {**RT_DETR, "encoder_in_channels": [32, 64, 128]}
    return transformers.DFineForObjectDetection(transformers.DFineConfig(
        backbone_config=backbone, decoder_n_points=[3, 6, 3], eval_idx=-1, **options, **more,
    ))  # fmt: skip


def mask2former():
    swin = transformers.SwinConfig(
        image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4, drop_path_rate=0.0,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )  # fmt: skip
    return transformers.Mask2FormerForUniversalSegmentation(transformers.Mask2FormerConfig(
        backbone_config=swin, feature_size=32, mask_feature_size=32, hidden_dim=32, encoder_feedforward_dim=32, encoder_layers=2,
        decoder_layers=3, num_attention_heads=4, dim_feedforward=32, num_queries=7, num_labels=5,
    ))  # fmt: skip


def scramble(model):
    """Random weights where they are regular at the beginning: the offsets and boxes of a fresh model lie on pixel centres."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        scale = 0.5 if "sampling_offsets" in name else 0.05 if "bbox" in name or "attention_weights" in name else 0.01
        with torch.no_grad():
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype).to(parameter))


def tensors(outputs):
    for value in outputs.values():
        for tensor in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                yield tensor


def run(model, pixels):
    outputs = [tensor for tensor in tensors(model(pixel_values=pixels)) if tensor.isfinite().all()]
    sum((tensor * torch.linspace(0.5, 1.5, tensor.numel()).to(tensor).view(tensor.shape)).mean() for tensor in outputs if tensor.requires_grad).backward()
    return outputs, {name: parameter.grad for name, parameter in model.named_parameters()}


def distance(got, wanted):
    """Relative distance over all tensors together."""
    difference = sum((mine - theirs).square().sum() for mine, theirs in zip(got, wanted))
    return (difference / sum(theirs.square().sum() for theirs in wanted)).sqrt().item()


@pytest.mark.parametrize(
    "make, options, tolerance",
    [
        (deformable_detr, {}, 1e-9),
        (deformable_detr, {"two_stage": True, "with_box_refine": True, "two_stage_num_proposals": 6}, 1e-9),
        (rt_detr, {}, 1e-9),
        (rt_detr_v2, {}, 1e-9),
        (rt_detr_v2, {"decoder_method": "discrete"}, 1e-9),
        (d_fine, {}, 1e-8),
        (mask2former, {}, 1e-9),
    ],
    ids=lambda given: given.__name__ if callable(given) else "_".join(map(str, given.values())) if isinstance(given, dict) else "",
)
def test_models_agree_with_their_own_code(make, options, tolerance, device, monkeypatch):
    if device != "cpu":
        pytest.skip("f64 runs on the CPU")
    compat.unpatch()
    torch.manual_seed(0)
    original = make(**options).double().eval()
    scramble(original)
    pixels = torch.randn(2, 3, 64, 96, dtype=torch.float64) if make is not mask2former else torch.randn(2, 3, 64, 64, dtype=torch.float64)
    model = copy.deepcopy(original)
    wanted, wanted_gradients = run(original, pixels)
    calls = []
    attention = compat.attention
    monkeypatch.setattr(compat, "attention", lambda *args, **more: calls.append(1) or attention(*args, **more))
    compat.patch(model)
    try:
        got, gradients = run(model, pixels)
    finally:
        compat.unpatch()
    assert len(calls) >= 2
    assert len(got) == len(wanted) > 0
    assert distance(got, wanted) < tolerance
    for name, gradient in wanted_gradients.items():
        assert (gradient is None) == (gradients[name] is None), name
    names = [name for name, gradient in wanted_gradients.items() if gradient is not None]
    assert distance([gradients[name] for name in names], [wanted_gradients[name] for name in names]) < tolerance


def test_every_model_file_with_the_operator_is_patched_as_it_is_imported_and_given_back():
    names = (
        "deformable_detr", "grounding_dino", "mm_grounding_dino", "lw_detr", "omdet_turbo", "rt_detr", "mask2former", "oneformer",
        "rt_detr_v2", "d_fine",
    )  # fmt: skip
    modules = [f"transformers.models.{name}.modeling_{name}" for name in names]
    importlib.import_module(modules[0])
    compat.patch()
    try:
        for name in modules:
            module = importlib.import_module(name)
            held = [
                getattr(module, function) is getattr(compat, function)
                for function in ("multi_scale_deformable_attention", "multi_scale_deformable_attention_v2")
                if hasattr(module, function)
            ]
            if hasattr(module, "MultiScaleDeformableAttention"):
                held.append(module.MultiScaleDeformableAttention.forward is compat.forward)
            assert held and all(held), name
    finally:
        compat.unpatch()
    assert importlib.import_module(modules[0]).MultiScaleDeformableAttention.forward is not compat.forward
