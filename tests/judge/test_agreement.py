import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge.test_store import opinion

from genm.judge.agreement import agreement_of, cohen_kappa, fleiss_kappa, krippendorff_alpha

# Krippendorff (2011): four observers, twelve units, some values missing
UNITS = [
    [1, 1, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
    [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [5, 5, 5], [1, 1], [3],
]  # fmt: skip


@pytest.mark.parametrize(("scale", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_the_example_of_krippendorff(scale, alpha):
    assert krippendorff_alpha(UNITS, scale) == pytest.approx(alpha, abs=5e-4)


def test_cohen_by_hand():
    # 20 both 1, 15 both 0, 5 and 10 apart: observed 35/50, chance (25*30 + 25*20) / 2500 = .5
    pairs = [(1, 1)] * 20 + [(0, 0)] * 15 + [(1, 0)] * 5 + [(0, 1)] * 10
    assert cohen_kappa(pairs) == pytest.approx(0.4)


def test_fleiss_by_hand():
    # three judges: units 111, 000, 110; agreeing ordered pairs 6 + 6 + 2 of 18; chance (5/9)^2 + (4/9)^2 = 41/81
    assert fleiss_kappa([[1, 1, 1], [0, 0, 0], [1, 1, 0]]) == pytest.approx((14 / 18 - 41 / 81) / (40 / 81))


def test_undefined_is_none():
    assert cohen_kappa([]) is None
    assert cohen_kappa([(1, 1), (1, 1)]) is None
    assert fleiss_kappa([]) is None
    assert fleiss_kappa([[2, 2], [2, 2]]) is None
    assert krippendorff_alpha([[1]], "ordinal") is None
    assert krippendorff_alpha([[1, 1]], "nominal") is None


@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=4), min_size=1, max_size=12))
def test_alpha_is_one_exactly_where_all_agree(units):
    alpha = krippendorff_alpha(units, "ordinal")
    if alpha is not None:
        assert alpha <= 1.0
        assert (alpha == 1.0) == all(len(set(unit)) == 1 for unit in units)


def test_a_store_of_opinions():
    rows = [
        opinion(1, "ada", 3), opinion(2, "bob", 0), opinion(3, "ada", 1, document="e"),
        opinion(4, "bob", 2, document="e"), opinion(5, "ada", 1, document="f"),
        opinion(6, "cyd", 1, action="decide"), opinion(7, "bob", None, document="f", action="skip"),
    ]  # fmt: skip
    found = agreement_of(rows)
    assert (found.n_judges, found.n_shared) == (2, 2)
    assert list(found.cohen) == [("ada", "bob")]
    assert [(one.document, one.spread, one.is_decided) for one in found.disagreements] == [
        ("e", 1, False), ("d", 3, True)
    ]  # fmt: skip
    assert found.disagreements[1].grades == {"ada": 3, "bob": 0}
