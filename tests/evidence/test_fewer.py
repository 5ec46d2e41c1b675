"""Learning from fewer queries."""

import numpy as np
import pytest
from problems import made_up

from genm.evaluate import parse_measure
from genm.evidence import fewer, gather_evidence, learn_from_fewer
from genm.learn import NewtonFuser

AP = parse_measure("AP")


@pytest.fixture(scope="module")
def gathered():
    """Queries, what was learned from them, and the evidence for it."""
    aligned = made_up(0, n_queries=40)
    return aligned, *gather_evidence(aligned, NewtonFuser, AP, folds=4)


def test_the_curve_ends_at_the_cross_validation(gathered) -> None:
    aligned, fuser, found = gathered
    curve = learn_from_fewer(aligned, fuser, found)
    assert curve.n_queries.tolist() == [7, 15, 30]
    assert curve.per_query.shape == (3, 40)
    assert curve.per_query[-1].tolist() == found.held_out.per_query.tolist()


def test_each_point_is_learned_from_that_many_queries_of_the_other_folds() -> None:
    aligned = made_up(1, n_queries=24)
    _, found = gather_evidence(aligned, NewtonFuser, AP, folds=2)
    seen = []

    class Watched(NewtonFuser):
        def fit(self, aligned):
            seen.append(set(aligned.queries))
            return super().fit(aligned)

    curve = learn_from_fewer(aligned, Watched().fit(aligned), found)
    assert curve.n_queries.tolist() == [6, 12]
    names = np.array(list(aligned.queries))
    folds = {f: set(names[found.held_out.fold == f]) for f in range(2)}
    missing = [[f for f, inside in folds.items() if not used & inside] for used in seen[1:]]
    assert sorted(missing) == [[0], [1]]  # threads finish in any order
    assert [len(used) for used in seen[1:]] == [6, 6]


def test_large_data_have_fewer_points_and_it_says_so(gathered, monkeypatch) -> None:
    aligned, fuser, found = gathered
    monkeypatch.setattr(fewer, "MOST_ROWS", 4 * 7 * 60)
    curve = learn_from_fewer(aligned, fuser, found)
    assert curve.n_queries.tolist() == [7, 30]
    assert "Points between 7 and 30 queries would take too long." in curve.note
