"""How a command ends: one line and an exit code for every fault that is not a bug of ours.

Exit codes: 0 done; 2 the input or the call is at fault (one line on standard error says what to do);
130 interrupted; 141 the reader of our output went away; 143 terminated. A traceback means a bug of ours.
"""

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, TextIO

import typer

from genm.cli.console import say
from genm.cli.main import BROKEN_PIPE, FAULT, INTERRUPTED
from genm.errors import GenmError, GenmWarning

CallError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""What the parser of the command line raises: click's own class, or that of the copy inside newer typers."""


class OutputClosedError(Exception):
    """Nobody reads our output any more. Not an OSError, so that the parser of the command line lets it pass."""


@contextmanager
def detect_broken_pipe() -> Iterator[None]:
    """Turn the end of a pipe into our own exception."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE or "os error 32" in str(error):  # in words where polars did the writing
            raise OutputClosedError from None
        raise


def exit_code(work: Callable[[], object]) -> int:
    """Run a command, say in one line what stopped it, and return the code to exit with."""
    _make_streams_safe()
    try:
        with detect_broken_pipe(), _warnings_in_one_line():
            code = work()
            sys.stdout.flush()
    except GenmError as error:
        return _fault(error.code, str(error))
    except CallError as error:
        where = error.ctx.command_path if getattr(error, "ctx", None) else "genm"
        text = error.format_message().replace("Value error, ", "").rstrip()
        return _fault("usage", f"{text}{'' if text.endswith(('.', '?')) else '.'} See: {where} --help")
    except OutputClosedError:
        _drop_output()
        return BROKEN_PIPE
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _drop_output()
        return _fault("system", f"{place}{error.strerror or error}.")
    if code == INTERRUPTED:
        say("genm: interrupted")
    return code if isinstance(code, int) else 0


def _fault(code: str, text: str) -> int:
    say(f"genm: {code}: {' '.join(text.split())}")
    return FAULT


def _make_streams_safe() -> None:
    """Let text that the terminal's encoding lacks, or half an id, be shown escaped instead of failing."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (lives as long as the process)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Keep Python from flushing into the closed pipe, or the full disk, at exit."""
    out = sys.__stdout__
    if out is not None and sys.stdout is out:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show the package's warnings as notes, each once; others look as Python shows them."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", GenmWarning)
        others, said = warnings.showwarning, set[str]()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            text = str(message)
            if not issubclass(category, GenmWarning):
                others(message, category, filename, lineno, file, line)
            elif text not in said:
                said.add(text)
                say(f"note: {text}")

        warnings.showwarning = show
        yield
