"""A model explained in one call."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up

from genm.errors import InputError
from genm.explain import explain_documents, explain_model, explain_query, gains_by_query, measure_worth
from genm.learn import BoostFuser


@pytest.fixture(scope="module")
def fitted():
    aligned = made_up(4, n_queries=12)
    return BoostFuser().fit(aligned).to_model(), aligned


def test_the_models_own_measure_and_method_are_used(fitted):
    model, aligned = fitted
    found = explain_model(model, aligned, folds=2, seed=3)
    worth = measure_worth(aligned, method="enm", measure="AP", folds=2, seed=3)
    assert (found.worth.method, str(found.worth.measure), found.notes) == ("enm", "AP", ())
    assert [part.shapley for part in found.worth.rankers] == [part.shapley for part in worth.rankers]
    gains = gains_by_query(aligned, model.weights, worth.measure)
    assert found.gains.gain.tolist() == gains.gain.tolist()


def test_another_measure_and_method_may_be_given(fitted):
    model, aligned = fitted
    found = explain_model(replace(model, method="given"), aligned, measure="RR", method="auto", folds=2)
    assert (found.worth.method, str(found.worth.measure), found.notes) == ("auto", "RR", ())
    with pytest.raises(InputError, match=r"method 'enm' maximises AP, not RR\(rel=2\)"):
        explain_model(replace(model, relevance_level=2), aligned, measure="RR", folds=2)


def test_a_method_that_cannot_be_learned_again_is_replaced_and_noted(fitted):
    model, aligned = fitted
    found = explain_model(replace(model, method="given"), aligned, folds=2)
    assert found.worth.method == "auto"
    assert [note.text for note in found.notes] == [
        "the model's method 'given' cannot be learned again; subsets are learned by 'auto'."
    ]


def test_one_query_with_and_without_judgments(fitted):
    model, aligned = fitted
    query = aligned.queries[2]
    found = explain_query(model, aligned, query, top=3)
    assert list(found.documents) == explain_documents(aligned, model.weights, query, top=3)
    whole = gains_by_query(aligned, model.weights, found.gains.measure)
    assert found.gains.gain.tolist() == whole.gain[2:3].tolist()
    doc = found.documents[1].doc_id
    (one,) = explain_query(model, replace(aligned, labelled=False), query, doc_id=doc).documents
    assert one.contributions == found.documents[1].contributions
    assert explain_query(model, replace(aligned, labelled=False), query).gains is None
    assert np.isclose(sum(one.contributions), one.score)
