"""The loss without each ranker, held out, and the one rule that says which rankers to keep.

`genm fit`, `genm report` and `genm explain` all ask `verdict_of`, of figures that are equal to the last digit: each
subset is learned on the same folds, whatever else is learned beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from genm._math.linear_algebra import weighted_mean
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import InputError
from genm.evaluate import Measure, compare_runs
from genm.evidence.intervals import intervals_with_learning, loss_learning_variance
from genm.evidence.resampling import LeftOut
from genm.explain.attribution import measure_of
from genm.explain.subset_choice import joint_interval
from genm.explain.subsets import SHARED, SubsetValues, options_for
from genm.formatting import listed
from genm.learn import find_method, is_method, make_fuser
from genm.learn.auto import Signs
from genm.model import Model
from genm.progress import Progress, silent

Verdict = Literal["keep", "hurts", "not needed", "undecided"]
"""keep: the loss without it is significant; hurts: the gain without it is; not needed: it is shown that leaving it
out costs next to nothing; undecided: too few queries to tell."""

VERDICT_TEXTS: dict[Verdict, str] = {
    "keep": "keep",
    "hurts": "leave out: hurts",
    "not needed": "leave out: not needed",
    "undecided": "undecided",
}
"""The verdicts as tables show them."""
NEGLIGIBLE_LOSS = 0.005
"""A loss below this counts as nothing."""
MOST_SCORES, MOST_SCORES_FROM_SCRATCH = 120_000_000, 2_000_000
"""The largest number of scores in all subsets together, of methods that share work and of others: some seconds."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One estimate over the queries, with its confidence interval."""

    value: float
    low: float
    high: float
    """Interval for this figure alone: Student's t over the queries, widened by the variance of learning."""
    joint_low: float
    joint_high: float
    """Interval that holds for all rankers together (the same, Bonferroni)."""


def verdict_of(loss: Figure, margin: float) -> Verdict:
    """Return the verdict on a ranker, by the joint interval of the loss without it."""
    if loss.joint_low > 0.0:
        return "keep"
    if loss.joint_high < 0.0:
        return "hurts"
    return "not needed" if loss.joint_high <= margin else "undecided"


class HasLoss(Protocol):
    """A ranker and the loss without it: `RankerLoss` or `RankerWorth`."""

    @property
    def name(self) -> str:
        """The ranker's name."""

    @property
    def loss(self) -> Figure:
        """What is lost when it is left out and the others are learned again."""


class HasLosses(Protocol):
    """All rankers with their losses: `Losses` or `Worth`."""

    @property
    def measure(self) -> Measure:
        """What the losses are losses of."""

    @property
    def confidence(self) -> float:
        """The level of the intervals."""

    @property
    def margin(self) -> float:
        """A loss below this counts as nothing."""

    @property
    def rankers(self) -> Sequence[HasLoss]:
        """One entry for each ranker."""


@dataclass(frozen=True, slots=True)
class RankerLoss:
    """What leaving one ranker out costs."""

    name: str
    loss: Figure
    """What is lost when it is left out and the others are learned again, held out."""
    p: float
    """Of the loss, by the paired Wilcoxon test, corrected over the rankers by Holm's method. It decides nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """What leaving each ranker out costs on queries held out, and what to do about it."""

    measure: Measure
    method: str
    n_queries: int
    folds: int
    value: float
    """The held-out mean of all rankers together, learned as the subsets are."""
    rankers: tuple[RankerLoss, ...]
    confidence: float
    margin: float
    left_out: LeftOut
    """What all rankers reach, then the others without each of them."""

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each ranker."""
        return {part.name: verdict_of(part.loss, self.margin) for part in self.rankers}

    @property
    def leave_out(self) -> tuple[str, ...]:
        """The rankers that hurt or are not needed, each by itself."""
        return tuple(name for name, verdict in self.verdicts.items() if verdict in ("hurts", "not needed"))

    def advice(self) -> list[str]:
        """Say which rankers to leave out and why; empty where none is."""
        return [
            *(about_ranker(self, part) for part in self.rankers if part.name in self.leave_out),
            *not_all_together(self),
        ]


def measure_losses(
    aligned: Aligned,
    *,
    method: str = "auto",
    measure: Measure,
    folds: int = 5,
    seed: int = 0,
    signs: Signs = "positive",
    confidence: float = 0.95,
    margin: float = NEGLIGIBLE_LOSS,
    progress: Progress = silent,
) -> Losses:
    """Leave out each ranker in turn, learn the others again, and measure the loss on queries held out.

    `signs="any"` lets weights be negative, as in `AutoFuser`.
    """
    values = SubsetValues(
        aligned, method=method, measure=measure, folds=folds, seed=seed, signs=signs, progress=progress
    )
    return _losses(aligned, method, measure, values.folds, confidence, margin, leave_each_out(values))


def model_losses(
    model: Model,
    aligned: Aligned,
    *,
    folds: int = 5,
    seed: int = 0,
    known: LeftOut | None = None,
    progress: Progress = silent,
) -> Losses:
    """Return the losses by the model's own method and measure; `aligned` must be aligned for the model.

    `known` is `Losses.left_out` of the same folds, from the evidence file: nothing is learned then.
    """
    measure = measure_of(model, None)
    if known is not None:
        return _losses(aligned, model.method, measure, folds, 0.95, NEGLIGIBLE_LOSS, known)
    return measure_losses(
        aligned,
        method=model.method,
        measure=measure,
        folds=folds,
        seed=seed,
        signs=signs_of(model, model.method),
        progress=progress,
    )


def _losses(
    aligned: Aligned,
    method: str,
    measure: Measure,
    folds: int,
    confidence: float,
    margin: float,
    left_out: LeftOut,
) -> Losses:
    return Losses(
        measure=measure,
        method=method,
        n_queries=len(aligned.queries),
        folds=folds,
        value=weighted_mean(left_out.held_out[0], aligned.query_weights),
        rankers=losses_of(aligned, left_out, folds, confidence),
        confidence=confidence,
        margin=margin,
        left_out=left_out,
    )


def why_no_losses(model: Model, aligned: Aligned) -> str:
    """Say why the losses of a model are not computed in passing; empty where they are."""
    n_rankers = len(aligned.rankers)
    if n_rankers < 2:
        return "There is one ranker: there is nothing to leave out."
    if not is_method(model.method):
        return (
            f"The method {model.method} cannot be learned again, so no ranker was left out to see what it is worth."
        )
    try:
        make_fuser(
            model.method, **options_for(model.method, measure_of(model, None), signs_of(model, model.method))
        )
    except InputError:
        return (
            f"The method {model.method} does not maximise {model.measure}, so no ranker was left out on trial; "
            f"genm explain --measure AP, or --method auto, does it."
        )
    if int((aligned.n_relevant(model.relevance_level) > 0).sum()) < 2:
        return "Fewer than 2 queries have a relevant document: what a ranker is worth cannot be measured."
    shares_work = find_method(model.method).name in SHARED
    if aligned.scores.size * (n_rankers + 1) > (MOST_SCORES if shares_work else MOST_SCORES_FROM_SCRATCH):
        return (
            f"With {aligned.scores.size:,} scores, learning again without each ranker would take minutes; genm "
            f"explain does it."
        )
    return ""


def signs_of(model: Model, method: str) -> Signs:
    """Return which signs the subsets of a model may have when they are learned by a method: those of the model."""
    return model.signs if method == model.method and "signs" in find_method(method).parameters else "positive"


def leave_each_out(values: SubsetValues) -> LeftOut:
    """Learn all rankers together, then without each of them."""
    everyone = values.everyone
    subsets = [everyone, *(everyone & ~(1 << k) for k in range(len(values.aligned.rankers)))]
    values.learn(subsets)
    tables = [values.table(subset) for subset in subsets]
    return LeftOut(np.array([table.held_out for table in tables]), np.array([table.training for table in tables]))


def losses_of(aligned: Aligned, left_out: LeftOut, folds: int, confidence: float) -> tuple[RankerLoss, ...]:
    """Return the loss without each ranker, from what `leave_each_out` returns."""
    n_rankers = len(aligned.rankers)
    learning = loss_learning_variance(*left_out, aligned.query_weights, folds)
    scaled = left_out.held_out * (
        aligned.query_weights / aligned.query_weights.mean()
    )  # a plain mean is the weighted one
    columns = np.ascontiguousarray((scaled[0] - scaled[1:]).T)
    tested = {"nothing": np.zeros(len(columns)), **{f"{c}": column for c, column in enumerate(columns.T)}}
    tests = compare_runs(tested, tests=("wilcoxon",), n_resamples=1).contrasts
    figures = figures_of(columns, confidence, n_rankers, learning)
    return tuple(
        RankerLoss(name, figure, test.corrected["wilcoxon"])
        for name, figure, test in zip(aligned.rankers, figures, tests, strict=True)
    )


def figures_of(columns: Floats, confidence: float, n_rankers: int, learning: Floats) -> list[Figure]:
    """Return the mean of each column with its intervals; `learning` is what learning adds to its variance."""
    named = {"nothing": np.zeros(len(columns)), **{f"{c}": column for c, column in enumerate(columns.T)}}
    values = [contrast.difference for contrast in compare_runs(named, tests=(), confidence=confidence).contrasts]
    own = intervals_with_learning(columns, confidence, learning)
    joint = joint_interval(columns, confidence, n_rankers, learning)
    return [Figure(*row) for row in zip(values, *(ends.tolist() for ends in (*own, *joint)), strict=True)]


def about_ranker(found: HasLosses, part: HasLoss) -> str:
    """Say what leaving one ranker out would do, with the interval that the verdict rests on."""
    measure, loss = str(found.measure), part.loss
    interval = f"joint {found.confidence:.0%} interval {signed(loss.joint_low)} to {signed(loss.joint_high)}"
    others = [other.name for other in found.rankers if other.name != part.name]
    beside = f"beside {others[0]}" if len(others) == 1 else "beside the others"
    match verdict_of(loss, found.margin):
        case "keep":
            return f"Keep {part.name}: {beside} it is worth {signed(loss.value)} {measure} ({interval})."
        case "hurts":
            rest = f"{others[0]} does" if len(others) == 1 else "the others do"
            return f"Leave out {part.name}: {rest} better without it, by {-loss.value:.4f} {measure} ({interval})."
        case "not needed":
            return (
                f"Leave out {part.name}: that costs nothing ({signed(loss.value)} {measure}, {interval}; "
                f"less than {found.margin:g} counts as nothing)."
            )
        case _:
            return (
                f"{part.name}: too few queries to tell what it is worth {beside} ({signed(loss.value)} {measure}, "
                f"{interval})."
            )


def not_all_together(found: HasLosses) -> list[str]:
    """Warn that rankers that are not needed may stand in for each other; empty where at most one is not."""
    free = [part.name for part in found.rankers if verdict_of(part.loss, found.margin) == "not needed"]
    if len(free) < 2:
        return []
    return [
        f"That holds for each of {listed(free)} by itself, not for all together: they may stand in for each other."
    ]


def signed(value: float) -> str:
    """Return a difference to four digits with its sign; zero is positive."""
    text = f"{value:+.4f}"
    return "+0.0000" if text == "-0.0000" else text
