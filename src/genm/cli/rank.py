"""`genm rank`: from texts to runs."""

from pathlib import Path
from typing import Annotated

import typer

from genm.cli.inputs import split_list
from genm.cli.show import progress_bars, say, say_notes
from genm.errors import InputError

HELP = """Rank a collection's documents for its queries: one TREC run per ranker, and the judgments.

COLLECTION is a name (see `genm collections list`), a BEIR folder, or an ir_datasets id. Rankers: tfidf, lsa, plsi,
ldi (the paper's), bm25, and dense ones with the extra `dense`. Fitted rankers are kept on disk; a second run is
quick.

Example:

    genm rank pydocs --rankers tfidf,lsa,plsi,ldi -o runs/
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("rank", help=HELP)(rank)


def rank(
    collection: Annotated[str, typer.Argument(help="A collection's name, folder or id.", metavar="COLLECTION")],
    rankers: Annotated[
        list[str] | None, typer.Option(help="Rankers, comma-separated (default: the paper's four).", metavar="LIST")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="Folder for the runs.", metavar="DIR")] = "runs",
    top: Annotated[
        int | None, typer.Option(help="Documents per query; default: all up to 10,000 documents, else 1,000.")
    ] = None,
    profile: Annotated[str, typer.Option(help="Text profile: default or paper.")] = "default",
    data: Annotated[str | None, typer.Option(help="Folder of the SMART collections.", metavar="DIR")] = None,
    split: Annotated[str, typer.Option(help="Which judgments of a BEIR folder.")] = "test",
) -> None:
    """Load, rank, write."""
    from genm.collections import load_collection
    from genm.rankers import rank_collection
    from genm.read import write_qrels, write_run

    names = split_list(rankers or ["tfidf,lsa,plsi,ldi"])
    with progress_bars() as progress:
        texts = load_collection(collection, data=data, split=split)
        runs = rank_collection(texts, names, top=top, profile=profile, data=data, progress=progress)
        folder = Path(output)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot make this folder ({error.strerror}). Choose another.") from None
        for n, (name, run) in enumerate(runs.items()):
            progress("writing", n, len(runs))
            write_run(run, folder / f"{name}.trec")
        write_qrels(texts.qrels, folder / "qrels.txt")
        progress("writing", len(runs), len(runs))
    say_notes(texts.notes)
    for name, run in runs.items():
        say_notes(run.notes)
        say(f"wrote {folder / name}.trec: {len(run.queries):,} queries, {len(run.doc):,} rows")
    say(f"wrote {folder / 'qrels.txt'}")
