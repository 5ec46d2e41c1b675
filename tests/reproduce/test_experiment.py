"""The whole experiment, on a small collection, and on MED against figures that were kept.

Kept figures are written anew by `python tests/reproduce/test_experiment.py`, with GENM_DATA set.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from problems import made_up
from thread_counts import use_threads

from genm.collections import load_collection
from genm.errors import InputError
from genm.evaluate import AlignedEvaluator, Measure, parse_measure
from genm.evidence import BEST_SINGLE, UNIFORM, single_values
from genm.evidence.crossval import cross_validate
from genm.fuse import rule_scores
from genm.learn import CotrainFuser, NewtonFuser
from genm.learn.objectives import Problem
from genm.rankers import make_ranker, plsi
from genm.reproduce import methods as rankings
from genm.reproduce import reproduce, study
from genm.reproduce.experiment import Measuring, Task, Trial, run_all
from genm.reproduce.methods import AUTO, BAT, ENM, ON, UNS, learners
from genm.reproduce.page import results_json
from genm.reproduce.results import MEASURES

KEPT = Path(__file__).with_name("med_2_splits.json")
WITHIN = 2e-8
"""Figures have eight decimals. Only LSA's decomposition goes through LAPACK, whose last digits depend on the
processor. Under the kernels that OpenBLAS has for Prescott, Haswell and SkylakeX no figure moved; a swap of two
documents would move one by 1e-5."""

MEASURES_MEASURING = [
    parse_measure(m) for m in ("AP", "P@1", "P@5", "IPrec@0.0", "IPrec@0.4", "IPrec@1.0", "RR", "Rprec")
]

BETA = 40.0


def test_everything_is_there(found):
    (one,) = found.collections
    assert one.aligned.rankers == ("TFIDF", "LSA", "pLSI", "LDI")
    assert {n.kind for n in one.aligned.normalizers} == {"none"}
    assert {AUTO, BAT, ENM, ON, UNS} < set(one.methods)
    assert "BM25" in one.more_rankers
    assert one.facts.terms_as_printed is None
    assert (one.facts.documents, one.facts.queries, one.facts.judged) == (24, 6, 6)
    assert one.fold.shape == (2, 6)
    assert [table.key for table in found.tables] == [
        "table-3", "rivals", "unsupervised", "repairs", "table-3-map", "table-3-pr-at-1", "table-3-pr-at-5",
        "more-rankers", "weights", "table-1", "table-2", "table-4",
    ]  # fmt: skip


def test_a_second_run_gives_the_same_to_the_last_digit(found, tiny, monkeypatch):
    monkeypatch.delenv("GENM_DATA", raising=False)  # Table 2 counts the paper's terms where its stop list is
    again = reproduce([str(tiny)], splits=2, seed=3)
    for one, other in zip(found.collections, again.collections, strict=True):
        assert one.facts.sha256 == other.facts.sha256
        for name, method in one.methods.items():
            assert method.values.tolist() == other.methods[name].values.tolist(), name
            assert method.weights.tolist() == other.methods[name].weights.tolist(), name
    assert [table.to_csv() for table in found.tables] == [table.to_csv() for table in again.tables]


def test_the_seed_draws_the_splits(found, tiny):
    other = reproduce([str(tiny)], splits=2, seed=4, further=False)
    assert found.collections[0].fold[1].tolist() == other.collections[0].fold[0].tolist()
    assert found.collections[0].fold[0].tolist() != other.collections[0].fold[0].tolist()
    assert other.collections[0].more == {}
    assert "more-rankers" not in [table.key for table in other.tables]


@pytest.mark.needs("Stemmer")
def test_refusals(monkeypatch):
    monkeypatch.delenv("GENM_DATA", raising=False)
    with pytest.raises(InputError, match="GENM_DATA"):
        reproduce(["med"], splits=1)
    ranked = []
    monkeypatch.setattr("genm.reproduce.experiment.paper_rankings", lambda *_: ranked.append(1))
    with pytest.raises(InputError, match="expected one of med"):
        reproduce(["pydocs", "nowhere"], splits=1)
    assert ranked == []  # names are looked up before the long work
    with pytest.raises(InputError, match="different names"):
        reproduce(["med", "med"], splits=1)
    with pytest.raises(InputError, match="at least 1"):
        reproduce(["pydocs"], splits=0)


def test_the_papers_collections_are_known_however_they_are_spelt(tiny):
    for spelt, name, title in (("merged", "mc", "MC"), ("MED", "med", "MED"), ("Other", "Other", "Other")):
        one, _ = study(spelt, load_collection(str(tiny)), splits=1, seed=0, further=False)
        assert (one.name, one.title) == (name, title)


def quick_med(data):
    """MED with two splits; pLSI and LDI with fewer and smaller models than the paper's, which take a minute."""
    fewer = {
        "pLSI": make_ranker("plsi", n_topics=(16, 32), n_steps=40),
        "LDI": make_ranker("ldi", n_topics=(25, 50), n_chains=8, n_sweeps=11, n_samples=2),
    }
    sampled = rankings._paper_rankers() | fewer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rankings, "_paper_rankers", lambda: sampled)
        patch.setattr(plsi, "_TRIAL_STEPS", 15)
        return reproduce(["med"], splits=2, seed=0, data=data, further=False)


def kept_figures(results):
    methods = results_json(results)["collections"]["med"]["methods"]
    return {name: method["mean"] for name, method in methods.items() if method["kind"] != "printed"}


@pytest.mark.needs("Stemmer")
def test_med_comes_out_as_it_is_kept(smart_data):
    results = quick_med(smart_data)
    ours, kept = kept_figures(results), json.loads(KEPT.read_text(encoding="utf-8"))
    assert set(ours) == set(kept)
    far = {name: (ours[name], kept[name]) for name in kept if ours[name] != pytest.approx(kept[name], abs=WITHIN)}
    assert far == {}
    assert results.collections[0].facts.terms_as_printed == 5775


def test_the_papers_rankers_have_the_settings_that_the_kept_results_have():
    """The quick experiment above takes smaller models, so their sizes are looked at here."""
    made = rankings._paper_rankers()
    assert list(made) == ["TFIDF", "LSA", "pLSI", "LDI"]
    assert vars(made["pLSI"]) == {
        "n_topics": (32, 48, 64, 80, 128), "exponent": None, "n_steps": 100, "patience": None, "space": "terms",
        "share": 0.2, "seed": 0,
    }  # fmt: skip
    assert (plsi._TRIAL_TOPICS, plsi._TRIAL_STEPS) == (48, 60)
    assert vars(made["LDI"]) == {
        "n_topics": (50, 100, 150, 200, 300), "n_chains": 32, "n_sweeps": 40, "n_samples": 3, "alpha": 0.1,
        "eta": 0.01, "seed": 0,
    }  # fmt: skip


def test_every_task_keeps_its_own_result(monkeypatch):
    for threads in ("1", "3"):
        use_threads(monkeypatch, threads)
        tasks = [Task(lambda n=n: n * n) for n in range(20)]
        run_all(tasks)
        assert [task.value for task in tasks] == [n * n for n in range(20)]


def test_what_goes_wrong_is_heard_of():
    def refuse() -> None:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        run_all([Task(refuse), Task(lambda: None)])


@pytest.mark.parametrize("n_missed", [0, 2])
def test_the_same_to_the_last_bit_as_ranking_every_row(n_missed):
    """Also where relevant documents were not retrieved by any ranker."""
    aligned, n, some = made_up(2, n_queries=20, n_docs=150), 20, np.array([3, 4, 17])
    missed = np.arange(n + 1) * n_missed, np.ones(n * n_missed, np.int32)
    aligned = replace(aligned, unretrieved_starts=missed[0], unretrieved=missed[1])
    problem, evaluator = Problem(aligned, beta=1.0), AlignedEvaluator(aligned, MEASURES_MEASURING)
    for weights in (np.eye(3)[1], *np.random.default_rng(0).dirichlet(np.ones(3), 5)):
        wanted = evaluator.values(weights)
        assert Measuring(MEASURES_MEASURING).values(problem, weights).tolist() == wanted.tolist()
        assert Measuring(MEASURES_MEASURING).values(problem.select(some), weights).tolist() == wanted[some].tolist()


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
        use_threads(monkeypatch, threads)
        other = Trial(trial.aligned, splits=2, seed=5, beta=BETA, progress=lambda *step: told.append(step))
        results.append(other.supervised(chosen))
    for name in chosen:
        assert results[0][name].values.tolist() == results[1][name].values.tolist()
        assert results[0][name].weights.tolist() == results[1][name].weights.tolist()
    assert told[-1] == ("learning", 8, 8)


if __name__ == "__main__":
    KEPT.write_text(json.dumps(kept_figures(quick_med(os.environ["GENM_DATA"])), indent=1) + "\n", encoding="utf-8")
