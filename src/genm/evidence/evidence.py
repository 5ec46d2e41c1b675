"""Fit, cross-validate, and compare with systems that need no learning; a hash of the data."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from genm import charts, display
from genm._math.linear_algebra import times, weighted_mean
from genm._typing import Floats
from genm.align import Aligned, check_aligned, select_rankers
from genm.errors import InputError
from genm.evaluate import Contrast, Measure, MeasureLike, compare_runs, evaluate_aligned, parse_measure
from genm.evidence.crossval import HeldOut, cross_validate, measure_queries
from genm.formatting import signed
from genm.fuse import rule_scores
from genm.learn import Fuser
from genm.model import Model
from genm.normalizers import Normalizer
from genm.progress import Progress, silent
from genm.records import contents

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEST_SINGLE = "best single ranker"
"""The row of the ranker that was best on the training folds."""
UNIFORM = "uniform weights"
"""The row of equal weights."""
RRF = "RRF (k=60)"
"""The row of reciprocal rank fusion."""
Outcome = Literal["better", "perhaps better", "equal", "perhaps worse", "worse"]
"""The held-out comparison of the learned weights with a rival."""


def fingerprint(aligned: Aligned) -> str:
    """Return a hash of queries, documents, raw scores and judgments."""
    digest = hashlib.sha256("\0".join(aligned.rankers).encode())
    parts = (
        aligned.queries.text, aligned.queries.starts, aligned.docs.text, aligned.docs.starts, aligned.starts,
        aligned.doc, aligned.raw, aligned.retrieved, aligned.relevance, aligned.unretrieved, aligned.query_weights,
    )  # fmt: skip
    for part in parts:
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The training and held-out values of a fit, per query."""

    measure: Measure
    query_ids: tuple[str, ...]
    train: Floats
    """The learned weights on their training queries: too high if they overfit."""
    held_out: HeldOut
    """The same method on held-out queries."""
    singles: dict[str, Floats]
    """Each ranker alone."""
    rules: dict[str, Floats]
    """Rules that need no learning: uniform weights and RRF."""
    best_single: Floats
    """On each fold, the single ranker that was best on the training queries: the baseline for learning."""
    best_name: str
    """The single ranker that is best on all queries."""
    interval: tuple[float, float]
    """Confidence interval of the held-out mean."""
    gains: Mapping[str, Contrast]
    """The held-out values against BEST_SINGLE, UNIFORM and RRF; each query counts by its weight."""
    query_weights: Floats
    confidence: float
    fold_normalizers: tuple[tuple[Normalizer, ...], ...]
    """The normalisers that training chose in each fold; `held_out` has the weights of the folds."""

    def __repr__(self) -> str:
        """Return the held-out mean, the gain over the best single ranker and the number of queries on one line."""
        gain = self.gains[BEST_SINGLE]
        over = f"{signed(gain.difference)} over the {BEST_SINGLE} (p = {gain.p_values['wilcoxon']:.2g})"
        size = contents((), queries=self.query_ids)
        return f"<Evidence {self.measure} {self.held_out.mean:.4f} held out, {over}; {size}>"

    def _repr_html_(self) -> str:
        return display.evidence(self)

    def to_pandas(self) -> Any:
        """Return a pandas frame: one row per query id, one column per system."""
        systems = {
            "learned weights": self.held_out.per_query,
            "learned weights (training)": self.train,
            BEST_SINGLE: self.best_single,
            **self.rules,
            **self.singles,
        }
        return display.frame(systems, index=self.query_ids, index_name="query_id")

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the held-out gain over each rival with its interval; needs the extra `plots`."""
        gains = self.gains.values()
        return charts.plot_differences(
            [f"over {name}" for name in self.gains],
            [gain.difference for gain in gains],
            [gain.low for gain in gains],
            [gain.high for gain in gains],
            title="Held-out gain of the learned weights",
            value_label=f"{self.measure}; {self.confidence:.0%} intervals, {len(self.query_ids):,} queries",
            ax=ax,
        )

    def plot_weights(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the mean weight of each ranker and the weights of the folds; needs the extra `plots`."""
        return self.held_out.plot_weights(ax=ax)

    def mean(self, per_query: Floats) -> float:
        """Return a mean over the queries with their weights."""
        return weighted_mean(per_query, self.query_weights)

    @property
    def is_significant(self) -> bool:
        """Whether the gain over the best single ranker is significant; see `outcome`."""
        return self.outcome(BEST_SINGLE) == "better"

    @property
    def better_rules(self) -> tuple[str, ...]:
        """The rules that are clearly better than the learned weights, best first."""
        beating = [name for name in self.rules if self.outcome(name) == "worse"]
        return tuple(sorted(beating, key=lambda name: -self.mean(self.rules[name])))

    def outcome(self, rival: str) -> Outcome:
        """Say whether the held-out values are better or worse than the rival's, and whether that is significant.

        Wilcoxon's test and the interval must agree: ranks and means can differ if there are many small losses and a
        few large gains.
        """
        gain = self.gains[rival]
        if gain.n_better + gain.n_worse == 0:
            return "equal"
        clear = gain.p_values["wilcoxon"] < 1.0 - self.confidence
        if gain.difference > 0:
            return "better" if clear and gain.low > 0 else "perhaps better"
        return "worse" if clear and gain.high < 0 else "perhaps worse"

    def verdict(self) -> str:
        """Return a sentence or two that say what the figures mean and name the rules that are better."""
        return " ".join([self._against_best_single(), *map(self._against_better, self.better_rules)])

    def _against_better(self, rule: str) -> str:
        reached, p = self.mean(self.rules[rule]), self.gains[rule].p_values["wilcoxon"]
        figures = f"{reached:.4f} against {self.held_out.mean:.4f} {self.measure}, p = {p:.2g}"
        return f"What needs no learning does better: {rule} ({figures})."

    def _against_best_single(self) -> str:
        gain, name = self.gains[BEST_SINGLE], str(self.measure)
        p = gain.p_values["wilcoxon"]
        between = f"{self.confidence:.0%} interval {signed(gain.low)} to {signed(gain.high)}"
        figures = f"{signed(gain.difference)} {name}, {between}, p = {p:.2g}"
        match self.outcome(BEST_SINGLE):
            case "better":
                return f"Held out, the learned weights beat the best single ranker ({figures})."
            case "perhaps better":
                return (
                    f"No significant gain over the best single ranker ({figures}): it may be chance. "
                    f"Judge more queries."
                )
            case "perhaps worse":
                return f"No gain over the best single ranker ({figures}): keep what you have."
            case "worse":
                return (
                    f"Held out, the learned weights lose to the best single ranker ({figures}): keep what you have."
                )
            case "equal":
                return (
                    "Held out, the learned weights equal the best single ranker on every query: keep what you have."
                )


def gather_evidence(
    aligned: Aligned,
    make: Callable[[], Fuser],
    measure: MeasureLike,
    *,
    folds: int = 5,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Fuser, Evidence]:
    """Fit on all queries, cross-validate the same method, and compare with systems that need no learning."""
    check_aligned(aligned)
    measure = parse_measure(measure)
    n = len(aligned.queries)
    if n < 2:
        raise InputError(f"{n} judged query: expected at least 2 to learn and to hold out. Judge more queries.")
    progress("learning", 0, 1)
    fuser = make().fit(aligned)
    progress("learning", 1, 1)
    by_fold: list[Fuser] = []

    def remembered() -> Fuser:
        by_fold.append(make())
        return by_fold[-1]

    held_out = cross_validate(remembered, aligned, measure, folds=min(folds, n), seed=seed, progress=progress)
    singles = {name: single_values(aligned, name, measure) for name in aligned.rankers}
    n_rankers = len(aligned.rankers)
    prepared = fuser.prepare(aligned)
    rules = {
        UNIFORM: measure_queries(prepared, np.full(n_rankers, 1.0 / n_rankers), measure),
        RRF: evaluate_aligned(aligned, rule_scores(aligned, "rrf"), [measure]).values[:, 0],
    }
    best_single = _best_single_by_fold(singles, held_out.fold, aligned.query_weights)
    rivals = {BEST_SINGLE: best_single, **rules}
    learned = counted(held_out.per_query, aligned.query_weights)
    gains = {}
    for name, values in rivals.items():
        pair = {name: counted(values, aligned.query_weights), "learned": learned}
        found = compare_runs(pair, correction="none", confidence=confidence, seed=seed)
        gains[name] = replace(found.contrasts[0], measure=str(measure))
    against_zero = compare_runs(
        {"zero": np.zeros(n), "learned": learned}, tests=(), confidence=confidence, seed=seed
    ).contrasts[0]
    means = {name: weighted_mean(values, aligned.query_weights) for name, values in singles.items()}
    return fuser, Evidence(
        measure=measure,
        query_ids=tuple(aligned.queries),
        train=measure_queries(prepared, fuser.weights_, measure),
        held_out=held_out,
        singles=singles,
        rules=rules,
        best_single=best_single,
        best_name=max(means, key=means.__getitem__),
        interval=(against_zero.low, against_zero.high),
        gains=gains,
        query_weights=aligned.query_weights,
        confidence=confidence,
        fold_normalizers=tuple(fold.normalizers_ for fold in by_fold),
    )


def counted(per_query: Floats, query_weights: Floats) -> Floats:
    """Return values whose plain mean is the mean with the queries' weights, for tests and intervals of the mean."""
    return np.asarray(per_query * (query_weights * len(query_weights) / query_weights.sum()))


def single_values(aligned: Aligned, name: str, measure: Measure) -> Floats:
    """Return the measure of one ranker's list per query, without the documents of the others."""
    return single_table(aligned, name, [measure])[:, 0]


def single_table(aligned: Aligned, name: str, measures: Sequence[Measure]) -> Floats:
    """Return the (queries, measures) values of one ranker's list."""
    own = select_rankers(aligned, [name])
    if len(own.doc) == 0:
        return np.zeros((len(own.queries), len(measures)))
    return np.asarray(evaluate_aligned(own, np.ascontiguousarray(own.raw[:, 0]), measures).values)


def with_evidence(model: Model, aligned: Aligned, evidence: Evidence) -> Model:
    """Return the model with the figures of its training and the fingerprint of its data."""
    gain = evidence.gains[BEST_SINGLE]
    training = {
        "queries": len(evidence.query_ids),
        "train": evidence.mean(evidence.train),
        "held_out": evidence.held_out.mean,
        "best_single": evidence.best_name,
        "gain_over_best_single": gain.difference,
        "gain_interval": [gain.low, gain.high],
        "p_wilcoxon": gain.p_values["wilcoxon"],
    }
    return replace(model, measure=str(evidence.measure), training=training, fingerprint=fingerprint(aligned))


def best_singles(evidence: Evidence) -> list[str]:
    """Return, for every fold, the ranker that was best on the queries of the other folds."""
    table = np.array(list(evidence.singles.values()))
    names, weights, fold = list(evidence.singles), evidence.query_weights, evidence.held_out.fold
    return [names[_best(table, weights, fold != f)] for f in range(len(evidence.held_out.weights))]


def _best_single_by_fold(singles: Mapping[str, Floats], fold: NDArray[np.int64], weights: Floats) -> Floats:
    """Return, for every query, the value of the ranker that was best on the queries of the other folds."""
    table = np.array(list(singles.values()))
    chosen = np.zeros(len(fold))
    for f in np.unique(fold):
        outside = fold == f
        chosen[outside] = table[_best(table, weights, ~outside), outside]
    return chosen


def _best(table: Floats, weights: Floats, inside: NDArray[np.bool_]) -> int:
    return int(np.argmax(times(table[:, inside], weights[inside])))
