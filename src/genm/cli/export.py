"""`genm export`: a model as the configuration of a search engine."""

from pathlib import Path
from typing import Annotated, Any

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.errors import InputError
from genm.io import write_text

TEXT = """Write a model as the request, pipeline, profile or code of a search engine.

A model that the engine would rank differently is refused, with the reason and the closest exact alternative;
--approximate writes it anyway. Given runs as well, the approximation is fitted to them, and a note says for how
many queries the engine's top 10 differs from the model's. --list shows the engines and, given a model, which of
them reproduce it exactly.

A model with weights by group becomes a folder: one file per group, groups.json with the rules that select it, and
query_groups.py, which applies them. --group writes the file of one group, or global."""
EXAMPLES = (
    "genm export --to opensearch model.json -o opensearch.json",
    "genm export --to qdrant model.json --set dense.field=vector --set size=20",
    "genm export --to redis --approximate model.json bm25=b.trec dense=d.trec",
    "genm export --list model.json",
    "genm export --to opensearch grouped.json -o opensearch",
)
TOP = 10
GLOBAL_GROUP = "global"
"""The name under which `--group` knows the weights of all other queries."""


def target_names() -> list[str]:
    """Return the engines' names, for completion."""
    return list(genm.export.targets())


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
            help="Engine; default: the one that the model was trained for.",
            metavar="NAME",
            autocompletion=target_names,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE or RANKER.NAME=VALUE; may be repeated.", metavar="SETTING"),
    ] = None,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Write it even if the engine ranks differently.")
    ] = False,
    group: Annotated[
        str | None,
        typer.Option("--group", help="Write this group's weights, or global.", metavar="NAME", show_default=False),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the engines; write nothing.")] = False,
    output: Annotated[
        console.Format | None,
        typer.Option("--format", help="How to print the list: table, tsv or json.", metavar="FORMAT"),
    ] = None,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    path: options.OutputFile = "-",
) -> None:
    """Write the engine's text; or list the engines."""
    if list_:
        if runs or to or settings or approximate or group or path != "-":
            raise InputError("--list takes only a model and --format. Leave the other options out.")
        _list(None if model_path is None else genm.load_model(model_path), output or console.Format.table)
        return
    if output is not None:
        raise InputError("--format belongs to --list; the engine decides the format of an export. Leave it out.")
    if model_path is None:
        raise InputError("expected a model file of genm fit; found none. To see the engines: genm export --list")
    model = genm.load_model(model_path)
    target = genm.export.find_target(to or _trained_for(model, model_path))
    said = _settings(settings or [])
    if group is not None:
        model = model.for_group(None if group == GLOBAL_GROUP else group)
    if model.groups is not None and model.gate is None and path != "-":
        _write_groups(model, target, said, runs or [], path, approximate=approximate)
        return
    options.check_output(path, (model_path, *options.named_paths(runs or []).values()))
    exported = genm.export.export_model(model, target.name, settings=said, approximate=approximate)
    exact = not any(note.code == "approximate" for note in exported.notes)
    loss = None
    if runs:
        with console.progress_bars() as progress:
            loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
            exported = genm.export.export_model(
                model, target.name, settings=said, approximate=approximate, runs=loaded
            )
            loss = genm.export.measured_loss(model, target.name, loaded, at=TOP, settings=said)
        for run in loaded.values():
            console.say_notes(run.notes)
    remarks = [note for note in exported.notes if note.code == "engine"]
    console.say_notes(note for note in exported.notes if note.code != "engine")
    if runs:
        in_order = {name: loaded[name] for name in model.rankers}
        console.say_notes(genm.training.note_ties(in_order, target.name, model.normalizers, model.depths))
    if remarks:
        console.say(f"{len(remarks)} remarks on how {target.title} ranks: docs/engines/{target.name}.md")
    if loss is not None:
        console.say(
            f"measured on the runs: {target.title} changes the top {loss.at} of {loss.n_changed:,} of "
            f"{loss.n_queries:,} queries ({loss.share:.1%}); {loss.n_members_changed:,} get other documents there"
        )
    elif not exact:
        console.say(
            f"to measure what this costs, give the runs too: {' '.join(f'{name}=FILE' for name in model.rankers)}"
        )
    if path == "-":
        console.print_lines(exported.text.removesuffix("\n").split("\n"))
    else:
        write_text(path, exported.text)
        console.say(f"wrote {path}")


def _write_groups(
    model: "genm.Model",
    target: "genm.export.Target",
    settings: dict[str, str],
    runs: list[str],
    path: str,
    *,
    approximate: bool,
) -> None:
    """Write one file per group, and those that select among them, into a folder."""
    if runs:
        raise InputError("runs are measured on one group at a time. Name it by --group, or leave the runs out.")
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"-o {path}: expected a folder, since the model has weights by group; found a file.")
    found = genm.export.export_groups(model, target.name, settings=settings, approximate=approximate)
    folder.mkdir(exist_ok=True)
    for name, text in found.files.items():
        write_text(folder / name, text)
    console.say_notes(note for note in found.notes if note.code != "engine")
    console.say(f"wrote {len(found.files)} files to {path}: {', '.join(found.files)}")


def _trained_for(model: "genm.Model", path: str) -> str:
    if model.target is None:
        raise InputError(f"{path} was trained for no engine. Name one: --to NAME (see genm export --list).")
    return model.target


def _settings(values: list[str]) -> dict[str, str]:
    """Return the settings by name; a value may hold any character, also commas and =."""
    found: dict[str, str] = {}
    for item in values:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InputError(f"--set {item}: expected NAME=VALUE or RANKER.NAME=VALUE.")
        if name in found:
            raise InputError(f"--set {name}: given twice, as {found[name]} and {value}. Leave one out.")
        found[name] = value
    return found


def _list(model: "genm.Model | None", output: console.Format) -> None:
    rows = genm.export.describe_targets(model)
    console.show(
        output,
        json=lambda: rows,
        tsv=lambda: ([_cell(value) for value in row.values()] for row in rows),
        table=lambda: _table(rows, for_model=model is not None),
    )


def _table(rows: list[dict[str, Any]], *, for_model: bool) -> None:
    if for_model:
        cells = [[row["name"], _cell(row["exact"]), _shortened(row["reasons"])] for row in rows]
        console.print_table("", ["target", "exact", "why not"], cells, left=3)
    else:
        header = ["target", "engine", "normalisers", "rankers", "weights"]
        cells = [[_cell(row[name]) for name in ("name", *header[1:])] for row in rows]
        console.print_table("", header, cells, left=len(header))


def _shortened(reasons: list[str]) -> str:
    """Return the first reason and how many follow; tsv and json have them all."""
    return reasons[0] + (f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else "") if reasons else ""


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, list) else str(value)


command = make_verb(export, TEXT, EXAMPLES)
