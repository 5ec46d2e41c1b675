"""`genm sample`: the small files of the quickstart."""

from typing import Annotated

import typer

import genm
from genm.cli import console
from genm.cli.app import make_verb

TEXT = """Write the small files that the quickstart uses: bm25.trec, dense.trec and qrels.txt.

Thirty made-up queries and two rankers, the same on every machine. --texts adds documents.tsv and queries.tsv, for
the tutorial on judging. Files that exist are not overwritten without --force."""
EXAMPLES = ("genm sample demo", "genm sample . --texts")


def sample(
    folder: Annotated[str, typer.Argument(help="Folder to write into; it is made if need be.", metavar="DIR")],
    texts: Annotated[bool, typer.Option("--texts", help="Write texts of documents and queries too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
) -> None:
    """Write the files."""
    for path in genm.collections.write_sample(folder, texts=texts, force=force):
        console.say(f"wrote {path}")


command = make_verb(sample, TEXT, EXAMPLES)
