import numpy as np
import pytest
from problems import made_up, two_kinds

from genm._math.query_features import TOP, list_features
from genm.errors import ModelError
from genm.gating import QueryFeatures, gate_from_json, gate_to_json
from genm.learn import learn_gate


def features_by_hand(scores, retrieved):
    """The slow oracle of one query's features, but for the entropy's logarithm."""
    n_rankers = scores.shape[1]
    found, tops = np.zeros((n_rankers, 5)), []
    for k in range(n_rankers):
        rows = np.flatnonzero(retrieved[:, k])
        tops.append(rows[np.argsort(-scores[rows, k], kind="stable")][:TOP])
    for k, top in enumerate(tops):
        own = scores[top, k]
        above = own - scores[retrieved[:, k], k].min()
        share = above / above.sum() if above.sum() > 0 else np.full(len(own), 1 / len(own))
        listed = retrieved[:, k]
        rest = np.delete(scores[listed], k, axis=1).sum(axis=1)
        found[k] = (
            own[0] - own[1],
            own.std(),
            -np.log((share**2).sum()),
            np.mean([len(set(top) & set(other)) / len(top) for j, other in enumerate(tops) if j != k]),
            np.corrcoef(scores[listed, k], rest)[0, 1],
        )
    return found


def test_list_features_are_those_of_a_slow_oracle():
    aligned = made_up(2, n_queries=4, n_docs=30)
    rng = np.random.default_rng(0)
    retrieved = rng.random(aligned.retrieved.shape) < 0.7
    scores = np.where(retrieved, aligned.scores, 0.0)
    found = list_features(scores, retrieved, aligned.starts)
    for q in range(4):
        rows = slice(aligned.starts[q], aligned.starts[q + 1])
        assert np.allclose(found[q], features_by_hand(scores[rows], retrieved[rows]))


def test_empty_and_single_lists_have_features():
    retrieved = np.array([[True, False], [False, False]])
    found = list_features(np.array([[0.5, 0.0], [0.0, 0.0]]), retrieved, np.array([0, 2]))
    assert np.isfinite(found).all()
    assert (found[0, 1] == 0.0).all()


def test_features_of_queries():
    queries = {
        "a": {"text": "red shoes 42", "price": "3", "lang": "en"},
        "b": {"text": "red boots", "price": "5", "lang": "de"},
    }
    known = QueryFeatures.of(["a", "b"], queries)
    assert known.names == ("words", "digits", "rare", "column price", "column lang=de", "column lang=en")
    assert known.common_words == ("red",)
    values = known.values(["a", "c"], queries)
    assert np.allclose(values[0], [3.0, 1 / 3, 2 / 3, 3.0, 0.0, 1.0])
    assert np.isnan(values[1]).all()
    assert QueryFeatures.of(["a"], None).names == ()


@pytest.fixture(scope="module")
def gate():
    aligned, _, texts = two_kinds()
    return learn_gate(aligned, np.full(3, 1 / 3), queries=texts).gate


def test_a_gate_survives_its_file(gate):
    document = gate_to_json(gate)
    assert gate_from_json(document, 3, "m.json") == gate
    with pytest.raises(ModelError, match=r"m.json: gate: expected rows for 2 rankers"):
        gate_from_json(document, 2, "m.json")
    with pytest.raises(ModelError, match="gate"):
        gate_from_json({**document, "ridge": "x"}, 3, "m.json")


def test_missing_texts_count_as_the_mean_and_are_said(gate):
    aligned, _, texts = two_kinds()
    weights, notes = gate.weights(aligned, {"q000": texts["q000"]})
    assert [note.code for note in notes] == ["missing-features"]
    assert notes[0].count == 59
    assert np.isfinite(weights).all()
