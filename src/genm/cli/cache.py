"""`genm cache`: how much is cached on disk, and how to clear it."""

import typer

import genm
from genm.cli import console
from genm.cli.app import add_verb, make_group

TEXT = """Expensive results (fitted rankers, their scores, the collection pydocs) are cached on disk, keyed by
content. The folder is the user's cache folder of the system, or GENM_CACHE. Clearing it costs time, never data."""
SIZE = "Show where the cache is and how much it holds."
CLEAR = "Delete the cached results. They are computed again when they are needed."


def default(ctx: typer.Context) -> None:
    """Show the size if no verb is given."""
    if ctx.invoked_subcommand is None:
        size(console.Format.table)


def size(output: console.Output = console.Format.table) -> None:
    """Count and print."""
    folder, held = str(genm.cache.cache_folder()), genm.cache.cache_size()
    console.show(
        output,
        json=lambda: {"folder": folder, "entries": held.entries, "bytes": held.bytes},
        tsv=lambda: [("folder", folder), ("entries", f"{held.entries}"), ("bytes", f"{held.bytes}")],
        table=lambda: console.print_table(
            "", ["folder", "entries", "size"], [(folder, f"{held.entries:,}", _readable(held.bytes))]
        ),
    )


def clear() -> None:
    """Delete and say how much."""
    gone = genm.cache.clear_cache()
    console.say(f"cleared {genm.cache.cache_folder()}: {gone.entries:,} entries, {_readable(gone.bytes)}")


def _readable(n_bytes: int) -> str:
    value, unit = float(n_bytes), "bytes"
    for larger in ("kB", "MB", "GB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"


group = make_group(default, TEXT, ("genm cache size", "genm cache clear"))
add_verb(
    group, "size", size, summary=SIZE, text=SIZE, examples=("genm cache size", "genm cache size --format json")
)
add_verb(group, "clear", clear, summary="Delete the cached results.", text=CLEAR, examples=("genm cache clear",))
command = typer.main.get_command(group)
