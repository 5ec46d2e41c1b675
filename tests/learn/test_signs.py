"""Weights of any sign: what is learned, and that everything downstream takes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import made_up

from genm._math.simplex_optimizers import join_signs, split_signs
from genm.errors import InputError, ModelError
from genm.evaluate import parse_measure
from genm.explain import explain_model
from genm.export import export_model, targets
from genm.fuse import fuse_runs
from genm.learn import AutoFuser, fit
from genm.learn.exact import line_of, weights_without
from genm.learn.objectives import Problem, Scorer, SignedProblem, SignedScorer
from genm.model import model_from_json, model_to_json
from genm.report import Source, build_report, render_report
from genm.training import train

HARMFUL = {"quality": (0.6, 0.5, -0.9), "n_queries": 30}
"""The third ranker prefers documents that are not relevant."""


@pytest.fixture(scope="module")
def trained():
    return train(made_up(1, **HARMFUL), folds=2, signs="any", repeats=1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("measure", ["AP", "nDCG@5"])
def test_a_harmful_ranker_gets_a_negative_weight_and_the_ensemble_gains(seed: int, measure: str) -> None:
    aligned = made_up(seed, **HARMFUL)
    positive, signed = (AutoFuser(measure=measure, repeats=1, signs=s).fit(aligned) for s in ("positive", "any"))
    assert (positive.weights_ >= 0.0).all()
    assert signed.weights_[2] < 0.0
    assert np.abs(signed.weights_).sum() == pytest.approx(1.0, abs=1e-12)
    assert signed.score(aligned) > positive.score(aligned)
    assert signed.held_out_ > positive.held_out_


@pytest.mark.parametrize("seed", range(4))
def test_never_below_uniform_weights_or_a_single_ranker_in_training(seed: int) -> None:
    aligned = made_up(seed, quality=(0.6, 0.5, 0.1), n_queries=10)
    problem = Problem(aligned)
    weights = AutoFuser(signs="any", folds=3, repeats=1).fit(aligned).weights_
    assert problem.exact(weights) >= max(map(problem.exact, [np.full(3, 1 / 3), *np.eye(3)])) - 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_a_fine_scan_of_two_rankers_and_all_signs_is_hardly_better(seed: int) -> None:
    problem = Problem(aligned := made_up(seed, quality=(0.9, -0.7), n_queries=30, n_docs=100))
    share = np.linspace(0, 1, 201)
    scan = max(problem.exact(np.array([a * w, b * (1 - w)])) for w in share for a in (1, -1) for b in (1, -1))
    assert scan - problem.exact(AutoFuser(signs="any", repeats=1).fit(aligned).learned_) <= 0.002


@given(weights=st.lists(st.floats(-1, 1), min_size=3, max_size=3), seed=st.integers(0, 20))
def test_parts_stand_for_their_difference_whatever_cancels(weights: list[float], seed: int) -> None:
    problem = Problem(aligned := made_up(seed, n_queries=3, n_docs=15, n_relevant=3))
    scorer, signed = Scorer(aligned, problem, parse_measure("AP"), 1), np.array(weights)
    parts = split_signs(signed) + np.tile(np.random.default_rng(seed).random(3), 2)  # the same on both sides
    assert (parts >= 0.0).all()
    np.testing.assert_allclose(join_signs(parts), signed, atol=1e-12)
    assert SignedProblem(problem).exact(parts) == problem.exact(join_signs(parts))
    assert SignedScorer(scorer).per_query(parts).tolist() == scorer.per_query(join_signs(parts)).tolist()


def test_gradients_in_the_parts_are_central_differences() -> None:
    problem = SignedProblem(Problem(made_up(2, n_queries=8), beta=8.0))
    parts, step = np.array([0.3, 0.1, 0.2, 0.05, 0.25, 0.1]), 1e-6
    value, gradient = problem.gradient(parts)
    for i in range(6):
        move = step * np.eye(6)[i]
        difference = (problem.gradient(parts + move)[0] - problem.gradient(parts - move)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(difference, abs=1e-6)
    of_part = problem.gradients_at(parts)
    mean, slope = of_part(np.arange(8))
    assert mean == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slope, gradient, rtol=1e-12)
    chosen = np.array([1, 4])
    mean, slope = of_part(chosen)
    assert problem.select(chosen).gradient(parts)[0] == pytest.approx(mean, rel=1e-12)
    np.testing.assert_allclose(slope, problem.select(chosen).gradient(parts)[1], rtol=1e-12)


def test_other_signs_are_refused_and_other_methods_take_none() -> None:
    with pytest.raises(InputError, match=r'signs .* \'negative\': expected "positive" or "any"'):
        AutoFuser(signs="negative").fit(made_up(0))
    with pytest.raises(InputError, match="method 'newton' takes no signs"):
        fit(made_up(0), method="newton", signs="any")


def test_lines_run_from_no_weight_to_all_of_it_with_its_sign() -> None:
    weights = np.array([0.5, -0.3, 0.2])
    for k in range(3):
        start, direction = line_of(weights, k)
        assert np.abs(weights_without(weights, k)).sum() == pytest.approx(1.0)
        np.testing.assert_allclose(start + abs(weights[k]) * direction, weights, atol=1e-12)
        np.testing.assert_allclose(start + direction, np.sign(weights[k]) * np.eye(3)[k], atol=1e-12)


def test_the_model_file_keeps_them_and_fuses_with_them(trained) -> None:
    model = trained.model
    assert min(model.weights) < 0.0
    again = model_from_json(model_to_json(model))
    assert again == model
    fused = fuse_runs(trained.aligned, again.weights)
    assert fused.score.tolist() == trained.fuse(trained.aligned).score.tolist()
    document = model_to_json(model)
    document["rankers"][0]["weight"] += 0.5
    with pytest.raises(ModelError, match="expected weights whose absolute values sum to 1"):
        model_from_json(document)


def test_report_and_explanation_show_them(trained) -> None:
    source = Source(title="signed", versions={})
    report = build_report(trained.aligned, trained.model, trained.kept(), source)
    text, page = (render_report(report, kind) for kind in ("md", "html"))
    shown = f"{min(trained.model.weights):.4f}"
    assert shown in text.replace("\N{MINUS SIGN}", "-")
    assert len(page) > len(text)
    (line,) = (row for row in report["lines"] if row["ranker"] == "r2")
    assert line["points"][0] == -1.0
    assert line["points"][-1] == 0.0
    assert line["weight"] == min(trained.model.weights)
    assert report["sliders"] is report["ternary"] is None  # both show positive weights only
    assert explain_model(trained.model, trained.aligned).worth is not None


def test_only_engines_that_take_negative_weights_get_them(trained) -> None:
    runs = made_up(1, **HARMFUL)
    takes = {name for name, target in targets().items() if target.weights.least is None}
    assert {"vespa", "solr"} <= takes
    assert "opensearch" not in takes
    with pytest.raises(InputError, match=r"OpenSearch .* takes no negative weights\. .* train for one of .*vespa"):
        train(runs, target="opensearch", signs="any")
    with pytest.raises(Exception, match="it takes weights of at least 0"):
        export_model(trained.model, "opensearch")
