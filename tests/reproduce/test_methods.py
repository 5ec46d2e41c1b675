"""The methods of the tables."""

import numpy as np
import pytest
from problems import made_up

from genm.align import renormalize
from genm.collections import load_collection
from genm.fuse import fuse_scores, rule_scores
from genm.learn import CotrainFuser
from genm.learn.auto import AutoFuser
from genm.learn.objectives import Problem
from genm.learn.ranker_quality import pseudo_labels
from genm.reproduce import methods
from genm.reproduce.methods import (
    AUTO,
    BAT,
    COMBSUM_Z,
    ENM,
    ISR,
    RULES,
    SUPERVISED,
    UNS,
    UNS_COTRAINED,
    UNS_HALF,
    UNS_Z,
    kind_of,
    learners,
    on_minmax,
    on_ranks,
    on_z_scores,
    repaired,
    training,
    unsupervised,
)
from genm.reproduce.printed import REPAIRS


@pytest.fixture(scope="module")
def fold():
    aligned = made_up(0, normalize="none")
    return training(Problem(aligned, beta=40.0), aligned, pseudo_labels(aligned), np.arange(0, 12, 2))


def test_starts_are_ordered_by_map_on_the_training_queries_alone(fold):
    reached = [fold.problem.exact(start) for start in fold.starts]
    assert reached == sorted(reached, reverse=True)
    assert len(fold.starts) == 7
    assert len(fold.problem.kept) == len(fold.aligned().queries) == 6


@pytest.mark.parametrize("name", learners())
def test_every_learner_learns_a_distribution(fold, name):
    weights = learners()[name](fold).weights_
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)


def test_unsenm_of_one_half_is_the_fuser_fitted_there(fold):
    wanted = CotrainFuser(beta=40.0).fit(fold.aligned()).weights_
    np.testing.assert_allclose(learners()[UNS_HALF](fold).weights_, wanted, rtol=1e-12)
    assert kind_of(UNS_HALF) == "unsupervised"


def test_names_and_kinds():
    assert {kind_of(name) for name in SUPERVISED} == {"supervised"}
    assert kind_of(ENM) == "baseline"
    assert kind_of(repaired(0)) == kind_of(repaired(len(REPAIRS), alone=True)) == "printed"
    assert repaired(len(REPAIRS)) == BAT


def test_rules_score_every_row(fold):
    aligned = fold.aligned()
    found = on_minmax(aligned) | on_z_scores(aligned, fold.marks) | on_ranks(aligned)
    assert set(found) == {UNS_Z, *RULES}
    assert {len(scores) for scores in found.values()} == {len(aligned.doc)}
    assert found[ISR].tolist() == rule_scores(aligned, "isr").tolist()
    standard = renormalize(aligned, "zscore")
    assert found[COMBSUM_Z].tolist() == rule_scores(standard, "combsum").tolist()
    wanted = fuse_scores(standard, CotrainFuser().fit(standard).weights_)
    np.testing.assert_allclose(found[UNS_Z], wanted, rtol=1e-9, atol=1e-12)


def test_auto_learns_what_it_would_learn_from_the_runs(fold):
    wanted = AutoFuser().fit(fold.aligned())
    assert learners()[AUTO](fold).weights_.tolist() == wanted.weights_.tolist()


def test_what_sees_no_labels_is_the_same_without_any():
    with_labels, without = (made_up(1, normalize="none", labelled=labelled) for labelled in (True, False))
    one, other = (unsupervised(aligned, pseudo_labels(aligned)) for aligned in (with_labels, without))
    assert list(one) == [UNS, UNS_COTRAINED]
    for name in one:
        assert one[name].weights_.tolist() == other[name].weights_.tolist()


def test_the_papers_four_under_its_names_over_all_documents(tiny):
    runs = methods.paper_rankings(load_collection(str(tiny)))
    assert list(runs) == ["TFIDF", "LSA", "pLSI", "LDI"]
    assert {len(run.doc) for run in runs.values()} == {6 * 24}


def test_a_ranker_whose_extra_is_missing_is_left_out_with_the_advice(tiny, monkeypatch):
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    runs, notes = methods.further_rankings(load_collection(str(tiny)))
    assert list(runs) == ["BM25"]
    assert [note.code for note in notes] == ["ranker-left-out"] * 2
    assert "pip install 'genm[dense]'" in notes[0].text
