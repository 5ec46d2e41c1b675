"""How a verb is declared and described: the same plain help at every width, with examples that can be copied."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from genm.cli.exit_codes import CallError

if TYPE_CHECKING:
    import typer

EXAMPLE_WIDTH = 74
"""Examples are no longer than this, so that they stand on one line each in a window of 80 columns."""


class Verb(TyperCommand):
    """A command whose help speaks of files and names, not of Python's types."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; whatever is wrong with them, the help to look at is this verb's."""
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


def add_verb(
    app: "typer.Typer",
    name: str,
    function: Callable[..., None],
    *,
    summary: str,
    text: str,
    examples: tuple[str, ...],
) -> None:
    """Register a verb: `summary` stands in the list of verbs, `text` and `examples` in its own help."""
    app.command(name, cls=Verb, help=described(text, examples), short_help=summary)(function)


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
