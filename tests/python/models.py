"""Models of transformers that have multi-scale deformable attention, with random weights. Nothing is downloaded.

`SMALL` and `WHOLE` map a name to a function that makes a model: a small one, and one of the published size. `inputs(name, ...)` makes what
it is called with.
"""

import torch
import transformers

RESNET = dict(
    embeddings_size=10, hidden_sizes=[10, 20, 30, 40], depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"]
)
HGNET = dict(
    stage_in_channels=[16, 16, 32, 64],
    stage_mid_channels=[8, 8, 16, 32],
    stage_out_channels=[16, 32, 64, 128],
    stage_num_blocks=[1, 1, 1, 1],
    stage_downsample=[False, True, True, True],
    stage_light_block=[False, False, True, True],
    stage_kernel_size=[3, 3, 5, 5],
    stage_numb_of_layers=[3, 3, 3, 3],
    stem_channels=[3, 8, 16],
    hidden_sizes=[16, 32, 64, 128],
    depths=[1, 1, 1, 1],
    embeddings_size=8,
    out_features=["stage2", "stage3", "stage4"],
)
SWIN = dict(image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4, drop_path_rate=0.0)
RT_DETR = dict(
    encoder_hidden_dim=32,
    encoder_in_channels=[20, 30, 40],
    feat_strides=[8, 16, 32],
    encoder_layers=1,
    encoder_ffn_dim=32,
    encoder_attention_heads=2,
    num_feature_levels=3,
    d_model=32,
    num_queries=9,
    decoder_in_channels=[32, 32, 32],
    decoder_ffn_dim=32,
    decoder_layers=2,
    decoder_attention_heads=2,
    num_denoising=0,
    num_labels=5,
    anchor_image_size=None,
)
ON_HGNET = {**RT_DETR, "encoder_in_channels": [32, 64, 128]}
BERT = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=2000)


def deformable_detr(**more):
    return transformers.DeformableDetrForObjectDetection(
        transformers.DeformableDetrConfig(
            backbone_config=transformers.ResNetConfig(**RESNET),
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            num_queries=6,
            num_labels=5,
            num_feature_levels=4,
            encoder_n_points=2,
            decoder_n_points=3,
            **more,
        )
    )


def rt_detr():
    backbone = transformers.RTDetrResNetConfig(**RESNET)
    return transformers.RTDetrForObjectDetection(transformers.RTDetrConfig(backbone_config=backbone, **RT_DETR))


def rt_detr_v2(**more):
    backbone = transformers.RTDetrResNetConfig(**RESNET)
    return transformers.RTDetrV2ForObjectDetection(
        transformers.RTDetrV2Config(backbone_config=backbone, decoder_n_levels=3, **RT_DETR, **more)
    )


def d_fine(**more):
    return transformers.DFineForObjectDetection(
        transformers.DFineConfig(
            backbone_config=transformers.HGNetV2Config(**HGNET),
            decoder_n_points=[3, 6, 3],
            eval_idx=-1,
            **ON_HGNET,
            **more,
        )
    )


def deimv2(**more):
    return transformers.Deimv2ForObjectDetection(
        transformers.Deimv2Config(
            backbone_config=transformers.HGNetV2Config(**HGNET),
            decoder_n_points=[3, 6, 3],
            eval_idx=-1,
            **ON_HGNET,
            **more,
        )
    )


def mask2former():
    return transformers.Mask2FormerForUniversalSegmentation(
        transformers.Mask2FormerConfig(
            backbone_config=transformers.SwinConfig(**SWIN, out_features=["stage1", "stage2", "stage3", "stage4"]),
            feature_size=32,
            mask_feature_size=32,
            hidden_dim=32,
            encoder_feedforward_dim=32,
            encoder_layers=2,
            decoder_layers=3,
            num_attention_heads=4,
            dim_feedforward=32,
            num_queries=7,
            num_labels=5,
        )
    )


def oneformer():
    return transformers.OneFormerForUniversalSegmentation(
        transformers.OneFormerConfig(
            backbone_config=transformers.SwinConfig(**SWIN, out_features=["stage1", "stage2", "stage3", "stage4"]),
            conv_dim=32,
            mask_dim=32,
            hidden_dim=32,
            encoder_feedforward_dim=32,
            encoder_layers=2,
            decoder_layers=3,
            num_attention_heads=4,
            dim_feedforward=32,
            num_queries=7,
            num_labels=5,
            task_seq_len=7,
            text_encoder_width=16,
            query_dec_layers=1,
        )
    )


def grounding_dino(kind="GroundingDino"):
    return getattr(transformers, f"{kind}ForObjectDetection")(
        getattr(transformers, f"{kind}Config")(
            backbone_config=transformers.SwinConfig(**SWIN, out_features=["stage2", "stage3", "stage4"]),
            text_config=transformers.BertConfig(**BERT),
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            num_queries=6,
            num_feature_levels=4,
            encoder_n_points=2,
            decoder_n_points=3,
            max_text_len=8,
        )
    )


def mm_grounding_dino():
    return grounding_dino("MMGroundingDino")


def omdet_turbo():
    text = transformers.CLIPTextConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        projection_dim=16,
        vocab_size=100,
        max_position_embeddings=16,
        bos_token_id=98,
        eos_token_id=99,
    )
    return transformers.OmDetTurboForObjectDetection(
        transformers.OmDetTurboConfig(
            backbone_config=transformers.SwinConfig(**SWIN, out_features=["stage2", "stage3", "stage4"]),
            text_config=text,
            apply_layernorm_after_vision_backbone=False,
            image_size=64,
            text_projection_in_dim=16,
            text_projection_out_dim=16,
            class_embed_dim=16,
            num_queries=6,
            task_encoder_hidden_dim=16,
            encoder_hidden_dim=32,
            vision_features_channels=[32, 32, 32],
            encoder_in_channels=[16, 32, 64],
            encoder_attention_heads=4,
            encoder_dim_feedforward=16,
            decoder_hidden_dim=32,
            decoder_num_heads=4,
            decoder_num_layers=2,
            decoder_dim_feedforward=16,
            decoder_num_points=3,
        )
    )


def lw_detr():
    backbone = transformers.LwDetrViTConfig(
        image_size=64,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        out_indices=[1, 2],
        window_block_indices=[0],
        num_windows=4,
    )
    return transformers.LwDetrForObjectDetection(
        transformers.LwDetrConfig(
            backbone_config=backbone,
            projector_scale_factors=[2.0, 0.5],
            d_model=32,
            decoder_ffn_dim=32,
            decoder_layers=2,
            decoder_n_points=3,
            decoder_self_attention_heads=4,
            decoder_cross_attention_heads=4,
            num_queries=6,
            group_detr=2,
            num_labels=5,
        )
    )


def rf_detr():
    backbone = transformers.RfDetrDinov2Config(
        image_size=64,
        patch_size=8,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_windows=2,
        out_features=["stage2", "stage3"],
        mlp_ratio=2,
    )
    return transformers.RfDetrForObjectDetection(
        transformers.RfDetrConfig(
            backbone_config=backbone,
            d_model=32,
            decoder_ffn_dim=32,
            decoder_layers=2,
            decoder_n_points=3,
            decoder_self_attention_heads=4,
            decoder_cross_attention_heads=4,
            num_queries=6,
            group_detr=2,
            num_labels=5,
        )
    )


def pp_doclayout_v2():
    order = transformers.models.pp_doclayout_v2.configuration_pp_doclayout_v2.PPDocLayoutV2ReadingOrderConfig(
        hidden_size=24,
        num_attention_heads=2,
        intermediate_size=16,
        num_hidden_layers=1,
        max_position_embeddings=32,
        coordinate_size=4,
        shape_size=4,
        num_classes=5,
        relation_bias_embed_dim=4,
        global_pointer_head_size=8,
    )
    return transformers.PPDocLayoutV2ForObjectDetection(
        transformers.PPDocLayoutV2Config(
            backbone_config=transformers.HGNetV2Config(**HGNET),
            reading_order_config=order,
            class_thresholds=[0.5] * 5,
            class_order=list(range(5)),
            **ON_HGNET,
        )
    )


def pp_doclayout_v3():
    backbone = transformers.HGNetV2Config(**{**HGNET, "out_features": ["stage1", "stage2", "stage3", "stage4"]})
    return transformers.PPDocLayoutV3ForObjectDetection(
        transformers.PPDocLayoutV3Config(
            backbone_config=backbone,
            x4_feat_dim=16,
            mask_feature_channels=[16, 16],
            num_prototypes=4,
            global_pointer_head_size=8,
            **ON_HGNET,
        )
    )


def pp_doclayout_v4():
    small = {"hidden_size" if key == "d_model" else key: value for key, value in ON_HGNET.items()}
    return transformers.PPDocLayoutV4ForObjectDetection(
        transformers.PPDocLayoutV4Config(
            backbone_config=transformers.HGNetV2Config(**HGNET), global_pointer_head_size=8, **small
        )
    )


SMALL = {
    make.__name__: make
    for make in (
        deformable_detr,
        grounding_dino,
        mm_grounding_dino,
        lw_detr,
        rf_detr,
        omdet_turbo,
        pp_doclayout_v2,
        pp_doclayout_v3,
        pp_doclayout_v4,
        rt_detr,
        mask2former,
        oneformer,
        rt_detr_v2,
        d_fine,
        deimv2,
    )
}


def _default(model, configuration, **more):
    return lambda: getattr(transformers, model)(getattr(transformers, configuration)(**more))


def _whole_deformable_detr():
    """On transformers' own ResNet-50: the default one needs timm."""
    backbone = transformers.ResNetConfig(out_features=["stage2", "stage3", "stage4"])
    return _default("DeformableDetrForObjectDetection", "DeformableDetrConfig", backbone_config=backbone)()


def _whole_omdet_turbo():
    """On transformers' own Swin: the default one needs timm."""
    backbone = transformers.SwinConfig(out_features=["stage2", "stage3", "stage4"])
    return _default(
        "OmDetTurboForObjectDetection",
        "OmDetTurboConfig",
        backbone_config=backbone,
        use_timm_backbone=False,
        apply_layernorm_after_vision_backbone=False,
    )()


WHOLE = {
    "deformable_detr": _whole_deformable_detr,
    "grounding_dino": _default("GroundingDinoForObjectDetection", "GroundingDinoConfig"),
    "rt_detr": _default("RTDetrForObjectDetection", "RTDetrConfig"),
    "rt_detr_v2": _default("RTDetrV2ForObjectDetection", "RTDetrV2Config"),
    "d_fine": _default("DFineForObjectDetection", "DFineConfig"),
    "rf_detr": _default("RfDetrForObjectDetection", "RfDetrConfig"),
    "mask2former": _default("Mask2FormerForUniversalSegmentation", "Mask2FormerConfig"),
    "mm_grounding_dino": _default("MMGroundingDinoForObjectDetection", "MMGroundingDinoConfig"),
    "lw_detr": _default("LwDetrForObjectDetection", "LwDetrConfig", projector_scale_factors=[1.0], num_queries=100),
    "deimv2": _default("Deimv2ForObjectDetection", "Deimv2Config"),
    "oneformer": _default("OneFormerForUniversalSegmentation", "OneFormerConfig", task_seq_len=7),
    "omdet_turbo": _whole_omdet_turbo,
    "pp_doclayout_v2": _default(
        "PPDocLayoutV2ForObjectDetection", "PPDocLayoutV2Config", class_thresholds=[0.5] * 2, class_order=[0, 1]
    ),
    "pp_doclayout_v3": _default("PPDocLayoutV3ForObjectDetection", "PPDocLayoutV3Config"),
    "pp_doclayout_v4": _default("PPDocLayoutV4ForObjectDetection", "PPDocLayoutV4Config"),
}


def inputs(name, height=64, width=64, batch=2, device="cpu", dtype=torch.float32):
    """Arguments of the model: an image of random pixels, and random words for models that read."""
    generator = torch.Generator().manual_seed(2)
    given = {
        "pixel_values": torch.randn(batch, 3, height, width, generator=generator, dtype=torch.float64).to(device, dtype)
    }

    def words(rows, count):
        return torch.randint(3, 90, (rows, count), generator=generator).to(device)

    if "grounding_dino" in name:
        given["input_ids"] = torch.cat(
            [
                torch.full((batch, 1), 101),
                words(batch, 5).cpu() + 1100,
                torch.full((batch, 1), 1012),
                torch.full((batch, 1), 102),
            ],
            1,
        ).to(device)
    if name == "omdet_turbo":
        given |= {
            "classes_input_ids": words(2 * batch, 4),
            "classes_attention_mask": torch.ones(2 * batch, 4, dtype=torch.long, device=device),
        }
        given |= {
            "tasks_input_ids": words(batch, 4),
            "tasks_attention_mask": torch.ones(batch, 4, dtype=torch.long, device=device),
        }
        given["classes_structure"] = torch.full((batch,), 2, device=device)
    if name == "oneformer":
        given["task_inputs"] = words(batch, 7).to(device, dtype)
    return given


def scramble(model):
    """Random weights where they are regular at the beginning: the offsets and boxes of a fresh model lie on pixel centres."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        scale = 0.5 if "sampling_offsets" in name else 0.05 if "bbox" in name or "attention_weights" in name else 0.01
        with torch.no_grad():
            parameter.add_(
                scale * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype).to(parameter)
            )


def floats(result):
    """The floating-point tensors of a model's output."""
    for value in result.values():
        for tensor in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                yield tensor


def outputs(result):
    """Those without infinities or the largest number of a type."""
    return [tensor for tensor in floats(result) if (tensor.abs() < 6e4).all()]  # f16 ends at 65504


def loss(tensors):
    """A number that depends on every element of the outputs."""
    return sum(
        (
            tensor
            * torch.linspace(0.5, 1.5, tensor.numel(), device=tensor.device, dtype=tensor.dtype).view(tensor.shape)
        ).mean()
        for tensor in tensors
        if tensor.requires_grad
    )
