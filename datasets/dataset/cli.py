"""The command `tmaops dataset`."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tmaops._program import guarded
from tmaops.dataset import example
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import format_of
from tmaops.dataset.inspect import inspect
from tmaops.dataset.job import Report, resample
from tmaops.dataset.options import options_of, save_rules
from tmaops.dataset.places import place
from tmaops.pages.page import check_page, write_page

#: Options of resample() that are arguments of the same name.
TAKEN = ("episode_column", "time_unit", "input_hz", "topics", "device", "offset", "sort", "duplicates", "snap")
TAKEN += ("start", "end", "align", "strict", "copy")


def main(arguments: list[str] | None = None) -> int:
    """Runs `tmaops dataset ARGUMENTS`. Returns the exit code: 0 done, 2 refused, 3 episodes left out, 130 interrupted."""
    options = _parser().parse_args(_joined(sys.argv[1:] if arguments is None else arguments))
    try:
        return guarded(lambda: options.run(options))
    except KeyboardInterrupt:
        print("interrupted; --resume goes on from here", file=sys.stderr)
        return 130


def _joined(arguments: list[str]) -> list[str]:
    """With "--topics -/tf" as one argument: argparse takes what begins with - for an option."""
    made: list[str] = []
    for argument in arguments:
        if made and made[-1] == "--topics" and argument.startswith("-") and not argument.startswith("--"):
            made[-1] = f"--topics={argument}"
        else:
            made.append(argument)
    return made


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tmaops dataset", description="Data sets of episodes: resample them, look at them."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser(
        "resample", help="every episode onto a regular clock", description=resample.__doc__.split("\n")[0]
    )
    run.add_argument(
        "source",
        metavar="IN",
        type=place,
        help="LeRobot data set, Zarr replay buffer, Parquet, HDF5, MCAP, .db3 or .bag file, or folder of them; s3:// too",
    )
    run.add_argument("out", metavar="OUT", type=place, help="where the result goes; must not exist")
    run.add_argument("--hz", required=True, help="targets per second: 30, 29.97, 30000/1001")
    run.add_argument(
        "--mode",
        action="append",
        default=[],
        metavar="COLUMN=MODE",
        help="linear, cubic, slerp, previous, next, nearest or final; COLUMN may be a pattern (observation.*), a type (type:int*) or have channels (state[3:7])",
    )
    run.add_argument(
        "--max-gap",
        action="append",
        default=[],
        metavar="[STREAM=]SECONDS",
        help="targets strictly between two samples further apart are null",
    )
    run.add_argument(
        "--latency",
        action="append",
        default=[],
        metavar="STREAM=SECONDS",
        help="how late the timestamps of a stream are; STREAM may be a pattern",
    )
    run.add_argument(
        "--rules",
        type=place,
        metavar="FILE",
        help="YAML with these and the following options; those of the command line go before it",
    )
    run.add_argument(
        "--save-rules", type=place, metavar="FILE", help="write what was asked for and inferred as such a file"
    )
    _add_times(run)
    run.add_argument("--offset", type=float, metavar="SECONDS", help="added to all timestamps")
    run.add_argument("--sort", action="store_true", help="samples of an episode into the order of their times")
    run.add_argument(
        "--duplicates", choices=["error", "last"], help="of equal timestamps: refuse, or the last sample wins"
    )
    run.add_argument(
        "--snap", type=float, metavar="SECONDS", help="a target at most this far from a sample takes that sample"
    )
    for end in ("--start", "--end"):
        run.add_argument(end, metavar="TIME", help="seconds of the recording's clock, or an ISO 8601 time")
    run.add_argument("--align", action="store_true", help="targets at multiples of the period")
    run.add_argument("--strict", action="store_true", help="a warning is an error")
    run.add_argument("--copy", action="store_true", help="copy videos, which are otherwise linked to the source's")
    run.add_argument(
        "--device", default="cpu", choices=["cpu", "cuda", "auto"], help="where numbers are computed; a GPU needs torch"
    )
    run.add_argument(
        "--resume", action="store_true", help="go on with an unfinished run; the result has the same bytes"
    )
    run.add_argument(
        "--keep-going",
        action="store_true",
        help="leave out episodes that cannot be resampled, and list them (exit code 3)",
    )
    run.add_argument("--shard", default="0/1", metavar="I/N", help="do every N-th file, beginning with file I")
    run.add_argument("--workers", type=int, help="processes, this one among them; all cores by default")
    run.add_argument("--explain", action="store_true", help="print what would be done, and do nothing")
    run.add_argument("--json", action="store_true", help="print the report as JSON on stdout")
    run.add_argument("--quiet", action="store_true")
    run.set_defaults(run=_resample)
    made = commands.add_parser("example", help="write a small LeRobot v3 data set to try the others on")
    made.add_argument("out", metavar="OUT", type=Path)
    made.add_argument("--episodes", type=int, default=20)
    made.add_argument("--frames", type=int, default=500, help="of each episode, at 50 per second")
    made.set_defaults(run=_example)
    look = commands.add_parser(
        "inspect",
        help="rates, jitter, gaps, drops, sign flips, values that are not finite",
        description=inspect.__doc__.split("\n")[0],
    )
    look.add_argument("source", metavar="IN", type=place)
    _add_times(look)
    look.add_argument("--json", action="store_true", help="every episode, on stdout")
    look.add_argument("--html", type=Path, metavar="PAGE", help="one page with plots (needs plotly)")
    look.set_defaults(run=_inspect)
    return parser


def _add_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--time",
        metavar="NAME",
        help="of the times, where no usual name says it; of recordings header (stamps, where every message has one) or record",
    )
    parser.add_argument(
        "--time-column", metavar="NAME", help="the same, also of a column that is called header or record"
    )
    parser.add_argument("--time-unit", choices=["s", "ms", "us", "ns"])
    parser.add_argument("--episode-column", metavar="NAME", help="of tables")
    parser.add_argument("--input-hz", help="samples per second of episodes without timestamps")
    parser.add_argument(
        "--topics",
        metavar="A,B",
        help="of recordings: those to take (patterns); with a leading - those to leave out (--topics=-/tf,-/camera/*)",
    )


def _times(options: argparse.Namespace) -> dict[str, str | None]:
    """What --time names: which stamps of messages, or a column."""
    stamps = options.time if options.time in ("header", "record") else None
    return {"times": stamps, "time_column": options.time_column or (None if stamps else options.time)}


def _resample(options: argparse.Namespace) -> int:
    given = {
        "modes": dict(_pair("--mode", text, str) for text in options.mode),
        "max_gap": dict(_pair("--max-gap", text if "=" in text else f"*={text}", float) for text in options.max_gap),
        "latency": dict(_pair("--latency", text, float) for text in options.latency),
    }
    given |= {name: getattr(options, name) for name in (*TAKEN, "rules")} | _times(options)
    try:
        shard = tuple(int(part) for part in options.shard.split("/"))
        if len(shard) != 2:
            raise ValueError
    except ValueError:
        raise Refused("--shard", repr(options.shard), "I/N") from None
    if options.explain or options.save_rules:
        asked = options_of(options.hz, **given)
        plan = format_of(options.source).plan(options.source, asked, options.keep_going, set())
        plan.check(asked)
        if options.save_rules:
            save_rules(options.save_rules, asked, plan)
    if options.explain:
        report = Report(episodes=plan.episodes, units=len(plan.units), columns=plan.explained)
        report.notes, report.warnings, report.failed = plan.notes, plan.warnings, plan.failed
        _say(report, explain=True)
        return 0
    report = resample(
        options.source,
        options.out,
        hz=options.hz,
        **given,
        resume=options.resume,
        keep_going=options.keep_going,
        shard=shard,
        workers=options.workers,
        quiet=options.quiet,
    )
    for warning in report.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if options.json:
        print(json.dumps(asdict(report), indent=1))
    if not options.quiet:
        _say(report, explain=False)
    return 3 if report.failed or not report.done else 0


def _pair(option: str, text: str, kind: type) -> tuple[str, Any]:
    name, _, value = text.rpartition("=")
    try:
        if name:
            return name, kind(value)
    except ValueError:
        pass
    raise Refused(option, repr(text), "NAME=SECONDS" if kind is float else "COLUMN=MODE")


def _example(options: argparse.Namespace) -> int:
    example.write(options.out, [options.frames] * options.episodes, faults=True)
    return 0


def _inspect(options: argparse.Namespace) -> int:
    if options.html:
        check_page(options.html, "--html")
    found = inspect(
        options.source,
        time_unit=options.time_unit,
        episode_column=options.episode_column,
        input_hz=options.input_hz,
        topics=options.topics,
        **_times(options),
    )
    if options.html:
        write_page(found.page(f"{options.source.resolve().name}: clocks and gaps"), options.html)
    print(json.dumps(found.json(), indent=1) if options.json else found.text())
    return 3 if found.unreadable else 0


def _say(report: Report, explain: bool) -> None:
    for note in report.notes:
        print(f"  {note}", file=sys.stderr)
    if explain:
        for warning in report.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    for column, rule in report.columns.items():
        print(f"  {column}: {rule}", file=sys.stderr)
    for episode, why in report.failed.items():
        print(f"  left out: episode {episode}: {why}", file=sys.stderr)
    if explain:
        print(f"  {report.episodes} episodes in {report.units} files", file=sys.stderr)
        return
    reused = f", {report.reused} of {report.units} files done before" if report.reused else ""
    print(
        f"  {report.episodes} episodes, {report.rows_read} -> {report.rows_written} rows in {report.seconds:.1f} s{reused}",
        file=sys.stderr,
    )
    if not report.done:
        print("  other shards have files to do; the last one ends the job", file=sys.stderr)
