"""Fit, cross-validate, and compare with systems that need no learning; a hash of the data."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from genm import charts, display
from genm._math.linear_algebra import weighted_mean
from genm._math.parallel import threads_for
from genm._math.scaling import rank_lists
from genm._typing import Floats
from genm.align import Aligned, check_aligned, select_rankers
from genm.errors import InputError
from genm.evaluate import AlignedEvaluator, Contrast, Measure, MeasureLike, Outcome, evaluate_aligned, parse_measure
from genm.evaluate.compare import Test
from genm.evidence.crossval import HeldOut, cross_validate_aligned, fit_shared, measure_queries, share_fits
from genm.evidence.intervals import GainIntervals
from genm.formatting import between, listed, percent, signed
from genm.fuse import add_reciprocal_ranks
from genm.learn import Fuser
from genm.model import Model
from genm.normalizers import Normalizer
from genm.progress import Progress, silent
from genm.records import contents

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEST_SINGLE = "best single ranker"
"""The row of the ranker with the highest mean over all judged queries; `Evidence.best_name` names it."""
UNIFORM = "uniform weights"
"""The row of equal weights."""
RRF = "RRF (k=60)"
"""The row of reciprocal rank fusion."""
CURRENT = "current ranking"
"""The row of what the user has at present: weights, or a run."""
LEARNED = "learned weights"
"""The row of the learned weights, held out."""
TRAINED = "learned weights (training)"
"""The row of the learned weights on the queries they were learned from."""
_RESERVED = (BEST_SINGLE, UNIFORM, RRF, CURRENT, LEARNED, TRAINED)
TOP = 10
"""How far down the share without a judgment is counted."""


def ranker_ids(rankers: Sequence[str]) -> list[str]:
    """Return an id for each ranker that no other row has."""
    return [f"{name} (ranker)" if name in _RESERVED else name for name in rankers]


def fingerprint(aligned: Aligned) -> str:
    """Return a hash of queries, documents, raw scores and judgments."""
    digest = hashlib.sha256("\0".join(aligned.rankers).encode())
    parts: list[Any] = [
        aligned.queries.text, aligned.queries.starts, aligned.docs.text, aligned.docs.starts, aligned.starts,
        aligned.doc, aligned.raw, aligned.retrieved, aligned.relevance, aligned.unretrieved, aligned.query_weights,
    ]  # fmt: skip
    if aligned.probability is not None:
        parts.append(aligned.probability)
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
    """What needs no learning: uniform weights, RRF and, where it was given, the CURRENT ranking."""
    best_name: str
    """The single ranker with the highest mean over all judged queries."""
    interval: tuple[float, float]
    """Confidence interval of the held-out mean."""
    gains: Mapping[str, Contrast]
    """The held-out values against BEST_SINGLE, each of the rules, and each ranker (see `ranker_ids`).

    Each query counts by its weight. Every interval allows for the weights having been learned
    (`genm.evidence.intervals`) and holds for its own row."""
    query_weights: Floats
    confidence: float
    fold_normalizers: tuple[tuple[Normalizer, ...], ...]
    """The normalisers that each fold's training chose, beside the folds' weights in `held_out`."""
    unjudged: float | None = None
    """The share of the learned weights' top 10 that has no judgment; None where that is not known."""

    def __repr__(self) -> str:
        """Say the held-out mean, the gain over the strongest rival, and of how many queries, on one line."""
        gain = self.gains[self.strongest]
        interval = f"[{signed(gain.low)}, {signed(gain.high)}]"
        over = f"{signed(gain.difference)} {interval} over {self.label(self.strongest)}"
        size = contents((), queries=self.query_ids)
        return f"<Evidence {self.measure} {self.held_out.mean:.4f} held out, {over}; {size}>"

    def _repr_html_(self) -> str:
        return display.evidence(self)

    def to_pandas(self) -> Any:
        """Return a pandas frame: one row per query id, one column per system."""
        systems = {
            LEARNED: self.held_out.per_query,
            TRAINED: self.train,
            BEST_SINGLE: self.best_single,
            **self.rules,
            **dict(zip(ranker_ids(list(self.singles)), self.singles.values(), strict=True)),
        }
        return display.frame(systems, index=self.query_ids, index_name="query_id")

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the held-out gain over each rival with its interval; needs the extra `plots`."""
        gains = [self.gains[rival] for rival in self.rivals]
        return charts.plot_differences(
            [f"over {self.best_name if rival == BEST_SINGLE else self.label(rival)}" for rival in self.rivals],
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
    def best_single(self) -> Floats:
        """The values of the best single ranker, the one that `best_name` names."""
        return self.singles[self.best_name]

    @property
    def rivals(self) -> tuple[str, ...]:
        """What the weights are measured against: the best single ranker and what needs no learning.

        Equal weights are no rival of weights that are all equal themselves.
        """
        return (BEST_SINGLE, *(rule for rule in self.rules if rule != UNIFORM or not self.is_uniform))

    @property
    def is_uniform(self) -> bool:
        """Whether every fold has equal weights: nothing was learned, or nothing of it was kept."""
        return bool(np.allclose(self.held_out.weights, 1.0 / len(self.singles), rtol=0.0, atol=1e-12))

    @property
    def strongest(self) -> str:
        """The rival with the highest mean over all judged queries: what the verdict is about."""
        return max(self.rivals, key=lambda rival: self.gains[rival].baseline_mean)

    @property
    def is_significant(self) -> bool:
        """Whether the gain over the strongest rival is significant: its interval lies above 0."""
        return self.outcome(self.strongest) == "better"

    @property
    def better_rules(self) -> tuple[str, ...]:
        """The rules that need no learning and are significantly better than what was learned, best first."""
        beating = [name for name in self.rules if self.outcome(name) == "worse"]
        return tuple(sorted(beating, key=lambda name: -self.mean(self.rules[name])))

    def outcome(self, rival: str) -> Outcome:
        """Say how the held-out values stand to the rival's: better or worse where the interval leaves out 0."""
        return self.gains[rival].outcome

    def label(self, rival: str) -> str:
        """Return the rival as a sentence names it."""
        if rival == BEST_SINGLE:
            return f"{self.best_name} (the best single ranker)"
        return {UNIFORM: "equal weights", RRF: "RRF", CURRENT: "the current ranking"}.get(rival, rival)

    def figures(self, rival: str) -> str:
        """Return the gain over the rival and its interval, as a sentence shows them."""
        gain = self.gains[rival]
        interval = f"{self.confidence:.0%} interval {between(gain.low, gain.high)}"
        return f"{signed(gain.difference)} {self.measure}, {interval}"

    def verdict(self) -> str:
        """Say in a sentence what the weights beat and what they do not, the strongest rival first."""
        if len(self.singles) == 1:
            return "There is only one ranker: there is nothing to fuse."
        strongest, name = self.outcome(self.strongest), self.label(self.strongest)
        subject = "the weights, which are all equal," if self.is_uniform else "the learned weights"
        figures, where = self.figures(self.strongest), f"Held out, {subject}"
        others = [rival for rival in self.rivals if rival != self.strongest]
        beaten = [self.label(rival) for rival in others if self.outcome(rival) == "better"]
        level = [self.label(rival) for rival in others if self.outcome(rival) != "better"]
        if strongest == "better":
            said = f"{where} beat the strongest rival, {name} ({figures})"
            said += f", and {listed(beaten)}" if beaten else ""
            return said + (f"; no gain over {listed(level)} is shown." if level else ".")
        if strongest == "worse":
            said = f"{where} lose to the strongest rival, {name} ({figures})"
            return said + (f", and beat {listed(beaten)}." if beaten else ": use that instead.")
        if strongest == "equal":
            said = f"{where} give every query the same as the strongest rival, {name}"
        else:
            said = f"{where} are not shown to differ from the strongest rival, {name} ({figures})"
        return said + (f"; they beat {listed(beaten)}." if beaten else "; no gain over any rival is shown.")

    @property
    def caveat(self) -> str:
        """What share of the top 10 has no judgment, in a sentence; empty where that is not known."""
        if self.unjudged is None:
            return ""
        return (
            f"{percent(self.unjudged)} of the top {TOP} of the learned weights has no judgment and counts as "
            f"not relevant."
        )


def gather_evidence(
    aligned: Aligned,
    make: Callable[[], Fuser],
    measure: MeasureLike,
    *,
    folds: int = 5,
    confidence: float = 0.95,
    seed: int = 0,
    current: Mapping[str, float] | Floats | None = None,
    progress: Progress = silent,
) -> tuple[Fuser, Evidence]:
    """Fit on all queries, cross-validate the same method, and set both beside what needs no learning.

    `current` is what is in use at present, as one more rival: weights by ranker, which multiply the same normalised
    scores, or the measure of every query.
    """
    check_aligned(aligned)
    measure = parse_measure(measure)
    n = len(aligned.queries)
    if n < 2:
        raise InputError(f"{n} judged query: expected at least 2 to learn and to hold out. Judge more queries.")
    with threads_for(aligned.scores.size):
        progress("learning", 0, 1)
        fuser = make()
        shared = share_fits(fuser, aligned)
        fuser = fit_shared(fuser, aligned, shared)
        progress("learning", 1, 1)
        held_out, fold_normalizers = cross_validate_aligned(
            make, aligned, measure, folds=min(folds, n), seed=seed, progress=progress, shared=shared
        )
    evaluator, ranks = (
        AlignedEvaluator(aligned, [measure]),
        rank_lists(aligned.raw, aligned.retrieved, aligned.starts),
    )
    singles = {name: evaluator.values_of_list(ranks, k)[:, 0] for k, name in enumerate(aligned.rankers)}
    n_rankers = len(aligned.rankers)
    prepared = fuser.prepare(aligned)
    rules = {
        UNIFORM: measure_queries(prepared, np.full(n_rankers, 1.0 / n_rankers), measure),
        RRF: evaluator.values_of_scores(add_reciprocal_ranks(ranks))[:, 0],
    }
    if isinstance(current, Mapping):
        rules[CURRENT] = measure_queries(prepared, current_weights(current, aligned.rankers), measure)
    elif current is not None:
        rules[CURRENT] = np.asarray(current, np.float64)
    else:
        pass  # nothing is in use yet, or it is not known
    train = measure_queries(prepared, fuser.weights_, measure)
    found = Evidence(
        measure=measure,
        query_ids=tuple(aligned.queries),
        train=train,
        held_out=held_out,
        singles=singles,
        rules=rules,
        best_name=aligned.rankers[0],
        interval=(0.0, 0.0),
        gains={},
        query_weights=aligned.query_weights,
        confidence=confidence,
        fold_normalizers=fold_normalizers,
        unjudged=unjudged_share(prepared, fuser.weights_),
    )
    return fuser, with_gains(found, seed)


def with_gains(evidence: Evidence, seed: int, *, tests: Sequence[Test] = get_args(Test)) -> Evidence:
    """Return the evidence with best ranker, gains and intervals, computed from the values of every query.

    `tests` are those of the gains over the best ranker and the rules; intervals do not depend on them.

    The best single ranker is chosen from the rankers, and the strongest rival from rankers and rules: the upper
    ends of their intervals allow for that.
    """
    singles, rules = evidence.singles, evidence.rules
    means = {name: evidence.mean(values) for name, values in singles.items()}
    best_name = max(means, key=means.__getitem__)
    intervals = GainIntervals(
        evidence.held_out.per_query,
        evidence.train,
        evidence.held_out.fold,
        evidence.query_weights,
        n_rankers=len(singles),
        measure=str(evidence.measure),
        confidence=evidence.confidence,
        seed=seed,
    )
    rankers = np.array(list(singles.values()))
    rivals = {BEST_SINGLE: singles[best_name], **rules}
    strongest = max(rivals, key=lambda rival: evidence.mean(rivals[rival]))
    candidates = {BEST_SINGLE: rankers} | {strongest: np.array([*singles.values(), *rules.values()])}
    gains = {
        name: intervals.gain_over(name, values, chosen_from=candidates.get(name), tests=tests)
        for name, values in rivals.items()
    }
    gains |= {
        own: gains[BEST_SINGLE] if name == best_name else intervals.gain_over(own, values, tests=("wilcoxon", "t"))
        for own, (name, values) in zip(ranker_ids(list(singles)), singles.items(), strict=True)
    }
    return replace(evidence, best_name=best_name, interval=intervals.interval(), gains=gains)


def current_weights(given: Mapping[str, float], rankers: Sequence[str]) -> Floats:
    """Return the weights in use at present in the rankers' order; rankers that are not named have none."""
    unknown = [name for name in given if name not in rankers]
    if unknown:
        raise InputError(
            f"current (--current): expected weights of {', '.join(rankers)}; found one of {unknown[0]!r}."
        )
    weights = np.array([given.get(name, 0.0) for name in rankers], np.float64)
    if not np.isfinite(weights).all() or (weights < 0.0).any() or not weights.any():
        found = ", ".join(f"{name}={weight:g}" for name, weight in given.items())
        raise InputError(
            f"current (--current): expected weights from 0 on, at least one of them above 0; found {found}."
        )
    return np.asarray(weights / weights.sum())


def unjudged_share(aligned: Aligned, weights: Floats) -> float | None:
    """Return the share of the top 10 without a judgment, over the queries that have documents; None without any."""
    judged = measure_queries(aligned, weights, f"Judged@{TOP}")
    with_docs = np.diff(aligned.starts) > 0
    return 1.0 - float(judged[with_docs].mean()) if with_docs.any() else None


def single_values(aligned: Aligned, name: str, measure: Measure) -> Floats:
    """Return the measure of one ranker's list per query, without the documents of the others."""
    return single_table(aligned, name, [measure])[:, 0]


def single_table(aligned: Aligned, name: str, measures: Sequence[Measure]) -> Floats:
    """Return the (queries, measures) values of one ranker's list."""
    own = select_rankers(aligned, [name])
    if len(own.doc) == 0:
        return np.zeros((len(own.queries), len(measures)))
    return np.asarray(evaluate_aligned(own, np.ascontiguousarray(own.raw[:, 0]), measures).values)


def with_evidence(model: Model, aligned: Aligned, evidence: Evidence, *, seed: int = 0) -> Model:
    """Return the model with the figures of its training and the fingerprint of its data; `seed` dealt the folds."""
    return with_figures(model, fingerprint(aligned), evidence, seed=seed)


def with_figures(model: Model, digest: str, evidence: Evidence, *, seed: int = 0) -> Model:
    """Return the model with the figures of its training and a digest of its data."""
    gain, strongest = evidence.gains[BEST_SINGLE], evidence.gains[evidence.strongest]
    training = {
        **model.training,
        "queries": len(evidence.query_ids),
        "train": evidence.mean(evidence.train),
        "held_out": evidence.held_out.mean,
        "folds": len(evidence.held_out.weights),
        "seed": seed,
        "best_single": evidence.best_name,
        "gain_over_best_single": gain.difference,
        "gain_interval": [gain.low, gain.high],
        "p_wilcoxon": gain.p_values["wilcoxon"],
        "strongest_rival": evidence.strongest,
        "gain_over_strongest": strongest.difference,
        "gain_over_strongest_interval": [strongest.low, strongest.high],
    }
    return replace(model, measure=str(evidence.measure), training=training, fingerprint=digest)
