"""`genm compare`: is the difference between these runs real."""

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from genm.cli.inputs import Duplicates, Lenient, read_judgments, read_runs, split_list
from genm.cli.show import Format, print_json, print_lines, print_table, progress_bars, say, say_notes

if TYPE_CHECKING:
    from genm.evaluate import Comparison

HELP = """Compare runs with a baseline, query by query: difference, confidence interval, paired tests.

The first run is the baseline unless `--baseline` names another. Tests: wilcoxon (the paper's), t, randomization;
p-values are corrected over all comparisons by Holm's method.

Example:

    genm compare qrels.txt rrf=rrf.trec learned=fused.trec -m AP,nDCG@10
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("compare", help=HELP)(compare)


def compare(
    qrels: Annotated[str, typer.Argument(help="Judgments (TREC qrels or a table).", metavar="QRELS")],
    runs: Annotated[list[str], typer.Argument(help="Runs as FILE or NAME=FILE.", metavar="RUN...")],
    measures: Annotated[
        list[str] | None, typer.Option("--measures", "-m", help="Measures, comma-separated.", metavar="LIST")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="Name of the run to compare with.", metavar="NAME")] = None,
    tests: Annotated[
        list[str] | None, typer.Option(help="wilcoxon, t, randomization (default: all).", metavar="LIST")
    ] = None,
    correction: Annotated[str, typer.Option(help="holm or none.")] = "holm",
    confidence: Annotated[float, typer.Option(help="Level of the confidence interval.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Resamples of bootstrap and randomisation.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out judged queries that a run lacks.")
    ] = False,
    lenient: Lenient = False,
    duplicates: Duplicates = "error",
    output: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.table,
) -> None:
    """Read, evaluate, compare, print."""
    from genm.evaluate import compare_runs, evaluate_run, parse_measures

    wanted = parse_measures(",".join(split_list(measures or ["AP,P@10,nDCG@10"])))
    with progress_bars() as progress:
        judged = read_judgments(qrels, lenient=lenient)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        results = {n: evaluate_run(r, judged, wanted, skip_missing=skip_missing) for n, r in loaded.items()}
    options: dict[str, Any] = {"tests": cast("Any", split_list(tests))} if tests else {}
    found = compare_runs(
        results,
        baseline=0 if baseline is None else baseline,
        correction=cast("Any", correction),
        confidence=confidence,
        n_resamples=resamples,
        seed=seed,
        **options,
    )
    say_notes(judged.notes)
    for name, run in loaded.items():
        say_notes((*run.notes, *results[name].notes))
    say_notes(found.notes)
    if output is Format.json:
        print_json(as_json(found))
    elif output is Format.tsv:
        print_lines(_tsv(found))
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
                "interval": None if c.low != c.low else [c.low, c.high],
                "better": c.n_better,
                "worse": c.n_worse,
                "equal": c.n_equal,
                "p": dict(c.p_values),
                "p_corrected": dict(c.corrected),
            }
            for c in found.contrasts
        ],
    }


def _tsv(found: "Comparison") -> list[str]:
    lines = ["\t".join(("run", "measure", "mean", "difference", "low", "high", *found.tests))]
    for c in found.contrasts:
        numbers = (c.mean, c.difference, c.low, c.high, *(c.corrected[t] for t in found.tests))
        lines.append("\t".join((c.name, c.measure, *(f"{number:.6g}" for number in numbers))))
    return lines


def _table(found: "Comparison") -> None:
    share = f"{found.confidence:.0%}"
    short = {"randomization": "random", "wilcoxon": "wilcox"}
    header = [
        "run",
        "measure",
        "mean",
        "diff",
        f"{share} interval",
        "+/-/=",
        *(short.get(t, t) for t in found.tests),
    ]
    rows = []
    for c in found.contrasts:
        interval = "" if c.low != c.low else f"{c.low:+.3f} {c.high:+.3f}"
        marks = [
            f"{p_text(c.corrected[t])}{'*' if c.corrected[t] < 1 - found.confidence else ' '}" for t in found.tests
        ]
        counts = f"{c.n_better}/{c.n_worse}/{c.n_equal}"
        rows.append((c.name, c.measure, f"{c.mean:.4f}", f"{c.difference:+.4f}", interval, counts, *marks))
    print_table(f"Against {found.baseline}, {found.n_queries} queries", header, rows, left=2)
    corrected = "corrected by Holm's method" if found.correction == "holm" else "not corrected"
    say(f"p-values are two-sided and {corrected}; * is below {1 - found.confidence:.2g}.")


def p_text(p: float) -> str:
    """Return a p-value as people write it."""
    return "<.0001" if p < 0.0001 else f"{p:.4f}".lstrip("0") if p < 1 else "1"
