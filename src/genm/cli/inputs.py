"""How the verbs take runs, lists and numbers from the command line."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from genm.errors import InputError

if TYPE_CHECKING:
    from genm.progress import Progress
    from genm.records import Normalizer, Qrels, Run

_SUFFIXES = {".gz", ".zst", ".trec", ".run", ".res", ".txt", ".tsv", ".csv", ".parquet", ".results"}

Lenient = Annotated[bool, typer.Option("--lenient", help="Repair what can be repaired, and say how often.")]
Duplicates = Annotated[
    str,
    typer.Option(help="A document twice for one query: error, or keep max, first or last.", metavar="RULE"),
]
Runs = Annotated[
    list[str], typer.Argument(help="Runs as NAME=FILE, or FILE (named after itself).", metavar="NAME=RUN...")
]
Level = Annotated[int, typer.Option("--rel", help="Grades from this level on count as relevant.", metavar="GRADE")]


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


def named_paths(arguments: Sequence[str]) -> dict[str, str]:
    """Return name -> path for arguments written NAME=FILE or FILE; two runs never share a name."""
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
    if list(found.values()).count("-") > 1:
        raise InputError("standard input (-) can be read only once. Give the other runs as files.")
    return found


def _stem(path: str) -> str:
    name = Path(path).name
    while Path(name).suffix.lower() in _SUFFIXES:
        name = name[: -len(Path(name).suffix)]
    return name or path


def read_runs(
    arguments: Sequence[str], *, lenient: bool, duplicates: str, progress: "Progress"
) -> "dict[str, Run]":
    """Read every named run; notes stay with the runs."""
    from genm.read import read_run

    return {
        name: read_run(path, name=name, lenient=lenient, duplicates=check_rule(duplicates), progress=progress)
        for name, path in named_paths(arguments).items()
    }


def read_judgments(path: str, *, lenient: bool) -> "Qrels":
    """Read the judgments."""
    from genm.read import read_qrels

    return read_qrels(path, lenient=lenient)


def check_rule(text: str) -> Literal["error", "max", "first", "last"]:
    """Return the rule for documents that occur twice."""
    if text in ("error", "max", "first", "last"):
        return text
    raise InputError(f"--duplicates {text}: expected error, max, first or last.")


def per_ranker(option: str, values: Sequence[str]) -> dict[str, str] | str | None:
    """Return one value for all rankers, or name -> value where the option is written NAME=VALUE."""
    items = split_list(values)
    if not items:
        return None
    named = dict(item.split("=", 1) for item in items if "=" in item)
    plain = [item for item in items if "=" not in item]
    if (named and plain) or len(plain) > 1 or len(named) + len(plain) != len(items):
        raise InputError(f"{option} {','.join(items)}: expected one value for all, or NAME=VALUE for each.")
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
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"{option} {text}: expected a whole number from 1 on.")
    return int(text)


def weights_by_name(values: Sequence[str], rankers: Sequence[str]) -> list[float]:
    """Return the weights NAME=NUMBER in the rankers' order; every ranker needs one."""
    found = per_ranker("--weights", values)
    if not isinstance(found, dict):
        raise InputError(f"--weights {found}: expected NAME=NUMBER for each of {', '.join(rankers)}.")
    unknown = sorted(set(found) - set(rankers))
    missing = [name for name in rankers if name not in found]
    if unknown or missing:
        raise InputError(
            f"--weights: expected one weight for each of {', '.join(rankers)}; "
            f"{'unknown ' + ', '.join(unknown) if unknown else 'missing ' + ', '.join(missing)}."
        )
    try:
        return [float(found[name]) for name in rankers]
    except ValueError as error:
        raise InputError(f"--weights: {error}. Write weights as numbers, such as bm25=0.35.") from None


def normalizers(values: Sequence[str]) -> "str | dict[str, str | Normalizer]":
    """Return the normaliser by its name, for all rankers or by ranker."""
    found = per_ranker("--normalize", values)
    if found is None:
        return "minmax"
    return found if isinstance(found, str) else dict(found)
