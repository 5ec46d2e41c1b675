"""`genm pool`: what to judge next."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.errors import InputError

TEXT = """List the documents to judge next, the one that could change the answer most first.

Runs are enough; with --qrels the order takes the judgments so far into account, and leaves judged documents out.
--compare names the two systems that the judgments are to tell apart: runs, equal (equal weights), learned (the
weights that the judgments so far lead to) or current (those of --current). Without it the judgments are for
learning the weights. With --compare and --qrels the command also says what the judgments show so far, with an
interval that accounts for unjudged documents. With --qrels it warns of rankers that the judgments hardly cover.

Methods: mtc (minimal test collections), depth (the tops of the lists), mtf (move to front), random. -o writes
lines of query, tab, document, tab, probability, tab, usefulness, or JSON lines if the name ends in .jsonl."""
EXAMPLES = (
    "genm pool bm25=bm25.trec dense=dense.trec -n 50 -o pairs.tsv",
    "genm pool bm25=b.trec dense=d.trec --qrels q.txt --compare learned,equal",
)
LOPSIDED = 0.5
"""A ranker whose top 10 has less than this share of the judgments of the best judged one was hardly pooled."""


def pool(
    runs: options.Runs,
    qrels: Annotated[str | None, typer.Option(help="Judgments so far.", metavar="FILE")] = None,
    compare: Annotated[
        str | None, typer.Option(help="Two systems to tell apart, as A,B; else the weights.", metavar="A,B")
    ] = None,
    current: Annotated[
        list[str] | None, typer.Option(help="The weights in use, NAME=NUMBER, for current.", metavar="LIST")
    ] = None,
    method: Annotated[str, typer.Option(help="mtc, depth, mtf or random.", metavar="NAME")] = "mtc",
    n: Annotated[int, typer.Option("--pairs", "-n", help="How many pairs.", metavar="N")] = 50,
    output_file: Annotated[
        str | None, typer.Option("--output", "-o", help="File for the pairs; - is standard output.", metavar="FILE")
    ] = None,
    depth: options.Depth = None,
    level: options.Level = 1,
    seed: Annotated[int, typer.Option(help="Of the order of equals, and of random.", metavar="N")] = 0,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    output: console.Output = console.Format.table,
) -> None:
    """Read, order, write, print."""
    names = options.named_paths(runs, qrels)
    options.check_output(output_file, (*names.values(), qrels))
    systems = None if compare is None else options.split_list([compare])
    weights = options.weights_by_name(current, names) if current else None
    if weights is not None and (systems is None or "current" not in systems):
        raise InputError("--current: expected --compare with current, such as --compare learned,current.")
    cut = options.depths(depth or [])
    with console.progress_bars() as progress:
        judged = None
        if qrels is not None:
            judged = options.read_judgments(qrels, lenient=lenient, grades=grades, progress=progress)
        loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        found = genm.judge.pool(
            loaded, judged, compare=systems, current=weights, method=method, n=n, depth=cut, level=level, seed=seed
        )
        bias = () if judged is None else genm.judge.pool_bias(loaded, judged, level=level)
        estimate = None
        if systems is not None and judged is not None:
            estimate = genm.judge.estimate_difference(
                loaded, judged, compare=systems, current=weights, level=level, depth=cut
            )
    for run in loaded.values():
        console.say_notes(run.notes)
    console.say_notes(found.notes)
    _say_bias(bias)
    if output_file is not None:
        genm.judge.write_pool(found, output_file)
    if output_file != options.STDIN:
        console.show(
            output,
            json=lambda: _json(found, estimate, bias),
            tsv=lambda: _rows(found),
            table=lambda: _table(found, estimate),
        )
    if output_file not in (None, options.STDIN):
        console.say(f"wrote {output_file}")


def _rows(found: "genm.judge.Pool") -> Iterator[tuple[str, str, str, str]]:
    yield from ((p.query_id, p.doc_id, f"{p.probability:.4f}", f"{p.usefulness:.6g}") for p in found.pairs)


def _say_bias(bias: "tuple[genm.judge.PoolBias, ...]") -> None:
    """Say which rankers have few judged documents beside the others: their figures are too low."""
    most = max((one.judged_share for one in bias), default=0.0)
    for one in bias:
        if one.judged_share < LOPSIDED * most:
            console.say(
                f"note: {one.judged_share:.0%} of the top 10 of {one.ranker} is judged, others up to {most:.0%}: "
                f"its AP ({one.value:.4f}, unjudged documents taken as not relevant) is too low beside theirs"
            )


def _json(
    found: "genm.judge.Pool", estimate: "genm.judge.Estimate | None", bias: "tuple[genm.judge.PoolBias, ...]"
) -> dict[str, object]:
    document: dict[str, object] = {
        "method": found.method,
        "target": list(found.target),
        "judged": found.n_judged,
        "unjudged": found.n_unjudged,
        "pairs": [pair._asdict() for pair in found.pairs],
        "notes": [note.text for note in found.notes],
    }
    if estimate is not None:
        document["estimate"] = estimate.to_dict()
    if bias:
        document["pool_bias"] = [asdict(one) for one in bias]
    return document


def _table(found: "genm.judge.Pool", estimate: "genm.judge.Estimate | None") -> None:
    title = f"{len(found.pairs):,} pairs to judge for {' against '.join(found.target)}, by {found.method}"
    rows = [(p.query_id, p.doc_id, f"{p.probability:.2f}") for p in found.pairs]
    console.print_table(title, ["query_id", "doc_id", "probability"], rows, left=2)
    if estimate is not None:
        console.say(estimate.verdict())


command = make_verb(pool, TEXT, EXAMPLES)
