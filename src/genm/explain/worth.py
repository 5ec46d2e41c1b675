"""What each ranker is worth to the ensemble: Shapley values, leave-one-out losses, and which rankers could go.

A game gives the worth of every set of players; a set is an integer whose bit k tells whether player k is in it.
Worths may be numbers or arrays, one number for each query: the values then come query by query, and their mean
is the value of the mean (Shapley 1953 calls this additivity).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from genm._typing import Floats
from genm.align import Aligned
from genm.errors import InputError
from genm.evaluate import Measure, MeasureLike, parse_measure
from genm.evidence import fingerprint
from genm.explain.agreement import Agreement, rank_agreement
from genm.explain.attribution import QueryGains, gains_by_query, measure_of
from genm.explain.losses import NEGLIGIBLE_LOSS, Figure, figures_of, leave_each_out, losses_of, signs_of
from genm.explain.subset_choice import Choice, choose_exhaustively, choose_greedily, weighted
from genm.explain.subsets import SubsetValues
from genm.learn import is_method
from genm.learn.auto import Signs
from genm.learn.objectives import with_level
from genm.model import Model
from genm.progress import Progress, silent
from genm.records import Note

Game = Callable[[int], Floats]

EXACT_UP_TO = 12
"""Rankers whose subsets are all gone through; of more, orders are sampled."""
ORDERS = 100
_MOST_ORDERS = 1_000_000
"""Sampled orders, half of them the reverse of the others, unless the caller says how many."""


def shapley_values(n_players: int, game: Game) -> Floats:
    """Return (players, ...) values by going through every set of players: exact, 2^n worths are asked for."""
    worth = [np.asarray(game(members), np.float64) for members in range(1 << n_players)]
    values = np.zeros((n_players, *worth[0].shape))
    for members in range(1 << n_players):
        share = (
            1.0 / (n_players * comb(n_players - 1, members.bit_count())) if members.bit_count() < n_players else 0.0
        )
        for player in range(n_players):
            if not members >> player & 1:
                values[player] += share * (worth[members | 1 << player] - worth[members])
    return values


def shapley_factors(n_players: int) -> list[dict[int, float]]:
    """Return for each player the factor of every set's worth in the player's value."""
    found: list[dict[int, float]] = []
    for player in range(n_players):
        own: dict[int, float] = {}
        for members in range(1 << n_players):
            n_others = (members & ~(1 << player)).bit_count()
            sign = 1.0 if members >> player & 1 else -1.0
            own[members] = sign / (n_players * comb(n_players - 1, n_others))
        found.append(own)
    return found


def sampled_factors(n_players: int, orders: Sequence[NDArray[np.int64]]) -> list[dict[int, float]]:
    """Return the same of values that are means over sampled orders."""
    found: list[dict[int, float]] = [{} for _ in range(n_players)]
    for order in orders:
        for player, before, after in growing_sets(order):
            for members, sign in ((after, 1.0), (before, -1.0)):
                found[player][members] = found[player].get(members, 0.0) + sign / len(orders)
    return found


def sampled_orders(n_players: int, n_orders: int, seed: int) -> list[NDArray[np.int64]]:
    """Return random orders of the players, every second one the one before it read backwards.

    Who comes early in an order comes late in the other, so what is added in the two varies less on average than in
    two independent ones (antithetic sampling).
    """
    rng = np.random.default_rng(seed)
    orders: list[NDArray[np.int64]] = []
    while len(orders) < n_orders:
        drawn = rng.permutation(n_players)
        orders += [drawn, drawn[::-1]]
    return orders


def growing_sets(order: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Yield (player, members before, members after) as the players join in this order."""
    before = 0
    for player in order.tolist():
        after = before | 1 << player
        yield player, before, after
        before = after


def sampled_values(n_players: int, game: Game, orders: list[NDArray[np.int64]]) -> Floats:
    """Return (pairs of orders, players, ...) what each player added, averaged over an order and its reverse.

    Their mean over the first axis estimates the Shapley values, and what they vary by tells how well. Every pair
    keeps the sum: all players together get what the whole is worth, less the empty set's worth.
    """
    shape = np.asarray(game(0)).shape
    added = np.zeros((len(orders) // 2, n_players, *shape))
    for number, order in enumerate(orders):
        for player, before, after in growing_sets(order):
            added[number // 2, player] += 0.5 * (game(after) - game(before))
    return added


@dataclass(frozen=True, slots=True)
class RankerWorth:
    """One ranker's part in the ensemble; all values are held out."""

    name: str
    alone: float
    """What it reaches by itself."""
    shapley: Figure
    """What it adds, averaged over all orders in which the rankers could have joined."""
    sampling_error: float
    """Standard error of the Shapley value because orders were sampled; 0 where all subsets were gone through."""
    loss: Figure
    """What is lost when it is left out and the others are learned again."""
    p: float
    """Of the loss, by the paired Wilcoxon test, corrected over the rankers by Holm's method."""


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """What the ensemble is worth and how that divides among its rankers."""

    measure: Measure
    method: str
    n_queries: int
    folds: int
    value: float
    """The held-out mean of all rankers together: the Shapley values sum to it, as no rankers are worth 0."""
    rankers: tuple[RankerWorth, ...]
    agreement: Agreement
    greedy: Choice
    exhaustive: Choice | None
    """None where the subsets were not all gone through."""
    n_subsets: int
    """How many subsets were learned and measured."""
    n_orders: int | None
    """How many orders were sampled; None where all subsets were gone through."""
    confidence: float
    margin: float


def measure_worth(
    aligned: Aligned,
    *,
    method: str = "auto",
    measure: MeasureLike = "AP",
    level: int = 1,
    folds: int = 5,
    seed: int = 0,
    signs: Signs = "positive",
    confidence: float = 0.95,
    margin: float = NEGLIGIBLE_LOSS,
    orders: int | None = None,
    progress: Progress = silent,
) -> Worth:
    """Learn subsets of the rankers, measure them on queries held out, and divide the value among the rankers.

    Every subset is learned anew by `method` on the training queries of each fold. Up to 12 rankers all subsets are
    gone through, of more `orders` (100) orders are sampled; a number asks for sampling in any case. `signs="any"`
    lets weights be negative, as in `AutoFuser`; a ranker alone has a positive one. Intervals allow
    for the queries and for the weights having been learned from them (`genm.evidence.intervals`).
    """
    _check(aligned, confidence, margin, orders)
    wanted = with_level(parse_measure(measure), level)
    n_rankers = len(aligned.rankers)
    values = SubsetValues(
        aligned, method=method, measure=wanted, folds=folds, seed=seed, signs=signs, progress=progress
    )
    everyone, agreement = values.everyone, cache(lambda: rank_agreement(aligned))
    if orders is None and n_rankers > EXACT_UP_TO:
        orders = ORDERS
    if orders is None:
        values.learn(range(everyone + 1), meanwhile=agreement)
        shapley, errors = shapley_values(n_rankers, lambda s: weighted(values, s)).T, np.zeros(n_rankers)
        factors = shapley_factors(n_rankers)
    else:
        drawn = sampled_orders(n_rankers, orders, seed)
        values.learn((after for order in drawn for _, _, after in growing_sets(order)), meanwhile=agreement)
        shapley, errors = _sampled(values, drawn)
        factors = sampled_factors(n_rankers, drawn)
    losses = losses_of(aligned, leave_each_out(values), values.folds, confidence)
    values.learn(1 << k for k in range(n_rankers))
    shares = figures_of(shapley, confidence, n_rankers, _learning(values, factors))
    parts = tuple(
        RankerWorth(
            name=name,
            alone=values.mean(1 << k),
            shapley=shares[k],
            sampling_error=float(errors[k]),
            loss=losses[k].loss,
            p=losses[k].p,
        )
        for k, name in enumerate(aligned.rankers)
    )
    return Worth(
        measure=wanted,
        method=method,
        n_queries=len(aligned.queries),
        folds=values.folds,
        value=values.mean(everyone),
        rankers=parts,
        agreement=agreement(),
        greedy=choose_greedily(values, confidence=confidence),
        exhaustive=None if orders is not None else choose_exhaustively(values, confidence=confidence),
        n_subsets=values.n_learned,
        n_orders=orders,
        confidence=confidence,
        margin=margin,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What each ranker contributes over all queries."""

    worth: Worth
    """Cross-validated: shares of the measure, losses, pairs, the smallest subset that is not worse."""
    gains: QueryGains
    """Query by query, under the model's own weights."""
    notes: tuple[Note, ...] = ()
    fit_held_out: float | None = None
    """The held-out value that `genm fit` measured on the same queries; None where it did not, or is not known."""


def explain_model(
    model: Model,
    aligned: Aligned,
    *,
    measure: str | None = None,
    method: str | None = None,
    folds: int | None = None,
    orders: int | None = None,
    confidence: float = 0.95,
    margin: float = NEGLIGIBLE_LOSS,
    seed: int | None = None,
    progress: Progress = silent,
) -> Explanation:
    """Measure what each ranker is worth, by the model's measure and method unless others are given.

    `aligned` must be aligned for the model, with judgments (`Model.align`). The other parameters are those of
    `measure_worth`; folds and their seed are those of the model's training, where it says them. Subsets of a model
    whose method is not one of ours are learned by "auto", and a note says so. A model that was learned with
    `signs="any"` has its subsets learned so too.
    """
    notes: tuple[Note, ...] = ()
    if method is None:
        method = model.method
        if not is_method(method):
            text = f"the model's method {method!r} cannot be learned again; subsets are learned by 'auto'."
            method, notes = "auto", (Note("other-method", 1, text),)
    worth = measure_worth(
        aligned,
        method=method,
        measure=measure_of(model, measure),
        level=model.relevance_level,
        folds=model.folds if folds is None else folds,
        orders=orders,
        confidence=confidence,
        margin=margin,
        seed=model.seed if seed is None else seed,
        signs=signs_of(model, method),
        progress=progress,
    )
    known = _fit_held_out(model, aligned, worth)
    notes += _other_figure(known, worth)
    return Explanation(worth, gains_by_query(aligned, model.weights, worth.measure), notes, known)


def _fit_held_out(model: Model, aligned: Aligned, worth: Worth) -> float | None:
    known = model.training.get("held_out")
    same = str(worth.measure) == model.measure and model.fingerprint == fingerprint(aligned)
    return known if same and isinstance(known, float) else None


def _other_figure(known: float | None, worth: Worth) -> tuple[Note, ...]:
    """Name the difference where `genm fit` measured another held-out value on the same queries."""
    if known is None or f"{known:.4f}" == f"{worth.value:.4f}":
        return ()
    text = (
        f"genm fit measured {known:.4f} {worth.measure} held out on these queries, not {worth.value:.4f}: it "
        f"learns more thoroughly than every subset is learned here (fewer starts, one round of inner folds), or "
        f"in other folds. Compare the figures of subsets with each other only."
    )
    return (Note("other-held-out", 1, text),)


def _check(aligned: Aligned, confidence: float, margin: float, orders: int | None) -> None:
    n_rankers, n_queries = len(aligned.rankers), len(aligned.queries)
    if not aligned.labelled:
        raise InputError("these runs carry no judgments. Give qrels to align_runs: worth is measured on them.")
    if n_rankers < 2:
        name = ", ".join(aligned.rankers)
        raise InputError(
            f"{n_rankers} ranker ({name}): expected at least 2; one by itself is worth what it reaches."
        )
    if n_queries < 2:
        raise InputError(
            f"{n_queries} judged query: expected at least 2, to learn from one and measure on another. "
            f"Judge more queries."
        )
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence: expected a number between 0 and 1, such as 0.95; found {confidence!r}.")
    if not 0.0 <= margin < np.inf:
        raise InputError(f"margin: expected a number of at least 0, such as {NEGLIGIBLE_LOSS}; found {margin!r}.")
    if orders is not None and (not 4 <= orders <= _MOST_ORDERS or orders % 2):
        raise InputError(
            f"orders: expected an even number from 4 to {_MOST_ORDERS:,}, such as {ORDERS}; found {orders!r:.40}."
        )


def _learning(values: SubsetValues, factors: Sequence[Mapping[int, float]]) -> Floats:
    """Return what learning adds to the variance of each Shapley value, a sum over subsets with these factors."""
    subsets = sorted({subset for own in factors for subset in own})
    variance = {subset: values.learning_variance(subset) for subset in subsets}
    return np.array([sum(factor**2 * variance[subset] for subset, factor in own.items()) for own in factors])


def _sampled(values: SubsetValues, drawn: list[NDArray[np.int64]]) -> tuple[Floats, Floats]:
    """Return (queries, K) Shapley values from sampled orders, and the standard error of their means."""
    n_rankers = len(values.aligned.rankers)
    added = sampled_values(n_rankers, lambda s: weighted(values, s), drawn)
    means = added.mean(axis=2)
    return added.mean(axis=0).T, means.std(axis=0, ddof=1) / np.sqrt(len(means))
