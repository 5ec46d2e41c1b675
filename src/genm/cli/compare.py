"""`genm compare`: do these runs differ significantly."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any, cast

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.formatting import p_text

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


def compare(
    qrels: options.Judgments,
    runs: options.Runs,
    measures: options.Measures = None,
    baseline: Annotated[str | None, typer.Option(help="Name of the run to compare with.", metavar="NAME")] = None,
    tests: Annotated[
        list[str] | None, typer.Option(help="wilcoxon, t, randomization; default: all.", metavar="LIST")
    ] = None,
    correction: Annotated[Corrections, typer.Option(help="holm or none.", metavar="RULE")] = Corrections.holm,
    confidence: Annotated[float, typer.Option(help="Level of the confidence interval.", metavar="SHARE")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Resamples of the randomisation test.", metavar="N")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the randomisation test.", metavar="N", min=0)] = 0,
    skip_missing: options.SkipMissing = False,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    output: console.Output = console.Format.table,
) -> None:
    """Read, evaluate, compare, print."""
    wanted = genm.parse_measures(options.split_list(measures or [DEFAULT]))
    options.named_paths(runs, qrels)
    chosen: dict[str, Any] = {"tests": options.split_list(tests)} if tests else {}
    with console.progress_bars() as progress:
        judged = options.read_judgments(qrels, lenient=lenient, grades=grades, progress=progress)
        loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        results = genm.evaluate_runs(loaded, judged, wanted, skip_missing=skip_missing)
        found = genm.compare_runs(
            results,
            baseline=0 if baseline is None else baseline,
            correction=cast("Any", correction.value),
            confidence=confidence,
            n_resamples=resamples,
            seed=seed,
            **chosen,
        )
    of_runs = [(*run.notes, *results[name].notes) for name, run in loaded.items()]
    console.say_notes((*judged.notes, *chain.from_iterable(of_runs), *found.notes))
    console.show(output, json=lambda: as_json(found), tsv=lambda: _tsv(found), table=lambda: _table(found))


def as_json(found: "genm.Comparison") -> dict[str, Any]:
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
                "outcome": c.outcome,
                "p": dict(c.p_values),
                "p_corrected": dict(c.corrected),
            }
            for c in found.contrasts
        ],
    }


def _tsv(found: "genm.Comparison") -> Iterator[tuple[str, ...]]:
    yield ("run", "measure", "mean", "difference", "low", "high", *found.tests)
    for c in found.contrasts:
        numbers = (c.mean, c.difference, c.low, c.high, *(c.corrected[t] for t in found.tests))
        yield (c.name, c.measure, *(f"{number:.6g}" for number in numbers))


def _table(found: "genm.Comparison") -> None:
    short = {"randomization": "random", "wilcoxon": "wilcox"}
    interval = f"{found.confidence:.6g} interval".removeprefix("0")
    header = ["run", "measure", "mean", "diff", interval, "+/-/=", *(short.get(t, t) for t in found.tests)]
    rows = []
    for c in found.contrasts:
        between = "" if c.low != c.low else f"{c.low:+.3f} {c.high:+.3f}"
        difference = f"{c.difference:+.4f}{'*' if c.outcome in ('better', 'worse') else ' '}"
        counts = f"{c.n_better}/{c.n_worse}/{c.n_equal}"
        p_values = [p_text(c.corrected[test]) for test in found.tests]
        rows.append((c.name, c.measure, f"{c.mean:.4f}", difference, between, counts, *p_values))
    console.print_table(f"Against {found.baseline}, {found.n_queries:,} queries", header, rows, left=2)
    corrected = "corrected by Holm's method" if found.correction == "holm" else "not corrected"
    console.say(f"p-values are two-sided and {corrected}. {_star(found)}")


def _star(found: "genm.Comparison") -> str:
    """Say what the star stands for."""
    if found.correction == "holm" and len(found.contrasts) > 1:
        level = f"{1 - found.confidence:.2g}"
        return f"* is a significant difference: corrected p of the t-test below {level}. Intervals are per row."
    return "* is a significant difference: the interval leaves out 0."


command = make_verb(compare, TEXT, EXAMPLES)
