"""The rankers of the experiment."""

from genm.collections import load_collection
from genm.reproduce import rankings


def test_the_papers_four_under_its_names_over_all_documents(tiny):
    runs = rankings.paper_rankings(load_collection(str(tiny)))
    assert list(runs) == ["TFIDF", "LSA", "pLSI", "LDI"]
    assert {len(run.doc) for run in runs.values()} == {6 * 24}


def test_a_ranker_whose_extra_is_missing_is_left_out_with_the_advice(tiny, monkeypatch):
    monkeypatch.setattr(rankings, "find_spec", lambda name: None)
    runs, notes = rankings.further_rankings(load_collection(str(tiny)))
    assert list(runs) == ["BM25"]
    assert [note.code for note in notes] == ["ranker-left-out"] * 2
    assert "pip install 'genm[dense]'" in notes[0].text
