"""The exact fuser: as good as promised, proved where promised, and honest about the rest."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judged_cases import judgments, qrels_of, run_of, tied_runs
from problems import QuickExact, made_up

from genm._math.exact.line_search import GainLines, ascend_lines, value_at
from genm._math.exact.rank_gains import GainProblem
from genm.align import Aligned, align_runs
from genm.errors import ConvergenceWarning, InputError
from genm.evaluate import AlignedEvaluator, Measure, evaluate_aligned, parse_measure
from genm.learn import BarrierFuser, ExactFuser, NewtonFuser, OnlineFuser, fit
from genm.learn.exact import centre_of_plateau, gain_problem, plateau_around
from genm.learn.objectives import Problem

MEASURES_EXACT = [
    "AP", "AP@10", "P@5", "R@10", "RR", "RR@3", "nDCG", "nDCG@10", "Success@3", "Rprec", "Bpref", "Judged@8",
    "IPrec@0.3",
]  # fmt: skip

MEASURES = [
    "AP", "AP@3", "AP(rel=2)", "P@4", "P(rel=2)@2", "R@5", "RR", "RR@2", "nDCG", "nDCG@3", "nDCG(dcg='exp-log2')@5",
    "Success@2", "Rprec", "Rprec(rel=2)", "AP(judged_only=True)", "nDCG(judged_only=True)@3",
    "P(judged_only=True)@2", "Bpref", "Bpref(rel=2)", "Judged", "Judged@3", "IPrec@0.0", "IPrec@0.4", "IPrec@1.0",
    "IPrec(rel=2)@0.5", "IPrec(judged_only=True)@0.3",
]  # fmt: skip

WEIGHTS = np.array([0.5, 0.3, 0.2])


def reached(aligned: Aligned, weights: np.ndarray, measure: str = "AP") -> float:
    values = evaluate_aligned(aligned, weights, measure).values[:, 0]
    return float(aligned.query_weights @ values / aligned.query_weights.sum())


def best_of(aligned: Aligned, points: Iterable[np.ndarray]) -> dict[str, float]:
    """Return the most that any of these weights reaches, by measure: ranking is the same work for all of them."""
    evaluator = AlignedEvaluator(aligned, [parse_measure(measure) for measure in MEASURES_EXACT])
    shares = aligned.query_weights / aligned.query_weights.sum()
    found = np.max([shares @ evaluator.values(weights) for weights in points], axis=0)
    return dict(zip(MEASURES_EXACT, found.tolist(), strict=True))


def judged(aligned: Aligned) -> Aligned:
    """Return the data with a verdict on every third of the other documents, for measures that look at these."""
    others = (aligned.relevance != 1) & (np.arange(len(aligned.doc)) % 3 == 0)
    return replace(aligned, relevance=np.where(others, 0, aligned.relevance).astype(np.int32))


def grid(n_rankers: int, steps: int) -> list[np.ndarray]:
    points = np.stack(np.meshgrid(*[np.arange(steps + 1)] * (n_rankers - 1), indexing="ij"), -1)
    points = points.reshape(-1, n_rankers - 1)
    points = points[points.sum(axis=1) <= steps]
    return list(np.column_stack([points, steps - points.sum(axis=1)]) / steps)


@settings(deadline=None, max_examples=4)
@given(
    st.integers(0, 10**6),
    st.lists(st.floats(0.0, 1.2), min_size=2, max_size=4),
    st.integers(2, 6),
    st.integers(10, 30),
    st.booleans(),
)
def test_never_below_the_smooth_fusers_in_training(
    seed: int, quality: list[float], n_queries: int, n_docs: int, coarse: bool
) -> None:
    """With coarse scores documents tie all over the place."""
    aligned = made_up(seed, quality=tuple(quality), n_queries=n_queries, n_docs=n_docs, n_relevant=3)
    if coarse:
        aligned.scores[:] = np.round(aligned.scores, 1)
    exact = ExactFuser().fit(aligned)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        smooth = [fuser.fit(aligned).weights_ for fuser in (NewtonFuser(), BarrierFuser(), OnlineFuser())]
    assert exact.objective_ >= max(reached(aligned, weights) for weights in smooth) - 1e-12


def test_no_line_through_the_weights_improves_them() -> None:
    for seed in range(3):
        aligned = made_up(seed, quality=(0.7, 0.6, 0.5), n_queries=12)
        tasks = gain_problem(aligned, parse_measure("AP"))
        fuser = ExactFuser().fit(aligned)
        assert ascend_lines(GainLines(tasks), fuser.best_weights_)[1] == pytest.approx(fuser.best_value_, abs=1e-12)


TWO = judged(made_up(2, quality=(0.9, 0.7), n_queries=10))


@pytest.fixture(scope="module")
def best_of_two() -> dict[str, float]:
    return best_of(TWO, (np.array([w, 1 - w]) for w in np.linspace(0.0005, 0.9995, 700)))


@pytest.mark.parametrize("measure", MEASURES_EXACT)
def test_two_rankers_no_scan_finds_more(measure: str, best_of_two: dict[str, float]) -> None:
    fuser = QuickExact(measure=measure).fit(TWO)
    assert fuser.objective_ >= best_of_two[measure] - 1e-12
    assert fuser.objective_ == pytest.approx(reached(TWO, fuser.weights_, measure), abs=1e-12)
    assert fuser.bound_ == pytest.approx(fuser.objective_, abs=1e-12)
    assert fuser.gap_ == pytest.approx(0.0, abs=1e-12)
    assert "nothing is left" in fuser.verdict()


THREE = judged(made_up(6, quality=(0.8, 0.7, 0.5), n_queries=5, n_docs=30, n_relevant=4))


@pytest.fixture(scope="module")
def best_of_three() -> dict[str, float]:
    """Inside the simplex, where documents tie by accident only."""
    return best_of(THREE, [0.999 * w + 0.001 / 3 for w in grid(3, 23)])


@pytest.mark.parametrize("measure", MEASURES_EXACT)
def test_three_rankers_no_grid_finds_more_than_the_certified_bound(
    measure: str, best_of_three: dict[str, float]
) -> None:
    proved = QuickExact(measure=measure, certify=True, seconds=600.0).fit(THREE)
    assert proved.bound_ is not None
    assert proved.objective_ >= max(step.objective for step in proved.history_) - 1e-12
    assert proved.gap_ == pytest.approx(0.0, abs=1e-9)
    assert best_of_three[measure] <= proved.bound_ + 1e-9


@pytest.mark.parametrize(("make", "measure"), [(ExactFuser, "AP"), (QuickExact, "nDCG@10"), (QuickExact, "Bpref")])
def test_what_is_not_proved_is_not_said_to_be(make: type[ExactFuser], measure: str) -> None:
    plain = make(measure=measure).fit(THREE)
    proved = make(measure=measure, certify=True, seconds=600.0).fit(THREE)
    assert plain.bound_ is plain.gap_ is plain.optimum_ is None
    assert "does not prove" in plain.verdict()
    assert proved.objective_ >= plain.objective_
    assert proved.bound_ >= plain.objective_ - 1e-12


def test_a_time_limit_says_what_is_left() -> None:
    aligned = made_up(1, quality=(0.6, 0.6, 0.6, 0.5))
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1e-06 s: AP 0\.\d+; at most .* is left"):
        fuser = QuickExact(certify=True, seconds=1e-6).fit(aligned)
    assert not fuser.converged_
    assert fuser.gap_ is not None
    assert 0.0 < fuser.gap_ == fuser.bound_ - fuser.best_value_


def test_a_gap_that_is_allowed_is_no_failure() -> None:
    fuser = QuickExact(certify=True, gap=0.05, seconds=600.0).fit(made_up(1))
    assert fuser.converged_
    assert fuser.gap_ is not None
    assert 0.0 <= fuser.gap_ <= 0.05


def test_the_centre_loses_no_more_than_allowed() -> None:
    aligned = made_up(7)
    best, centre = ExactFuser().fit(aligned), ExactFuser(weights="centre", plateau_loss=0.01).fit(aligned)
    assert centre.best_weights_.tolist() == best.weights_.tolist() == best.best_weights_.tolist()
    assert centre.weights_.tolist() != best.weights_.tolist()
    assert best.objective_ - 0.01 - 1e-12 <= centre.objective_ <= best.objective_
    assert centre.objective_ == pytest.approx(reached(aligned, centre.weights_), abs=1e-12)
    assert (centre.plateau_.width >= best.plateau_.width).all()
    assert best.plateau_.loss == 0.001


def test_weights_of_queries_count() -> None:
    """All weight on half of the queries is learning from that half."""
    aligned = made_up(8, quality=(0.6, 0.5), n_queries=8)
    half = replace(aligned, query_weights=np.array([1.0, 0.0] * 4))
    fuser = QuickExact().fit(half)
    alone = QuickExact().fit(aligned.select(np.arange(0, 8, 2)))
    assert fuser.objective_ == pytest.approx(alone.objective_, abs=1e-12)
    heavy = QuickExact().fit(replace(aligned, query_weights=np.array([1.0, 1e-9] * 4)))
    assert heavy.objective_ == pytest.approx(alone.objective_, abs=1e-6)
    assert QuickExact().fit(aligned).objective_ != pytest.approx(alone.objective_, abs=1e-6)


def test_the_level_decides_what_is_relevant() -> None:
    aligned = made_up(9, quality=(0.6, 0.5, 0.4))
    relevant = np.flatnonzero(aligned.relevance == 1)
    aligned.relevance[relevant[::2]] = 2
    strict = QuickExact(level=2).fit(aligned)
    assert strict.objective_ == pytest.approx(reached(aligned, strict.weights_, "AP(rel=2)"), abs=1e-12)
    named = QuickExact(measure="AP(rel=2)").fit(aligned)
    assert strict.weights_.tolist() == named.weights_.tolist()
    assert (named.to_model().measure, named.to_model().relevance_level) == ("AP(rel=2)", 2)
    graded = QuickExact(measure="nDCG@5").fit(aligned)
    assert graded.objective_ == pytest.approx(reached(aligned, graded.weights_, "nDCG@5"), abs=1e-12)


def test_relevant_documents_that_nobody_returned_count() -> None:
    aligned = made_up(10, quality=(0.8, 0.6))
    n = len(aligned.queries)
    missing = replace(aligned, unretrieved_starts=np.arange(n + 1) * 5, unretrieved=np.ones(5 * n, np.int32))
    full, half = QuickExact().fit(aligned), QuickExact().fit(missing)
    assert half.objective_ == pytest.approx(full.objective_ / 2, abs=1e-12)  # five of ten relevant are there
    assert half.bound_ == pytest.approx(half.objective_, abs=1e-12)


def test_nothing_relevant_returned_is_no_crash() -> None:
    aligned = made_up(11)
    n = len(aligned.queries)
    lost = replace(aligned, unretrieved_starts=np.arange(n + 1), unretrieved=np.ones(n, np.int32))
    lost.relevance[:] = 0
    for certify in (False, True):
        fuser = QuickExact(certify=certify).fit(lost)
        assert fuser.objective_ == 0.0
        assert fuser.weights_.sum() == pytest.approx(1.0)
        assert fuser.plateau_.width.tolist() == [1.0, 1.0, 1.0]


def test_one_ranker_is_proved_at_once() -> None:
    fuser = ExactFuser().fit(made_up(12, quality=(0.8,)))
    assert (fuser.weights_.tolist(), fuser.gap_, fuser.bound_) == ([1.0], 0.0, fuser.objective_)


def test_weights_that_owe_more_to_a_tie_are_kept_and_leave_no_gap() -> None:
    """The relevant document ties under the second ranker alone and wins by its row; any mixture loses it."""
    aligned = made_up(0, quality=(1.0, 1.0), n_queries=2, n_docs=2, n_relevant=1)
    aligned.relevance[:] = [1, 0, 1, 0]
    aligned.scores[:] = [[0.25, 0.25], [0.5, 0.25]] * 2
    fuser = ExactFuser().fit(aligned)
    assert fuser.weights_.tolist() == [0.0, 1.0]
    assert (fuser.objective_, fuser.bound_, fuser.gap_) == (1.0, 0.5, 0.0)


def test_the_seed_decides_the_random_lines() -> None:
    aligned = made_up(13, quality=(0.5,) * 4, n_queries=10, n_docs=40)
    same = [QuickExact(seed=3).fit(aligned).weights_.tolist() for _ in range(2)]
    assert same[0] == same[1]
    assert any(QuickExact(seed=s).fit(aligned).weights_.tolist() != same[0] for s in (0, 2))


def test_history_tells_the_measure_and_map() -> None:
    aligned = made_up(14)
    fuser = ExactFuser(measure="nDCG@10").fit(aligned)
    last = fuser.history_[-1]
    assert last.objective == fuser.objective_ == max(step.objective for step in fuser.history_)
    assert last.exact == pytest.approx(Problem(aligned, beta=1.0).exact(fuser.weights_))
    assert fuser.n_iter_ == len(fuser.history_)
    assert {step.start for step in fuser.history_} == {0, 1}


def test_by_its_name_it_takes_every_measure() -> None:
    for measure in ("nDCG@10", "Bpref", "Judged@5", "IPrec@0.2"):
        fuser = fit(made_up(15, quality=(0.8, 0.6), n_queries=4), method="exact", measure=measure)
        assert isinstance(fuser, ExactFuser)
        assert fuser.to_model().measure == measure


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "middle"},
        {"plateau_loss": -0.1},
        {"gap": -1.0},
        {"seconds": 0.0},
        {"n_climbs": 0},
        {"n_random": -1},
    ],
)
def test_senseless_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(options))}="):
        ExactFuser(**options).fit(made_up(0))  # type: ignore[arg-type]  # wrong on purpose


def mean(aligned: Aligned, weights: np.ndarray, measure: Measure) -> float:
    evaluator = AlignedEvaluator(aligned, [measure])
    share = aligned.query_weights[evaluator.position]
    return float(share @ evaluator.values(weights)[:, 0] / aligned.query_weights.sum())


@settings(deadline=None, max_examples=60)
@given(
    st.lists(tied_runs(), min_size=1, max_size=3),
    judgments(),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.sampled_from(MEASURES),
)
def test_the_value_is_that_of_evaluating(
    runs: list[dict[str, dict[str, float]]], judged: dict[str, dict[str, int]], raw: list[int], text: str
) -> None:
    """Ties, missing documents, unjudged ones, grades and weights of queries included."""
    assume(all(set(scores) & set(judged) for scores in runs))
    query_weights = {query: 1.0 + i for i, query in enumerate(judged)}
    named = {f"r{i}": run_of(scores) for i, scores in enumerate(runs)}
    aligned = align_runs(named, qrels_of(judged), normalize="none", query_weights=query_weights)
    weights = np.array(raw[: len(runs)], np.float64) / sum(raw[: len(runs)])
    measure = parse_measure(text)
    expected = mean(aligned, weights, measure)
    assert value_at(gain_problem(aligned, measure), weights) == pytest.approx(expected, abs=1e-12)


def with_weight(weights: np.ndarray, k: int, t: float) -> np.ndarray:
    others = weights.copy()
    others[k] = 0.0
    moved = (1.0 - t) * others / others.sum()
    moved[k] = t
    return moved


@pytest.fixture(scope="module")
def problem() -> GainProblem:
    return gain_problem(made_up(3), Measure("AP"))


@pytest.mark.parametrize("loss", [0.002, 0.03])
def test_ends_are_where_more_is_lost(problem: GainProblem, loss: float) -> None:
    floor = value_at(problem, WEIGHTS) - loss
    found = plateau_around(GainLines(problem), WEIGHTS, floor, loss)
    assert found.loss == loss
    assert (found.low <= WEIGHTS).all()
    assert (found.high >= WEIGHTS).all()
    for k in range(3):
        for t in np.linspace(found.low[k], found.high[k], 52)[1:-1]:
            assert value_at(problem, with_weight(WEIGHTS, k, t)) >= floor - 1e-12
        for end, beyond in ((found.low[k], -1e-9), (found.high[k], 1e-9)):
            if 0.0 < end < 1.0:
                assert value_at(problem, with_weight(WEIGHTS, k, end + beyond)) < floor


def test_more_loss_is_more_room(problem: GainProblem) -> None:
    value = value_at(problem, WEIGHTS)
    widths = [
        plateau_around(GainLines(problem), WEIGHTS, value - loss, loss).width for loss in (0.0, 0.01, 0.1, 1.0)
    ]
    for narrow, wide in pairwise(widths):
        assert (narrow <= wide).all()
    assert (widths[0] < widths[1]).all()
    assert widths[-1].tolist() == [1.0, 1.0, 1.0]


def test_the_centre_loses_no_more_and_has_more_room(problem: GainProblem) -> None:
    floor = value_at(problem, WEIGHTS) - 0.02
    centre = centre_of_plateau(GainLines(problem), WEIGHTS, floor, lambda weights: value_at(problem, weights))
    assert value_at(problem, centre) >= floor - 1e-12
    assert centre.sum() == pytest.approx(1.0, abs=1e-12)

    def room(weights: np.ndarray) -> float:
        found = plateau_around(GainLines(problem), weights, floor, 0.02)
        return float(np.minimum(weights - found.low, found.high - weights).min())

    assert room(centre) > room(WEIGHTS)


def test_two_rankers_have_one_middle() -> None:
    problem = gain_problem(made_up(4, quality=(1.0, 0.8)), Measure("AP"))
    weights = np.array([0.6, 0.4])
    floor = value_at(problem, weights) - 0.01
    found = plateau_around(GainLines(problem), weights, floor, 0.01)
    np.testing.assert_allclose(found.low, 1.0 - found.high[::-1], atol=1e-12)
    centre = centre_of_plateau(GainLines(problem), weights, floor, lambda w: value_at(problem, w))
    np.testing.assert_allclose(centre, 0.5 * (found.low + found.high), atol=1e-12)


def test_weights_that_owe_their_value_to_a_tie_have_no_room() -> None:
    """One query, two documents that tie under equal weights; the relevant one comes first by its row alone."""
    aligned = made_up(0, quality=(1.0, 1.0), n_queries=1, n_docs=2, n_relevant=1)
    aligned.relevance[:] = [1, 0]
    aligned.scores[:] = [[0.25, 0.0], [0.0, 0.25]]
    problem = gain_problem(aligned, Measure("AP"))
    even = np.array([0.5, 0.5])
    assert value_at(problem, even) == 1.0
    aligned.scores[:] = [[0.25, 0.25], [0.5, 0.25]]  # the other one wins wherever the first ranker counts
    tied = gain_problem(aligned, Measure("AP"))
    unit = np.array([0.0, 1.0])
    assert value_at(tied, unit) == 1.0
    found = plateau_around(GainLines(tied), unit, 1.0, 0.0)
    assert found.width.tolist() == [0.0, 0.0]


def test_one_ranker_has_nowhere_to_go() -> None:
    problem = gain_problem(made_up(5, quality=(1.0,)), Measure("AP"))
    found = plateau_around(GainLines(problem), np.ones(1), 0.0, 0.5)
    assert (found.low.tolist(), found.high.tolist()) == ([1.0], [1.0])
