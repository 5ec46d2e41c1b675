"""Every public fuser keeps the same promises."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from problems import QuickExact, made_up
from thread_counts import use_threads

from genm import errors
from genm.align import renormalize
from genm.evaluate import evaluate_aligned
from genm.learn import (
    BarrierFuser,
    BoostFuser,
    CotrainFuser,
    ExactFuser,
    ExpectedFuser,
    Fuser,
    NewtonFuser,
    OnlineFuser,
)
from genm.learn.auto import AutoFuser
from genm.learn.objectives import Problem
from genm.model import model_from_json, model_to_json

JUDGED: dict[str, Callable[..., Fuser]] = {
    "auto": lambda **o: AutoFuser(repeats=1, folds=3, **o),
    "bat": NewtonFuser,
    "bat, j smoothed": lambda **o: NewtonFuser(smooth_j=True, **o),
    "bat, annealed": lambda **o: NewtonFuser(anneal=(0.2,), **o),
    "enm": BoostFuser,
    "enm, boosting only": lambda **o: BoostFuser(search=False, **o),
    "exact": ExactFuser,
    "exact, certified": lambda **o: QuickExact(certify=True, gap=0.02, seconds=600.0, **o),
    "exact, centre": lambda **o: QuickExact(weights="centre", **o),
    "expected": lambda **o: ExpectedFuser(repeats=1, folds=3, **o),
    "ip": BarrierFuser,
    "on": OnlineFuser,
    "on, as printed": lambda **o: OnlineFuser(schedule="paper", **o),
    "on, free": lambda **o: OnlineFuser(**{"schedule": "paper", "free": True, "tol": 1e-2, **o}),
}
MAKERS: dict[str, Callable[..., Fuser]] = {
    **JUDGED,
    "uns": CotrainFuser,
    "uns, co-trained": lambda **o: CotrainFuser(**{"trust": 1.0, "tol": 1e-2, **o}),
    "uns, free": lambda **o: CotrainFuser(**{"trust": 1.0, "tol": 1e-2, "schedule": "paper", "free": True, **o}),
}
every_fuser = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
every_judged_fuser = pytest.mark.parametrize("make", JUDGED.values(), ids=JUDGED.keys())


@pytest.fixture(scope="module")
def fitted() -> Callable[[Callable[..., Fuser]], Fuser]:
    """Return a fuser that has learned from one small problem, the same one for every test that only looks at it."""
    return cache(lambda make: make().fit(made_up(0)))


@every_fuser
def test_weights_are_a_distribution_over_the_rankers_in_order(make: Callable[..., Fuser], fitted: Any) -> None:
    fuser = fitted(make)
    assert fuser.rankers_ == ("r0", "r1", "r2")
    assert fuser.weights_.shape == (3,)
    assert (fuser.weights_ >= 0).all()
    assert fuser.weights_.sum() == pytest.approx(1, abs=1e-12)
    assert isinstance(fuser.converged_, bool)
    assert fuser.n_iter_ >= 1
    assert np.isfinite(fuser.objective_)


@pytest.mark.filterwarnings("ignore::genm.errors.ConvergenceWarning")  # what is forgotten need not have converged
@every_fuser
def test_fit_forgets(make: Callable[..., Fuser], fitted: Any) -> None:
    fresh = fitted(make)
    again = make().fit(made_up(1, n_queries=6, n_docs=30)).fit(made_up(0))
    assert fresh.weights_.tolist() == again.weights_.tolist()
    assert fresh.history_ == again.history_


@every_fuser
def test_the_number_of_threads_changes_nothing(make: Callable[..., Fuser], monkeypatch: Any) -> None:
    aligned = made_up(3, n_queries=25, n_docs=300)
    found = []
    for threads in ("1", "3"):
        use_threads(monkeypatch, threads)
        found.append(make().fit(aligned).weights_.tolist())
    assert found[0] == found[1]


@every_judged_fuser
def test_history_tells_objective_and_exact_map(make: Callable[..., Fuser], fitted: Any) -> None:
    fuser, problem = fitted(make), Problem(made_up(0), beta=1.0)
    reached = problem.exact(fuser.weights_)
    assert fuser.history_
    assert any(step.exact == pytest.approx(reached, abs=1e-9) for step in fuser.history_)
    assert all(0 <= step.exact <= 1 for step in fuser.history_)


@every_judged_fuser
def test_learning_beats_uniform_weights_where_one_ranker_is_noise(make: Callable[..., Fuser]) -> None:
    aligned = made_up(5, quality=(1.2, 0.0, 0.0), n_queries=25)
    problem = Problem(aligned, beta=1.0)
    learned = problem.exact(make().fit(aligned).weights_)
    assert learned > problem.exact(np.full(3, 1 / 3)) + 0.05


@every_fuser
def test_one_ranker_gets_everything(make: Callable[..., Fuser]) -> None:
    assert make().fit(made_up(6, quality=(1.0,))).weights_.tolist() == [1.0]


@every_fuser
def test_two_equal_rankers_do_no_harm(make: Callable[..., Fuser]) -> None:
    aligned = made_up(7, quality=(1.0, 1.0))
    fuser = make().fit(aligned)
    assert np.isfinite(fuser.weights_).all()


@every_fuser
def test_an_unfitted_fuser_says_what_to_do(make: Callable[..., Fuser]) -> None:
    with pytest.raises(errors.NotFittedError, match=r"\.fit\(runs, qrels\) first"):
        make().fuse(made_up(0))
    with pytest.raises(errors.NotFittedError):
        make().to_model()


@every_fuser
def test_runs_of_other_rankers_are_refused(make: Callable[..., Fuser], fitted: Any) -> None:
    fuser = fitted(make)
    with pytest.raises(errors.InputError, match="in this order"):
        fuser.fuse(made_up(0, quality=(1.0, 0.5)))


@every_fuser
def test_scores_under_another_normaliser_are_put_right(make: Callable[..., Fuser], fitted: Any) -> None:
    aligned, fuser = made_up(0), fitted(make)
    ours = fuser.fuse(aligned)
    theirs = fuser.fuse(renormalize(aligned, "zscore"))
    assert ours.score.tolist() == theirs.score.tolist()


@every_fuser
def test_the_model_survives_its_file(make: Callable[..., Fuser], fitted: Any) -> None:
    model = fitted(make).to_model()
    assert model_from_json(model_to_json(model)) == model
    assert model.method == make().method


@every_judged_fuser
def test_runs_without_judgments_are_refused(make: Callable[..., Fuser]) -> None:
    with pytest.raises(errors.InputError, match="no judgments"):
        make().fit(made_up(0, labelled=False))


@every_judged_fuser
def test_nothing_relevant_is_an_error(make: Callable[..., Fuser]) -> None:
    with pytest.raises(errors.InputError, match="judged 2 or higher"):
        make(level=2).fit(made_up(0))


@every_fuser
def test_constant_and_useless_rankers_give_no_nan(make: Callable[..., Fuser]) -> None:
    aligned = made_up(8, quality=(1.0, 0.3))
    aligned.scores[:, 1] = 0.5
    fuser = make().fit(aligned)
    assert np.isfinite(fuser.weights_).all()
    assert Problem(aligned, beta=1.0).exact(fuser.weights_) > 0.3


@pytest.mark.parametrize("options", [{"tol": -1.0}, {"max_iter": 0}, {"min_iter": 5, "max_iter": 2}])
@pytest.mark.parametrize("make", [NewtonFuser, BarrierFuser, BoostFuser, OnlineFuser, MAKERS["uns, co-trained"]])
def test_senseless_limits_are_refused(make: Callable[..., Fuser], options: dict[str, Any]) -> None:
    with pytest.raises(errors.InputError, match="max_iter"):
        make(**options).fit(made_up(0))


@pytest.mark.filterwarnings("ignore::genm.errors.ConvergenceWarning")  # on a sharp sigmoid a climb may take long
@pytest.mark.parametrize("make", [NewtonFuser, BarrierFuser, OnlineFuser, MAKERS["uns, co-trained"]])
def test_beta_is_checked_and_used(make: Callable[..., Fuser]) -> None:
    with pytest.raises(errors.InputError, match="positive number"):
        make(beta=-1.0).fit(made_up(0))
    soft, sharp = (make(beta=b).fit(made_up(0)) for b in (5.0, 500.0))
    assert soft.weights_.tolist() != sharp.weights_.tolist()


@pytest.mark.parametrize("make", [NewtonFuser, BarrierFuser, OnlineFuser, MAKERS["uns, co-trained"]])
def test_given_starts_are_used_and_checked(make: Callable[..., Fuser]) -> None:
    fuser = make(starts=[[1, 0, 0], [0, 0, 1]]).fit(made_up(0))
    assert {step.start for step in fuser.history_} == {0, 1}
    with pytest.raises(errors.InputError, match="rows of 3 weights"):
        make(starts=[[1, 0]]).fit(made_up(0))
    with pytest.raises(errors.InputError, match=">= 0"):
        make(starts=[[1, -1, 0]]).fit(made_up(0))


@pytest.mark.parametrize("make", [NewtonFuser, BarrierFuser, MAKERS["uns, co-trained"]])
def test_stopping_at_the_limit_is_said(make: Callable[..., Fuser]) -> None:
    with pytest.warns(errors.ConvergenceWarning, match="max_iter"):
        fuser = make(max_iter=1, tol=0.0).fit(made_up(0))
    assert not fuser.converged_


@every_fuser
def test_parameters_make_the_same_fuser_again(make: Callable[..., Fuser], fitted: Any) -> None:
    fuser = fitted(make)
    for copied in (fuser.clone(), type(fuser)().set_params(**fuser.get_params())):
        check_copy(copied, fuser)


@every_fuser
def test_scikit_learn_makes_the_same_fuser_again(make: Callable[..., Fuser], fitted: Any) -> None:
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    check_copy(base.clone(fitted(make)), fitted(make))


def check_copy(copied: Fuser, fuser: Fuser) -> None:
    """The same class and parameters, and nothing learned."""
    assert type(copied) is type(fuser)
    assert {name: str(value) for name, value in copied.get_params().items()} == {
        name: str(value) for name, value in fuser.get_params().items()
    }
    assert not [name for name in vars(copied) if name.endswith("_")]


@every_fuser
def test_score_is_the_measure_of_the_fused_run(make: Callable[..., Fuser], fitted: Any) -> None:
    fuser, aligned = fitted(make), made_up(0)
    means = evaluate_aligned(aligned, fuser.weights_, "RR").means
    assert fuser.score(aligned, measure="RR") == pytest.approx(means[0], abs=1e-12)  # added up in another order
