"""Is a run better than another one: paired tests over queries, corrected for how many are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from genm import charts, display
from genm._math import significance
from genm._typing import Floats
from genm.errors import InputError
from genm.evaluate.evaluation import Evaluation
from genm.ids import find
from genm.records import Note, contents, first_few

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Test = Literal["wilcoxon", "t", "randomization"]
Correction = Literal["holm", "none"]
Outcome = Literal["better", "perhaps better", "equal", "perhaps worse", "worse"]
"""How a run stands to its rival: "better" or "worse" where the difference is significant, "perhaps" where it is
not, "equal" where no query differs."""

_COLUMNS = (
    "name",
    "measure",
    "mean",
    "baseline_mean",
    "difference",
    "low",
    "high",
    "n_better",
    "n_worse",
    "n_equal",
)
_MOST_RESAMPLES = 10_000_000
_MAKE_THEM = "Give what genm.evaluate_run returned for each run."


@dataclass(frozen=True, slots=True)
class Contrast:
    """One run against the baseline, under one measure."""

    name: str
    measure: str
    mean: float
    baseline_mean: float
    difference: float
    """Mean of run minus baseline over the queries."""
    low: float
    high: float
    """Confidence interval of the mean difference, for this contrast alone (Student's t); NaN for a single query."""
    n_better: int
    n_worse: int
    n_equal: int
    """On how many queries the run is above, below and level with the baseline."""
    p_values: Mapping[Test, float]
    corrected: Mapping[Test, float]
    """The p-values corrected for the number of contrasts, or as they are with correction "none"."""
    outcome: Outcome
    """What the interval says. Of several contrasts, corrected as the p-values are: see `compare_runs`."""


def outcome_of(difference: float, n_differing: int, *, significant: bool) -> Outcome:
    """Return how a run stands to its rival."""
    if n_differing == 0:
        return "equal"
    if difference > 0.0:
        return "better" if significant else "perhaps better"
    return "worse" if significant else "perhaps worse"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every run against the baseline, under every measure."""

    names: tuple[str, ...]
    baseline: str
    measures: tuple[str, ...]
    n_queries: int
    tests: tuple[Test, ...]
    correction: Correction
    confidence: float
    contrasts: tuple[Contrast, ...]
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        """Say how every run stands to the baseline, on one line."""
        gains = first_few([_shown(contrast) for contrast in self.contrasts])
        inside = contents(self.notes, queries=range(self.n_queries))
        return f"<Comparison with {self.baseline!r}: {gains}; {inside}>"

    def _repr_html_(self) -> str:
        return display.comparison(self)

    def to_pandas(self) -> Any:
        """Return a pandas frame: one row per contrast: means, difference, interval, counts, p-values."""
        columns: dict[str, list[Any]] = {
            name: [getattr(contrast, name) for contrast in self.contrasts] for name in _COLUMNS
        }
        columns["outcome"] = [contrast.outcome for contrast in self.contrasts]
        for test in self.tests:
            columns[f"p_{test}"] = [contrast.corrected[test] for contrast in self.contrasts]
        return display.frame(columns)

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw every difference to the baseline with its interval; needs the extra `plots`."""
        several = len(self.measures) > 1
        return charts.plot_differences(
            [f"{c.name}, {c.measure}" if several else c.name for c in self.contrasts],
            [c.difference for c in self.contrasts],
            [c.low for c in self.contrasts],
            [c.high for c in self.contrasts],
            title=f"Difference to {self.baseline}",
            value_label=f"{', '.join(self.measures)}; {self.confidence:.0%} intervals, {self.n_queries:,} queries",
            ax=ax,
        )

    def contrast(self, name: str, measure: object) -> Contrast:
        """Return the contrast of the named run under a measure."""
        for contrast in self.contrasts:
            if contrast.name == name and contrast.measure == str(measure):
                return contrast
        others = ", ".join(other for other in self.names if other != self.baseline)
        raise InputError(
            f"comparison: found no contrast of {name!r} under {measure}; expected a run among {others} and a "
            f"measure among {', '.join(self.measures)}."
        )


def _shown(contrast: Contrast) -> str:
    p = "".join(f" (p = {p:.2g})" for p in list(contrast.corrected.values())[:1])
    return f"{contrast.name} {contrast.difference:+.4f} {contrast.measure}{p}"


def compare_runs(
    evaluations: Sequence[Evaluation | Floats] | Mapping[str, Evaluation | Floats],
    *,
    baseline: int | str = 0,
    tests: Sequence[Test] = get_args(Test),
    correction: Correction = "holm",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare runs with a baseline, query by query.

    `evaluations` are what `evaluate_run` returned for the same measures, or plain arrays of one value for each
    query (and measure), all in one order; a mapping gives them names. `tests` are the paired Wilcoxon signed-rank
    test (the paper's), the paired t-test and Fisher's randomisation test, all two-sided; each test's p-values are
    corrected by Holm's method over all runs and measures. Evaluations of different queries are compared on those
    they share, and a note says so. Without any difference p is 1; a single query is no evidence: p is 1 and the
    interval is NaN.

    A difference is significant (`Contrast.outcome`) where the p-value of the t-test, corrected, is below
    1 - `confidence`, whatever `tests` are asked for. For one run and one measure, or without correction, that is
    where the interval leaves out 0.
    """
    _check_options(tests, correction, confidence, n_resamples)
    names, given = _named(evaluations)
    base = _position(baseline, names)
    values, measures, notes = _paired(names, given)
    n_runs, n_queries, n_measures = values.shape
    if n_queries == 1:
        notes.append(Note("single-query", 1, "only one query is compared: that is no evidence, so p is 1."))

    others = [r for r in range(n_runs) if r != base]
    differences = significance.rounded(values[others] - values[base])
    columns = np.ascontiguousarray(differences.transpose(1, 0, 2).reshape(n_queries, -1))
    rng = np.random.default_rng(seed)
    low, high = significance.student_interval(columns, confidence)
    raw: dict[Test, Floats] = {}
    for test in dict.fromkeys(tests):
        if test == "wilcoxon":
            raw[test] = significance.wilcoxon(columns)
        elif test == "t":
            raw[test] = significance.student(columns)
        else:
            raw[test] = significance.randomization(columns, n_resamples, rng)
    adjusted = {test: significance.holm(p) if correction == "holm" else p for test, p in raw.items()}
    decisive = significance.student(columns)
    decisive = significance.holm(decisive) if correction == "holm" else decisive

    means = values.mean(axis=1)
    contrasts = []
    for i, run in enumerate(others):
        for m in range(n_measures):
            c = i * n_measures + m
            difference, n_equal = float(columns[:, c].mean()), int((columns[:, c] == 0.0).sum())
            contrasts.append(
                Contrast(
                    name=names[run],
                    measure=measures[m],
                    mean=float(means[run, m]),
                    baseline_mean=float(means[base, m]),
                    difference=difference,
                    low=float(low[c]),
                    high=float(high[c]),
                    n_better=int((columns[:, c] > 0.0).sum()),
                    n_worse=int((columns[:, c] < 0.0).sum()),
                    n_equal=n_equal,
                    p_values={test: float(p[c]) for test, p in raw.items()},
                    corrected={test: float(p[c]) for test, p in adjusted.items()},
                    outcome=outcome_of(
                        difference, n_queries - n_equal, significant=bool(decisive[c] < 1.0 - confidence)
                    ),
                )
            )
    return Comparison(
        names, names[base], measures, n_queries, tuple(raw), correction, confidence, tuple(contrasts), tuple(notes)
    )


def _check_options(tests: Sequence[str], correction: str, confidence: float, n_resamples: int) -> None:
    unknown = [test for test in tests if test not in get_args(Test)]
    if unknown or isinstance(tests, str):
        found = tests if isinstance(tests, str) else unknown[0]
        raise InputError(f"tests: expected a list of {', '.join(get_args(Test))}; found {found!r}.")
    if correction not in get_args(Correction):
        raise InputError(f"correction: expected {' or '.join(get_args(Correction))}; found {correction!r}.")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence: expected a number between 0 and 1, such as 0.95; found {confidence!r}.")
    if not 1 <= n_resamples <= _MOST_RESAMPLES:
        raise InputError(
            f"n_resamples: expected 1 to {_MOST_RESAMPLES:,}, 10000 is usual; found {n_resamples!r:.40}."
        )


def _check_list(given: object) -> None:
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise InputError(f"comparison: expected a list; found {type(given).__name__}. {_MAKE_THEM}")


def _named(
    evaluations: Sequence[Evaluation | Floats] | Mapping[str, Evaluation | Floats],
) -> tuple[tuple[str, ...], list[Evaluation | Floats]]:
    """Return distinct names and what they name."""
    if isinstance(evaluations, Mapping):
        names, given = list(evaluations), list(evaluations.values())
    else:
        _check_list(evaluations)
        given = list(evaluations)
        own = [e.name if isinstance(e, Evaluation) else "" for e in given]
        names = [n if n and own.count(n) == 1 else f"{n or 'run'}-{i}" for i, n in enumerate(own, 1)]
    if len(given) < 2:
        raise InputError(f"comparison: expected at least two runs, found {len(given)}.")
    return tuple(names), given


def _position(baseline: int | str, names: tuple[str, ...]) -> int:
    if isinstance(baseline, str):
        if baseline not in names:
            raise InputError(f"baseline: expected one of {', '.join(names)}; found {baseline!r}.")
        return names.index(baseline)
    if not isinstance(baseline, int | np.integer) or not 0 <= baseline < len(names):
        raise InputError(f"baseline: expected a position from 0 to {len(names) - 1}; found {baseline!r}.")
    return baseline


def _numbers(name: str, values: object) -> Floats:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        found = type(values).__name__
        raise InputError(f"comparison: expected evaluations; {name} is of the kind {found}. {_MAKE_THEM}") from None


def _paired(
    names: tuple[str, ...], given: Sequence[Evaluation | Floats]
) -> tuple[Floats, tuple[str, ...], list[Note]]:
    """Return (runs, queries, measures) values of the same queries in the same order."""
    notes: list[Note] = []
    evaluated = [e for e in given if isinstance(e, Evaluation)]
    if len(evaluated) not in (0, len(given)):
        raise InputError("comparison: expected either evaluations or arrays, found both.")
    if evaluated:
        first = evaluated[0]
        for name, e in zip(names, evaluated, strict=True):
            if e.measures != first.measures:
                raise InputError(
                    f"comparison: {names[0]} has {', '.join(map(str, first.measures))}, {name} has "
                    f"{', '.join(map(str, e.measures))}. Evaluate all runs with the same measures."
                )
        places = np.stack([find(e.queries, first.queries) for e in evaluated])
        shared = np.flatnonzero((places >= 0).all(axis=0))
        longest = max(len(e.values) for e in evaluated)
        if len(shared) == 0:
            raise InputError(
                "comparison: expected queries in common, found none. Evaluate with the same judgments."
            )
        if len(shared) < longest:
            text = f"the runs share {len(shared)} of up to {longest} evaluated queries; only those are compared."
            notes.append(Note("queries-shared", longest - len(shared), text))
        measures = tuple(map(str, first.measures))
        stacked = np.stack([e.values[at[shared]] for e, at in zip(evaluated, places, strict=True)])
    else:
        arrays = [_numbers(name, e) for name, e in zip(names, given, strict=True)]
        arrays = [a[:, None] if a.ndim == 1 else a for a in arrays]
        shape = arrays[0].shape
        for name, a in zip(names, arrays, strict=True):
            if a.shape != shape or a.ndim != 2 or a.size == 0:
                raise InputError(
                    f"comparison: expected (queries, measures) arrays of one shape; {names[0]} has {shape}, "
                    f"{name} {a.shape}. Give one value for each query, in the same order for every run."
                )
        measures = tuple(f"measure-{m + 1}" for m in range(shape[1]))
        stacked = np.stack(arrays)
    if not np.isfinite(stacked).all():
        raise InputError("comparison: expected finite values, found NaN or infinity.")
    return stacked, measures, notes
