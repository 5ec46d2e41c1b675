"""What travels with the page gives Python's own values, for any weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.conftest import gappy

from genm.evaluate import evaluate_aligned
from genm.report.packing import unpack
from genm.report.sliders import sliders_of


def rank_anew(sliders: dict, weights: list[float]) -> np.ndarray:
    """Do what the page does: the description in `payload.Sliders`, word by word."""
    starts, stored = unpack(sliders["row_starts"]), np.unpackbits(unpack(sliders["stored"]))
    values, fill, marks = (unpack(sliders[key]) for key in ("values", "fill", "marks"))
    n_relevant, n_rankers, at = unpack(sliders["n_relevant"]), len(weights), 0
    ap = []
    for i in range(len(starts) - 1):
        fused = []
        for row in range(starts[i], starts[i + 1]):
            total = 0.0
            for k in range(n_rankers):
                if stored[row * n_rankers + k]:
                    score, at = values[at], at + 1
                else:
                    score = fill[i, k]
                total = total + weights[k] * score
            fused.append(total)
        order = sorted(range(len(fused)), key=lambda r: -fused[r])  # a stable sort
        found, precisions = 0, 0.0
        for rank, row in enumerate(order, 1):
            if marks[starts[i] + row] == 2:
                found += 1
                precisions += found / rank
        ap.append(precisions / n_relevant[i] if n_relevant[i] else 0.0)
    assert at == len(values)
    return np.array(ap)


@pytest.fixture(scope="module", params=[0.0, "minimum", -0.25])
def case(request):
    aligned = gappy(4, n_queries=6, missing=request.param)
    return aligned, sliders_of(aligned, np.full(3, 1 / 3), np.arange(6), 1)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any))
def test_every_ap_equals_pythons_to_the_bit(case, parts) -> None:
    aligned, sliders = case
    weights = (np.array(parts) / sum(parts)).tolist()
    expected = evaluate_aligned(aligned, np.array(weights), "AP").values[:, 0]
    assert rank_anew(sliders, weights).tolist() == expected.tolist()


def test_at_the_learned_weights_they_give_the_evidences_values(built) -> None:
    sliders = built.report["sliders"]
    assert (
        rank_anew(sliders, built.report["weights"]).tolist() == sliders["ap"] == built.kept.evidence.train.tolist()
    )
    assert sliders["map"] == pytest.approx(built.kept.evidence.mean(built.kept.evidence.train), abs=1e-14)
    assert sliders["map"] == sliders["map_all"]


def test_gaps_take_no_room(case) -> None:
    aligned, sliders = case
    assert sliders["values"]["shape"] == [int(aligned.retrieved.sum())]
    assert sliders["n_scores"] == aligned.scores.size


def test_scores_that_differ_within_the_gaps_are_kept_too() -> None:
    aligned = gappy(5, n_queries=2)
    rng = np.random.default_rng(0)
    aligned.scores[~aligned.retrieved] = rng.random((~aligned.retrieved).sum())
    sliders = sliders_of(aligned, np.full(3, 1 / 3), np.arange(2), 1)
    expected = evaluate_aligned(aligned, np.array([0.2, 0.3, 0.5]), "AP").values[:, 0]
    assert rank_anew(sliders, [0.2, 0.3, 0.5]).tolist() == expected.tolist()


def test_a_part_of_the_queries_and_the_names_of_its_first_documents() -> None:
    aligned = gappy(4, n_queries=6)
    sliders = sliders_of(aligned, np.full(3, 1 / 3), np.array([1, 4]), 1)
    assert unpack(sliders["queries"]).tolist() == [1, 4]
    assert sliders["map"] != sliders["map_all"]
    part = aligned.select(np.array([1, 4]))
    rows = unpack(sliders["named_rows"])
    assert sliders["names"] == [part.docs[int(part.doc[row])] for row in rows]
    fused = part.scores @ np.full(3, 1 / 3)
    first = part.starts[0] + np.argsort(-fused[: part.starts[1]], kind="stable")[:10]
    assert set(first.tolist()) <= set(rows.tolist())
