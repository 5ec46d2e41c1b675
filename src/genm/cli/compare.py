"""`genm compare`: is the difference between these runs real."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from genm.cli.console import Format, Output, print_json, print_table, print_tsv, progress_bars, say, say_notes
from genm.cli.options import (
    DuplicateRule,
    Duplicates,
    Judgments,
    Lenient,
    Measures,
    Runs,
    SkipMissing,
    add_verb,
    named_paths,
    read_judgments,
    read_runs,
    split_list,
)
from genm.formatting import p_text

if TYPE_CHECKING:
    from genm.evaluate import Comparison

DEFAULT = "AP,P@10,nDCG@10"
TEXT = f"""Compare runs with a baseline, query by query: difference, confidence interval, paired tests.

The first run is the baseline unless --baseline names another; without -m the measures are {DEFAULT}. Tests:
wilcoxon (the paper's), t, randomization; p-values are two-sided and corrected over all comparisons by Holm's
method."""
EXAMPLES = (
    "genm compare qrels.txt rrf=rrf.trec learned=fused.trec -m AP,nDCG@10",
    "genm compare qrels.txt a.trec b.trec c.trec --baseline c --format tsv",
)


class Corrections(StrEnum):
    """How p-values are corrected for the number of comparisons."""

    holm = "holm"
    none = "none"


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    summary = "Tell whether the difference between runs is real."
    add_verb(app, "compare", compare, summary=summary, text=TEXT, examples=EXAMPLES)


def compare(
    qrels: Judgments,
    runs: Runs,
    measures: Measures = None,
    baseline: Annotated[str | None, typer.Option(help="Name of the run to compare with.", metavar="NAME")] = None,
    tests: Annotated[
        list[str] | None, typer.Option(help="Of wilcoxon, t, randomization; all without it.", metavar="LIST")
    ] = None,
    correction: Annotated[Corrections, typer.Option(help="holm or none.", metavar="RULE")] = Corrections.holm,
    confidence: Annotated[float, typer.Option(help="Level of the confidence interval.", metavar="SHARE")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Of bootstrap and randomisation.", metavar="N")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.", metavar="N", min=0)] = 0,
    skip_missing: SkipMissing = False,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    output: Output = Format.table,
) -> None:
    """Read, evaluate, compare, print."""
    from genm.evaluate import compare_runs, evaluate_run, parse_measures

    wanted = parse_measures(split_list(measures or [DEFAULT]))
    named_paths(runs, qrels)
    options: dict[str, Any] = {"tests": split_list(tests)} if tests else {}
    with progress_bars() as progress:
        judged = read_judgments(qrels, lenient=lenient, progress=progress)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        results = {n: evaluate_run(r, judged, wanted, skip_missing=skip_missing) for n, r in loaded.items()}
        found = compare_runs(
            results,
            baseline=0 if baseline is None else baseline,
            correction=cast("Any", correction.value),
            confidence=confidence,
            n_resamples=resamples,
            seed=seed,
            **options,
        )
    of_runs = [(*run.notes, *results[name].notes) for name, run in loaded.items()]
    say_notes((*judged.notes, *chain.from_iterable(of_runs), *found.notes))
    if output is Format.json:
        print_json(as_json(found))
    elif output is Format.tsv:
        print_tsv(_tsv(found))
    else:
        _table(found)


def as_json(found: "Comparison") -> dict[str, Any]:
    """Return a comparison as a JSON object."""
    return {
        "baseline": found.baseline,
        "queries": found.n_queries,
        "correction": found.correction,
        "confidence": found.confidence,
        "contrasts": [
            {
                "run": c.name,
                "measure": c.measure,
                "mean": c.mean,
                "baseline_mean": c.baseline_mean,
                "difference": c.difference,
                "interval": [c.low, c.high],
                "better": c.n_better,
                "worse": c.n_worse,
                "equal": c.n_equal,
                "p": dict(c.p_values),
                "p_corrected": dict(c.corrected),
            }
            for c in found.contrasts
        ],
    }


def _tsv(found: "Comparison") -> Iterator[tuple[str, ...]]:
    yield ("run", "measure", "mean", "difference", "low", "high", *found.tests)
    for c in found.contrasts:
        numbers = (c.mean, c.difference, c.low, c.high, *(c.corrected[t] for t in found.tests))
        yield (c.name, c.measure, *(f"{number:.6g}" for number in numbers))


def _table(found: "Comparison") -> None:
    short = {"randomization": "random", "wilcoxon": "wilcox"}
    interval = f"{found.confidence:.6g} interval".removeprefix("0")
    header = ["run", "measure", "mean", "diff", interval, "+/-/=", *(short.get(t, t) for t in found.tests)]
    rows = []
    for c in found.contrasts:
        between = "" if c.low != c.low else f"{c.low:+.3f} {c.high:+.3f}"
        marks = [
            f"{p_text(c.corrected[t])}{'*' if c.corrected[t] < 1 - found.confidence else ' '}" for t in found.tests
        ]
        counts = f"{c.n_better}/{c.n_worse}/{c.n_equal}"
        rows.append((c.name, c.measure, f"{c.mean:.4f}", f"{c.difference:+.4f}", between, counts, *marks))
    print_table(f"Against {found.baseline}, {found.n_queries:,} queries", header, rows, left=2)
    corrected = "corrected by Holm's method" if found.correction == "holm" else "not corrected"
    say(f"p-values are two-sided and {corrected}; * is below {1 - found.confidence:.2g}.")
