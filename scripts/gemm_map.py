#!/usr/bin/env python3
"""The distribution of gemm's times beside cuBLAS over the products of a result file.

scripts/gemm_map.py results/h100/gemm_models.json            # times of a peer over ours: median, shares, the worst
scripts/gemm_map.py out/every_choice.json --keep FILE        # of `bench --tune`: keeps the time of every choice, a line per product
scripts/gemm_map.py out/some.json --renew FILE --variant NAME  # of choices timed anew: FILE's other times of the variant are dropped
"""

import argparse
import json
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PEERS = ("cublas", "cublaslt")
Product = tuple[str, str, str]  # case, type, temperature


def products(path: str) -> dict[Product, dict[str, float]]:
    """Medians in microseconds by implementation, of each product of a result file."""
    found: dict[Product, dict[str, float]] = defaultdict(dict)
    for row in json.loads(Path(path).read_text())["rows"]:
        if row["operator"] == "gemm" and row["verified"] and row["us"]:
            found[row["case"], row["dtype"], row["temperature"]][row["implementation"]] = row["us"]["median"]
    return found


def extents(case: str) -> tuple[int, int, int]:
    """M, N and K of "RC 64x4096x7168" and "RC 1024"."""
    numbers = [int(number) for number in re.findall(r"\d+", case.split()[1])]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else (numbers[0],) * 3


def kept_products(path: str | Path) -> list[dict[str, Any]]:
    """The products of a file with the time of every choice."""
    return json.loads(Path(path).read_text(encoding="utf-8"))["products"]


def fastest_choices(products: list[dict[str, Any]]) -> dict[str, str]:
    """Of each case the choice that is fastest over the types, by the geometric mean."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in products:
        for choice, us in one["us"].items():
            if "/" in choice:
                times[one["case"]][choice].append(us)
    fastest = {}
    for case, choices in times.items():
        most = max(map(len, choices.values()))
        means = {choice: statistics.geometric_mean(us) for choice, us in choices.items() if len(us) == most}
        fastest[case] = min(means, key=means.__getitem__)
    return fastest


def ours(times: dict[str, float]) -> float | None:
    """The default's time, or of every choice the best."""
    own = [us for name, us in times.items() if name not in PEERS]
    return times.get("tmaops", min(own, default=None)) if own else None


def report(title: str, ratios: list[tuple[float, Product]]) -> Iterator[str]:
    if not ratios:
        return
    values = [ratio for ratio, _ in ratios]
    behind = {percent: sum(value < 1 - percent / 100 for value in values) for percent in (2, 5, 10, 20)}
    yield f"{title}: {len(values)} products, median {statistics.median(values):.3f}"
    yield "  behind by more than " + ", ".join(f"{p} %: {n} ({100 * n / len(values):.0f} %)" for p, n in behind.items())
    yield f"  ahead by more than 5 %: {sum(value > 1.05 for value in values)}"
    yield "  the ten worst: " + ", ".join(
        f"{product[0]} {product[1]} {ratio:.2f}" for ratio, product in sorted(ratios)[:10]
    )


def small(product: Product) -> bool:
    return extents(product[0])[0] <= 64


def square(product: Product) -> bool:
    return "x" not in product[0]


def distribution(found: dict[Product, dict[str, float]]) -> Iterator[str]:
    for peer in PEERS:
        for temperature in ("hot", "cold"):
            ratios = [
                (times[peer] / own, product)
                for product, times in found.items()
                if product[2] == temperature and peer in times and (own := ours(times))
            ]
            yield from report(f"{peer}, {temperature}", ratios)
            yield from report(f"{peer}, {temperature}, M up to 64", [one for one in ratios if small(one[1])])
            yield from report(f"{peer}, {temperature}, squares", [one for one in ratios if square(one[1])])


def renewed(path: str, found: dict[Product, dict[str, float]], variant: str) -> dict[Product, dict[str, float]]:
    """The times of every choice in the file `path`, with those of `found` instead of its own.

    Times that are not in `found` are brought to the pace of its run by what both have of a product. Those of `variant`
    are dropped: other code ran.
    """
    made = {}
    for one in json.loads(Path(path).read_text())["products"]:
        product = (one["case"], one["dtype"], one["temperature"])
        new = {name: us for name, us in found.get(product, {}).items() if "/" in name or name in PEERS}
        both = [new[name] / us for name, us in one["us"].items() if name in new and not name.startswith(variant)]
        pace = statistics.median(both) if both else 1.0
        old = {name: pace * us for name, us in one["us"].items() if not name.startswith(variant + "/")}
        made[product] = old | new
    return made


def kept(found: dict[Product, dict[str, float]], document: dict[str, Any]) -> str:
    """The machine and the revision of a result file, and a line per product with the time of every choice."""
    keys = ("schema", "status", "machine", "revision", "renewed")
    head: dict[str, Any] = {key: document[key] for key in keys if key in document}
    head["config"] = {key: value for key, value in document["config"].items() if key != "problems"}
    lines = []
    for (case, dtype, temperature), times in found.items():
        rounded = {name: float(f"{us:.4g}") for name, us in sorted(times.items(), key=lambda one: one[1])}
        product = {"case": case, "dtype": dtype, "temperature": temperature, "us": rounded}
        lines.append("    " + json.dumps(product, separators=(",", ":")))
    return json.dumps(head, indent=2)[:-2] + ',\n  "products": [\n' + ",\n".join(lines) + "\n  ]\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="result files of `tmaops bench`")
    parser.add_argument("--keep", help="file for the time of every choice")
    parser.add_argument("--renew", help="file with the time of every choice, of which the results have some anew")
    parser.add_argument("--variant", default="", help="with --renew: the variant whose other times are dropped")
    arguments = parser.parse_args()
    found: dict[Product, dict[str, float]] = {}
    for path in arguments.results:
        for product, times in products(path).items():
            found.setdefault(product, {}).update(times)
    if arguments.renew:
        found = renewed(arguments.renew, found, arguments.variant)
    print("\n".join(distribution(found)))
    if keep := arguments.keep or arguments.renew:
        document = json.loads(Path(arguments.results[0]).read_text())
        if arguments.renew:
            part = {"variant": arguments.variant, "revision": document["revision"]}
            document = json.loads(Path(arguments.renew).read_text()) | {"renewed": part}
        Path(keep).write_text(kept(found, document))


if __name__ == "__main__":
    main()
