"""Dictionaries become the same records as files."""

import io

import numpy as np
from read.bad_cases import as_dict

from genm.read import qrels_from_dict, read_qrels, read_run, run_from_dict


def test_dictionaries_and_files_agree() -> None:
    data = {"q2": {"b": 1.0, "a": 1.0}, "q1": {"c": -2.5}}
    text = "".join(f"{q} Q0 {d} 1 {s} t\n" for q, docs in data.items() for d, s in docs.items())
    from_dict, from_text = run_from_dict(data), read_run(io.StringIO(text))
    assert repr(as_dict(from_dict)) == repr(as_dict(from_text)) == repr(data)
    assert list(from_dict.docs) == list(from_text.docs)
    assert from_dict.score.dtype == np.float64
    assert (from_dict.doc.dtype, from_dict.starts.dtype) == (from_text.doc.dtype, from_text.starts.dtype)


def test_names_and_fronts() -> None:
    assert run_from_dict({"q": {"a": 1.0}}, name="bm25").name == "bm25"
    assert read_run({"q": {"a": 1.0}}, name="bm25").name == "bm25"
    assert as_dict(read_qrels({"q": {"a": 1}})) == as_dict(qrels_from_dict({"q": {"a": 1}})) == {"q": {"a": 1}}


def test_keys_that_become_equal_are_a_duplicate() -> None:
    run = run_from_dict({"q": {"7": 1.0, 7: 2.0}}, lenient=True)  # type: ignore[dict-item]
    assert as_dict(run) == {"q": {"7": 2.0}}
    assert [n.code for n in run.notes] == ["mixed-ids", "duplicate-kept-max"]
