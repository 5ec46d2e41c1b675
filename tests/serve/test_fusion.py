"""One query fused by the service is what `Model.fuse` gives, bit for bit, whatever the lists and the rules."""

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from genm.align import align_runs, select_rankers
from genm.fuse import fuse_runs
from genm.model import Model
from genm.normalizers import ENGINES, Normalizer
from genm.read import run_from_dict
from genm.serve.fusion import Fusion
from genm.serve.messages import Columns, RequestError

NAMES = ("a", "b", "c")
GIVEN = {"given ranks": Normalizer("reciprocal", ties="given"), "given shares": Normalizer("rank", ties="given")}
RULES = ENGINES | GIVEN
KINDS = ("none", "minmax", "max", "sum", "zscore", "l2", "rank", "reciprocal", "atan", "sigmoid", *RULES)
ids = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Z", "C")), min_size=1, max_size=4)
scores = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
lists = st.dictionaries(ids, scores, min_size=1, max_size=12)


@st.composite
def problems(draw):
    normalizers = tuple(
        Normalizer(kind) if kind not in RULES else RULES[kind]
        for kind in draw(st.lists(st.sampled_from(KINDS), min_size=3, max_size=3))
    )
    depths = tuple(draw(st.lists(st.none() | st.integers(1, 6), min_size=3, max_size=3)))
    weights = tuple(draw(st.lists(st.floats(-2, 2), min_size=3, max_size=3)))
    runs = {name: draw(lists) for name in NAMES}
    return Model(NAMES, weights, normalizers, depths, "given", "AP"), runs


def ranked(run):
    docs = list(run.docs)
    return [docs[code] for code in run.doc], run.score.tolist()


def in_form(runs, columns):
    if columns:
        return {name: Columns(list(one), list(one.values())) for name, one in runs.items()}
    return {name: list(one.items()) for name, one in runs.items()}


@given(problems(), st.booleans(), st.none() | st.integers(1, 5))
def test_the_fused_list_is_that_of_the_model(problem, columns, top):
    model, runs = problem
    query = Fusion(model).join(in_form(runs, columns))
    order, fused = query.fuse(np.array(model.weights), top)
    expected = model.fuse({name: run_from_dict({"q": one}, name=name) for name, one in runs.items()}, top=top)
    assert (query.doc_ids_of(order), fused[order].tolist()) == ranked(expected)


@given(problems(), st.sets(st.sampled_from(NAMES), min_size=1))
def test_a_subset_is_fused_as_if_there_were_no_other_ranker(problem, some):
    model, runs = problem
    chosen = [name for name in NAMES if name in some]
    query = Fusion(model).join(in_form({name: runs[name] for name in chosen}, columns=False), chosen)
    order, fused = query.fuse(np.array(model.weights))
    aligned = align_runs(
        {name: run_from_dict({"q": one}, name=name) for name, one in runs.items()},
        normalize=model.normalizers,
        depth=model.depths,
    )
    weights = {name: model.weights[NAMES.index(name)] for name in chosen}
    expected = ranked(fuse_runs(select_rankers(aligned, chosen), weights))
    assert query.doc_ids_of(order) == expected[0]
    assert fused[order].tolist() == pytest.approx(expected[1], rel=1e-12, abs=1e-12)


@given(problems())
def test_the_order_of_documents_is_free(problem):
    model, runs = problem
    fusion = Fusion(model)
    one, two = (fusion.join(in_form(runs, columns=False), in_order=flag) for flag in (False, True))
    weights = np.array(model.weights)
    (first, fused), (second, fused_too) = one.fuse(weights), two.fuse(weights)
    assert one.doc_ids_of(first) == two.doc_ids_of(second)
    assert fused[first].tolist() == fused_too[second].tolist()


@given(st.lists(problems(), min_size=1, max_size=4))
def test_queries_joined_together_are_as_if_each_came_alone(several):
    fusion = Fusion(several[0][0])
    queries = [in_form(runs, columns=bool(number % 2)) for number, (_, runs) in enumerate(several)]
    together = fusion.join_all([(runs, f"event {number}") for number, runs in enumerate(queries)])
    for found, runs in zip(together, queries, strict=True):
        alone = fusion.join(runs, in_order=True)
        assert found.doc_ids == alone.doc_ids
        for name in ("raw", "retrieved", "scores"):
            assert getattr(found, name).tobytes() == getattr(alone, name).tobytes()


MODEL = Model(NAMES, (0.5, 0.3, 0.2), (Normalizer(),) * 3, (None, 2, None), "given", "AP")
GOOD = {name: [("x", 1.0), ("y", 2.0)] for name in NAMES}


@pytest.mark.parametrize(
    ("runs", "rankers", "message"),
    [
        ({**GOOD, "z": [("x", 1.0)]}, None, "rankers out of a, b, c; found 'z'"),
        ({"a": GOOD["a"]}, None, "a list of each of a, b, c; found none of b, c"),
        (GOOD, [], "different rankers, at least one"),
        (GOOD, ["a", "a"], "different rankers, at least one"),
        (GOOD, ["q"], "body.rankers: expected rankers out of a, b, c; found 'q'"),
        ({**GOOD, "a": []}, None, "body.runs.a: expected at least one document; found an empty list"),
        (
            {**GOOD, "a": [("x", 1.0), ("x", 2.0)]},
            None,
            "body.runs.a: expected each document once; found 'x' twice",
        ),
        ({**GOOD, "b": [("x", 1.0), ("y", 2.0), ("x", 0.0)]}, None, "body.runs.b: expected each document once"),
        ({**GOOD, "c": Columns(["x"], [1.0, 2.0])}, None, "as many scores as doc_ids; found 1 doc_ids, 2 scores"),
    ],
)
def test_lists_that_cannot_be_fused_are_refused(runs, rankers, message):
    with pytest.raises(RequestError) as caught:
        Fusion(MODEL).join(runs, rankers)
    assert message in str(caught.value)
    assert caught.value.status == 422


def test_of_queries_joined_together_the_list_with_a_document_twice_is_named():
    twice = {**GOOD, "c": [("x", 1.0), ("x", 2.0)]}
    with pytest.raises(RequestError, match=r"event 1\.c: expected each document once; found 'x' twice"):
        Fusion(MODEL).join_all([(GOOD, "event 0"), (twice, "event 1"), (twice, "event 2")])


def test_scores_that_overflow_are_refused():
    huge = Model(NAMES, (0.5, 0.3, 0.2), (Normalizer("none"),) * 3, (None,) * 3, "given", "AP")
    query = Fusion(huge).join({name: [("x", 1.7e308)] for name in NAMES})
    with pytest.raises(RequestError, match="double precision"):
        query.fuse(np.array([2.0, 2.0, 2.0]))
