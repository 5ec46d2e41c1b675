"""`genm collections`: which there are, what is in them, and how to get them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.show import Format, print_json, print_lines, print_table, progress_bars, say, say_notes
from genm.errors import GenmError

if TYPE_CHECKING:
    from genm.records import Collection

HELP = "Test collections: list them, look into one, download one."
LIST = """List the collections that have a name, and whether they are here.

Example:

    genm collections list
"""
SHOW = """Show what is in a collection: counts, and its first query with its judged documents.

Example:

    genm collections show pydocs
"""
GET = """Download MED, CRAN, CISI or CACM and check what came against a known hash; a broken transfer is resumed.

Example:

    genm collections get med --data ~/collections
"""

Data = Annotated[
    str | None, typer.Option(help="Folder of the SMART collections (default: GENM_DATA).", metavar="DIR")
]
Output = Annotated[Format, typer.Option("--format", help="How to print.")]


def add_to(app: typer.Typer) -> None:
    """Register the group of verbs."""
    group = typer.Typer(help=HELP, no_args_is_help=True)
    group.command("list", help=LIST)(list_)
    group.command("show", help=SHOW)(show)
    group.command("get", help=GET)(get)
    app.add_typer(group, name="collections")


def list_(data: Data = None, output: Output = Format.table) -> None:
    """Print names and descriptions."""
    from genm.collections import DESCRIPTIONS, load_collection

    rows = []
    for name, description in DESCRIPTIONS.items():
        try:
            load_collection(name, data=data)
            here = "yes"
        except GenmError:
            here = "no"
        rows.append((name, here, description))
    if output is Format.json:
        print_json([{"name": n, "here": h == "yes", "description": d} for n, h, d in rows])
    elif output is Format.tsv:
        print_lines("\t".join(row) for row in rows)
    else:
        print_table("", ["name", "here", "what"], rows, left=3)


def show(
    name: Annotated[str, typer.Argument(help="A collection's name, folder or id.", metavar="NAME")],
    data: Data = None,
    split: Annotated[str, typer.Option(help="Which judgments of a BEIR folder.")] = "test",
    output: Output = Format.table,
) -> None:
    """Print counts and an example."""
    from genm.collections import load_collection

    collection = load_collection(name, data=data, split=split)
    facts = _facts(collection)
    say_notes(collection.notes)
    if output is Format.json:
        print_json(facts)
        return
    lines = [
        (key.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
        for key, value in facts.items()
    ]
    if output is Format.tsv:
        print_lines("\t".join(line) for line in lines)
    else:
        print_table("", [collection.name, ""], lines, left=2)


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
    url: Annotated[str | None, typer.Option(help="Another address with the same files.", metavar="URL")] = None,
) -> None:
    """Download, check, install."""
    import os

    from genm.collections import get_collection

    where = data or os.environ.get("GENM_DATA") or "collections"
    options = {} if url is None else {"base_url": url}
    with progress_bars() as progress:
        folder = get_collection(name, where, progress=progress, **options)
    say(f"{folder} is whole; use it with --data {where} or GENM_DATA={where}")
