"""The command `genm`: gathers the verbs, and turns errors into one line and an exit code.

Exit codes: 0 done; 2 the input or the call is at fault (one line on standard error says what to do);
130 interrupted; 141 the reader of our output went away. A traceback means a bug of ours.
"""

import os
import sys
from typing import Annotated

import click
import typer

from genm.cli import collections, compare, evaluate, fit, fuse, inspect, rank, update
from genm.errors import GenmError

app = typer.Typer(
    name="genm",
    help="Learn how to blend your rankers: weights that maximise a ranking measure, with held-out evidence.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for verb in (fit, fuse, evaluate, compare, inspect, update, rank, collections):
    verb.add_to(app)


def _version(*, wanted: bool) -> None:
    if wanted:
        from genm import __version__

        typer.echo(f"genm {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=lambda value: _version(wanted=value), is_eager=True)
    ] = False,
) -> None:
    """Learn how to blend your rankers."""


def run() -> None:
    """Run the command line and exit with its code."""
    command = typer.main.get_command(app)
    try:
        command.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except GenmError as error:
        typer.echo(f"genm: {error.code}: {error}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        typer.echo("genm: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Nobody reads on: stay quiet, and keep Python from flushing into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
