"""The application behind the command `genm`: its verbs, how a verb is declared, and how every command ends.

The help is plain and the same at every width, with examples that can be copied.

Exit codes: 0 done; 2 the input or the call is at fault (one line on standard error says what to do);
130 interrupted; 141 broken pipe; 143 terminated. A traceback means a bug in genm.
"""

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

import genm
from genm.cli.console import say
from genm.cli.main import BROKEN_PIPE, FAULT, INTERRUPTED
from genm.errors import GenmError, GenmWarning

CallError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""What the parser of the command line raises: click's own class, or that of the copy inside newer typers."""


TEXT = """Learn how to fuse your rankers: weights that maximise a ranking measure, with held-out evidence.

Results go to standard output, notes and progress to standard error. Files may be compressed (.gz, .zst); - is
standard input. Exit codes: 0 done, 2 the input or the call is at fault, 130 interrupted, 141 broken pipe, 143
terminated."""
EXAMPLES = (
    "genm inspect bm25=bm25.trec dense=dense.trec --qrels qrels.txt",
    "genm fit --qrels qrels.txt bm25=bm25.trec dense=dense.trec -o model.json",
    "genm fuse --model model.json bm25=b.trec dense=d.trec -o fused.trec",
    "genm evaluate qrels.txt bm25=b.trec dense=d.trec fused=fused.trec",
)

VERBS = {
    "inspect": "Look at runs: scales, ties, overlap.",
    "evaluate": "Measure runs against judgments.",
    "compare": "Test whether runs differ significantly.",
    "fuse": "Fuse runs into one.",
    "shard": "Write runs larger than memory as a score table.",
    "fit": "Learn the weights, with held-out evidence.",
    "update": "Continue learning from new judged queries.",
    "pool": "List the documents to judge next.",
    "judge": "Judge documents, on a page or by a model.",
    "clicks": "Turn a log of clicks into judgments.",
    "report": "Write a page about a model and its evidence.",
    "explain": "Show what each ranker contributes.",
    "export": "Write a model for a search engine.",
    "sample": "Write the small files of the quickstart.",
    "rank": "Rank a collection's texts.",
    "pull": "Pull runs out of a search engine.",
    "reproduce": "Repeat the paper's experiment.",
    "serve": "Serve a model over HTTP, and learn from feedback.",
    "feedback": "Send judged queries to a service.",
    "weights": "Show or set the weights of a service.",
    "rollback": "Take a service's weights back to a version.",
    "collections": "List, show and download test collections.",
    "cache": "Show the size of the cache, or clear it.",
}
"""The verbs in the order of the help, and a line about each; `genm.cli.VERB.command` is the verb."""
OF_SERVICE = ("feedback", "weights", "rollback")
"""Verbs that talk to a service; they are in `genm.cli.serve.commands`."""
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class LazyGroup(TyperGroup):
    """The group whose verbs are imported when they are called or their help is shown; errors become exit codes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = dict.fromkeys(VERBS)  # names to list and to suggest; see get_command

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 (the parser passes it)
        """Import a verb; None if there is no such verb."""
        if cmd_name in OF_SERVICE:
            return import_module("genm.cli.serve").commands[cmd_name]
        return import_module(f"genm.cli.{cmd_name}").command if cmd_name in VERBS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the list of verbs, and import none of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line and exit."""
        options["standalone_mode"] = False
        sys.exit(exit_code(lambda: TyperGroup.main(self, *args, **options)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before the verb."""
        leave_values_that_fit(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the options; --help and --version print here."""
        with detect_broken_pipe():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        with detect_broken_pipe():
            try:
                return super().invoke(ctx)
            except EOFError as error:  # the parser would take it for an interrupt
                raise RuntimeError("a read ended too early; this is a bug in genm") from error


class Verb(TyperCommand):
    """A command whose help speaks of files and names, not of Python's types."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; an error points to this verb's help."""
        leave_values_that_fit(self.get_params(ctx))
        try:
            return super().parse_args(ctx, args)
        except CallError as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, text and options; the text keeps its examples line by line."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command's name in the line of usage."""
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        return ["[OPTIONS]", *(_argument(p) if p.required else f"[{_argument(p)}]" for p in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each with what it takes and its default."""
        params: list[Any] = [p for p in self.get_params(ctx) if not getattr(p, "hidden", False)]
        arguments = [(_argument(p), p.help or "") for p in params if p.param_type_name == "argument"]
        options = [(_option(p), _option_help(p)) for p in params if p.param_type_name == "option"]
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class QuickCoercion:
    """What typer makes of a parameter's value, without its validator where the value stays as it is.

    typer validates with pydantic, which takes .15 s to load: a sixth of a short command.
    """

    def __init__(self, param: Any) -> None:
        self._kind, self._validator = param.type_descriptor.annotation, param.get_runtime_param

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        """Return the value as the verb takes it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if type(value) is self._kind:
            return value
        if self._kind == list[str] and isinstance(value, list | tuple) and all(type(x) is str for x in value):
            return list(value)
        return self._validator().coerce(value, param=param, ctx=ctx)


def leave_values_that_fit(params: list[Any]) -> None:
    """Let typer's validator see only values that it may refuse or change."""
    for param in params:
        if hasattr(param, "get_runtime_param") and "get_runtime_param" not in vars(param):  # from typer 0.29 on
            quick = QuickCoercion(param)
            param.get_runtime_param = lambda quick=quick: quick


class GroupWithDefault(TyperGroup):
    """A group of verbs; arguments that name none of them go to the default verb."""

    default: str

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default verb in front of what is no verb."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def make_verb(function: Callable[..., None], text: str, examples: tuple[str, ...]) -> Any:
    """Return the command that calls a function; `text` and `examples` are its help."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    add_verb(app, function.__name__, function, summary="", text=text, examples=examples)
    return typer.main.get_command(app)


def make_group(default: Callable[..., None], text: str, examples: tuple[str, ...]) -> typer.Typer:
    """Return an application to add verbs to; `default` is called whether a verb follows or not."""
    return typer.Typer(
        help=described(text, examples),
        callback=default,
        invoke_without_command=True,
        context_settings=SETTINGS,
        add_completion=False,
        rich_markup_mode=None,
    )


def add_verb(
    app: typer.Typer,
    name: str,
    function: Callable[..., None],
    *,
    summary: str,
    text: str,
    examples: tuple[str, ...],
) -> None:
    """Register a verb: `summary` stands in the list of verbs, `text` and `examples` in its own help."""
    text = described(text, examples)
    app.command(name, cls=Verb, help=text, short_help=summary, context_settings=SETTINGS)(function)


def described(text: str, examples: tuple[str, ...]) -> str:
    """Return help whose examples are kept as they are, line by line."""
    title = "Example" if len(examples) == 1 else "Examples"
    return f"{text.strip()}\n\n\b\n{title}:\n" + "\n".join(f"  {line}" for line in examples)


def _argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return f"{name}..." if param.nargs == -1 else str(name)


def _option(param: Any) -> str:
    names = ", ".join(sorted(param.opts, key=len))
    return names if param.is_flag else f"{names} {param.metavar or param.name.upper()}"


def _option_help(param: Any) -> str:
    text = param.help or ""
    if param.required:
        return f"{text}  [required]"
    default = param.default
    if default in (None, (), []) or param.is_flag or callable(default) or not param.show_default:
        return text
    return f"{text}  [default: {getattr(default, 'value', default)}]"


class OutputClosedError(Exception):
    """The reader of our output has gone. Not an OSError, so that the parser of the command line lets it pass."""


@contextmanager
def detect_broken_pipe() -> Iterator[None]:
    """Turn a broken pipe into our own exception."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE or "os error 32" in str(error):  # polars says it in words
            raise OutputClosedError from None
        raise


def exit_code(work: Callable[[], object]) -> int:
    """Run a command, print one line about what stopped it, and return the code to exit with."""
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
        text = re.sub(r"\S{200,}", lambda word: f"{word[0][:100]}...", text)  # typer repeats words in full
        return _fault("usage", f"{text}{'' if text.endswith(('.', '?')) else '.'} See: {where} --help")
    except OutputClosedError:
        _drop_output()
        return BROKEN_PIPE
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except MemoryError:
        return _fault("memory", "the data do not fit into memory. Use a smaller --depth or smaller files.")
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
    """Write characters that the terminal's encoding lacks as escapes instead of failing."""
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


app = typer.Typer(
    name="genm",
    cls=LazyGroup,
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
