"""How the verbs take runs, lists and numbers from the command line, and how a verb is declared and described.

The help is plain and the same at every width, with examples that can be copied.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from typer.core import TyperCommand

from genm.cli.exit_codes import CallError
from genm.errors import InputError
from genm.progress import Progress, silent

if TYPE_CHECKING:
    from genm.normalizers import Normalizer
    from genm.records import Qrels, Run

STDIN = "-"

Lenient = Annotated[bool, typer.Option("--lenient", help="Repair what can be repaired, and say how often.")]
Judgments = Annotated[str, typer.Argument(help="Judgments: TREC qrels or a table.", metavar="QRELS")]
Runs = Annotated[list[str], typer.Argument(help="Runs as NAME=FILE, or FILE (named after itself).", metavar="RUN")]
OutputFile = Annotated[
    str, typer.Option("--output", "-o", help="File to write; - is standard output.", metavar="FILE")
]
Level = Annotated[int, typer.Option("--rel", help="Grades from this level on count as relevant.", metavar="GRADE")]
Depth = Annotated[
    list[str] | None, typer.Option(help="Use the top N of each run; or NAME=N for each.", metavar="LIST")
]
SkipMissing = Annotated[bool, typer.Option("--skip-missing", help="Leave out judged queries that a run lacks.")]

EXAMPLE_WIDTH = 74
"""Examples are no longer than this, so that they stand on one line each in a window of 80 columns."""


class DuplicateRule(StrEnum):
    """What happens to a document that comes twice for one query."""

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
    from genm.evaluate.measures import FACTS

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

    `others` are further files that the command reads; standard input serves only one of all.
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
    from genm.read.sources import stem_of

    return stem_of(path) or path


def read_runs(arguments: Sequence[str], *, lenient: bool, duplicates: str, progress: Progress) -> "dict[str, Run]":
    """Read every named run; notes stay with the runs."""
    from genm.read import read_run

    rule: Literal["error", "max", "first", "last"] = DuplicateRule(duplicates).value
    return {
        name: read_run(path, name=name, lenient=lenient, duplicates=rule, progress=progress)
        for name, path in named_paths(arguments).items()
    }


def read_judgments(path: str, *, lenient: bool, progress: Progress = silent) -> "Qrels":
    """Read the judgments."""
    from genm.read import read_qrels

    return read_qrels(path, lenient=lenient, progress=progress)


def check_output(path: str | None, *, standard: bool = True) -> None:
    """Refuse a file that could not be written, before the work and not after it.

    `standard` says whether standard output (-) will do.
    """
    if path is None:
        return
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
        raise InputError(f"{path}: {needed} must not be written to by this user. Choose another place.")


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
        return _whole("--depth", found)
    return {name: _whole("--depth", text) for name, text in found.items()}


def _whole(option: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise InputError(f"{option} {text}: expected a whole number from 1 on.")
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


def normalizers(values: Sequence[str]) -> "str | dict[str, str | Normalizer]":
    """Return the normaliser by its name, for all rankers or by ranker."""
    found = per_ranker("--normalize", values)
    if found is None:
        return "minmax"
    return found if isinstance(found, str) else cast("dict[str, str | Normalizer]", found)


def check_rules(
    kinds: "str | dict[str, str | Normalizer]", cut: int | dict[str, int] | None, rankers: Iterable[str]
) -> None:
    """Refuse normalisers and depths that do not exist or do not fit the runs' names, before a run is read."""
    from genm.normalizers import normalizers_of
    from genm.normalizers import per_ranker as each

    names = tuple(rankers)
    if kinds != "auto":
        normalizers_of(kinds, names)
    each("depth", cut, names)


class Verb(TyperCommand):
    """A command whose help speaks of files and names, not of Python's types."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; whatever is wrong with them, the help to look at is this verb's."""
        try:
            return super().parse_args(ctx, args)
        except CallError as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, text and options; the text keeps its examples line by line."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command's name in the line of usage."""
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        return ["[OPTIONS]", *(_argument(p) if p.required else f"[{_argument(p)}]" for p in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each with what it takes and its default."""
        params: list[Any] = [p for p in self.get_params(ctx) if not getattr(p, "hidden", False)]
        arguments = [(_argument(p), p.help or "") for p in params if p.param_type_name == "argument"]
        options = [(_option(p), _option_help(p)) for p in params if p.param_type_name == "option"]
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def add_verb(
    app: "typer.Typer",
    name: str,
    function: Callable[..., None],
    *,
    summary: str,
    text: str,
    examples: tuple[str, ...],
) -> None:
    """Register a verb: `summary` stands in the list of verbs, `text` and `examples` in its own help."""
    app.command(name, cls=Verb, help=described(text, examples), short_help=summary)(function)


def described(text: str, examples: tuple[str, ...]) -> str:
    """Return help whose examples are kept as they are, line by line."""
    title = "Example" if len(examples) == 1 else "Examples"
    return f"{text.strip()}\n\n\b\n{title}:\n" + "\n".join(f"  {line}" for line in examples)


def _argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return f"{name}..." if param.nargs == -1 else str(name)


def _option(param: Any) -> str:
    names = ", ".join(sorted(param.opts, key=len))
    return names if param.is_flag else f"{names} {param.metavar or param.name.upper()}"


def _option_help(param: Any) -> str:
    text = param.help or ""
    if param.required:
        return f"{text}  [required]"
    default = param.default
    if default in (None, (), []) or param.is_flag or callable(default) or not param.show_default:
        return text
    return f"{text}  [default: {getattr(default, 'value', default)}]"
