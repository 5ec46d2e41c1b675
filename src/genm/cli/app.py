"""The application behind the command `genm`: gathers the verbs."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from genm.cli import (
    cache,
    collections,
    compare,
    evaluate,
    explain,
    export,
    fit,
    fuse,
    inspect,
    rank,
    report,
    reproduce,
    serve,
    update,
)
from genm.cli.exit_codes import detect_broken_pipe, exit_code
from genm.cli.options import described

TEXT = """Learn how to blend your rankers: weights that maximise a ranking measure, with held-out evidence.

Results go to standard output, notes and progress to standard error. Files may be packed (.gz, .zst); - is
standard input. Exit codes: 0 done, 2 the input or the call is at fault, 130 interrupted, 141 nobody reads on, 143
terminated."""
EXAMPLES = (
    "genm inspect bm25=bm25.trec dense=dense.trec --qrels qrels.txt",
    "genm fit --qrels qrels.txt bm25=bm25.trec dense=dense.trec -o model.json",
    "genm fuse --model model.json bm25=b.trec dense=d.trec -o fused.trec",
    "genm evaluate qrels.txt bm25=b.trec dense=d.trec fused=fused.trec",
)


class Verbs(TyperGroup):
    """The verbs; whoever runs them, errors become one line and an exit code."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line and exit."""
        options["standalone_mode"] = False
        sys.exit(exit_code(lambda: TyperGroup.main(self, *args, **options)))

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the options; --help and --version print here."""
        with detect_broken_pipe():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        with detect_broken_pipe():
            return super().invoke(ctx)


app = typer.Typer(
    name="genm",
    cls=Verbs,
    help=described(TEXT, EXAMPLES),
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for verb in (
    inspect,
    evaluate,
    compare,
    fuse,
    fit,
    update,
    report,
    explain,
    export,
    rank,
    reproduce,
    serve,
    collections,
    cache,
):
    verb.add_to(app)


def _version(wanted: bool) -> None:
    if wanted:
        from genm import __version__

        typer.echo(f"genm {__version__}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback reads it)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Show the help where no verb is named."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
