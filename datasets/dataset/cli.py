"""The command `tmaops dataset`."""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tmaops._page import check_page, write_page
from tmaops._program import guarded
from tmaops.dataset import example
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import format_of
from tmaops.dataset.inspect import inspect
from tmaops.dataset.job import Report, resample
from tmaops.dataset.new_set import new_set
from tmaops.dataset.options import Options, options_of, save_rules
from tmaops.dataset.places import place

OF_TIMES = ("time_column", "time_unit", "episode_column", "input_hz", "topics")  # options that inspect has, too
NAMES = [option.name for option in fields(Options) if option.name != "times"]
KINDS = "LeRobot data set, Zarr replay buffer, Parquet, HDF5, MCAP, .db3 or .bag file, or folder of them; s3:// too"
TIME = "of the times, where no usual name says it; of recordings header (stamps, where every message has one) or record"
FEATURE = "the columns, or patterns, of a feature (observation.state, action); without it all are observation.state"

#: What resample() alone takes, and what only the command does.
RUN = {
    "--rules": dict(type=place, metavar="FILE", help="YAML with these options; those of the command line go before it"),
    "--save-rules": dict(type=place, metavar="FILE", help="write what was asked for and inferred as such a file"),
    "--shard": dict(default="0/1", metavar="I/N", help="do every N-th file, beginning with file I"),
    "--workers": dict(type=int, help="processes, this one among them; all cores by default"),
    "--resume": dict(action="store_true", help="go on with an unfinished run; the result has the same bytes"),
    "--keep-going": dict(action="store_true", help="leave out episodes that are refused, and list them (exit code 3)"),
    "--explain": dict(action="store_true", help="print what would be done, and do nothing"),
    "--json": dict(action="store_true", help="print the report as JSON on stdout"),
    "--quiet": dict(action="store_true", help="print warnings alone"),
}


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
        "tmaops dataset", description="Data sets of episodes: resample them, look at them."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(words: str, run: Any, name: str, of: Any = None) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=words, description=of and of.__doc__.split("\n")[0])
        made.set_defaults(run=run)
        return made

    run = command("every episode onto a regular clock", _resample, "resample", resample)
    run.add_argument("source", metavar="IN", type=place, help=KINDS)
    run.add_argument("out", metavar="OUT", type=place, help="where the result goes; must not exist")
    _add_options(run, NAMES)
    for flag, about in RUN.items():
        run.add_argument(flag, **about)
    made = command("write a small LeRobot v3 data set to try the others on", None, "example")
    made.set_defaults(run=lambda o: example.write(o.out, [o.frames] * o.episodes, faults=True) or 0)
    made.add_argument("out", metavar="OUT", type=Path)
    made.add_argument("--episodes", type=int, default=20)
    made.add_argument("--frames", type=int, default=500, help="of each episode, at 50 per second")
    new = command("write tables of recordings as a LeRobot v3 data set", _lerobot, "lerobot", new_set)
    new.add_argument("source", metavar="IN", type=place, help="a Parquet table, or a folder of them, an episode each")
    new.add_argument("out", metavar="OUT", type=place)
    new.add_argument("--feature", action="append", metavar="NAME=COLUMN[,COLUMN]", help=FEATURE)
    new.add_argument("--task", default="", metavar="TEXT", help="what the robot was told to do")
    new.add_argument("--robot", default="", metavar="TYPE", help="LeRobot's robot_type")
    look = command("rates, jitter, gaps, drops, sign flips, values that are not finite", _inspect, "inspect", inspect)
    look.add_argument("source", metavar="IN", type=place)
    _add_options(look, OF_TIMES)
    look.add_argument("--json", action="store_true", help="every episode, on stdout")
    look.add_argument("--html", type=Path, metavar="PAGE", help="one page with plots (needs plotly)")
    return parser


def _add_options(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """The arguments of some of the options; what is not given is None, so that a file of rules may say it."""
    for option in fields(Options):
        if option.name in names:
            flags = {"modes": ["--mode"], "episode_column": ["--episode-column", "--group"]}
            own = flags.get(option.name, ["--" + option.name.replace("_", "-")])
            parser.add_argument(*own, dest=option.name, **option.metadata)
    parser.add_argument("--time", metavar="NAME", help=TIME)


def _resample(options: argparse.Namespace) -> int:
    given = {name: getattr(options, name) for name in (*NAMES, "time", "rules")}
    try:
        first, count = (int(part) for part in options.shard.split("/"))
    except ValueError:
        raise Refused("--shard", repr(options.shard), "I/N") from None
    if options.explain or options.save_rules:
        asked = options_of(**given)
        plan = format_of(options.source, asked).plan(options.source, asked, options.keep_going, set())
        plan.check(asked)
        if options.save_rules:
            save_rules(options.save_rules, asked, plan)
    if options.explain:
        report = Report(episodes=plan.episodes, units=len(plan.units), columns=plan.explained)
        report.notes, report.warnings, report.failed = plan.notes, plan.warnings, plan.failed
    else:
        own = {name: getattr(options, name) for name in ("resume", "keep_going", "workers", "quiet")}
        report = resample(options.source, options.out, **given, **own, shard=(first, count))
    _say("warning: ", report.warnings)
    if options.json and not options.explain:
        print(json.dumps(asdict(report), indent=1))
    if options.explain or not options.quiet:
        _say("  ", report.notes)
        _say("  ", (f"{column}: {rule}" for column, rule in report.columns.items()))
        _say("  left out: ", (f"episode {episode}: {why}" for episode, why in report.failed.items()))
    if options.explain:
        _say("  ", [f"{report.episodes} episodes in {report.units} files"])
        return 0
    if not options.quiet:
        reused = f", {report.reused} of {report.units} files done before" if report.reused else ""
        rows = f"{report.rows_read} -> {report.rows_written} rows in {report.seconds:.1f} s"
        waits = [] if report.done else ["other shards have files to do; the last one ends the job"]
        _say("  ", [f"{report.episodes} episodes, {rows}{reused}", *waits])
    return 3 if report.failed or not report.done else 0


def _say(before: str, lines: Iterable[str]) -> None:
    for line in lines:
        print(before + line, file=sys.stderr)


def _lerobot(options: argparse.Namespace) -> int:
    named = {text: text.partition("=")[::2] for text in options.feature or ()}
    for text, (name, columns) in named.items():
        if not name or not all(columns.split(",")):
            raise Refused("--feature", repr(text), "NAME=COLUMN[,COLUMN]")
    features = {name: columns.split(",") for name, columns in named.values()}
    made = new_set(options.source, options.out, features=features, task=options.task, robot=options.robot)
    _say("  ", [*made.notes, *(f"{name}: {', '.join(own)}" for name, own in made.features.items())])
    _say("  ", [f"{made.episodes} episodes, {made.frames} rows, {made.fps:g} per second"])
    return 0


def _inspect(options: argparse.Namespace) -> int:
    if options.html:
        check_page(options.html, "--html")
    found = inspect(options.source, **{name: getattr(options, name) for name in (*OF_TIMES, "time")})
    if options.html:
        write_page(found.page(f"{options.source.resolve().name}: clocks and gaps"), options.html)
    print(json.dumps(found.json(), indent=1) if options.json else found.text())
    return 3 if found.unreadable else 0
