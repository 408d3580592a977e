#!/usr/bin/env python3
"""Fits the cost of gemm's tiles to the times of every choice, and says how well that chooses.

    scripts/fit_gemm.py results/h100/gemm_choices.json            # writes costs.inc and measured.inc of src/ops/gemm

The file is that of scripts/gemm_map.py --keep. Needs numpy and scipy. The model is that of src/ops/gemm/estimate.cpp.
"""

import argparse
import json
import re
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

MULTIPROCESSORS = 132
STEP = 64  # k
CUT_WAVE = 0.5
L2_BYTES = 50 << 20
KEPT_PART = 0.45
MEMORY_RATE = 3.1e6  # bytes in a microsecond
OVERLAP_LOSS = 0.15
SLOW = 2  # kHopeless of the bench
# What long runs decided that the file does not have (docs/findings/gemm_large.md, P8 and P10).
EARLIER = {"RC 4096x24576x1536": "wgmma_persistent/128x176", "CR 4096x24576x1536": "wgmma_persistent/128x192c2"}
FEWEST = 3  # products for which a tile must have a time
GEMM = Path(__file__).parents[1] / "src/ops/gemm"


class Tile(NamedTuple):
    variant: str
    rows: int
    columns: int
    cluster: int
    splits: int
    swapped: bool


def tile_of(choice: str) -> Tile | None:
    found = re.fullmatch(r"(\w+)/(\d+)x(\d+)(?:c(\d+))?(?:k(\d+))?(t?)", choice)
    if not found:
        return None
    return Tile(found[1], int(found[2]), int(found[3]), int(found[4] or 1), int(found[5] or 1), bool(found[6]))


def extents(case: str) -> tuple[int, int, int]:
    numbers = [int(number) for number in re.findall(r"\d+", case.split()[1])]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else (numbers[0],) * 3


def waves_and_steps(tile: Tile, case: str) -> tuple[float, float]:
    m, n, k = extents(case)
    if tile.swapped:
        m, n = n, m
    count = -(-m // (tile.rows * tile.cluster)) * tile.cluster * -(-n // tile.columns) * tile.splits
    at_once = MULTIPROCESSORS * 10 // 11 if tile.cluster * tile.splits > 2 else MULTIPROCESSORS
    rest = count % at_once
    cut = tile.variant == "wgmma_persistent" and tile.columns == 192 and 0 < rest * 3 <= at_once
    return -(-count // at_once) - (1 - CUT_WAVE if cut else 0), -(-k // STEP) / tile.splits


def has_edges(tile: Tile, case: str) -> bool:
    m, n, _ = extents(case)
    if tile.swapped:
        m, n = n, m
    return m % tile.rows != 0 or n % tile.columns != 0


def features(tile: Tile, case: str) -> tuple[float, float, float, bool]:
    return *waves_and_steps(tile, case), memory_time(case), has_edges(tile, case)


def memory_time(case: str) -> float:
    """Microseconds that an H100 reads what a call with the same inputs as the last one does not find in the L2."""
    m, n, k = extents(case)
    total = 2 * (m * k + n * k + m * n)
    return max(0, total - KEPT_PART * L2_BYTES) / MEMORY_RATE if total > L2_BYTES / 2 else 0.0


def takes(tile: Tile, case: str) -> bool:
    """Whether the tile was left out of the times of a product because it takes SLOW times as long as the best."""
    if tile.variant == "wgmma_split_k":
        m, n, k = extents(case)
        width = m if tile.swapped else n
        k_major = case[1 - tile.swapped] == ("R" if tile.swapped else "C")
        if tile.columns % 64 and not k_major:
            return False
        if (tile.columns <= 32 or (k_major and width <= 32)) and tile.columns != (16 if width <= 16 else 32):
            return False
        blocks = -(-(n if tile.swapped else m) // tile.rows) * -(-width // tile.columns) * tile.splits
        if tile.splits == 1:
            return k <= 256 or blocks <= 4 * MULTIPROCESSORS
        return blocks <= (2 if tile.columns <= 64 else 1) * MULTIPROCESSORS and k >= 256 * tile.splits
    if tile.variant == "wgmma_persistent":
        return tile.columns % 64 == 0 or case[1 - tile.swapped] == ("R" if tile.swapped else "C")
    return tile.variant in ("wgmma_cp_async", "wgmma_latency", "mma_sync") or tile == Tile(
        "wgmma_deep_stages", 64, 128, 1, 1, False
    )


CLEAR = (
    1.02  # times as long as the costs' choice the next tile takes at least, where the choice needs no line of its own
)
Sample = tuple[float, float, float, bool, float, bool]  # features(), measured time, whether it took at least that


def expected(cost: tuple[float, ...] | np.ndarray, waves, steps, memory, edges):
    start, finish, step, edge, stream = cost
    work = (waves - 1) * finish + waves * steps * step
    reading = memory * stream
    return start + edge * edges + np.maximum(work, reading) + OVERLAP_LOSS * np.minimum(work, reading)


def fit(samples: list[Sample], pace: np.ndarray) -> tuple[float, ...]:
    """The cost of a tile with the least relative error. `pace`: how much slower than expected all tiles are for a product."""
    waves, steps, memory, edges, times, at_least = (np.array(column) for column in zip(*samples, strict=True))
    step = float(np.median(np.maximum(times - 2, 0.2) / (waves * steps)))
    prior = np.array([2.0, 0.5, step, 0.1, 1.1])

    def residuals(logs: np.ndarray) -> np.ndarray:
        off = np.log(expected(np.exp(logs), waves, steps, memory, edges) * pace / times)
        off = np.where(at_least, np.minimum(off, 0), off)
        return np.concatenate([off, np.array([0.05, 0.05, 0.05, 0.05, 0.2]) * (logs - np.log(prior))])

    solved = least_squares(residuals, np.log(prior), loss="soft_l1", f_scale=0.05)
    return tuple(float(f"{value:.4g}") for value in np.exp(solved.x))


def fit_all(samples: dict[Tile, list[Sample]], cases: dict[Tile, list[str]]) -> dict[Tile, tuple[float, ...]]:
    """The costs of all tiles. The power limit and the L2 slow all tiles of a product down alike, and only the order counts."""
    pace: dict[str, float] = defaultdict(lambda: 1.0)
    costs: dict[Tile, tuple[float, ...]] = {}
    for _ in range(4):
        costs = {tile: fit(of, np.array([pace[case] for case in cases[tile]])) for tile, of in samples.items()}
        off = defaultdict(list)
        for tile, of in samples.items():
            for case, (*found, us, at_least) in zip(cases[tile], of, strict=True):
                if not at_least:
                    off[case].append(us / expected(costs[tile], *found))
        pace.update(
            {case: statistics.median(sorted(ratios)[: max(3, len(ratios) // 2)]) for case, ratios in off.items()}
        )
    return costs


def write_measured(products: list[dict], source: str, estimated: dict[str, str]) -> None:
    """The fastest choice of each product, over the types by the geometric mean, where the costs have another one."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in products:
        for choice, us in one["us"].items():
            if tile_of(choice):
                times[one["case"]][choice].append(us)
    for case, choice in EARLIER.items():
        times.setdefault(case, {choice: [1.0]})
    lines = [
        "// What was fastest on an H100, where the costs may choose another tile. Made by scripts/fit_gemm.py",
        f"// from {source}.",
    ]
    for case, choices in sorted(times.items()):
        most = max(len(us) for us in choices.values())
        means = {choice: statistics.geometric_mean(us) for choice, us in choices.items() if len(us) == most}
        fastest = min(means, key=means.__getitem__)
        if estimated.get(case) != fastest:
            lines.append(f'{{"{case}", "{fastest}"}},')
    (GEMM / "measured.inc").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("choices")
    arguments = parser.parse_args()
    products = [
        one for one in json.loads(Path(arguments.choices).read_text())["products"] if one["temperature"] == "hot"
    ]
    samples: dict[Tile, list[Sample]] = defaultdict(list)
    cases: dict[Tile, list[str]] = defaultdict(list)
    counts = Counter(tile_of(choice) for one in products for choice in one["us"])
    for one in products:
        case = one["case"]
        own = {tile: us for choice, us in one["us"].items() if (tile := tile_of(choice)) and counts[tile] >= FEWEST}
        slow = {
            t: SLOW * min(own.values()) for t in counts if t and t not in own and counts[t] >= FEWEST and takes(t, case)
        }
        for times, at_least in ((own, False), (slow, True)):
            for tile, us in times.items():
                samples[tile].append((*features(tile, case), us, at_least))
                cases[tile].append(case)
    costs = fit_all(samples, cases)
    # Studies are chosen by name alone and are not in the file. mma_sync is for GPUs without wgmma: dearer than all others.
    costs = {tile: cost for tile, cost in costs.items() if tile.variant != "mma_sync"}
    old = (GEMM / "costs.inc").read_text().splitlines()
    known = {tile.variant for tile in costs}
    lines = [line for line in old if line.startswith("{") and line.split('"')[1] not in known]
    lines += [
        f'{{"{t.variant}", {t.rows}, {t.columns}, {t.cluster}, {t.splits}, {str(t.swapped).lower()}, '
        f"{{{', '.join(f'{value:g}' for value in cost)}}}}},"
        for t, cost in sorted(costs.items())
    ]
    head = (
        "// What tiles cost on an H100: variant, rows, columns, cluster, splits, swapped, {start, finish, step, edge, stream}.\n"
        f"// Made by scripts/fit_gemm.py from {arguments.choices}.\n"
    )
    (GEMM / "costs.inc").write_text(head + "\n".join(lines) + "\n")
    losses = []
    estimated = {}  # product -> choice
    for one in products:
        own = {tile: us for choice, us in one["us"].items() if (tile := tile_of(choice)) in costs}
        times = {}
        for tile in costs:
            if tile in own or takes(tile, one["case"]):
                times[tile] = expected(costs[tile], *features(tile, one["case"]))
        chosen, best = min(times, key=times.get), min(own, key=own.get)
        # The library also counts that rows which begin between two lines of the L2 touch one more.
        whole_lines = all(extent % 64 == 0 for extent in extents(one["case"])[1:])
        if whole_lines and min(us for tile, us in times.items() if tile != chosen) > CLEAR * times[chosen]:
            estimated[one["case"]] = next((choice for choice in one["us"] if tile_of(choice) == chosen), "")
        losses.append((own.get(chosen, SLOW * own[best]) / own[best], one["case"], tuple(chosen), tuple(best)))
    write_measured(products, arguments.choices, estimated)
    losses.sort(reverse=True)
    values = [loss for loss, *_ in losses]
    print(
        f"{len(costs)} tiles, {len(values)} products: the choice takes {statistics.median(values):.3f} of the best in the median,"
    )
    print(f"more than 1.03 in {sum(v > 1.03 for v in values)}, more than 1.10 in {sum(v > 1.1 for v in values)}")
    for loss in losses[:15]:
        print("  {:.2f} {} {} instead of {}".format(*loss))


if __name__ == "__main__":
    main()
