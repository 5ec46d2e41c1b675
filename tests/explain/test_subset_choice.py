"""The smallest subset that will do, against the same choice made by hand."""

import numpy as np
import pytest
from problems import made_up
from scipy import stats

from genm.evaluate import parse_measure
from genm.explain import SubsetValues, choose_exhaustively, choose_greedily
from genm.explain.subset_choice import joint_interval
from genm.explain.subsets import SubsetTable
from genm.formatting import listed

AP = parse_measure("AP")


@pytest.fixture(scope="module")
def values():
    """Two rankers that need each other, and one that knows nothing."""
    return SubsetValues(made_up(5, quality=(0.8, 0.8, 0.0), n_queries=40), measure=AP)


def tables(known):
    return {subset: SubsetTable(row, row) for subset, row in known.items()}


def test_what_knows_nothing_is_left_out(values):
    for choose in (choose_greedily, choose_exhaustively):
        found = choose(values, confidence=0.95)
        assert found.rankers == ("r0", "r1")
        assert found.value == values.mean(0b011)
        assert found.difference == pytest.approx(values.mean(0b011) - values.mean(0b111))
    assert choose_greedily(values, confidence=0.95).n_looks == 1 + 3 + 2
    assert choose_exhaustively(values, confidence=0.95).n_looks == 3 + 3


def test_every_smaller_choice_is_worse_and_that_is_tested(values):
    whole = values.per_query(0b111)
    for single in (0b001, 0b010, 0b100):
        assert stats.wilcoxon(values.per_query(single) - whole).pvalue < 0.05
    chosen = choose_exhaustively(values, confidence=0.95)
    lost = np.round(values.per_query(0b011) - whole, 12)
    assert chosen.p == pytest.approx(min(stats.wilcoxon(lost).pvalue, stats.ttest_1samp(lost, 0.0).pvalue))
    assert chosen.p >= 0.05 or chosen.difference > 0


def test_a_few_large_losses_count(values, monkeypatch):
    """Level on most queries, far behind on some: Wilcoxon's test shrugs, the mean does not."""
    whole, some = np.full(40, 0.5), np.full(40, 0.501)
    some[::5] = 0.1
    assert stats.wilcoxon(some - whole).pvalue > 0.05
    known = {0b111: whole, **dict.fromkeys(range(1, 7), some)}
    monkeypatch.setattr(values, "_known", {**values._known, **tables(known)})
    assert choose_exhaustively(values, confidence=0.95).rankers == ("r0", "r1", "r2")
    assert choose_greedily(values, confidence=0.95).rankers == ("r0", "r1", "r2")


def test_every_subset_of_a_size_is_tested(values, monkeypatch):
    """The best of a size may be a little worse everywhere, which is seen; the next one is worse by luck alone."""
    whole, noise = np.full(40, 0.5), np.linspace(-0.1, 0.1, 40)
    surely, perhaps, far = whole - 0.001, whole - 0.004 + noise, whole - 0.3 + 0.1 * noise
    known = {0b111: whole, 0b011: surely, 0b101: perhaps, 0b110: far, 0b001: far, 0b010: far, 0b100: far}
    monkeypatch.setattr(values, "_known", {**values._known, **tables(known)})
    for choose in (choose_greedily, choose_exhaustively):
        assert choose(values, confidence=0.95).rankers == ("r0", "r2")


def test_a_stricter_level_keeps_less(values):
    """At a level that nothing passes, a single ranker is never called worse."""
    assert len(choose_exhaustively(values, confidence=1 - 1e-300).rankers) == 1


def test_the_bound_allows_for_the_looks(values):
    lost = values.per_query(0b111) - values.per_query(0b011)
    found = choose_exhaustively(values, confidence=0.95)
    t = stats.t.ppf(1 - 0.05 / (2 * 6), 39)
    learning = values.learning_variance(0b111) + values.learning_variance(0b011)
    assert learning > 0.0
    assert found.bound == pytest.approx(lost.mean() + t * np.sqrt(lost.var(ddof=1) / 40 + learning))
    low, high = joint_interval(lost[:, None], 0.95, 1, np.array([learning]))
    assert low[0] < lost.mean() < high[0] < found.bound


def test_names_as_a_sentence_lists_them():
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
