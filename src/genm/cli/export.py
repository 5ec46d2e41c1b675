"""`genm export`: learned weights in the form that a search engine takes."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.console import Format, print_json, print_lines, print_table, print_tsv, progress_bars, say, say_notes
from genm.cli.options import (
    DuplicateRule,
    Duplicates,
    Lenient,
    OutputFile,
    add_verb,
    check_output,
    named_paths,
    read_runs,
)
from genm.errors import InputError
from genm.io import write_text

if TYPE_CHECKING:
    from genm.export import Target
    from genm.model import Model

TEXT = """Write a model as the request, pipeline, profile or code of a search engine.

A model that the engine would rank otherwise is refused, with the reason and the nearest exact way; --approximate
writes it all the same. Given the runs too, it comes as near as the engine allows on them, and measures for how many
queries the engine's first 10 documents differ from the model's. --list shows the engines and, given a model, which
of them take it exactly."""
EXAMPLES = (
    "genm export --to opensearch model.json -o opensearch.json",
    "genm export --to qdrant model.json --set dense.field=vector --set size=20",
    "genm export --to redis --approximate model.json bm25=b.trec dense=d.trec",
    "genm export --list model.json",
)
TOP = 10


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    summary = "Write a model as a search engine takes it."
    add_verb(app, "export", export, summary=summary, text=TEXT, examples=EXAMPLES)


def target_names() -> list[str]:
    """Return the engines' names, for completion."""
    from genm.export import targets

    return list(targets())


def export(
    model_path: Annotated[
        str | None, typer.Argument(help="A model file of genm fit.", metavar="MODEL", show_default=False)
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs as NAME=FILE, to measure on.", metavar="RUN", show_default=False),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            help="The engine; without it, the one that the model was trained for.",
            metavar="NAME",
            autocompletion=target_names,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE or RANKER.NAME=VALUE; may be repeated.", metavar="SETTING"),
    ] = None,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Write it even if the engine ranks otherwise.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the engines; write nothing.")] = False,
    output: Annotated[
        Format | None,
        typer.Option("--format", help="How to print the list: table, tsv or json.", metavar="FORMAT"),
    ] = None,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    path: OutputFile = "-",
) -> None:
    """Write the engine's text; or list the engines."""
    from genm.export import export_model, find_target, measured_loss
    from genm.model import load_model

    if list_:
        if runs or to or settings or approximate or path != "-":
            raise InputError("--list takes a model and --format, no more. Leave the rest out.")
        _list(None if model_path is None else load_model(model_path), output or Format.table)
        return
    if output is not None:
        raise InputError("--format is for --list; an engine's text has a form of its own. Leave it out.")
    if model_path is None:
        raise InputError("expected a model file of genm fit; found none. To see the engines: genm export --list")
    check_output(path)
    named_paths(runs or [])
    model = load_model(model_path)
    target = find_target(to or _trained_for(model, model_path))
    said = _settings(settings or [])
    exported = export_model(model, target.name, settings=said, approximate=approximate)
    exact = not any(note.code == "approximate" for note in exported.notes)
    loss = None
    if runs:
        with progress_bars() as progress:
            loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
            exported = export_model(model, target.name, settings=said, approximate=approximate, runs=loaded)
            loss = measured_loss(model, target.name, loaded, at=TOP, settings=said)
        for run in loaded.values():
            say_notes(run.notes)
    say_notes(exported.notes)
    if loss is not None:
        say(
            f"measured on the runs: {target.title} changes the top {loss.at} of {loss.n_changed:,} of "
            f"{loss.n_queries:,} queries ({loss.share:.1%}); {loss.n_members_changed:,} get other documents there"
        )
    elif not exact:
        say(f"to measure what this costs, give the runs too: {' '.join(f'{name}=FILE' for name in model.rankers)}")
    if path == "-":
        print_lines(exported.text.removesuffix("\n").split("\n"))
    else:
        write_text(path, exported.text)
        say(f"wrote {path}")


def _trained_for(model: "Model", path: str) -> str:
    if model.target is None:
        raise InputError(f"{path} was trained for no engine. Name one: --to NAME (see genm export --list).")
    return model.target


def _settings(values: list[str]) -> dict[str, str]:
    """Return the settings by name; a value may hold anything, commas and = among it."""
    found: dict[str, str] = {}
    for item in values:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InputError(f"--set {item}: expected NAME=VALUE or RANKER.NAME=VALUE.")
        if name in found:
            raise InputError(f"--set {name}: given twice, as {found[name]} and {value}. Leave one out.")
        found[name] = value
    return found


def _list(model: "Model | None", output: Format) -> None:
    from genm.export import obstacles, targets

    reasons = None if model is None else obstacles(model)
    rows = [_facts(target, None if reasons is None else reasons[name]) for name, target in targets().items()]
    if output is Format.json:
        print_json(rows)
    elif output is Format.tsv:
        print_tsv([_cell(value) for value in row.values()] for row in rows)
    elif reasons is None:
        header = ["target", "engine", "normalisers", "rankers", "weights"]
        cells = [[_cell(row[name]) for name in ("name", *header[1:])] for row in rows]
        print_table("", header, cells, left=len(header))
    else:
        cells = [[row["name"], _cell(row["exact"]), _shortened(row["reasons"])] for row in rows]
        print_table("", ["target", "exact", "why not"], cells, left=3)


def _facts(target: "Target", reasons: tuple[str, ...] | None) -> dict[str, Any]:
    from genm.export.target import rankers_text, weights_text

    verdict = {} if reasons is None else {"exact": not reasons, "reasons": list(reasons)}
    return {
        "name": target.name,
        "engine": target.title,
        "versions": target.versions,
        "normalisers": [technique.word for technique in target.techniques],
        "rankers": rankers_text(target),
        "weights": weights_text(target),
        **verdict,
    }


def _shortened(reasons: list[str]) -> str:
    """Return the first reason, which is enough to know that there is one; tsv and json have them all."""
    return reasons[0] + (f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else "") if reasons else ""


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, list) else str(value)
