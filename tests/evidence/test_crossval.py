"""Held out means held out."""

import numpy as np
import pytest
from problems import made_up

from genm.align import Aligned, align_runs
from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.evidence.crossval import cross_validate, measure_queries
from genm.learn import BoostFuser, NewtonFuser
from genm.learn.objectives import fold_of_queries
from genm.records import Qrels, Run

AP = parse_measure("AP")
A = {f"q{q}": {f"d{d}": 9.0 - d for d in range(4)} for q in range(6)}
B = {f"q{q}": {f"d{d}": float(d * (q + 1) % 5) for d in range(6)} for q in range(6)}
GRADES = {f"q{q}": {f"d{q % 4}": 1, "d5": q % 2} for q in range(6)}


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
    held = cross_validate(Spy, aligned, AP, folds=3, seed=1)
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
    cross_validate(BoostFuser, made_up(0), AP, folds=4, progress=lambda _, done, total: told.append((done, total)))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("folds", [0, 1, 13])
def test_impossible_folds_are_refused(folds: int) -> None:
    with pytest.raises(InputError, match="expected 2 to 12 folds"):
        cross_validate(BoostFuser, made_up(0), AP, folds=folds)


def test_a_fuser_a_class_and_a_function_are_cross_validated_alike() -> None:
    aligned = made_up(0)
    fuser = NewtonFuser(beta=50.0).fit(aligned)
    weights = fuser.weights_.copy()
    found = [
        cross_validate(fuser, aligned, AP, folds=3),
        cross_validate(lambda: NewtonFuser(beta=50.0), aligned, folds=3),
        cross_validate(aligned, fuser, "AP", folds=3),
        cross_validate(fuser, aligned, measure="AP", folds=3),
    ]
    assert len({held.per_query.tobytes() for held in found}) == 1
    assert fuser.weights_.tolist() == weights.tolist()
    assert cross_validate(NewtonFuser, aligned, AP, folds=3).weights.tolist() != found[0].weights.tolist()


def test_runs_and_judgments_are_aligned_first() -> None:
    runs, qrels = [Run.from_dict(A, name="a"), Run.from_dict(B, name="b")], Qrels.from_dict(GRADES)
    wanted = cross_validate(BoostFuser, align_runs(runs, qrels), "RR", folds=2)
    found = cross_validate(BoostFuser(), runs, qrels, "RR", folds=2)
    assert found.per_query.tolist() == wanted.per_query.tolist()


def test_arguments_out_of_order_are_refused() -> None:
    with pytest.raises(InputError, match=r"fuser: expected a fuser.*found list\. The order is cross_validate\("):
        cross_validate([Run.from_dict(A)], BoostFuser, "AP")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="qrels: expected None with runs that are aligned already"):
        cross_validate(BoostFuser, made_up(0), Qrels.from_dict(GRADES), "AP")
