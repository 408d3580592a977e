"""Episodes that are resampled together have the bytes of episodes that are resampled one by one."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from tmaops.dataset import clock
from tmaops.dataset.clock import Episodes, one_episode
from tmaops.dataset.columns import resample_episodes
from tmaops.dataset.errors import Refused
from tmaops.dataset.lerobot import stats_of
from tmaops.dataset.options import Options
from tmaops.dataset.rules import Part, Rule, Rules, compute

MODES = ["linear", "cubic", "previous", "next", "nearest", "final", "sum", "max"]


def grid_of(times, hz):
    """The targets of one episode, each an exact fraction of its own."""
    first, last, found = int(times[0]), int(times[-1]), []
    while (at := first + math.floor(Fraction(len(found) * 10**9) / clock.rate(hz) + Fraction(1, 2))) <= last:
        found.append(at)
    return np.array(found)


def episodes_of(random, count, hz, max_gap=None):
    """Irregular episodes, some of one row and some that begin before the one in front of them."""
    made = []
    for number in range(count):
        rows = int(random.integers(1, 40))
        times = int(random.integers(0, 2 * 10**18)) + np.cumsum(random.integers(1, 10**8, rows))
        made.append(one_episode(times, grid_of(times, hz), f"episode {number}", max_gap=max_gap))
    return made


def together_of(episodes):
    parts = [np.concatenate([getattr(e, name) for e in episodes]) for name in ("times", "targets", "rows", "counts")]
    return Episodes(*parts, [e.names[0] for e in episodes], max_gap=episodes[0].max_gap)


def rows_of(random, episodes):
    rows = sum(e.times.size for e in episodes)
    columns = {mode: pa.array(random.standard_normal(rows)) for mode in MODES}
    columns["pose"] = pa.FixedSizeListArray.from_arrays(
        pa.array(random.standard_normal(rows * 4).astype(np.float32)), 4
    )
    columns["holes"] = pa.array(random.standard_normal(rows), mask=random.random(rows) < 0.2)
    columns["label"] = pa.array([f"row {i}" for i in range(rows)])
    columns["arm"] = pa.StructArray.from_arrays(
        [pa.array(random.standard_normal(rows)), pa.array(np.arange(rows))], ["angle", "count"]
    )
    return pa.table(columns)


def rules_of(modes, quaternion):
    """Columns of one channel by their modes, and one that is a quaternion."""
    columns = {name: Rule((Part(0, 1, mode),), "") for name, mode in modes.items()}
    columns[quaternion] = Rule((Part(0, 4, "slerp"),), "")
    return Rules(columns, [[(quaternion, channel) for channel in range(4)]])


@pytest.mark.parametrize("max_gap", [None, 60_000_000])
@pytest.mark.parametrize("seed", range(6))
def test_episodes_together_are_as_one_by_one(seed, max_gap):
    random = np.random.default_rng(seed)
    episodes = episodes_of(random, 12, 37, max_gap)
    table = rows_of(random, episodes)
    modes = {mode: mode for mode in MODES} | {"holes": "linear", "label": "previous", "arm.angle": "linear"}
    rules = rules_of(modes | {"arm.count": "previous"}, "pose")

    together = resample_episodes(table, together_of(episodes), rules)
    first, parts = 0, []
    for episode in episodes:
        parts.append(resample_episodes(table.slice(first, episode.times.size), episode, rules))
        first += episode.times.size
    assert together.schema == table.schema
    alone = pa.concat_tables(parts)
    holes = [made.column("holes").to_pandas().to_numpy() for made in (together, alone)]
    np.testing.assert_allclose(*holes, rtol=1e-13)  # computed beside other columns where an episode has no null
    assert together.drop(["holes"]).combine_chunks().equals(alone.drop(["holes"]).combine_chunks())


def test_a_refusal_names_the_episode():
    times = np.arange(5) * 10**8
    episodes = [one_episode(times, times, f"episode {number}") for number in (4, 7, 9)]
    quaternions = np.tile(np.float32([0, 0, 0, 1]), (15, 1))
    quaternions[7] = 0
    table = pa.table({"q": pa.FixedSizeListArray.from_arrays(pa.array(quaternions.reshape(-1)), 4)})
    rules = rules_of({}, "q")
    with pytest.raises(Refused, match="episode 7: column 'q'"):
        resample_episodes(table, together_of(episodes), rules)


def test_statistics_of_episodes_together_are_those_of_numpy():
    random = np.random.default_rng(3)
    rows = random.integers(1, 60, 50)
    values = random.standard_normal((int(rows.sum()), 3)).astype(np.float32)
    values[rows[0] : rows[0] + rows[1], 1] = np.nan  # no value at all in episode 1
    values[::17, 2] = np.nan
    table = pa.table(
        {"x": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 3), "name": ["a"] * len(values)}
    )
    made = stats_of(table, {"x": ["min", "q01", "q90"], "name": ["min"]}, rows)
    assert list(made) == ["x"]
    for episode, own in enumerate(np.split(values.astype(np.float64), np.cumsum(rows)[:-1])):
        for channel in range(3):
            numbers = own[~np.isnan(own[:, channel]), channel]
            wanted = {
                "min": np.min,
                "max": np.max,
                "mean": np.mean,
                "std": np.std,
                "q01": lambda x: np.quantile(x, 0.01),
                "q90": lambda x: np.quantile(x, 0.9),
            }
            for key, function in wanted.items():
                expected = function(numbers) if numbers.size else np.nan
                np.testing.assert_allclose(
                    made["x"][key][episode, channel], expected, rtol=1e-12, atol=1e-12, err_msg=f"{key} of {episode}"
                )
        assert made["x"]["count"][episode] == len(own)


@pytest.mark.parametrize("hz", ["30", "30000/1001", "0.001", "999999937"])
def test_grids_together_are_as_one_by_one(hz):
    random = np.random.default_rng(4)
    first = random.integers(-(10**17), 10**18, 20)
    last = first + random.integers(0, 10**5 if hz == "999999937" else 10**11, 20)
    targets, counts = targets_of(Options(hz), first, last)
    parts = [grid_of(ends, hz) for ends in zip(first, last, strict=True)]
    assert counts.tolist() == [part.size for part in parts]
    np.testing.assert_array_equal(targets, np.concatenate(parts))


def targets_of(options, first, last):
    """Of episodes of two samples."""
    names = [f"episode {number}" for number in range(first.size)]
    made = options.episodes(np.stack([first, last], 1).reshape(-1), np.full(first.size, 2), names)
    return made.targets, made.counts


@pytest.mark.parametrize("hz", ["30", "30000/1001", "7"])
def test_a_grid_with_ends_has_the_points_of_the_clock_between_them(hz):
    random = np.random.default_rng(5)
    first = random.integers(-(10**10), 10**10, 20)
    last = first + random.integers(0, 10**10, 20)
    start, end, snap = 3 * 10**9 + 1, 9 * 10**9, 10**7
    points = np.array([math.floor(Fraction(i * 10**9) / clock.rate(hz) + Fraction(1, 2)) for i in range(-400, 900)])
    for align, begin in ((True, start), (True, None), (False, start)):
        options = Options(
            hz, start=begin and f"{begin / 1e9:.9f}", end=f"{end / 1e9:.9f}", align=align, snap=snap / 1e9
        )
        targets, counts = targets_of(options, first, last)
        own = np.split(targets, np.cumsum(counts)[:-1])
        for a, b, part in zip(first, last, own, strict=True):
            low = a - snap if begin is None else max(a - snap, begin)
            grid = points if align else begin + points[points >= 0]
            wanted = grid[(grid >= low) & (grid <= min(b + snap, end))]
            assert part.tolist() == wanted.tolist(), f"align {align}, start {begin}, episode from {a} to {b}"


def test_a_target_near_a_sample_is_taken_there():
    times, rows = np.array([0, 100, 205, 0, 90]), np.array([3, 2])
    targets, counts = np.array([0, 104, 150, 203, 4, 84, 96]), np.array([4, 3])
    rules = Rules({"t": Rule((Part(0, 1, "linear"),), "real numbers")})
    found = compute({"t": times[:, None] * 1.0}, rules, Episodes(times, targets, rows, counts, ["", ""], 6e-9))
    assert found["t"][:, 0].tolist() == [0, 100, 150, 205, 0, 90, 90]
