import pytest

from genm.errors import InputError
from genm.rankers.tfidf import TfidfRanker


def test_cosines_by_hand(three, ask):
    # a = ln 3 = 1.098612 (cat, fish), c = ln 1.5 = 0.405465 (dog, bird). Query (cat a, dog c), D1 (cat 2a, dog c),
    # D2 (dog c, bird c).
    # D1: (2aa + cc) / (sqrt(aa + cc) sqrt(4aa + cc)) = 2.578300 / (1.171047 * 2.234323) = 0.985402
    # D2: cc / (sqrt(aa + cc) c sqrt 2) = 0.405465 / 1.656111 = 0.244830
    scores = TfidfRanker().fit(three).score(ask("cat dog"))
    assert scores[0] == pytest.approx([0.985402, 0.244830, 0], abs=1e-6)


def test_log_tf_changes_only_repeated_words(three, ask):
    # D1 (cat 1.693147 a, dog c): (1.693147 aa + cc) / (1.171047 sqrt(2.866746 aa + cc))
    # = 2.207944 / (1.171047 * 1.903791) = 0.990363
    scores = TfidfRanker(tf="log").fit(three).score(ask("cat dog"))
    assert scores[0] == pytest.approx([0.990363, 0.244830, 0], abs=1e-6)


def test_without_idf(three, ask):
    # D1 (2, 1) with (1, 1): 3 / sqrt 10 = 0.948683; D2: 1 / 2
    scores = TfidfRanker(idf="none").fit(three).score(ask("cat dog"))
    assert scores[0] == pytest.approx([0.948683, 0.5, 0], abs=1e-6)


def test_an_unknown_option_says_what_is_known(three):
    with pytest.raises(InputError, match="tf to be one of log, raw; found 'square'"):
        TfidfRanker(tf="square").fit(three)
