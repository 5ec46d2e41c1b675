"""`genm fuse`: one ranking out of many."""

from enum import StrEnum
from typing import Annotated

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.errors import InputError

TEXT = """Fuse runs into one: by a rule, by weights you give, or by a model that `genm fit` learned.

The rules sum, combsum, combmnz, combanz, combmax, combmin and combmed read normalised scores (minmax unless
--normalize says otherwise); rrf, isr, logisr, borda and condorcet read ranks. With --model the normaliser, the
depth and the rule for missing documents are those of the training. A model with weights by group needs the groups:
--groups, or --queries for rules and columns; a query whose group is not known gets the global weights.

With --table, a score table of `genm shard` is read shard by shard in place of the runs, and needs --model."""
EXAMPLES = (
    "genm fuse --method rrf bm25=bm25.trec dense=dense.trec -o fused.trec",
    "genm fuse --weights bm25=0.3,dense=0.7 bm25=b.trec dense=d.trec | head",
    "genm fuse --model model.json bm25=b.trec dense=d.trec -o fused.trec.gz",
    "genm fuse --model model.json --queries q.tsv bm25=b.trec dense=d.trec",
    "genm fuse --model model.json --table table/ -o fused.trec.gz",
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


def fuse(
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs as NAME=FILE, or FILE (named after itself).", metavar="RUN", show_default=False),
    ] = None,
    method: Annotated[Rule | None, typer.Option(help="One of the rules above.", metavar="RULE")] = None,
    weights: Annotated[
        list[str] | None, typer.Option(help="NAME=NUMBER for each run, comma-separated.", metavar="LIST")
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model file of genm fit.", metavar="FILE")] = None,
    table: options.Table = None,
    groups: options.GroupFile = None,
    queries: options.QueryFile = None,
    normalize: Annotated[
        list[str] | None,
        typer.Option(
            help="none, minmax, max, sum, zscore, l2, rank or reciprocal; or NAME=KIND for each.", metavar="KIND"
        ),
    ] = None,
    depth: options.Depth = None,
    k: Annotated[float | None, typer.Option("--k", help="Constant of rrf; default: 60.", metavar="N")] = None,
    top: Annotated[
        int | None, typer.Option(help="Write at most N documents per query.", metavar="N", min=1)
    ] = None,
    tag: Annotated[str, typer.Option(help="The run's name in the last column.", metavar="NAME")] = "genm",
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    output: options.OutputFile = "-",
) -> None:
    """Read, align, fuse, write."""
    if table is not None:
        options.check_output(output, (model, groups, queries))
        _check_options(method, weights, model, normalize, depth, k)
        opened, learned = options.table_and_model(table, model, *runs or ())
        group_of, columns = options.read_query_files(groups, queries)
        with console.progress_bars() as progress:
            notes = genm.scale.fuse_table(
                opened, learned, output, groups=group_of, queries=columns, tag=tag, top=top, progress=progress
            )
        console.say_notes(notes)
        return
    if not runs:
        raise options.missing_argument("RUN", "fuse")
    names = options.named_paths(runs, model, groups, queries)
    options.check_output(output, (*names.values(), model, groups, queries))
    _check_options(method, weights, model, normalize, depth, k)
    if model is None and (groups is not None or queries is not None):
        option = "--groups" if groups is not None else "--queries"
        raise InputError(f"{option} belongs to a model with weights by query. Name it by --model, or leave it out.")
    given = None if weights is None else options.weights_by_name(weights, names)
    kinds, cut = options.normalizers(normalize or []), options.depths(depth or [])
    options.check_rules(kinds, cut, names)
    with console.progress_bars() as progress:
        given_model = None if model is None else genm.load_model(model)
        if given_model is not None:
            genm.model.check_rankers(given_model, tuple(names), str(model))
        loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        if given_model is not None:
            aligned = given_model.align(loaded)
            group_of, columns = options.read_query_files(groups, queries)
            fused = given_model.fuse_aligned(aligned, groups=group_of, queries=columns, name=tag, top=top)
        else:
            aligned = genm.align_runs(loaded, normalize=kinds, depth=cut, progress=progress)
            rule, constant = method or Rule.sum, 60.0 if k is None else k
            fused = genm.fuse_runs(aligned, given, method=rule.value, k=constant, name=tag, top=top)
    for run in loaded.values():
        console.say_notes(run.notes)
    console.say_notes((*aligned.notes, *fused.notes))
    genm.write_run(fused, output, tag=tag)


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


command = make_verb(fuse, TEXT, EXAMPLES)
