import numpy as np
import pytest

from genm.errors import InputError
from genm.rankers.tfidf import TfidfRanker, entropy_weights, inverse_document_frequency, local_weights


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


@pytest.mark.parametrize(
    ("idf", "rare", "common"),
    [
        # n = 3; rare words have df 1, common ones df 2
        ("plain", 1.098612, 0.405465),  # ln 3, ln 1.5
        ("smooth", 1.693147, 1.287682),  # 1 + ln(4/2), 1 + ln(4/3)
        ("probabilistic", 0.980829, 0.470004),  # ln(1 + 2.5/1.5), ln(1 + 1.5/2.5)
        ("none", 1.0, 1.0),
    ],
)
def test_idf_by_hand(three, idf, rare, common):
    expected = [common, rare, common, rare]  # bird cat dog fish
    assert inverse_document_frequency(three.counts, idf) == pytest.approx(expected, abs=1e-6)


def test_log_tf_by_hand(three):
    # 1 + ln 2 = 1.693147 where a word occurs twice
    assert local_weights(three.counts, "log").toarray()[0] == pytest.approx([0, 1.693147, 1, 0], abs=1e-6)
    assert local_weights(three.counts, "raw").toarray()[0].tolist() == [0, 2, 1, 0]


def test_entropy_by_hand(three):
    # cat and fish stand in one document: 1. dog: p = 1/2, 1/2: 1 - ln 2 / ln 3 = 0.369070.
    # bird: p = 1/3, 2/3: 1 + (ln(1/3)/3 + 2 ln(2/3)/3) / ln 3 = 1 - 0.636514/1.098612 = 0.420620
    assert entropy_weights(three.counts) == pytest.approx([0.420620, 1, 0.369070, 1], abs=1e-6)


def test_one_document_alone_has_no_entropy_to_speak_of(three):
    assert entropy_weights(three.counts[:1]).tolist() == [1, 1, 1, 1]


def test_a_word_nobody_uses_weighs_nothing(three):
    assert np.isfinite(inverse_document_frequency(three.counts[:1], "plain")).all()
    assert inverse_document_frequency(three.counts[:1], "smooth")[0] == 0
