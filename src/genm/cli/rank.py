"""`genm rank`: from texts to runs."""

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.errors import InputError
from genm.io import check_outputs, make_folder

DEFAULT = "tfidf,lsa,plsi,ldi"
DEFAULT_TOP, ALL = "1000", "all"
TEXT = f"""Rank a collection's documents for its queries: one TREC run per ranker, and the judgments.

COLLECTION is a name (see `genm collections list`), a BEIR folder, or irds: and an id of ir_datasets; with --queries
it is a file or folder of documents (TREC, SMART, JSON lines, CSV, TSV). Rankers: tfidf, lsa, plsi, ldi (the
paper's), bm25, and dense ones with the extra `dense`; without --rankers they are {DEFAULT}. Runs hold the
top {DEFAULT_TOP} documents of each query; --top {ALL} writes every document. Fitted rankers are cached on disk,
so a second run is quick."""
EXAMPLES = (
    "genm rank pydocs --rankers tfidf,lsa,plsi,ldi -o runs/",
    "genm rank med --data ~/collections --profile paper -o med-runs/",
    "genm rank med --top all -o med-runs/",
    "genm rank articles/ --queries topics.txt --qrels qrels.txt -o runs/",
)


class Profiles(StrEnum):
    """How texts become terms."""

    default = "default"
    paper = "paper"


def rank(
    collection: Annotated[str, typer.Argument(help="A collection's name, folder or id.", metavar="COLLECTION")],
    rankers: Annotated[
        list[str] | None, typer.Option(help="Rankers, comma-separated; may be repeated.", metavar="LIST")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="Folder for the runs.", metavar="DIR")] = "runs",
    top: Annotated[str, typer.Option(help=f"Documents per query, or {ALL}.", metavar="N")] = DEFAULT_TOP,
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
    queries: Annotated[
        str | None, typer.Option(help="Queries of your own documents, in the same forms.", metavar="FILE")
    ] = None,
    qrels: Annotated[str | None, typer.Option(help="With --queries: the judgments.", metavar="FILE")] = None,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
) -> None:
    """Load, rank, write."""
    wanted = {name: genm.rankers.make_ranker(name) for name in options.split_list(rankers or [DEFAULT])}
    depth = None if top == ALL else options.positive_integer("--top", top, f"expected a positive integer or {ALL}")
    with console.progress_bars() as progress:
        words = genm.rankers.DEFAULT
        if profile is Profiles.paper:
            words = genm.rankers.paper_profile(genm.collections.smart_stopwords(data=data))
        words = replace(words, stem=stem)
        if queries is None:
            if qrels is not None or lenient or grades != options.WHOLE_GRADES:
                raise InputError("--qrels, --grades and --lenient belong to --queries. Give it, or leave them out.")
            loaded = genm.collections.load_collection(collection, data=data, split=split)
        else:
            loaded = genm.collections.read_collection(
                collection, queries, qrels, lenient=lenient, grades=grades, progress=progress
            )
        n_docs = max(1, len(loaded.doc_ids))
        folder = make_folder(output)  # before the long work, not after it
        names = (*(f"{name}.trec" for name in wanted), "qrels.txt", "docs.tsv", "queries.tsv")
        check_outputs((folder / name for name in names), (*genm.collections.files_of(collection), queries, qrels))
        runs = genm.rankers.rank_collection(
            loaded, wanted, top=min(depth or n_docs, n_docs), profile=words, progress=progress
        )
        genm.rankers.write_rankings(loaded, runs, folder, texts=texts, progress=progress)
    console.say_notes(loaded.notes)
    console.say_notes(dict.fromkeys(note for run in runs.values() for note in run.notes))
    if top == DEFAULT_TOP and n_docs > int(DEFAULT_TOP):
        console.say(f"note: runs hold the top {top} of {n_docs:,} documents of each query; --top {ALL} writes all.")
    for name, run in runs.items():
        console.say(f"wrote {folder / name}.trec: {len(run.queries):,} queries, {len(run.doc):,} rows")
    if len(loaded.qrels.queries):
        console.say(f"wrote {folder / 'qrels.txt'}")
    if texts:
        console.say(f"wrote {folder / 'docs.tsv'} and {folder / 'queries.tsv'}")


command = make_verb(rank, TEXT, EXAMPLES)
