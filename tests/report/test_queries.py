"""What travels with the page gives Python's own values, for any weights."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.conftest import gappy
from report.examples import example_report

from genm.errors import FormatError
from genm.evaluate import evaluate_aligned
from genm.fuse import fuse_runs
from genm.report.payload import unpack
from genm.report.queries import LONGEST, add_texts, details_of, read_beginnings, six_digits, sliders_of


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


def test_the_fused_list_is_the_run_that_the_model_gives(built) -> None:
    run = fuse_runs(built.aligned, built.model.weights, top=10)
    for q, detail in enumerate(built.report["details"]):
        shown = [detail["docs"][i] for i in detail["fused"]]
        assert [doc["id"] for doc in shown] == [
            run.docs[int(d)] for d in run.doc[run.starts[q] : run.starts[q + 1]]
        ]
        assert [doc["fused_rank"] for doc in shown] == list(range(1, 11))


def test_contributions_sum_to_the_score(built) -> None:
    for detail in built.report["details"]:
        for doc in detail["docs"]:
            assert sum(doc["contributions"]) == pytest.approx(doc["score"], abs=5e-6)


def test_each_rankers_list_is_its_own_order(built) -> None:
    aligned = built.aligned
    for q, detail in enumerate(built.report["details"]):
        rows = np.arange(aligned.starts[q], aligned.starts[q + 1])
        for k, listed in enumerate(detail["rankers"]):
            own = rows[aligned.retrieved[rows, k]]
            order = own[np.argsort(-aligned.raw[own, k], kind="stable")][:10]
            assert [detail["docs"][i]["id"] for i in listed] == [aligned.docs[int(aligned.doc[r])] for r in order]
            assert [detail["docs"][i]["ranks"][k] for i in listed] == list(range(1, len(listed) + 1))


def test_grades_and_gaps_are_told_apart(built) -> None:
    docs = [doc for detail in built.report["details"] for doc in detail["docs"]]
    assert {doc["grade"] for doc in docs} == {None, 0, 1}
    for doc in docs:
        assert doc["relevant"] == (doc["grade"] == 1)
        assert [rank is None for rank in doc["ranks"]] == [raw is None for raw in doc["raw"]]


def test_a_query_without_documents_opens_to_empty_lists(plain_problem) -> None:
    from dataclasses import replace

    starts = plain_problem.starts.copy()
    kept = slice(starts[1], None)
    empty = replace(
        plain_problem,
        starts=np.concatenate(([0, 0], starts[2:] - starts[1])),
        doc=plain_problem.doc[kept],
        raw=plain_problem.raw[kept],
        scores=plain_problem.scores[kept],
        retrieved=plain_problem.retrieved[kept],
        relevance=plain_problem.relevance[kept],
    )
    first = details_of(empty, np.full(3, 1 / 3), np.array([0, 1]), 1)[0]
    assert (first["docs"], first["fused"], first["rankers"]) == ([], [], [[], [], []])


@pytest.mark.parametrize(
    "content",
    [
        "d1\tone <b>\tand two\nd2\tnobody asked\r\nd3\tthree\n",
        '{"_id": "d1", "title": "one <b>\\tand", "text": "two"}\n\n{"id": "d2"}\n{"id": "d3", "text": "three"}\n',
    ],
)
def test_both_forms(tmp_path, content) -> None:
    path = tmp_path / "texts.gz"
    path.write_bytes(gzip.compress(content.encode()))
    found = read_beginnings(str(path), {"d1", "d3", "d9"})
    assert set(found) == {"d1", "d3"}
    assert found["d1"].startswith("one <b>")
    assert found["d3"] == "three"


def test_long_texts_are_cut(tmp_path) -> None:
    path = tmp_path / "texts.tsv"
    path.write_text(f"d1\t{'x' * 1000}\n")
    assert read_beginnings(str(path), {"d1"}) == {"d1": "x" * (LONGEST - 1) + "…"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("d1 no tab\n", ":1: expected an id, a tab and a text"),
        ('{"_id": "b"}\n{"text": 1}\n', ":2: expected an object with _id and text"),
        ("a\tone\na\ttwo\n", ":2: expected each _id once"),
    ],
)
def test_lines_that_are_neither(tmp_path, content, message) -> None:
    (tmp_path / "t").write_text(content)
    with pytest.raises(FormatError, match=message):
        read_beginnings(str(tmp_path / "t"), {"a"})


def test_they_are_asked_for_once_and_put_where_ids_are() -> None:
    report, asked = example_report(n_queries=8), []

    def texts(wanted):
        asked.append(wanted)
        return {"q7": "seven", "d0030": "thirty"}

    add_texts(report, texts, texts)
    assert len(asked) == 2
    assert report["queries"]["texts"][7] == "seven"
    assert report["queries"]["texts"][0] == ""
    docs = [doc for detail in report["details"] for doc in detail["docs"]]
    assert {doc["text"] for doc in docs if doc["id"] == "d0030"} == {"thirty"}
    assert {doc["text"] for doc in docs if doc["id"] != "d0030"} == {None}


@settings(deadline=None, max_examples=300)
@given(
    st.floats()
    | st.builds(lambda n, power: (n + 0.5) * 10.0**power, st.integers(-(10**6), 10**6), st.integers(-20, 20))
    | st.builds(lambda power, sign: sign * 10.0**power, st.integers(-30, 30), st.sampled_from([1, -1, 1 - 2**-53]))
)
def test_six_digits_are_those_of_the_text(value: float) -> None:
    assert repr(six_digits(np.array([value]))[0]) == repr(np.float64(f"{value:.6g}"))
