"""gEnM.ON: the stream, its steps, and its claims as averages."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up, two_kinds

from genm._math.average_precision import smooth_ap_one
from genm._math.simplex_optimizers import as_distribution, project_to_simplex
from genm.align import Aligned
from genm.errors import InputError, ModelError
from genm.grouping import Grouping
from genm.learn import NewtonFuser, OnlineFuser, merge_new_judgments, update_model
from genm.learn.objectives import Problem
from genm.learn.starts import STRIDE
from genm.model import Groups, GroupWeights, load_model, save_model
from genm.records import Qrels

SCHEDULES = ("paper", "adaptive")


def one_by_one(fuser: OnlineFuser, aligned: Aligned) -> OnlineFuser:
    for q in range(len(aligned.queries)):
        fuser.partial_fit(aligned.select(np.array([q])))
    return fuser


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_stream_equals_one_pass_of_fit(schedule: str) -> None:
    aligned = made_up(0)
    streamed = one_by_one(OnlineFuser(schedule=schedule, beta=80.0), aligned)
    fitted = OnlineFuser(schedule=schedule, beta=80.0, max_iter=1).fit(aligned)
    assert streamed.weights_.tolist() == fitted.weights_.tolist()
    assert streamed.n_seen_ == fitted.n_seen_ == 12


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_going_on_from_a_file_is_bit_equal_to_never_stopping(schedule: str, tmp_path: object) -> None:
    aligned = made_up(1, n_queries=20)
    first, rest = aligned.select(np.arange(7)), aligned.select(np.arange(7, 20))
    whole = OnlineFuser(schedule=schedule, beta=80.0).partial_fit(aligned)
    stopped = OnlineFuser(schedule=schedule, beta=80.0).partial_fit(first)
    path = f"{tmp_path}/m.json"
    save_model(stopped.to_model(), path)
    resumed = OnlineFuser.from_model(load_model(path)).partial_fit(rest)
    assert resumed.raw_weights_.tolist() == whole.raw_weights_.tolist()
    assert resumed.weights_.tolist() == whole.weights_.tolist()
    assert resumed.to_model().online == whole.to_model().online


def test_the_printed_rule_step_by_step() -> None:
    """Eq. (21) with eta = 1/t and t counted from 2, as Algorithm 3 does."""
    aligned = made_up(2, n_queries=3)
    alpha = np.full(3, 1 / 3)
    for t, q in ((2, 0), (3, 1), (4, 2)):
        one = aligned.select(np.array([q]))
        _, gradient = smooth_ap_one(one.scores, one.relevance >= 1, 5, alpha, 60.0)
        alpha = alpha + gradient / t
    fuser = OnlineFuser(schedule="paper", beta=60.0).partial_fit(aligned)
    np.testing.assert_allclose(fuser.raw_weights_, alpha, rtol=1e-12)
    np.testing.assert_allclose(fuser.weights_, as_distribution(alpha), rtol=1e-12)


def test_the_rule_raises_the_expected_ap_on_average() -> None:
    """Theorem 4 as an average (departure 8): one step on a query, measured on other queries."""
    gains = []
    for seed in range(40):
        aligned = made_up(seed, quality=(1.0, 0.2), n_queries=12)
        problem = Problem(aligned, beta=30.0)
        start = np.array([0.3, 0.7])
        one = aligned.select(np.array([0]))
        _, gradient = smooth_ap_one(one.scores, one.relevance >= 1, 5, start, 30.0)
        others = problem.select(np.arange(1, 12))
        gains.append(others.value(start + 0.01 * gradient) - others.value(start))
    assert np.mean(gains) > 0
    assert np.mean(np.array(gains) > 0) > 0.6


def test_the_gradient_points_to_the_optimum_from_nearby() -> None:
    """Lemma 2 as an average over queries: (alpha - alpha*) times the gradient is negative."""
    aligned = made_up(3, n_queries=60)
    problem = Problem(aligned, beta=30.0, smooth_j=True)
    best = NewtonFuser(beta=30.0, smooth_j=True).fit(aligned).weights_
    for k in range(3):
        away = best + 0.05 * (np.eye(3)[k] - best)
        _, gradient = problem.gradient(away)
        assert float((away - best) @ gradient) < 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_many_passes_end_near_the_batch_optimum(schedule: str) -> None:
    """Theorem 5: with steps whose sum diverges and whose squares' sum does not, the rule settles."""
    aligned = made_up(4, n_queries=40)
    problem = Problem(aligned, beta=40.0)
    batch = NewtonFuser(beta=40.0).fit(aligned)
    online = OnlineFuser(schedule=schedule, beta=40.0, max_iter=60, tol=1e-5).fit(aligned)
    assert problem.exact(online.weights_) > problem.exact(batch.weights_) - 0.01


def test_printed_steps_have_a_divergent_sum_and_convergent_squares() -> None:
    """Eqs. (23) and (24) of the steps really taken, read off a constant gradient."""
    fuser = OnlineFuser(schedule="paper", beta=1.0)
    fuser._begin(1.0, np.zeros(3))
    steps = []
    for _ in range(2000):
        before = fuser.raw_weights_[0]
        fuser._step(np.ones(3))
        steps.append(float(fuser.raw_weights_[0] - before))
    assert sum(steps) > 6.5
    assert sum(s * s for s in steps) < 0.65


def test_the_adaptive_schedule_never_leaves_the_simplex() -> None:
    fuser = OnlineFuser(beta=500.0)
    aligned = made_up(5, n_queries=30)
    for q in range(30):
        fuser.partial_fit(aligned.select(np.array([q])))
        assert fuser.raw_weights_.sum() == pytest.approx(1)
        assert (fuser.raw_weights_ >= 0).all()


def test_queries_without_relevant_documents_are_passed_over() -> None:
    aligned = made_up(6)
    aligned.relevance[: aligned.starts[1]] = 0
    assert OnlineFuser(beta=50.0).partial_fit(aligned).n_seen_ == 11


def test_other_rankers_unknown_schedules_and_other_models_are_refused() -> None:
    fuser = OnlineFuser(beta=50.0).partial_fit(made_up(0))
    with pytest.raises(InputError, match="in this order"):
        fuser.partial_fit(made_up(0, quality=(1.0, 0.5)))
    with pytest.raises(InputError, match="paper, adaptive"):
        OnlineFuser(schedule="wild").partial_fit(made_up(0))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="--method online"):
        OnlineFuser.from_model(NewtonFuser().fit(made_up(0)).to_model())
    with pytest.raises(InputError, match="no judgments"):
        fuser.partial_fit(made_up(0, labelled=False))


def test_free_weights_leave_zero_and_are_judged_as_they_are() -> None:
    """The paper's start (0, 0, 0): every document ties there, and the first step already moves."""
    aligned = made_up(7)
    problem = Problem(aligned, beta=60.0)
    fuser = OnlineFuser(schedule="paper", beta=60.0, free=True, starts=[[0, 0, 0]], tol=1e-4, min_iter=10)
    fuser.fit(aligned)
    first, last = fuser.history_[0], fuser.history_[-1]
    assert first.weights == (0.0, 0.0, 0.0)
    assert first.objective == pytest.approx(problem.value(np.zeros(3)))
    assert last.weights == tuple(fuser.raw_weights_)
    assert last.objective == pytest.approx(problem.value(fuser.raw_weights_))
    assert last.objective > first.objective + 0.1
    assert last.exact == pytest.approx(problem.exact(fuser.weights_))
    assert last.iteration >= 10


def test_free_weights_start_from_all_binary_vectors_unscaled() -> None:
    fuser = OnlineFuser(schedule="paper", beta=60.0, free=True, max_iter=1).fit(made_up(8))
    assert [step.weights for step in fuser.history_ if step.iteration == 0] == [
        (float(a), float(b), float(c)) for a in (0, 1) for b in (0, 1) for c in (0, 1)
    ]


def test_free_weights_need_the_printed_steps() -> None:
    with pytest.raises(InputError, match='expected schedule="paper"'):
        OnlineFuser(free=True).fit(made_up(0))


def test_queries_made_ready_before_teach_the_same() -> None:
    aligned = made_up(9)
    fitted = OnlineFuser(beta=60.0).fit(aligned)
    shared = OnlineFuser(beta=60.0).fit_problem(Problem(aligned, beta=60.0))
    assert (shared.weights_.tolist(), shared.history_) == (fitted.weights_.tolist(), fitted.history_)
    assert shared.to_model() == fitted.to_model()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_model_updated_in_parts_equals_one_updated_at_once(schedule: str) -> None:
    aligned = made_up(1, n_queries=20)
    begun = OnlineFuser(schedule=schedule, beta=80.0).partial_fit(aligned.select(np.arange(5))).to_model()
    begun = replace(begun, training={"queries": 5}, target="opensearch")
    at_once = update_model(begun, aligned.select(np.arange(5, 20)))
    in_parts = begun
    for part in (np.arange(5, 9), np.arange(9, 20)):
        in_parts = update_model(in_parts, aligned.select(part))
    assert at_once == in_parts
    assert at_once.online is not None
    assert at_once.online.n_seen == 20
    assert (at_once.training, at_once.target) == ({}, "opensearch")  # figures of other weights go, the rules stay


def test_a_model_without_a_stream_is_not_updated() -> None:
    aligned = made_up(2)
    with pytest.raises(ModelError, match="has no stream to continue"):
        update_model(NewtonFuser().fit(aligned).to_model(), aligned)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_groups_move_by_their_own_queries_in_parts_as_in_one_stream(schedule: str) -> None:
    aligned, groups, _ = two_kinds(n_queries=30)
    model = OnlineFuser(schedule=schedule, beta=20.0).partial_fit(made_up(0, n_docs=15)).to_model()
    members = (GroupWeights("id", (0.6, 0.2, 0.2), 12),)
    given = replace(model, groups=Groups(Grouping(), members))
    whole = update_model(given, aligned, groups)
    parts = given
    for at in (np.arange(4), np.arange(4, 11), np.arange(11, 30)):
        parts = update_model(parts, aligned.select(at), [groups[q] for q in at.tolist()])
    assert parts == whole
    assert whole.weights == update_model(model, aligned).weights, "the global stream is as without groups"
    assert whole.groups is not None
    counts = {one.name: one.n_queries for one in whole.groups.members}
    assert counts == {"id": 12 + groups.count("id"), "question": groups.count("question")}
    weights = whole.groups.weights
    assert weights["id"][0] > weights["question"][0]
    assert weights["question"][1] > weights["id"][1]


def test_a_new_group_starts_at_the_global_weights() -> None:
    aligned, _, _ = two_kinds(n_queries=4)
    unjudged = replace(aligned, relevance=np.zeros_like(aligned.relevance), unretrieved=aligned.unretrieved[:0])
    model = OnlineFuser(beta=20.0).partial_fit(made_up(0, n_docs=15)).to_model()
    after = update_model(model, unjudged, ["new", None, "new", None])
    assert after.groups is not None
    assert after.groups.weights == {"new": model.weights}
    assert after.groups.members[0].online == model.online
    with pytest.raises(InputError, match="expected one for each of 4 queries; found 1"):
        update_model(model, aligned, ["a"])


def test_new_judgments_are_merged_with_those_seen() -> None:
    seen = Qrels.from_dict({"1": {"a": 1, "b": 0}, "2": {"a": 1}, "3": {"a": 0}})
    now = Qrels.from_dict({"2": {"a": 1}, "1": {"b": 2, "c": 0}, "4": {"d": 1}})
    found = merge_new_judgments(seen, now)
    assert found == {"1": {"a": 1, "b": 2, "c": 0}, "4": {"d": 1}}
    assert [note.code for note in found.notes] == ["judged-again", "nothing-new"]
    assert "1 documents are new, 1 have another grade, which counts" in found.notes[0].text
    assert merge_new_judgments(Qrels.from_dict({}), now) == now
    assert merge_new_judgments(now, now) == {}


def test_a_batch_is_one_step_along_the_mean_gradient():
    aligned = made_up(2, n_queries=7)
    one, whole = OnlineFuser(batch=7, beta=8.0), Problem(aligned, beta=8.0)
    one.partial_fit(aligned)
    start = np.full(3, 1.0 / 3.0)
    slope = whole.gradient(start)[1]
    slope = slope - slope.mean()
    expected = project_to_simplex(start + STRIDE * slope / np.sqrt((slope**2).sum()))
    np.testing.assert_allclose(one.raw_weights_, expected, atol=1e-12)
    assert one.n_seen_ == 7
    rest = OnlineFuser(batch=4, beta=8.0).partial_fit(aligned)
    halves = OnlineFuser(batch=4, beta=8.0).partial_fit(aligned.select(np.arange(4)))
    halves.partial_fit(aligned.select(np.arange(4, 7)))
    assert rest.weights_.tobytes() == halves.weights_.tobytes()
    with pytest.raises(InputError, match=r"batch \(--batch\) 0: expected a positive integer"):
        OnlineFuser(batch=0).fit(aligned)
