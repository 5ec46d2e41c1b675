"""Held out means held out."""

import numpy as np
import pytest
from problems import made_up

from genm.align import Aligned
from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.evidence.crossval import cross_validate, measure_queries
from genm.learn import BoostFuser
from genm.learn.objectives import fold_of_queries

AP = parse_measure("AP")


@pytest.mark.parametrize(("n", "k"), [(10, 2), (11, 5), (7, 7)])
def test_folds_are_even_and_seeded(n: int, k: int) -> None:
    folds = fold_of_queries(n, k, 3)
    counts = np.bincount(folds, minlength=k)
    assert counts.max() - counts.min() <= 1
    assert (folds == fold_of_queries(n, k, 3)).all()
    assert any((folds != fold_of_queries(n, k, seed)).any() for seed in range(5))


def test_no_query_is_measured_by_weights_that_saw_it() -> None:
    seen: list[set[str]] = []

    class Spy(BoostFuser):
        def fit(self, aligned: Aligned) -> "Spy":
            seen.append(set(aligned.queries))
            super().fit(aligned)
            return self

    aligned = made_up(0)
    held = cross_validate(aligned, Spy, AP, folds=3, seed=1)
    ids = list(aligned.queries)
    for f in range(3):
        outside = {ids[q] for q in np.flatnonzero(held.fold == f)}
        assert not outside & seen[f]
        assert outside | seen[f] == set(ids)
        chosen = np.flatnonzero(held.fold == f)
        values = measure_queries(aligned.select(chosen), held.weights[f], AP)
        assert held.per_query[chosen].tolist() == values.tolist()
    assert held.mean == pytest.approx(held.per_query.mean())


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    cross_validate(made_up(0), BoostFuser, AP, folds=4, progress=lambda _, done, total: told.append((done, total)))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("folds", [0, 1, 13])
def test_impossible_folds_are_refused(folds: int) -> None:
    with pytest.raises(InputError, match="expected 2 to 12 folds"):
        cross_validate(made_up(0), BoostFuser, AP, folds=folds)
