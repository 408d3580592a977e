"""Episodes that are resampled together have the bytes of episodes that are resampled one by one."""

import numpy as np
import pyarrow as pa
import pytest

from tmaops.dataset import clock
from tmaops.dataset.columns import Episode, resample_episodes
from tmaops.dataset.errors import Refused
from tmaops.dataset.rules import Rules
from tmaops.dataset.tables import channels_of_table

MODES = ["linear", "cubic", "previous", "next", "nearest", "final"]


def episodes_of(random, count, hz):
    """Irregular episodes, some of one row and some that begin before the one in front of them."""
    made = []
    for number in range(count):
        rows = int(random.integers(1, 40))
        times = int(random.integers(0, 2 * 10**18)) + np.cumsum(random.integers(1, 10**8, rows))
        made.append(Episode(times, clock.grid(int(times[0]), int(times[-1]), clock.rate(hz)), f"episode {number}"))
    return made


def rows_of(random, episodes):
    rows = sum(e.times.size for e in episodes)
    columns = {mode: pa.array(random.standard_normal(rows)) for mode in MODES}
    columns["pose"] = pa.FixedSizeListArray.from_arrays(pa.array(random.standard_normal(rows * 4).astype(np.float32)), 4)
    columns["holes"] = pa.array(random.standard_normal(rows), mask=random.random(rows) < 0.2)
    columns["label"] = pa.array([f"row {i}" for i in range(rows)])
    columns["arm"] = pa.StructArray.from_arrays([pa.array(random.standard_normal(rows)), pa.array(np.arange(rows))], ["angle", "count"])
    return pa.table(columns)


@pytest.mark.parametrize("max_gap", [None, 60_000_000])
@pytest.mark.parametrize("seed", range(6))
def test_episodes_together_are_as_one_by_one(seed, max_gap):
    random = np.random.default_rng(seed)
    episodes = episodes_of(random, 12, 37)
    table = rows_of(random, episodes)
    widths = channels_of_table(table)
    rules = Rules({mode: mode for mode in MODES} | {"pose": "slerp"})

    def rule_of(name, kind):
        return rules.of(name, kind, widths[name])

    together = resample_episodes(table, episodes, rule_of, max_gap)
    first, parts = 0, []
    for episode in episodes:
        parts.append(resample_episodes(table.slice(first, episode.times.size), [episode], rule_of, max_gap))
        first += episode.times.size
    assert together.schema == table.schema
    assert together.combine_chunks().equals(pa.concat_tables(parts).combine_chunks())


def test_a_refusal_names_the_episode():
    times = np.arange(5) * 10**8
    episodes = [Episode(times, times, f"episode {number}") for number in (4, 7, 9)]
    quaternions = np.tile(np.float32([0, 0, 0, 1]), (15, 1))
    quaternions[7] = 0
    table = pa.table({"q": pa.FixedSizeListArray.from_arrays(pa.array(quaternions.reshape(-1)), 4)})
    rules = Rules({"q": "slerp"})
    with pytest.raises(Refused, match="episode 7: column 'q'"):
        resample_episodes(table, episodes, lambda name, kind: rules.of(name, kind, 4))
