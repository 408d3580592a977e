#!/usr/bin/env python3
"""Fits the cost of gemm's tiles to the times of every choice, and says how well that chooses.

    scripts/fit_gemm.py results/h200/gemm_choices.json

Writes costs.inc and measured.inc of src/ops/gemm. The files are those of scripts/gemm_map.py --keep. Needs numpy and
scipy. The model is that of src/ops/gemm/estimate.cpp.
"""

import argparse
import math
import re
import statistics
import textwrap
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gemm_map import extents, fastest_choices, kept_products
from scipy.optimize import least_squares

MULTIPROCESSORS = 132
STEP = 64  # k
CUT_WAVE = 0.5
L2_BYTES = 50 << 20
L2_LINES = 150e3  # in a microsecond
KEPT_PART = 0.45
MEMORY_RATE = 4.3e6  # bytes in a microsecond, of an H200
OVERLAP_LOSS = 0.15
SLOW = 1.15  # times as long as the fastest takes at least what was not timed
# What long runs decided that the file does not have (docs/findings/gemm_large.md, P8 and P10; results/h100/gemm.json).
EARLIER = {
    "RC 4096x24576x1536": "wgmma_persistent/128x176",
    "CR 4096x24576x1536": "wgmma_persistent/128x192",
    "RC 64x4096x7168": "wgmma_deep_stages/64x64k2",
}
# Of wgmma_split_k's tiles, where not 1 (configs.cpp).
MOST_SPLITS = {(64, 16): 8, (64, 32): 4, (64, 64): 4, (64, 128): 4, (128, 96): 4}
ALONG_BOTH = ((64, 64), (64, 128), (128, 128), (192, 96))  # whether B runs along K or along N
FEWEST = 3  # products for which a tile must have a time
FOLDS = 5
GEMM = Path(__file__).parents[1] / "src/ops/gemm"
VARIANTS = re.findall(r"gemm, (\w+), cuda", (GEMM / "variants.def").read_text())


class Tile(NamedTuple):
    variant: str
    rows: int
    columns: int
    cluster: int
    splits: int
    parts: int  # 2 stands for every number
    swapped: bool


def tile_of(choice: str) -> Tile | None:
    found = re.fullmatch(r"(\w+)/(\d+)x(\d+)(?:c(\d+))?(?:k(\d+))?(?:p(\d+))?(t?)", choice)
    if not found:
        return None
    return Tile(
        found[1],
        int(found[2]),
        int(found[3]),
        int(found[4] or 1),
        int(found[5] or 1),
        2 if found[6] else 1,
        bool(found[7]),
    )


def text_of(tile: Tile) -> str:
    """As Config::text() has it."""
    cluster = f"c{tile.cluster}" if tile.cluster > 1 else ""
    splits = f"k{tile.splits}" if tile.splits > 1 else ""
    return f"{tile.rows}x{tile.columns}{cluster}{splits}{'p2' * (tile.parts > 1)}{'t' * tile.swapped}"


def in_lines(entries: list[str]) -> str:
    """Few lines of at most 120 columns: each entry is in the first line that has room."""
    lines: list[str] = []
    for entry in entries:
        room = next((i for i, line in enumerate(lines) if len(line) + 1 + len(entry) <= 120), None)
        if room is None:
            lines.append(entry)
        else:
            lines[room] += " " + entry
    return "\n".join(lines) + "\n"


def blocks_at_once(tile: Tile) -> int:
    size = tile.cluster * tile.splits
    if size <= 2:
        return MULTIPROCESSORS
    return MULTIPROCESSORS * 10 // 11 // size * size


def block_count(tile: Tile, case: str) -> int:
    m, n, _ = extents(case)
    if tile.swapped:
        m, n = n, m
    tiles = -(-m // (tile.rows * tile.cluster)) * tile.cluster * -(-n // tile.columns) * tile.splits
    return tiles * part_count(tile, case)


def part_count(tile: Tile, case: str) -> int:
    """Of K (wgmma_persistent/configs.cpp)."""
    if tile.parts == 1:
        return 1
    room = MULTIPROCESSORS // block_count(tile._replace(parts=1), case)
    steps = -(-extents(case)[2] // STEP)
    return -(-steps // -(-steps // room)) if room > 1 else 1


def waves_and_steps(tile: Tile, case: str) -> tuple[float, float]:
    count, at_once = block_count(tile, case), blocks_at_once(tile)
    steps = -(-(-(-extents(case)[2] // STEP)) // part_count(tile, case))
    rest = count % at_once
    cut = tile.variant == "wgmma_persistent" and tile.columns == 192 and 0 < rest * 3 <= at_once
    return -(-count // at_once) - (1 - CUT_WAVE if cut else 0), steps / tile.splits


def l2_time(tile: Tile, case: str) -> float:
    """Microseconds in which the L2 gives a step's lines to all blocks. A row that begins between two lines lies in both."""
    m, n, k = extents(case)
    a, b = (2 - math.gcd(extent, 64) / 64 for extent in (k if case[0] == "R" else m, k if case[1] == "C" else n))
    if tile.swapped:
        a, b = b, a
    lines = tile.rows * a + tile.columns / tile.cluster * b
    return lines * min(block_count(tile, case), blocks_at_once(tile)) / L2_LINES


def has_edges(tile: Tile, case: str) -> bool:
    m, n, _ = extents(case)
    if tile.swapped:
        m, n = n, m
    return m % tile.rows != 0 or n % tile.columns != 0


def features(tile: Tile, case: str) -> tuple[float, float, float, float, bool]:
    return *waves_and_steps(tile, case), l2_time(tile, case), memory_time(case), has_edges(tile, case)


def memory_time(case: str) -> float:
    """Microseconds that the device reads what a call with the same inputs as the last one does not find in the L2."""
    m, n, k = extents(case)
    total = 2 * (m * k + n * k + m * n)
    return max(0, total - KEPT_PART * L2_BYTES) / MEMORY_RATE if total > L2_BYTES / 2 else 0.0


def offered(tile: Tile) -> bool:
    """Whether select() may choose the tile (configs.cpp)."""
    if tile.variant == "wgmma_split_k":
        return tile.splits in (1, 2, 4, 8) and tile.splits <= MOST_SPLITS.get(tile[1:3], 1)
    return tile.variant != "wgmma_persistent" or tile.cluster == 1 or tile.columns == 192


def takes(tile: Tile, case: str) -> bool:
    """Whether the tile was left out of the times of a product because it takes SLOW times as long as the best."""
    if tile.variant == "wgmma_split_k":
        m, n, k = extents(case)
        width = m if tile.swapped else n
        k_major = case[1 - tile.swapped] == ("R" if tile.swapped else "C")
        if tile[1:3] not in ALONG_BOTH and k_major == (tile[1:3] == (64, 192)):
            return False
        height_major = case[tile.swapped] == ("C" if tile.swapped else "R")  # the other operand runs along K
        height = n if tile.swapped else m
        if height_major and height <= 32 and not (k_major and width <= 32 and not tile.swapped):
            return False
        if tile.columns == 16 or (k_major and width <= 32):
            if tile.rows != 64 or tile.columns != (16 if width <= 16 else 32):
                return False
        if tile[1:3] == (64, 64) and tile.splits == 2 and m % 64 == 0 and n % 64 == 0 and k >= 2048:
            return False  # wgmma_deep_stages has it
        blocks = block_count(tile, case)
        if tile.splits == 1:
            few = blocks <= (4 if tile.columns <= 32 else 2) * MULTIPROCESSORS
            return k <= 256 or width <= tile.columns or few
        return blocks <= (2 if tile.columns <= 32 else 1) * MULTIPROCESSORS and k >= 256 * tile.splits
    if tile.parts > 1:
        room = MULTIPROCESSORS // block_count(tile._replace(parts=1), case)
        return room > 1 and extents(case)[2] >= 256 * room
    if tile.variant == "wgmma_persistent":
        return tile.columns % 64 == 0 or case[1 - tile.swapped] == ("R" if tile.swapped else "C")
    m, n, k = extents(case)
    if tile.variant == "wgmma_deep_stages" and tile.splits == 2:
        return m % 64 == 0 and n % 64 == 0 and k >= 2048 and block_count(tile, case) <= MULTIPROCESSORS
    if tile.variant == "wgmma_cluster8":
        return n % 8 == 0 and block_count(tile, case) <= MULTIPROCESSORS * 7 // 8 // 8 * 8
    return tile.variant in ("wgmma_specialized", "wgmma_cp_async", "wgmma_deep_stages", "mma_sync")


CLEAR = 1.01  # times as long as the costs' choice takes a tile that the same costs may choose elsewhere
NEAR = 1.03  # times as long as the fastest one a tile may take that needs no line of its own
Sample = tuple[
    float, float, float, float, bool, float, bool
]  # features(), measured time, whether it took at least that


class Loss(NamedTuple):
    ratio: float  # of the chosen tile's time to the best
    case: str
    chosen: tuple
    best: tuple
    needs_line: bool  # a tile that the costs may choose is slower than NEAR


def expected(cost: tuple[float, ...] | np.ndarray, waves, steps, from_l2, memory, edges):
    start, finish, step, edge, stream = cost
    work = (waves - 1) * finish + waves * steps * np.maximum(step, from_l2)
    reading = memory * stream
    return start + edge * edges + np.maximum(work, reading) + OVERLAP_LOSS * np.minimum(work, reading)


def fit(samples: list[Sample], pace: np.ndarray) -> tuple[float, ...]:
    """The cost of a tile with the least relative error. `pace`: how much slower than expected all tiles are for a product."""
    waves, steps, from_l2, memory, edges, times, at_least = (np.array(column) for column in zip(*samples, strict=True))
    step = float(np.median(np.maximum(times - 2, 0.2) / (waves * steps)))
    prior = np.array([2.0, 0.5, step, 0.1, 1.1])

    def residuals(logs: np.ndarray) -> np.ndarray:
        off = np.log(expected(np.exp(logs), waves, steps, from_l2, memory, edges) * pace / times)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("choices")
    path = parser.parse_args().choices
    products = hot_products(path)
    report(
        "chosen by the costs of the other four fifths",
        [one for fold in range(FOLDS) for one in held_out(products, fold)],
    )
    costs = fit_all(*samples_of(products))
    # Studies are chosen by name alone and are not in the files. mma_sync is for GPUs without wgmma: dearer than all others.
    costs = {tile: cost for tile, cost in costs.items() if tile.variant != "mma_sync"}
    old = re.findall(r'(\{"(\w+)/.*?\},)', (GEMM / "costs.inc").read_text())
    known_variants = {tile.variant.removeprefix("wgmma_") for tile in costs}
    entries = [entry for entry, variant in old if variant not in known_variants]
    entries += [
        f'{{"{t.variant.removeprefix("wgmma_")}/{text_of(t)}",{",".join(f"{value:.3g}".lstrip("0") for value in cost)}}},'
        for t, cost in sorted(costs.items())
    ]
    head = f"// Tiles: start, finish, step, edge, stream. Made by scripts/fit_gemm.py from {path}.\n"
    (GEMM / "costs.inc").write_text(head + in_lines(entries))
    losses = losses_of(costs, products)
    report("chosen by the costs of all", losses)
    fastest = fastest_choices(products)
    chosen = EARLIER | {loss.case: fastest[loss.case] for loss in losses if loss.needs_line}
    head = f"// What was fastest, where the costs may choose a slower tile. Made by scripts/fit_gemm.py from {path}.\n"
    entries = []
    for choice in sorted(set(chosen.values())):
        cases = ", ".join(f'"{case.replace(" ", "~")}"' for case in sorted(chosen) if chosen[case] == choice)
        entries.append(f'{{"{choice.removeprefix("wgmma_")}", {{{cases}}}}},')
    lines = textwrap.wrap(" ".join(entries), 120, break_on_hyphens=False)  # "~" keeps a product's words together
    (GEMM / "measured.inc").write_text(head + "\n".join(lines).replace("~", " ") + "\n")


def samples_of(products: list[dict]) -> tuple[dict[Tile, list[Sample]], dict[Tile, list[str]]]:
    """What each tile took, or at least took, and of which product."""
    counts = Counter(tile_of(choice) for one in products for choice in one["us"])
    known = {tile for tile, count in counts.items() if tile and count >= FEWEST and offered(tile)}
    samples: dict[Tile, list[Sample]] = defaultdict(list)
    cases: dict[Tile, list[str]] = defaultdict(list)
    for one in products:
        case = one["case"]
        own = {tile: us for choice, us in one["us"].items() if (tile := tile_of(choice)) in known}
        if not own:
            continue
        slow = {t: SLOW * min(own.values()) for t in known if t not in own and takes(t, case)}
        for times, at_least in ((own, False), (slow, True)):
            for tile, us in times.items():
                samples[tile].append((*features(tile, case), us, at_least))
                cases[tile].append(case)
    return samples, cases


def held_out(products: list[dict], fold: int) -> list[Loss]:
    """How well the costs of the other products choose for every FOLDS-th one."""
    others = [one for number, one in enumerate(products) if number % FOLDS != fold]
    return losses_of(fit_all(*samples_of(others)), products[fold::FOLDS])


def hot_products(path: str) -> list[dict]:
    products = [one for one in kept_products(path) if one["temperature"] == "hot"]
    for one in products:
        one["us"] = {choice: us for choice, us in one["us"].items() if choice.split("/")[0] in VARIANTS}
    return products


def losses_of(costs: dict[Tile, tuple[float, ...]], products: list[dict]) -> list[Loss]:
    """What the costs choose for each product."""
    losses = []
    for one in products:
        case = one["case"]
        own = {tile: us for choice, us in one["us"].items() if (tile := tile_of(choice)) in costs}
        if not own:
            continue
        times = {
            tile: expected(costs[tile], *features(tile, case))
            for tile in costs
            if (tile in own or takes(tile, case)) and not (tile.variant == "wgmma_split_k" and not takes(tile, case))
        }
        chosen, best = min(times, key=times.__getitem__), min(own, key=own.__getitem__)
        possible = [tile for tile, us in times.items() if us <= CLEAR * times[chosen]]
        near = all(tile in own and own[tile] <= NEAR * own[best] for tile in possible)
        losses.append(Loss(own.get(chosen, SLOW * own[best]) / own[best], case, tuple(chosen), tuple(best), not near))
    return losses


def report(title: str, losses: list[Loss]) -> None:
    values = [loss.ratio for loss in losses]
    print(f"{title}: {len(values)} products take {statistics.median(values):.3f} of the best in the median,")
    print(f"more than 1.03 in {sum(v > 1.03 for v in values)}, more than 1.10 in {sum(v > 1.1 for v in values)}")
    for loss in sorted(losses, reverse=True)[:8]:
        print("  {:.2f} {} {} instead of {}".format(*loss[:4]))


if __name__ == "__main__":
    main()
