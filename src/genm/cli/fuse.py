"""`genm fuse`: one ranking out of many."""

from enum import StrEnum
from typing import Annotated

import typer

from genm.cli.console import progress_bars, say_notes
from genm.cli.options import (
    Depth,
    DuplicateRule,
    Duplicates,
    Lenient,
    OutputFile,
    Runs,
    add_verb,
    check_output,
    check_rules,
    depths,
    named_paths,
    normalizers,
    read_runs,
    weights_by_name,
)
from genm.errors import InputError

TEXT = """Fuse runs into one: by a rule, by weights you give, or by a model that `genm fit` learned.

The rules sum, combsum, combmnz, combanz, combmax, combmin and combmed read normalised scores (minmax unless
--normalize says otherwise); rrf, isr, logisr, borda and condorcet read ranks. With --model the normaliser, the
depth and the rule for missing documents are those of the training."""
EXAMPLES = (
    "genm fuse --method rrf bm25=bm25.trec dense=dense.trec -o fused.trec",
    "genm fuse --weights bm25=0.3,dense=0.7 bm25=b.trec dense=d.trec | head",
    "genm fuse --model model.json bm25=b.trec dense=d.trec -o fused.trec.gz",
)


class Rule(StrEnum):
    """The rules of genm.fuse, named here so that the command line knows them without loading it."""

    sum = "sum"
    rrf = "rrf"
    combsum = "combsum"
    combmnz = "combmnz"
    combanz = "combanz"
    combmax = "combmax"
    combmin = "combmin"
    combmed = "combmed"
    isr = "isr"
    logisr = "logisr"
    borda = "borda"
    condorcet = "condorcet"


ON_RANKS = frozenset({Rule.rrf, Rule.isr, Rule.logisr, Rule.borda, Rule.condorcet})


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    add_verb(app, "fuse", fuse, summary="Fuse runs into one.", text=TEXT, examples=EXAMPLES)


def fuse(
    runs: Runs,
    method: Annotated[Rule | None, typer.Option(help="One of the rules above.", metavar="RULE")] = None,
    weights: Annotated[
        list[str] | None, typer.Option(help="NAME=NUMBER for each run, comma-separated.", metavar="LIST")
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model file of genm fit.", metavar="FILE")] = None,
    normalize: Annotated[
        list[str] | None,
        typer.Option(
            help="none, minmax, max, sum, zscore, l2, rank or reciprocal; or NAME=KIND for each.", metavar="KIND"
        ),
    ] = None,
    depth: Depth = None,
    k: Annotated[float | None, typer.Option("--k", help="The constant of rrf; 60 without it.", metavar="N")] = None,
    top: Annotated[
        int | None, typer.Option(help="Write at most N documents per query.", metavar="N", min=1)
    ] = None,
    tag: Annotated[str, typer.Option(help="The run's name in the last column.", metavar="NAME")] = "genm",
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    output: OutputFile = "-",
) -> None:
    """Read, align, fuse, write."""
    from genm.fuse import fuse_runs
    from genm.read import write_run

    names = named_paths(runs, model)
    check_output(output)
    _check_options(method, weights, model, normalize, depth, k)
    given = None if weights is None else weights_by_name(weights, names)
    kinds, cut = normalizers(normalize or []), depths(depth or [])
    check_rules(kinds, cut, names)
    with progress_bars() as progress:
        if model is not None:
            from genm.model import align_for_model, check_rankers, load_model

            learned = load_model(model)
            check_rankers(learned, tuple(names), model)
            loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
            aligned = align_for_model(learned, loaded)
            fused = fuse_runs(aligned, learned.weights, name=tag, top=top)
        else:
            from genm.align import align_runs

            loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
            aligned = align_runs(loaded, normalize=kinds, depth=cut, progress=progress)
            rule = method or Rule.sum
            fused = fuse_runs(aligned, given, method=rule.value, k=60.0 if k is None else k, name=tag, top=top)
    for run in loaded.values():
        say_notes(run.notes)
    say_notes(aligned.notes)
    write_run(fused, output, tag=tag)


def _check_options(
    method: Rule | None,
    weights: list[str] | None,
    model: str | None,
    normalize: list[str] | None,
    depth: list[str] | None,
    k: float | None,
) -> None:
    """Refuse options that contradict each other, or that nothing would read."""
    if weights is not None and method not in (None, Rule.sum):
        raise InputError(f"--weights go with --method sum; {method} takes none. Leave one of them out.")
    if (model is not None) + (weights is not None or method is not None) != 1:
        raise InputError(
            "expected one of --method, --weights and --model. Say how to fuse, for example --method rrf."
        )
    if model is not None and (normalize or depth):
        raise InputError("--normalize and --depth come from the model. Leave them out, or drop --model.")
    if k is not None and method is not Rule.rrf:
        raise InputError("--k is the constant of --method rrf; nothing else reads it. Leave it out.")
    if normalize and method in ON_RANKS:
        raise InputError(f"--normalize: {method} reads ranks, which no normaliser changes. Leave it out.")
