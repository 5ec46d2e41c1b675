"""The protocol: held out is held out, whatever the number of threads."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up

from genm.evaluate import Measure
from genm.evidence import BEST_SINGLE, UNIFORM, single_values
from genm.evidence.crossval import cross_validate
from genm.fuse import rule_scores
from genm.learn import CotrainFuser, NewtonFuser
from genm.reproduce.methods import BAT, ENM, learners
from genm.reproduce.protocol import Trial
from genm.reproduce.results import MEASURES

BETA = 40.0


@pytest.fixture(scope="module")
def trial():
    return Trial(made_up(0, n_queries=14, normalize="none"), splits=2, seed=5, beta=BETA)


def newton(fold):
    return NewtonFuser().fit_problem(fold.problem)


def test_it_is_cross_validation_over_seeded_halves(trial):
    found = trial.supervised({BAT: newton})[BAT]
    for s in range(2):
        for m, (_, measure) in enumerate(MEASURES):
            wanted = cross_validate(trial.aligned, lambda: NewtonFuser(beta=BETA), measure, folds=2, seed=5 + s)
            np.testing.assert_allclose(found.values[s, :, m], wanted.per_query, atol=1e-12)
            assert found.weights[s].tolist() == wanted.weights.tolist()
    assert found.kind == "supervised"
    assert found.values.shape == (2, 14, 3)


def test_the_curve_is_interpolated_precision_averaged_over_the_queries(trial):
    found = trial.supervised({BAT: newton})[BAT]
    wanted = cross_validate(
        trial.aligned, lambda: NewtonFuser(beta=BETA), Measure("IPrec", recall=0.3), folds=2, seed=5
    )
    assert found.curves[0, 3] == pytest.approx(wanted.per_query.mean(), abs=1e-12)
    assert (np.diff(found.curve) <= 1e-12).all()


def test_labels_of_a_held_out_query_never_reach_its_weights(trial):
    """Turn the judgments of one query around: the weights that it is measured with stay as they were."""
    aligned, q = trial.aligned, 3
    relevance = aligned.relevance.copy()
    rows = slice(aligned.starts[q], aligned.starts[q + 1])
    relevance[rows] = 1 - np.maximum(relevance[rows], 0)
    other = Trial(replace(aligned, relevance=relevance), splits=2, seed=5, beta=BETA)
    chosen = {name: learners()[name] for name in (BAT, ENM)}
    before, after = trial.supervised(chosen), other.supervised(chosen)
    for name in chosen:
        for s in range(2):
            f = trial.fold[s, q]
            assert before[name].weights[s, f].tolist() == after[name].weights[s, f].tolist()


def test_single_rankers_and_the_one_chosen_in_training(trial):
    found = trial.singles()
    table = np.array([single_values(trial.aligned, name, Measure("AP")) for name in trial.aligned.rankers])
    for k, name in enumerate(trial.aligned.rankers):
        np.testing.assert_allclose(found[name].per_query[:, 0], table[k])
    chosen = found[BEST_SINGLE]
    for s in range(2):
        for q in range(14):
            train = table[:, trial.fold[s] != trial.fold[s, q]].mean(axis=1)
            assert chosen.values[s, q, 0] == pytest.approx(table[int(np.argmax(train)), q])


def test_what_no_split_can_change_has_one(trial):
    uniform = trial.fixed({UNIFORM: rule_scores(trial.aligned, "sum")}, "baseline")[UNIFORM]
    fuser = CotrainFuser(beta=BETA).fit(trial.aligned)
    blind = trial.unsupervised({"x": fuser})["x"]
    for found in (uniform, blind):
        assert found.values.shape == (1, 14, 3)
        assert found.spread.tolist() == [0, 0, 0]
    assert blind.weights[0, 0].tolist() == fuser.weights_.tolist()


def test_threads_change_nothing_and_progress_ends(trial, monkeypatch):
    chosen = {name: learners()[name] for name in (BAT, ENM)}
    told = []
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("GENM_THREADS", threads)
        other = Trial(trial.aligned, splits=2, seed=5, beta=BETA, progress=lambda *step: told.append(step))
        results.append(other.supervised(chosen))
    for name in chosen:
        assert results[0][name].values.tolist() == results[1][name].values.tolist()
        assert results[0][name].weights.tolist() == results[1][name].weights.tolist()
    assert told[-1] == ("learning", 8, 8)
