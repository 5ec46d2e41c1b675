"""`genm collections`: which there are, what is in them, and how to get them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.console import Format, Output, print_json, print_table, print_tsv, progress_bars, say, say_notes
from genm.cli.options import add_verb, described

if TYPE_CHECKING:
    from genm.records import Collection

SUMMARY = "Test collections: list, show, get."
TEXT = "Test collections: list them, look into one, download one."
LIST = "List the collections that have a name, and whether they are here."
SHOW = "Show what is in a collection: counts, and its first query."
GET = """Download MED, CRAN, CISI or CACM and check what came against a known hash.

A broken transfer is kept, and the same command goes on from there."""

Data = Annotated[str | None, typer.Option(help="Folder of the SMART collections; else GENM_DATA.", metavar="DIR")]


def add_to(app: typer.Typer) -> None:
    """Register the group of verbs."""
    examples = ("genm collections list", "genm collections show pydocs")
    group = typer.Typer(
        help=described(TEXT, examples), short_help=SUMMARY, invoke_without_command=True, rich_markup_mode=None
    )
    group.callback()(default)
    add_verb(group, "list", list_, summary="List them.", text=LIST, examples=("genm collections list",))
    shown = ("genm collections show pydocs", "genm collections show med --data ~/collections --format json")
    add_verb(group, "show", show, summary="Look into one.", text=SHOW, examples=shown)
    got = ("genm collections get med --data ~/collections",)
    add_verb(group, "get", get, summary="Download one.", text=GET, examples=got)
    app.add_typer(group, name="collections")


def default(ctx: typer.Context) -> None:
    """List where nothing else is asked for."""
    if ctx.invoked_subcommand is None:
        list_(None, Format.table)


def list_(data: Data = None, output: Output = Format.table) -> None:
    """Print names and descriptions."""
    from genm.collections import DESCRIPTIONS

    rows = [(name, _is_here(name, data), description) for name, description in DESCRIPTIONS.items()]
    if output is Format.json:
        print_json([{"name": name, "here": here, "description": what} for name, here, what in rows])
        return
    cells = [(name, "yes" if here else "no", what) for name, here, what in rows]
    if output is Format.tsv:
        print_tsv(cells)
    else:
        print_table("", ["name", "here", "what"], cells, left=3)


def _is_here(name: str, data: str | None) -> bool:
    """Tell whether a collection's files, or the libraries it is made of, are on this machine; read none."""
    import os
    from importlib.util import find_spec

    from genm.collections.smart import SMART, VARIABLE, data_folder, find_file
    from genm.errors import InputError

    if name == "pydocs":
        return all(find_spec(library) is not None for library in ("numpy", "scipy", "sklearn"))
    if data is None and not os.environ.get(VARIABLE):
        return False
    folder = data_folder(data, wanted=name)
    try:
        for spec in [SMART[name]] if name in SMART else SMART.values():
            for files in (spec.docs_files, spec.queries_files, spec.judgments_files):
                find_file(folder, spec.name, files)
    except InputError:
        return False
    return True


def show(
    name: Annotated[str, typer.Argument(help="A collection's name, folder or id.", metavar="NAME")],
    data: Data = None,
    split: Annotated[str, typer.Option(help="Which judgments of a BEIR folder.", metavar="NAME")] = "test",
    output: Output = Format.table,
) -> None:
    """Print counts and an example."""
    from genm.collections import load_collection

    with progress_bars():
        collection = load_collection(name, data=data, split=split)
    facts = _facts(collection)
    say_notes(collection.notes)
    if output is Format.json:
        print_json(facts)
    elif output is Format.tsv:
        print_tsv((key, str(value)) for key, value in facts.items())
    else:
        rows = [(k.replace("_", " "), f"{v:,}" if isinstance(v, int) else str(v)) for k, v in facts.items()]
        print_table("", [collection.name, ""], rows, left=2)


def _facts(collection: "Collection") -> dict[str, Any]:
    qrels = collection.qrels
    facts: dict[str, Any] = {
        "documents": len(collection.doc_ids),
        "empty_documents": sum(not text.strip() for text in collection.doc_texts),
        "queries": len(collection.query_ids),
        "judged_queries": len(qrels.queries),
        "judgments": len(qrels.doc),
        "relevant": int((qrels.relevance >= 1).sum()),
    }
    if collection.query_ids:
        facts["first_query"] = f"{collection.query_ids[0]}: {' '.join(collection.query_texts[0].split())[:200]}"
    return facts


def get(
    name: Annotated[str, typer.Argument(help="med, cran, cisi or cacm.", metavar="NAME")],
    data: Data = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Another address with the same files.", metavar="URL")
    ] = None,
) -> None:
    """Download, check, install."""
    import os

    from genm.collections import get_collection

    where = data or os.environ.get("GENM_DATA") or "collections"
    options: dict[str, Any] = {} if url is None else {"base_url": url}
    with progress_bars() as progress:
        folder = get_collection(name, where, progress=progress, **options)
    say(f"{folder} is whole; use it with --data {where} or GENM_DATA={where}")
