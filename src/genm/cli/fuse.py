"""`genm fuse`: one ranking out of many."""

from typing import TYPE_CHECKING, Annotated

import typer

from genm.cli.inputs import Duplicates, Lenient, Runs, depths, normalizers, read_runs, weights_by_name
from genm.cli.show import progress_bars, say_notes
from genm.errors import InputError

if TYPE_CHECKING:
    from genm.records import Note

HELP = """Fuse runs into one: by a rule, by weights you give, or by a model that `genm fit` learned.

With `--model` the normaliser, the depth and the rule for missing documents are those of the training.

Examples:

    genm fuse --method rrf bm25=bm25.trec dense=dense.trec -o fused.trec

    genm fuse --weights bm25=0.3,dense=0.7 bm25=bm25.trec dense=dense.trec | head

    genm fuse --model model.json bm25=bm25.trec dense=dense.trec -o fused.trec.gz
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("fuse", help=HELP)(fuse)


def fuse(
    runs: Runs,
    method: Annotated[
        str | None,
        typer.Option(
            help="sum, combsum, combmnz, combanz, combmax, combmin, combmed, rrf, isr, logisr, borda, condorcet.",
            metavar="RULE",
        ),
    ] = None,
    weights: Annotated[list[str] | None, typer.Option(help="NAME=NUMBER for each run.", metavar="LIST")] = None,
    model: Annotated[str | None, typer.Option(help="A model file of genm fit.", metavar="FILE")] = None,
    normalize: Annotated[
        list[str] | None, typer.Option(help="none, minmax, max, sum, zscore, l2, rank, reciprocal; or NAME=KIND.")
    ] = None,
    depth: Annotated[list[str] | None, typer.Option(help="Use the top N of each run; or NAME=N.")] = None,
    k: Annotated[float, typer.Option(help="The constant of rrf.")] = 60.0,
    top: Annotated[int | None, typer.Option(help="Write at most this many documents per query.")] = None,
    tag: Annotated[str, typer.Option(help="The run's name in the last column.")] = "genm",
    lenient: Lenient = False,
    duplicates: Duplicates = "error",
    output: Annotated[str, typer.Option("--output", "-o", help="File to write; - is standard output.")] = "-",
) -> None:
    """Read, align, fuse, write."""
    from genm.align import align_runs
    from genm.fuse import fuse_runs
    from genm.read import write_run

    if sum(x is not None for x in (method, weights, model)) != 1:
        raise InputError("genm fuse: give exactly one of --method, --weights and --model.")
    if model is not None and (normalize or depth):
        raise InputError("genm fuse: --normalize and --depth come from the model. Leave them out, or drop --model.")
    notes: tuple[Note, ...] = ()
    with progress_bars() as progress:
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        if model is not None:
            from genm.learn import fuse_with_model
            from genm.model import load_model

            fused = fuse_with_model(load_model(model), loaded, name=tag, top=top)
        else:
            aligned = align_runs(loaded, normalize=normalizers(normalize or []), depth=depths(depth or []))
            given = None if weights is None else weights_by_name(weights, aligned.rankers)
            fused = fuse_runs(aligned, given, method=method or "sum", k=k, name=tag, top=top)
            notes = aligned.notes
    for run in loaded.values():
        say_notes(run.notes)
    say_notes(notes)
    write_run(fused, output)
