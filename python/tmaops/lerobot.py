"""A step for LeRobot's processor pipelines. Importing this module imports lerobot.

    steps = [tmaops.lerobot.ResampleStep(hz=30, time="observation.timestamp"), ...]
    pipeline = DataProcessorPipeline(steps=steps)                     # saved and loaded with it, too

A transition is one episode: the step makes rows out of its rows. `batch_to_transition`, the pipelines' usual first conversion,
keeps of an observation what begins with "observation.", so that the times need such a name.
"""

from __future__ import annotations

from lerobot.processor import ProcessorStep

from tmaops import data

__all__ = ["ResampleStep"]


class ResampleStep(data.ResampleStep, ProcessorStep):
    __doc__ = data.ResampleStep.__doc__
