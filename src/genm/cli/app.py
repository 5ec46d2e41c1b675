"""The application behind the command `genm`: the list of its verbs."""

from typing import Annotated

import typer

import genm
from genm.cli.commands import SETTINGS, LazyGroup, described

TEXT = """Learn how to blend your rankers: weights that maximise a ranking measure, with held-out evidence.

Results go to standard output, notes and progress to standard error. Files may be compressed (.gz, .zst); - is
standard input. Exit codes: 0 done, 2 the input or the call is at fault, 130 interrupted, 141 broken pipe, 143
terminated."""
EXAMPLES = (
    "genm inspect bm25=bm25.trec dense=dense.trec --qrels qrels.txt",
    "genm fit --qrels qrels.txt bm25=bm25.trec dense=dense.trec -o model.json",
    "genm fuse --model model.json bm25=b.trec dense=d.trec -o fused.trec",
    "genm evaluate qrels.txt bm25=b.trec dense=d.trec fused=fused.trec",
)


class Verbs(LazyGroup):
    """The verbs of `genm`."""

    summaries = {  # noqa: RUF012 (a constant)
        "inspect": "Look at runs: scales, ties, overlap.",
        "evaluate": "Measure runs against judgments.",
        "compare": "Test whether runs differ significantly.",
        "fuse": "Fuse runs into one.",
        "fit": "Learn the weights, with held-out evidence.",
        "update": "Continue learning from new judged queries.",
        "report": "Write a page about a model and its evidence.",
        "explain": "Show what each ranker contributes.",
        "export": "Write a model for a search engine.",
        "sample": "Write the small files of the quickstart.",
        "rank": "Rank a collection's texts.",
        "reproduce": "Repeat the paper's experiment.",
        "collections": "List, show and download test collections.",
        "cache": "Show the size of the cache, or clear it.",
    }


app = typer.Typer(
    name="genm",
    cls=Verbs,
    help=described(TEXT, EXAMPLES),
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"genm {genm.__version__}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback reads it)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Show the help if no verb is given."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
