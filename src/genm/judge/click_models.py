"""What clicks say about documents once the bias of positions is removed.

Lists that were shown are given as arrays: `pair` (lists, positions) is the number of the (query, document) pair at
each position, -1 beyond the end of a list; `clicked` has the same shape; `times` says how often this list was shown
with these clicks. Every model gives each pair a value, its evidence and a standard error.

| model | clicks | fitted by |
|---|---|---|
| pbm | examined(position) and attractive(pair): position-based model | EM, or harvested positions |
| dbn | the user reads downwards and clicks what attracts until satisfied or tired | EM |
| coec | none: clicks over the clicks that the positions lead one to expect | counting |

dbn is the dynamic Bayesian network of Chapelle and Zhang (2009). Harvested positions (Agarwal and others 2019): a
document that was shown at several positions for the same query has the same attraction at each, so the ratio of its
click rates is that of the positions' examination. Where a log has enough such documents nothing else has to be
assumed; EM needs the model to hold.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from genm._typing import Bools, Floats, Ints

PRIOR_CLICKS, PRIOR_SHOWN = 0.5, 2.0
"""Added to every pair's clicks and (examined) showings: a pair without evidence has a value of a quarter."""
LEAST_SHARED = 200
"""Showings that two positions must share, in documents shown at both, to harvest their ratio."""
LEAST_EXAMINED = 1e-3
_STEPS = 200
_TOLERANCE = 1e-6


class ShownLists(NamedTuple):
    """Lists as they were shown and clicked."""

    pair: Ints
    clicked: Bools
    times: Floats
    n_pairs: int

    @property
    def shown(self) -> Bools:
        """(lists, positions) whether there is a document."""
        return np.asarray(self.pair >= 0)

    def by_pair(self, values: Floats) -> Floats:
        """Return the sums over all places of each pair; `values` is (lists, positions)."""
        shown = self.shown
        return np.bincount(self.pair[shown], values[shown], self.n_pairs).astype(np.float64)

    def repeated(self) -> Floats:
        """Return (lists, positions) how often each place was shown, 0 where there is no document."""
        return np.where(self.shown, self.times[:, None], 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Attraction:
    """What a click model found."""

    value: Floats
    """(pairs) from 0 to 1: the probability that a user who looks at the document finds it good."""
    evidence: Floats
    """(pairs) how many times users looked at it, as far as the model can tell."""
    error: Floats
    """(pairs) the standard error of the value."""
    examination: Floats
    """(positions) how likely a position is looked at, the first 1."""
    harvested: bool = False
    """Whether the examination comes from documents that were shown at several positions."""


def _attraction(clicks: Floats, evidence: Floats, examination: Floats, *, harvested: bool = False) -> Attraction:
    """Return values, shrunk where there is little evidence, with the standard errors of a binomial share."""
    n = evidence + PRIOR_SHOWN
    value = np.minimum((clicks + PRIOR_CLICKS) / n, 1.0)
    return Attraction(value, evidence, np.sqrt(value * (1.0 - value) / (n + 1.0)), examination, harvested)


def coec(lists: ShownLists) -> Attraction:
    """Return clicks over expected clicks; a position's expectation is its click rate over the whole log."""
    repeated = lists.repeated()
    rate = (repeated * lists.clicked).sum(axis=0) / np.maximum(repeated.sum(axis=0), 1.0)
    examination = np.maximum(rate / max(float(rate.max()), 1e-12), LEAST_EXAMINED)
    clicks = lists.by_pair(repeated * lists.clicked)
    return _attraction(clicks, lists.by_pair(repeated * examination), examination)


def harvest(lists: ShownLists) -> Floats | None:
    """Return how likely each position is examined, from documents shown at several; None without enough of them.

    For each two positions, over the pairs shown at both: click rates weighted by the smaller number of showings.
    The logarithms of the ratios are then fitted by least squares, weighted by the showings.
    """
    n_positions = lists.pair.shape[1]
    repeated, at = lists.repeated(), lists.pair.shape[1] * lists.pair + np.arange(n_positions)
    shown = lists.shown
    size = lists.n_pairs * n_positions
    times = np.bincount(at[shown], repeated[shown], size).reshape(-1, n_positions)
    clicks = np.bincount(at[shown], (repeated * lists.clicked)[shown], size).reshape(-1, n_positions)
    rate = np.divide(clicks, times, out=np.zeros_like(clicks), where=times > 0.0)
    rows, right, weight = [], [], []
    for a in range(n_positions):
        for b in range(a + 1, n_positions):
            both = np.minimum(times[:, a], times[:, b])
            first, second = float((both * rate[:, a]).sum()), float((both * rate[:, b]).sum())
            if both.sum() < LEAST_SHARED or first <= 0.0 or second <= 0.0:
                continue
            row = np.zeros(n_positions)
            row[a], row[b] = -1.0, 1.0
            rows.append(row)
            right.append(np.log(second / first))
            weight.append(1.0 / (1.0 / first + 1.0 / second))  # of a log ratio of two counts
    if not rows:
        return None
    root = np.sqrt(np.array(weight))
    matrix = np.array(rows)[:, 1:] * root[:, None]
    if np.linalg.matrix_rank(matrix) < n_positions - 1:
        return None
    logs = np.linalg.lstsq(matrix, np.array(right) * root, rcond=None)[0]
    return np.asarray(np.clip(np.exp(np.append(0.0, logs)), LEAST_EXAMINED, 1.0))


def pbm(lists: ShownLists, *, harvesting: bool = True) -> Attraction:
    """Fit the position-based model; positions are harvested where the log allows it, else found by EM."""
    repeated = lists.repeated()
    clicks = lists.by_pair(repeated * lists.clicked)
    fixed = harvest(lists) if harvesting else None
    examination = 1.0 / np.arange(1.0, lists.pair.shape[1] + 1.0) if fixed is None else fixed
    pair = np.maximum(lists.pair, 0)
    attraction = (clicks + PRIOR_CLICKS) / (lists.by_pair(repeated) + PRIOR_SHOWN)
    skipped = repeated * ~lists.clicked
    total = np.maximum(repeated.sum(axis=0), 1.0)
    for _ in range(_STEPS):
        a = attraction[pair]
        none = 1.0 - examination * a
        attractive = (1.0 - examination) * a / none  # given that there was no click
        examined = examination * (1.0 - a) / none
        new = (clicks + lists.by_pair(skipped * attractive) + PRIOR_CLICKS) / (
            lists.by_pair(repeated) + PRIOR_SHOWN
        )
        change = float(np.abs(new - attraction).max())
        attraction = new
        if fixed is None:
            examination = ((repeated * lists.clicked).sum(axis=0) + (skipped * examined).sum(axis=0)) / total
            examination = np.clip(examination / examination[0], LEAST_EXAMINED, 1.0)
        if change < _TOLERANCE:
            break
    evidence = lists.by_pair(repeated * examination)
    return _attraction(clicks, evidence, examination, harvested=fixed is not None)


def dbn(lists: ShownLists) -> Attraction:
    """Fit the dynamic Bayesian network; the value is attraction times satisfaction."""
    n_lists, n_positions = lists.pair.shape
    repeated, pair, shown = lists.repeated(), np.maximum(lists.pair, 0), lists.shown
    clicks = lists.by_pair(repeated * lists.clicked)
    attraction = (clicks + PRIOR_CLICKS) / (lists.by_pair(repeated) + PRIOR_SHOWN)
    satisfaction, going_on = np.full(lists.n_pairs, 0.5), 0.9
    clicked = lists.clicked & shown
    # whether a click follows: then the user surely went on
    later = np.zeros((n_lists, n_positions + 1), np.bool_)
    later[:, :-1] = np.logical_or.accumulate(clicked[:, ::-1], axis=1)[:, ::-1]
    examined = np.ones((n_lists, n_positions))
    for _ in range(_STEPS):
        a, s = attraction[pair], satisfaction[pair]
        # likelihood of all clicks from a position on, given that it is examined (seen) or not (unseen)
        seen = np.ones((n_lists, n_positions + 1))
        unseen = (~later).astype(np.float64)
        for r in range(n_positions - 1, -1, -1):
            after = going_on * seen[:, r + 1] + (1.0 - going_on) * unseen[:, r + 1]
            with_click = a[:, r] * (s[:, r] * unseen[:, r + 1] + (1.0 - s[:, r]) * after)
            without = (1.0 - a[:, r]) * after
            seen[:, r] = np.where(shown[:, r], np.where(clicked[:, r], with_click, without), 1.0)
        examined = np.ones((n_lists, n_positions))
        satisfied, stayed, could = np.zeros_like(examined), np.zeros_like(examined), np.zeros_like(examined)
        for r in range(n_positions):
            after = going_on * seen[:, r + 1] + (1.0 - going_on) * unseen[:, r + 1]
            end = s[:, r] * unseen[:, r + 1]
            satisfied[:, r] = np.where(clicked[:, r], end / np.maximum(end + (1.0 - s[:, r]) * after, 1e-300), 0.0)
            could[:, r] = examined[:, r] * (1.0 - satisfied[:, r])
            stayed[:, r] = could[:, r] * going_on * seen[:, r + 1] / np.maximum(after, 1e-300)
            if r + 1 < n_positions:
                examined[:, r + 1] = stayed[:, r]
        looked = lists.by_pair(repeated * examined)
        new = (clicks + PRIOR_CLICKS) / (looked + PRIOR_SHOWN)
        change = float(np.abs(new - attraction).max())
        attraction = np.minimum(new, 1.0 - 1e-9)
        satisfaction = (lists.by_pair(repeated * satisfied) + PRIOR_CLICKS) / (clicks + 2.0 * PRIOR_CLICKS)
        followed = repeated[:, :-1] * shown[:, 1:]
        going_on = float((followed * stayed[:, :-1]).sum() / max((followed * could[:, :-1]).sum(), 1e-12))
        going_on = min(max(going_on, 0.01), 0.999)
        if change < _TOLERANCE:
            break
    looked = lists.by_pair(repeated * examined)
    value = attraction * satisfaction
    error = np.sqrt(value * (1.0 - value) / (looked + PRIOR_SHOWN + 1.0))
    share = (repeated * examined).sum(axis=0) / np.maximum(repeated.sum(axis=0), 1e-300)
    return Attraction(value, looked, error, np.clip(share / max(share[0], 1e-300), 0.0, 1.0))


MODELS = {"pbm": pbm, "dbn": dbn, "coec": coec}
"""The click models by name."""
