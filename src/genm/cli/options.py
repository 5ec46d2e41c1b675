"""Options that several verbs share, and how runs, lists and numbers are read from the command line."""

import math
import os
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

import genm
from genm.errors import InputError
from genm.io import check_outputs
from genm.progress import Progress, silent

STDIN = "-"
WHOLE_GRADES = "whole"
"""That of `genm.read`, whose import would make the help slow."""

Lenient = Annotated[bool, typer.Option("--lenient", help="Repair errors where possible, and say how many.")]
Judgments = Annotated[str, typer.Argument(help="Judgments: TREC qrels or a table.", metavar="QRELS")]
Runs = Annotated[list[str], typer.Argument(help="Runs as NAME=FILE, or FILE (named after itself).", metavar="RUN")]
OutputFile = Annotated[
    str, typer.Option("--output", "-o", help="File to write; - is standard output.", metavar="FILE")
]
Grades = Annotated[
    str,
    typer.Option("--grades", help="Grades: whole, round, times=N, from=N, probability.", metavar="RULE"),
]
Level = Annotated[int, typer.Option("--rel", help="Lowest grade that counts as relevant.", metavar="GRADE")]
Depth = Annotated[
    list[str] | None, typer.Option(help="Use the top N of each run; or NAME=N for each.", metavar="LIST")
]
GroupFile = Annotated[
    str | None, typer.Option("--groups", help="Lines of query and group.", metavar="FILE", show_default=False)
]
QueryFile = Annotated[
    str | None,
    typer.Option("--queries", help="Texts and columns of the queries.", metavar="FILE", show_default=False),
]
GroupBy = Annotated[
    list[str] | None,
    typer.Option("--group-by", help="A column of --queries, or rules NAME: TEST.", metavar="RULES"),
]
Table = Annotated[
    str | None,
    typer.Option("--table", help="A score table of genm shard, not files.", metavar="DIR", show_default=False),
]
TableModel = Annotated[
    str | None, typer.Option("--model", help="The model to use on --table.", metavar="FILE", show_default=False)
]
SkipMissing = Annotated[bool, typer.Option("--skip-missing", help="Skip judged queries that a run lacks.")]

EXAMPLE_WIDTH = 74
"""Examples are no longer than this, so that each fits on one line of 80 columns."""


class DuplicateRule(StrEnum):
    """What to do with a document that occurs twice for one query."""

    error = "error"
    max = "max"
    first = "first"
    last = "last"


Duplicates = Annotated[
    DuplicateRule,
    typer.Option(help="A document twice for one query: error, or keep max, first or last.", metavar="RULE"),
]


def some_measures(incomplete: str) -> list[str]:
    """Complete the last measure of a comma-separated list."""
    from genm.evaluate.measures import FACTS  # noqa: PLC0415 - numpy is loaded only to complete a word

    begun, comma, _ = incomplete.rpartition(",")
    return [begun + comma + facts.example for facts in FACTS.values()]


Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measures",
        "-m",
        help="Measures, comma-separated; may be repeated.",
        metavar="LIST",
        autocompletion=some_measures,
    ),
]


def split_list(values: Iterable[str]) -> list[str]:
    """Return the items of options that may be repeated and hold comma-separated lists.

    Commas inside parentheses belong to the item, so that `P(rel=2,judged_only=True)@5` stays whole.
    """
    items: list[str] = []
    for value in values:
        depth, item = 0, ""
        for letter in value:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth == 0:
                items.append(item)
                item = ""
            else:
                item += letter
        items.append(item)
    return [item.strip() for item in items if item.strip()]


def named_paths(arguments: Sequence[str], *others: str | None) -> dict[str, str]:
    """Return name -> path for arguments written NAME=FILE or FILE; two runs never share a name.

    `others` are further files that the command reads; only one of all may be standard input.
    """
    found: dict[str, str] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or "/" in name or Path(argument).exists():
            name, path = _stem(argument), argument
        if not name or not path:
            raise InputError(f"{argument!r}: expected NAME=FILE; found no {'file' if name else 'name'}.")
        if name in found:
            raise InputError(
                f"two runs are called {name!r} ({found[name]} and {path}). Give each its own name: NAME=FILE."
            )
        found[name] = path
    if [*found.values(), *others].count(STDIN) > 1:
        raise InputError("standard input (-) can be read only once. Give the other inputs as files.")
    return found


def _stem(path: str) -> str:
    if path == STDIN:
        return "stdin"
    return genm.read.sources.stem_of(path) or path


def read_runs(
    arguments: Sequence[str], *, lenient: bool, duplicates: str, progress: Progress
) -> "dict[str, genm.Run]":
    """Read every named run; notes stay with the runs."""
    rule: Literal["error", "max", "first", "last"] = DuplicateRule(duplicates).value
    return {
        name: genm.read_run(path, name=name, lenient=lenient, duplicates=rule, progress=progress)
        for name, path in named_paths(arguments).items()
    }


def read_judgments(
    path: str, *, lenient: bool, grades: str = WHOLE_GRADES, progress: Progress = silent
) -> "genm.Qrels":
    """Read the judgments."""
    return genm.read_qrels(path, lenient=lenient, grades=grades, progress=progress)


def read_query_files(
    groups: str | None, queries: str | None
) -> tuple[dict[str, str] | None, dict[str, dict[str, str]] | None]:
    """Read the groups of queries and the table of queries, where they are given."""
    return (
        None if groups is None else genm.read.read_groups(groups),
        None if queries is None else genm.read.read_queries(queries),
    )


class UsageError(InputError):
    """A call that lacks an argument; it is told as the parser of the command line tells it."""

    code = "usage"


def missing_argument(name: str, verb: str) -> UsageError:
    """Return the refusal of a call without an argument that only --table can take the place of."""
    return UsageError(f"Missing argument '{name}'. See: genm {verb} --help")


def table_and_model(
    table: str | None, model: str | None, *files: str | None
) -> "tuple[genm.scale.ScoreTable, genm.Model]":
    """Open a score table and the model to use on it; `files` are arguments that a table takes the place of."""
    if table is None or model is None:
        raise InputError("expected --table and --model together: a table of genm shard, a model of genm fit.")
    if any(file is not None for file in files):
        raise InputError("--table takes the place of judgments and runs. Leave one or the other out.")
    return genm.scale.ScoreTable.open(table), genm.load_model(model)


def check_output(path: str | None, inputs: Iterable[str | None] = (), *, standard: bool = True) -> None:
    """Refuse a file that could not be written, or that is read, before the work and not after it.

    `inputs` are all files that the command reads; `standard` says whether standard output (-) is allowed.
    """
    if path is None:
        return
    check_outputs([path], inputs)
    if path == STDIN:
        if not standard:
            raise InputError("-o -: a model is written to a file. Name one, such as model.json.")
        return
    if Path(path).is_dir():
        raise InputError(f"{path}: expected a file to write; found a folder. Name a file in it.")
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise InputError(f"{path}: expected a folder to write into; found no {Path(path).parent}. Make it first.")
    needed = place if place.exists() and not place.is_file() else place.parent  # a file is replaced, not opened
    if not os.access(needed, os.W_OK):
        raise InputError(f"{path}: permission denied: cannot write to {needed}. Choose another place.")


def per_ranker(option: str, values: Sequence[str]) -> dict[str, str] | str | None:
    """Return one value for all rankers, or name -> value where the option is written NAME=VALUE."""
    items = split_list(values)
    if not items:
        return None
    named = dict(item.split("=", 1) for item in items if "=" in item)
    plain = [item for item in items if "=" not in item]
    if (named and plain) or len(plain) > 1 or len(named) + len(plain) != len(items):
        raise InputError(f"{option} {','.join(items)}: expected one value for all, or NAME=VALUE once for each.")
    return named or plain[0]


def depths(values: Sequence[str]) -> "int | dict[str, int] | None":
    """Return the depth cut, for all rankers or by name."""
    found = per_ranker("--depth", values)
    if found is None:
        return None
    if isinstance(found, str):
        return positive_integer("--depth", found)
    return {name: positive_integer("--depth", text) for name, text in found.items()}


def positive_integer(option: str, text: str, expected: str = "expected a positive integer") -> int:
    """Return the number that an option is given; `expected` says what else the option takes."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) < 1:
        raise InputError(f"{option} {text:.40}: {expected}.")
    return int(text)


def weights_by_name(values: Sequence[str], rankers: Iterable[str]) -> dict[str, float]:
    """Return the weights NAME=NUMBER; every ranker needs one, and not all may be 0."""
    names = list(rankers)
    found = per_ranker("--weights", values)
    if not isinstance(found, dict):
        raise InputError(f"--weights {found or ''}: expected NAME=NUMBER for each of {', '.join(names)}.")
    unknown = [name for name in found if name not in names]
    missing = [name for name in names if name not in found]
    if unknown or missing:
        parts = [f"unknown: {', '.join(unknown)}"] * bool(unknown) + [f"missing: {', '.join(missing)}"] * bool(
            missing
        )
        raise InputError(f"--weights: expected one weight for each of {', '.join(names)}; {'; '.join(parts)}.")
    weights = {name: _weight(name, found[name]) for name in names}
    if not any(weights.values()):
        raise InputError("--weights: expected at least one that is not 0; with these all documents would tie.")
    return weights


def _weight(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"--weights {name}={text}: expected a finite number, such as {name}=0.35.")
    return value


def normalizers(values: Sequence[str]) -> "str | dict[str, str | genm.Normalizer]":
    """Return the normaliser by its name, for all rankers or by ranker."""
    found = per_ranker("--normalize", values)
    if found is None:
        return "minmax"
    return found if isinstance(found, str) else cast("dict[str, str | genm.Normalizer]", found)


def check_rules(
    kinds: "str | dict[str, str | genm.Normalizer]", cut: int | dict[str, int] | None, rankers: Iterable[str]
) -> None:
    """Refuse normalisers and depths that do not exist or do not fit the runs' names, before a run is read."""
    names = tuple(rankers)
    if kinds != "auto":
        genm.normalizers.normalizers_of(kinds, names)
    genm.normalizers.per_ranker("depth", cut, names)
