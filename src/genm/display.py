"""How results look in a notebook: small labelled tables as HTML, from one template.

Each function shows one kind of object and is what that class calls in its `_repr_html_`. The classes stand above
this module, so what they hold is described by their attributes, not by their types. `html` is the general form: a
heading, a sentence, tables and notes. Long tables are cut, and the caption says how much of them is shown.

Ids, names and notes are text from files: the template escapes them. jinja2 is imported when something is shown.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from genm.errors import MissingExtraError
from genm.formatting import NONE, between, p_text, signed

MOST_QUERIES = 10
"""Rows of a table with one row per query."""
MOST_ROWS = 30
"""Rows of any other table, and notes."""


class Table(NamedTuple):
    """Rows under named columns. `rows` may be the first of `n_rows`; then the caption says so."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_rows: int
    unit: str = "rows"
    """What a row is, in the plural."""
    n_text: int = 1
    """So many columns from the left are text; the others are numbers, aligned to the right."""

    @property
    def caption(self) -> str:
        """The title and, where rows were left out, how many there are."""
        if len(self.rows) == self.n_rows:
            return self.title
        return f"{self.title}: first {len(self.rows):,} of {self.n_rows:,} {self.unit}"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], n_rows: int, **options: Any) -> Table:
    """Return a table of the first rows: at most as many as are shown."""
    most = MOST_QUERIES if options.get("unit") == "queries" else MOST_ROWS
    return Table(title, columns, list(islice(rows, most)), n_rows, **options)


def html(heading: str, text: str, tables: Iterable[Table] = (), notes: Iterable[Any] = ()) -> str:
    """Return what a notebook shows: a heading, a sentence, the tables that have rows, and the texts of notes."""
    from genm.templating import render

    told = [note.text for note in notes]
    shown = [part for part in tables if part.rows]
    return str(
        render("display.html.j2", heading=heading, text=text, tables=shown, notes=told, most_notes=MOST_ROWS)
    )


def frame(columns: Mapping[str, Any], *, index: Iterable[Any] | None = None, index_name: str | None = None) -> Any:
    """Return named columns as a pandas frame; `index` labels the rows."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("a pandas frame", "pandas") from None
    labels = None if index is None else pd.Index(list(index), name=index_name)
    return pd.DataFrame(dict(columns), index=labels)


def run(found: Any) -> str:
    """Show a Run: the first queries with the number of their documents and the best one."""
    sizes = np.diff(found.starts)

    def rows() -> Iterable[Sequence[str]]:
        for q, n in enumerate(sizes.tolist()):
            best, scores = "", (NONE, NONE)
            if n:
                best = found.docs[int(found.doc[found.starts[q]])]
                scores = (_score(found.score[found.starts[q]]), _score(found.score[found.starts[q + 1] - 1]))
            yield found.queries[q], best, *scores, f"{n:,}"

    columns = ("Query", "Best document", "Highest score", "Lowest score", "Documents")
    queries = table("Queries", columns, rows(), len(sizes), unit="queries", n_text=2)
    return html(f"Run {found.name}", _counts(queries=len(sizes), rows=len(found.doc)), [queries], found.notes)


def qrels(found: Any) -> str:
    """Show Qrels: how many judgments there are of each grade, and of each of the first queries."""
    sizes = np.diff(found.starts)

    def rows() -> Iterable[Sequence[str]]:
        for q, n in enumerate(sizes.tolist()):
            grades = found.relevance[found.starts[q] : found.starts[q + 1]]
            yield found.queries[q], f"{n:,}", f"{(grades > 0).sum():,}", f"{grades.max()}" if n else NONE

    grades, counts = np.unique(found.relevance, return_counts=True)
    by_grade = ((str(grade), f"{n:,}") for grade, n in zip(grades.tolist(), counts.tolist(), strict=True))
    tables = (
        table("Grades", ("Grade", "Judgments"), by_grade, len(grades), n_text=0, unit="grades"),
        table("Queries", ("Query", "Judged", "Relevant", "Highest grade"), rows(), len(sizes), unit="queries"),
    )
    return html("Qrels", _counts(queries=len(sizes), judgments=len(found.doc)), tables, found.notes)


def aligned(found: Any) -> str:
    """Show Aligned runs: each ranker with its normaliser, its depth and the share of the rows that it returned."""
    n_rows = len(found.doc)

    def rows() -> Iterable[Sequence[str]]:
        parts = zip(found.rankers, found.normalizers, found.depths, found.retrieved.sum(axis=0), strict=True)
        for ranker, normalizer, depth, n in parts:
            share = f"{n / n_rows:.1%}" if n_rows else NONE
            yield ranker, repr(normalizer), "all" if depth is None else f"{depth:,}", f"{n:,}", share

    columns = ("Ranker", "Normaliser", "Depth", "Documents", "Share of rows")
    rankers = table("Rankers", columns, rows(), len(found.rankers), unit="rankers", n_text=2)
    judged = "with judgments" if found.labelled else "without judgments"
    size = _counts(queries=len(found.queries), rows=n_rows)
    return html("Aligned runs", f"{size}, {judged}", [rankers], found.notes)


def evaluation(found: Any) -> str:
    """Show an Evaluation: the mean of each measure, and the values of the first queries."""
    names = [str(measure) for measure in found.measures]
    means = ((name, f"{mean:.4f}") for name, mean in zip(names, found.means.tolist(), strict=True))
    values = ((query, *(f"{x:.4f}" for x in row)) for query, row in zip(found.queries, found.values, strict=True))
    tables = (
        table("Means over all queries", ("Measure", "Mean"), means, len(names), unit="measures"),
        table("Queries", ("Query", *names), values, len(found.values), unit="queries"),
    )
    heading = f"Evaluation of {found.name}" if found.name else "Evaluation"
    return html(heading, _counts(queries=len(found.values)), tables, found.notes)


def comparison(found: Any) -> str:
    """Show a Comparison: the difference of every run to the baseline, with interval and p-values."""
    rows = (
        (
            contrast.name,
            contrast.measure,
            f"{contrast.mean:.4f}",
            f"{contrast.baseline_mean:.4f}",
            *_difference(contrast),
            *(p_text(contrast.corrected[test]) for test in found.tests),
            contrast.outcome,
        )
        for contrast in found.contrasts
    )
    corrected = "" if found.correction == "none" else ", corrected"
    columns = (
        "Run", "Measure", "Mean", found.baseline, *_difference_columns(found.confidence),
        *(f"p ({test}{corrected})" for test in found.tests), "Outcome",
    )  # fmt: skip
    contrasts = table("Differences", columns, rows, len(found.contrasts), unit="differences", n_text=2)
    return html(f"Comparison with {found.baseline}", _counts(queries=found.n_queries), [contrasts], found.notes)


def weights(rankers: Sequence[str], values: Iterable[float], **columns: Iterable[object]) -> Table:
    """Return a table of rankers with their weights, and what else is known of each of them, by column."""
    rows = zip(
        rankers, (f"{weight:.4f}" for weight in values), *(map(str, c) for c in columns.values()), strict=True
    )
    names = ("Ranker", "Weight", *(name.capitalize() for name in columns))
    return table("Weights", names, rows, len(rankers), unit="rankers")


def fuser(heading: str, found: Any) -> str:
    """Show a Fuser: its class with its options, and the weights if it has learned any."""
    if not hasattr(found, "weights_"):
        return html(heading, "Not fitted: call fit first.")
    stopped = "" if found.converged_ else " It stopped before it converged."
    learned = weights(found.rankers_, found.weights_.tolist(), normaliser=found.normalizers_)
    return html(heading, f"Objective {found.objective_:.4f} on the training queries.{stopped}", [learned])


def model(found: Any) -> str:
    """Show a Model: weights with the rules they were learned under, and the figures of the training."""
    depths = ["all" if depth is None else f"{depth:,}" for depth in found.depths]
    learned = weights(found.rankers, found.weights, normaliser=found.normalizers, depth=depths)
    target = f", for {found.target}" if found.target else ""
    figures = [(name, _figure(value)) for name, value in found.training.items()]
    training = table("Training", ("Figure", "Value"), figures, len(figures), unit="figures")
    return html("Model", f"Method {found.method}, measure {found.measure}{target}.", [learned, training])


def held_out(found: Any) -> str:
    """Show HeldOut values: weights by fold, and the values of the first queries."""
    fold = (str(f) for f in found.fold.tolist())
    rows = zip(found.query_ids, fold, (f"{x:.4f}" for x in found.per_query.tolist()), strict=True)
    tables = (
        _weights_by_fold(found.rankers, found.weights),
        table("Queries", ("Query", "Fold", found.measure), rows, len(found.query_ids), unit="queries"),
    )
    size = _counts(queries=len(found.query_ids), folds=len(found.weights))
    return html("Cross-validation", f"Mean {found.measure} {found.mean:.4f} held out: {size}.", tables)


def evidence(found: Any) -> str:
    """Show Evidence: the verdict, the gains over each rival, the means of all systems, and the weights by fold."""
    return html("Evidence", f"{found.verdict()} {found.caveat}".rstrip(), evidence_tables(found))


def evidence_tables(found: Any) -> list[Table]:
    """Return the tables of Evidence, for objects that hold one."""
    gains = (
        (rival, *_difference(gain), gain.outcome, p_text(gain.p_values["wilcoxon"]))
        for rival, gain in ((found.label(rival), found.gains[rival]) for rival in found.rivals)
    )
    held = (
        ("learned weights, held out", found.held_out.mean),
        ("learned weights, training", found.mean(found.train)),
    )
    rivals = [*found.rules.items(), *found.singles.items()]
    systems = [*held, *((name, found.mean(values)) for name, values in rivals)]
    means = ((name, f"{mean:.4f}") for name, mean in systems)
    columns = ("Over", *_difference_columns(found.confidence), "Outcome", "p (wilcoxon)")
    return [
        table("Gain, held out", columns, gains, len(found.rivals), unit="rivals"),
        table("Means over queries", ("System", str(found.measure)), means, len(systems), unit="systems"),
        _weights_by_fold(tuple(found.singles), found.held_out.weights),
    ]


def trained(found: Any) -> str:
    """Show what training returned: the verdict, the weights, the evidence if there is any, and the notes."""
    learned = weights(found.model.rankers, found.model.weights, normaliser=found.model.normalizers)
    proof = [] if found.evidence is None else evidence_tables(found.evidence)
    return html("Trained model", found.verdict, [learned, *proof], found.notes)


def _weights_by_fold(rankers: Sequence[str], by_fold: Any) -> Table:
    columns = ("Ranker", "Mean", *(f"Fold {f}" for f in range(len(by_fold))))
    rows = (
        (ranker, f"{column.mean():.4f}", *(f"{x:.4f}" for x in column))
        for ranker, column in zip(rankers, by_fold.T, strict=True)
    )
    return table("Weights learned without each fold", columns, rows, len(rankers), unit="rankers")


def _difference(contrast: Any) -> tuple[str, str, str]:
    """Return a mean difference, its interval, and on how many queries it is above, level and below."""
    known = math.isfinite(contrast.low) and math.isfinite(contrast.high)
    interval = between(contrast.low, contrast.high) if known else NONE
    counts = f"{contrast.n_better:,} / {contrast.n_equal:,} / {contrast.n_worse:,}"
    return signed(contrast.difference), interval, counts


def _difference_columns(confidence: float) -> tuple[str, str, str]:
    return "Difference", f"{confidence:.0%} interval", "Better / equal / worse"


def _counts(**parts: int) -> str:
    """Write counts, each before its noun in the plural."""
    singular = {"queries": "query"}
    return ", ".join(
        f"{n:,} {singular.get(noun, noun.removesuffix('s')) if n == 1 else noun}" for noun, n in parts.items()
    )


def _score(value: float) -> str:
    return f"{value:.6g}"


def _figure(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_figure(part)}" for name, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_figure, value))
    return str(value)
