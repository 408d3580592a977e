"""tmaops.lerobot in the processor pipelines of LeRobot itself (`pip install --no-deps lerobot` and what its processors import)."""

import importlib.util

import pytest
from lerobot_own import lerobot_imports

for needed in ("torch", "lerobot", "safetensors"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"no {needed}", allow_module_level=True)

import torch  # noqa: E402


@pytest.fixture(scope="module")
def processor():
    with lerobot_imports():
        import lerobot.processor

        yield lerobot.processor


def batch(rows=11):
    """An episode as the columns of a LeRobot set."""
    times = torch.arange(rows, dtype=torch.float64) / 10
    return {
        "observation.timestamp": times,
        "observation.state": torch.stack([times, 2 * times], 1).float(),
        "action": torch.stack([times, -times], 1).float(),
        "next.reward": torch.zeros(rows),
        "task_index": torch.arange(rows) // 6,
        "task": ["pick"] * 6 + ["place"] * (rows - 6),
        "action_is_pad": torch.zeros(rows, dtype=torch.bool),
    }


def check(got):
    times = torch.arange(21) / 20
    torch.testing.assert_close(got["observation.state"], torch.stack([times, 2 * times], 1))
    torch.testing.assert_close(got["action"], torch.stack([times, -times], 1))
    assert got["task_index"].tolist() == [0] * 12 + [1] * 9 and got["task_index"].dtype is torch.int64
    assert list(got["task"]) == ["pick"] * 12 + ["place"] * 9
    assert len(got["action_is_pad"]) == len(got["next.reward"]) == 21 and got["valid"].all()


def test_a_pipeline_of_lerobot_takes_the_step(processor):
    from tmaops.lerobot import ResampleStep

    step = ResampleStep(hz=20, time="observation.timestamp")
    assert isinstance(step, processor.ProcessorStep)
    check(processor.DataProcessorPipeline(steps=[step])(batch()))


def test_the_step_is_saved_and_loaded_with_its_pipeline(processor, tmp_path):
    from tmaops.lerobot import ResampleStep

    pipeline = processor.DataProcessorPipeline(
        steps=[ResampleStep(hz=20, time="observation.timestamp")], name="aligned"
    )
    pipeline.save_pretrained(tmp_path)
    again = processor.DataProcessorPipeline.from_pretrained(tmp_path, config_filename="aligned.json")
    assert type(again.steps[0]) is ResampleStep
    check(again(batch()))


def test_features_pass_the_step_unchanged(processor):
    from lerobot.configs.types import FeatureType, PipelineFeatureType, PolicyFeature
    from tmaops.lerobot import ResampleStep

    features = {
        PipelineFeatureType.OBSERVATION: {"observation.state": PolicyFeature(FeatureType.STATE, (2,))},
        PipelineFeatureType.ACTION: {},
    }
    assert processor.DataProcessorPipeline(steps=[ResampleStep(hz=20)]).transform_features(features) == features
