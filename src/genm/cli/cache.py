"""`genm cache`: how much is kept on disk, and how to be rid of it."""

import typer

from genm.cli.console import Format, Output, print_json, print_table, print_tsv, say
from genm.cli.options import add_verb, described

SUMMARY = "Look at what is kept on disk, or clear it."
TEXT = """What is dear to build (fitted rankers, their scores, the collection pydocs) is kept on disk and found
again by its content. The folder is the user's cache folder of the system, or GENM_CACHE. Clearing it costs time,
never data."""
SIZE = "Tell where the cache is and how much it holds."
CLEAR = "Delete what is kept. It is built again when it is needed."


def add_to(app: typer.Typer) -> None:
    """Register the group of verbs."""
    group = typer.Typer(
        help=described(TEXT, ("genm cache size", "genm cache clear")),
        short_help=SUMMARY,
        invoke_without_command=True,
        rich_markup_mode=None,
    )
    group.callback()(default)
    add_verb(
        group, "size", size, summary=SIZE, text=SIZE, examples=("genm cache size", "genm cache size --format json")
    )
    add_verb(group, "clear", clear, summary="Delete what is kept.", text=CLEAR, examples=("genm cache clear",))
    app.add_typer(group, name="cache")


def default(ctx: typer.Context) -> None:
    """Tell the size where nothing else is asked for."""
    if ctx.invoked_subcommand is None:
        size(Format.table)


def size(output: Output = Format.table) -> None:
    """Count and print."""
    from genm.cache import cache_folder, cache_size

    folder, held = str(cache_folder()), cache_size()
    if output is Format.json:
        print_json({"folder": folder, "entries": held.entries, "bytes": held.bytes})
    elif output is Format.tsv:
        print_tsv([("folder", folder), ("entries", f"{held.entries}"), ("bytes", f"{held.bytes}")])
    else:
        print_table("", ["folder", "entries", "size"], [(folder, f"{held.entries:,}", _readable(held.bytes))])


def clear() -> None:
    """Delete and tell."""
    from genm.cache import cache_folder, clear_cache

    gone = clear_cache()
    say(f"cleared {cache_folder()}: {gone.entries:,} entries, {_readable(gone.bytes)}")


def _readable(n_bytes: int) -> str:
    value, unit = float(n_bytes), "bytes"
    for larger in ("kB", "MB", "GB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
