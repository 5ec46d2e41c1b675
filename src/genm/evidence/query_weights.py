"""What weights that differ from query to query are worth beside the global ones: held out, over all and by group.

The folds are those of the evidence of the global weights, so both are compared on the same queries. The criterion
is that of all evidence: a gain counts as shown where its interval leaves out 0. Looking at several groups is
corrected for as Holm (1979) does: of m groups the clearest gets an interval at the level 1 - 0.05 / m, the next
one at 1 - 0.05 / (m - 1), and so on until an interval holds 0; the rest have the level of that one. The row over
all groups is one question of its own, at 95 %.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from genm import display
from genm._typing import Floats
from genm.align import Aligned, renormalize
from genm.evaluate import Contrast, Measure, evaluate_aligned
from genm.evidence.evidence import Evidence
from genm.evidence.intervals import GainIntervals
from genm.formatting import listed, signed
from genm.fuse import fuse_scores_by_query
from genm.grouping import Grouping, Queries, count_groups
from genm.learn.gate import GateFit, learn_gate
from genm.learn.groups import FEWEST_QUERIES, GroupFit, learn_groups
from genm.learn.objectives import Beta
from genm.progress import Progress, silent

GLOBAL = "global weights"
"""The row of one vector of weights for all queries."""

QueryWeights = Callable[[Aligned, NDArray[np.intp]], Floats]
"""What was learned: from aligned queries and their positions to a row of weights for each."""
Learn = Callable[[Aligned, NDArray[np.intp], Floats], QueryWeights]
"""Learns from aligned queries, their positions, and the global weights of the same queries."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryWeightsEvidence:
    """Held-out values of weights by group, or of a gate, beside those of the global weights."""

    kind: Literal["groups", "gate"]
    measure: Measure
    query_ids: tuple[str, ...]
    held_out: Floats
    """The measure of every query under weights learned without its fold."""
    global_values: Floats
    """The same of the global weights."""
    query_weights: Floats
    groups: tuple[str | None, ...]
    """The group of each query; all None for a gate."""
    overall: Contrast
    """The gain over the global weights on all queries."""
    gains: Mapping[str, Contrast]
    """The gain in each group of at least 10 queries, corrected for looking at several."""
    n_used: int
    """In how many folds the weights differed from query to query at all."""
    n_folds: int

    def __repr__(self) -> str:
        """Say the verdict on one line."""
        return f"<QueryWeightsEvidence {self.measure}: {self.verdict()}>"

    def to_pandas(self) -> Any:
        """Return a pandas frame: one row per query id, with its group and both held-out values."""
        columns = {"group": list(self.groups), GLOBAL: self.global_values, self.kind: self.held_out}
        return display.frame(columns, index=self.query_ids, index_name="query_id")

    @property
    def is_worth_it(self) -> bool:
        """Whether the gain over all queries is shown."""
        return self.overall.outcome == "better"

    def verdict(self) -> str:
        """Return in a sentence or two whether the queries' own weights are worth it."""
        gain = self.overall
        figures = f"{signed(gain.difference)} [{signed(gain.low)}, {signed(gain.high)}] {self.measure}"
        what, beats = {
            "groups": ("weights by group do", "weights by group beat"),
            "gate": ("the per-query gate does", "the per-query gate beats"),
        }[self.kind]
        if gain.outcome == "equal":
            said = f"Not worth it: {what} not differ from the global weights, held out"
        elif gain.outcome == "better":
            said = f"Worth it: {beats} the global weights, {figures}"
        elif gain.outcome == "worse":
            said = f"Not worth it: {what} worse than the global weights, {figures}"
        else:
            said = f"Not worth it so far: {what} not show a gain over the global weights, {figures}"
        better = [name for name, one in self.gains.items() if one.outcome == "better"]
        worse = [name for name, one in self.gains.items() if one.outcome == "worse"]
        said += f"; better in {listed(better)}" if better else ""
        said += f"; worse in {listed(worse)}" if worse else ""
        return f"{said}."


def group_evidence(
    aligned: Aligned,
    groups: Sequence[str | None],
    centre: Floats,
    evidence: Evidence,
    *,
    grouping: Grouping | None = None,
    level: int = 1,
    beta: Beta = "auto",
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[GroupFit, QueryWeightsEvidence]:
    """Learn weights by group around the global ones, on all queries and without each fold, and compare.

    `aligned` is normalised as the global weights (`centre`) want it; `evidence` is theirs.
    """

    def learn(part: Aligned, positions: NDArray[np.intp], around: Floats) -> GroupFit:
        names = [groups[q] for q in positions.tolist()]
        return learn_groups(
            part, names, around, grouping=grouping, measure=evidence.measure, level=level, beta=beta, seed=seed
        )

    def weights_of(fit: GroupFit, around: Floats) -> QueryWeights:
        known = fit.groups.weights
        return lambda _, positions: np.array(
            [known.get(groups[q] or "", tuple(around.tolist())) for q in positions.tolist()]
        ).reshape(len(positions), len(around))

    whole = learn(aligned, np.arange(len(aligned.queries)), centre)
    held_out, n_used = _held_out(
        aligned, evidence, lambda part, at, around: weights_of(learn(part, at, around), around), progress
    )
    train = _values(aligned, weights_of(whole, centre)(aligned, np.arange(len(aligned.queries))), evidence.measure)
    return whole, _evidence("groups", aligned, evidence, held_out, train, tuple(groups), n_used, seed)


def gate_evidence(
    aligned: Aligned,
    centre: Floats,
    evidence: Evidence,
    *,
    queries: Queries | None = None,
    level: int = 1,
    beta: Beta = "auto",
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[GateFit, QueryWeightsEvidence]:
    """Learn a per-query gate around the global weights, on all queries and without each fold, and compare."""

    def learn(part: Aligned, around: Floats) -> GateFit:
        return learn_gate(
            part, around, queries=queries, measure=evidence.measure, level=level, beta=beta, seed=seed
        )

    def weights_of(fit: GateFit, around: Floats) -> QueryWeights:
        gate = fit.gate
        if gate is None:
            return lambda part, _: np.tile(around, (len(part.queries), 1))
        return lambda part, _: gate.weights(part, queries)[0]

    whole = learn(aligned, centre)
    held_out, n_used = _held_out(
        aligned, evidence, lambda part, _, around: weights_of(learn(part, around), around), progress
    )
    everywhere = np.arange(len(aligned.queries))
    train = _values(aligned, weights_of(whole, centre)(aligned, everywhere), evidence.measure)
    none: tuple[str | None, ...] = (None,) * len(aligned.queries)
    return whole, _evidence("gate", aligned, evidence, held_out, train, none, n_used, seed)


def _held_out(aligned: Aligned, evidence: Evidence, learn: Learn, progress: Progress) -> tuple[Floats, int]:
    """Return the measure of every query under weights learned without its fold, and in how many folds they vary."""
    fold, n_folds = evidence.held_out.fold, len(evidence.held_out.weights)
    values, n_used = np.zeros(len(fold)), 0
    for f in range(n_folds):
        progress("cross-validating weights by query", f, n_folds)
        normalizers, around = evidence.fold_normalizers[f], evidence.held_out.weights[f]
        scaled = aligned if normalizers == aligned.normalizers else renormalize(aligned, normalizers)
        inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        part = scaled.select(outside)
        weights = learn(scaled.select(inside), inside, around)(part, outside)
        n_used += bool((weights != around).any())
        values[outside] = _values(part, weights, evidence.measure)
    progress("cross-validating weights by query", n_folds, n_folds)
    return values, n_used


def _values(aligned: Aligned, weights: Floats, measure: Measure) -> Floats:
    return np.asarray(evaluate_aligned(aligned, fuse_scores_by_query(aligned, weights), [measure]).values[:, 0])


def _evidence(
    kind: Literal["groups", "gate"],
    aligned: Aligned,
    evidence: Evidence,
    held_out: Floats,
    train: Floats,
    groups: tuple[str | None, ...],
    n_used: int,
    seed: int,
) -> QueryWeightsEvidence:
    def contrast(chosen: NDArray[np.intp], confidence: float) -> Contrast:
        intervals = GainIntervals(
            held_out[chosen],
            train[chosen],
            evidence.held_out.fold[chosen],
            evidence.query_weights[chosen],
            n_rankers=len(aligned.rankers),
            measure=str(evidence.measure),
            confidence=confidence,
            seed=seed,
        )
        return intervals.gain_over(GLOBAL, evidence.held_out.per_query[chosen])

    names = np.array([group or "" for group in groups])
    places = {name: np.flatnonzero(names == name) for name in count_groups(groups)}
    large = {
        name: at
        for name, at in places.items()
        if len(at) >= FEWEST_QUERIES and evidence.query_weights[at].sum() > 0.0
    }
    return QueryWeightsEvidence(
        kind=kind,
        measure=evidence.measure,
        query_ids=evidence.query_ids,
        held_out=held_out,
        global_values=evidence.held_out.per_query,
        query_weights=evidence.query_weights,
        groups=groups,
        overall=contrast(np.arange(len(groups)), evidence.confidence),
        gains=step_down(large, contrast, evidence.confidence),
        n_used=n_used,
        n_folds=len(evidence.held_out.weights),
    )


def step_down(
    places: Mapping[str, NDArray[np.intp]],
    contrast: Callable[[NDArray[np.intp], float], Contrast],
    confidence: float,
) -> dict[str, Contrast]:
    """Return a contrast for each group, at levels that allow for their number (Holm 1979); in the given order."""
    alone = {name: contrast(at, confidence) for name, at in places.items()}

    def clearness(name: str) -> float:
        one = alone[name]
        return abs(one.difference) / (one.high - one.low) if one.high > one.low else 0.0

    found: dict[str, Contrast] = {}
    left = len(places)
    for name in sorted(places, key=clearness, reverse=True):
        found[name] = contrast(places[name], 1.0 - (1.0 - confidence) / left)
        if found[name].outcome in ("better", "worse"):
            left -= 1
    return {name: found[name] for name in places}
