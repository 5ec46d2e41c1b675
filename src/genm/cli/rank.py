"""`genm rank`: from texts to runs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from genm.cli.console import progress_bars, say, say_notes
from genm.cli.options import add_verb, split_list
from genm.errors import InputError

DEFAULT = "tfidf,lsa,plsi,ldi"
TEXT = f"""Rank a collection's documents for its queries: one TREC run per ranker, and the judgments.

COLLECTION is a name (see `genm collections list`), a BEIR folder, or irds: and an id of ir_datasets. Rankers:
tfidf, lsa, plsi, ldi (the paper's), bm25, and dense ones with the extra `dense`; without --rankers they are
{DEFAULT}. Fitted rankers are kept on disk, so a second run is quick."""
EXAMPLES = (
    "genm rank pydocs --rankers tfidf,lsa,plsi,ldi -o runs/",
    "genm rank med --data ~/collections --profile paper -o med-runs/",
)


class Profiles(StrEnum):
    """How texts become terms."""

    default = "default"
    paper = "paper"


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    add_verb(app, "rank", rank, summary="Make runs out of a collection's texts.", text=TEXT, examples=EXAMPLES)


def rank(
    collection: Annotated[str, typer.Argument(help="A collection's name, folder or id.", metavar="COLLECTION")],
    rankers: Annotated[
        list[str] | None, typer.Option(help="Rankers, comma-separated; may be repeated.", metavar="LIST")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="Folder for the runs.", metavar="DIR")] = "runs",
    top: Annotated[
        int | None,
        typer.Option(
            help="Documents per query; without it all, or 1,000 of a collection of more than 10,000.",
            metavar="N",
            min=1,
        ),
    ] = None,
    profile: Annotated[
        Profiles, typer.Option(help="Text profile: default or paper.", metavar="NAME")
    ] = Profiles.default,
    stem: Annotated[
        str | None, typer.Option(help="Stem words by the rules of a Snowball language.", metavar="LANGUAGE")
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Also write docs.tsv and queries.tsv, for genm report.")
    ] = False,
    data: Annotated[
        str | None, typer.Option(help="Folder of the SMART collections; else GENM_DATA.", metavar="DIR")
    ] = None,
    split: Annotated[str, typer.Option(help="Which judgments of a BEIR folder.", metavar="NAME")] = "test",
) -> None:
    """Load, rank, write."""
    from dataclasses import replace

    from genm.collections import load_collection, smart_stopwords
    from genm.rankers import DEFAULT as DEFAULT_PROFILE
    from genm.rankers import make_ranker, paper_profile, rank_collection
    from genm.read import write_qrels, write_run, write_texts

    wanted = {name: make_ranker(name) for name in split_list(rankers or [DEFAULT])}
    with progress_bars() as progress:
        words = paper_profile(smart_stopwords(data=data)) if profile is Profiles.paper else DEFAULT_PROFILE
        words = replace(words, stem=stem)
        loaded = load_collection(collection, data=data, split=split)
        folder = _folder(output)  # before the long work, not after it
        runs = rank_collection(loaded, wanted, top=top, profile=words, progress=progress)
        for n, (name, run) in enumerate(runs.items()):
            progress("writing", n, len(runs))
            write_run(run, folder / f"{name}.trec")
        write_qrels(loaded.qrels, folder / "qrels.txt")
        if texts:
            write_texts(loaded.doc_ids, loaded.doc_texts, folder / "docs.tsv")
            write_texts(loaded.query_ids, loaded.query_texts, folder / "queries.tsv")
        progress("writing", len(runs), len(runs))
    say_notes(loaded.notes)
    say_notes(dict.fromkeys(note for run in runs.values() for note in run.notes))
    for name, run in runs.items():
        say(f"wrote {folder / name}.trec: {len(run.queries):,} queries, {len(run.doc):,} rows")
    say(f"wrote {folder / 'qrels.txt'}")
    if texts:
        say(f"wrote {folder / 'docs.tsv'} and {folder / 'queries.tsv'}")


def _folder(output: str) -> Path:
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make this folder ({error.strerror}). Choose another.") from None
    return folder
