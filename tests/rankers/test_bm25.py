import sys

import pytest

from genm.errors import InputError
from genm.rankers.bm25 import Bm25Ranker


@pytest.mark.needs("bm25s")
def test_scores_by_hand(three, ask):
    # lengths 3, 2, 3, mean 8/3; k1 = 1.2, b = 0.75: k1 (1 - b + b length / mean) is 1.3125 for 3 and 0.975 for 2.
    # idf cat ln(1 + 2.5/1.5) = 0.980829, dog ln(1 + 1.5/2.5) = 0.470004
    # D1: 0.980829 * 2/3.3125 + 0.470004 / 2.3125 = 0.592199 + 0.203245 = 0.795444; D2: 0.470004 / 1.975 = 0.237977
    scores = Bm25Ranker().fit(three).score(ask("cat dog"))
    assert scores[0] == pytest.approx([0.795444, 0.237977, 0], abs=1e-6)


@pytest.mark.needs("bm25s")
def test_a_query_word_said_twice_counts_twice(three, ask):
    scores = Bm25Ranker().fit(three).score(ask("dog", "dog dog"))
    assert scores[1] == pytest.approx(2 * scores[0])


@pytest.mark.needs("bm25s")
def test_the_options_reach_the_formula(three, ask):
    # k1 = 0: an occurrence is worth its idf; D1 0.980829 + 0.470004
    assert Bm25Ranker(k1=0.0).fit(three).score(ask("cat dog"))[0] == pytest.approx(
        [1.450833, 0.470004, 0], abs=1e-6
    )
    # b = 0: lengths do not matter; dog once in D1 and D2: 0.470004 / 2.2
    assert Bm25Ranker(b=0.0).fit(three).score(ask("dog"))[0] == pytest.approx([0.213638, 0.213638, 0], abs=1e-6)
    # atire: idf ln(3/2) and the factor k1 + 1: 0.405465 * 2.2 / 2.3125
    assert Bm25Ranker(method="atire").fit(three).score(ask("dog"))[0, 0] == pytest.approx(0.385740, abs=1e-6)


def test_options_that_cannot_be_used(three):
    with pytest.raises(InputError, match=r"b from 0 to 1; found k1=1\.2, b=2"):
        Bm25Ranker(b=2.0).fit(three)
    with pytest.raises(InputError, match=r"bm25l"):
        Bm25Ranker(method="bm25l").fit(three)


@pytest.mark.needs("bm25s")
def test_an_installed_jax_is_neither_started_nor_lost(three, ask, tmp_path, monkeypatch):
    # bm25s calls JAX while it is imported; on a machine whose accelerator is taken this ends in a RuntimeError
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").touch()
    (tmp_path / "jax" / "lax.py").write_text("def top_k(scores, k):\n    raise RuntimeError('no device')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("bm25s", "jax")]:
        monkeypatch.delitem(sys.modules, name)
    assert Bm25Ranker().fit(three).score(ask("cat dog"))[0, 2] == 0
    import jax.lax

    assert sys.modules["jax.lax"] is jax.lax
    for name in ("jax", "jax.lax"):
        del sys.modules[name]  # other libraries look for JAX among the modules
