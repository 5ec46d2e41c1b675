"""`genm collections`: list, show and download test collections."""

import os
from typing import Annotated, Any

import typer

import genm
from genm.cli import console
from genm.cli.app import add_verb, make_group

TEXT = "Test collections: list them, look into one, download one."
LIST = "List the collections that have a name, and whether they are on this machine."
SHOW = "Show what is in a collection: counts, and its first query."
GET = """Download MED, CRAN, CISI or CACM and verify its checksum.

An interrupted download is kept, and the same command resumes it."""

Data = Annotated[str | None, typer.Option(help="Folder of the SMART collections; else GENM_DATA.", metavar="DIR")]


def default(ctx: typer.Context) -> None:
    """List if no verb is given."""
    if ctx.invoked_subcommand is None:
        list_(None, console.Format.table)


def list_(data: Data = None, output: console.Output = console.Format.table) -> None:
    """Print names and descriptions."""
    rows = [
        (name, genm.collections.is_available(name, data=data), text)
        for name, text in genm.collections.DESCRIPTIONS.items()
    ]
    cells = [(name, "yes" if here else "no", text) for name, here, text in rows]
    console.show(
        output,
        json=lambda: [{"name": name, "here": here, "description": text} for name, here, text in rows],
        tsv=lambda: cells,
        table=lambda: console.print_table("", ["name", "here", "what"], cells, left=3),
    )


def show(
    name: Annotated[str, typer.Argument(help="A collection's name, folder or id.", metavar="NAME")],
    data: Data = None,
    split: Annotated[str, typer.Option(help="Which judgments of a BEIR folder.", metavar="NAME")] = "test",
    output: console.Output = console.Format.table,
) -> None:
    """Print counts and an example."""
    with console.progress_bars():
        collection = genm.collections.load_collection(name, data=data, split=split)
    facts = genm.collections.collection_facts(collection)
    console.say_notes(collection.notes)
    rows = [(k.replace("_", " "), f"{v:,}" if isinstance(v, int) else str(v)) for k, v in facts.items()]
    console.show(
        output,
        json=lambda: facts,
        tsv=lambda: ((key, str(value)) for key, value in facts.items()),
        table=lambda: console.print_table("", [collection.name, ""], rows, left=2),
    )


def get(
    name: Annotated[str, typer.Argument(help="med, cran, cisi or cacm.", metavar="NAME")],
    data: Data = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Another address with the same files.", metavar="URL")
    ] = None,
) -> None:
    """Download, verify, install."""
    where = data or os.environ.get("GENM_DATA") or "collections"
    mirror: dict[str, Any] = {} if url is None else {"base_url": url}
    with console.progress_bars() as progress:
        folder = genm.collections.get_collection(name, where, progress=progress, **mirror)
    console.say(f"{folder} is complete; use it with --data {where} or GENM_DATA={where}")


LISTED = ("genm collections list",)
SHOWN = ("genm collections show pydocs", "genm collections show med --data ~/collections --format json")
GOT = ("genm collections get med --data ~/collections",)
group = make_group(default, TEXT, (LISTED[0], SHOWN[0]))
add_verb(group, "list", list_, summary="List the named collections.", text=LIST, examples=LISTED)
add_verb(group, "show", show, summary="Show what is in a collection.", text=SHOW, examples=SHOWN)
add_verb(group, "get", get, summary="Download a collection.", text=GET, examples=GOT)
command = typer.main.get_command(group)
