import pytest

from genm.collections.judgments import make_qrels
from genm.collections.merged import load_merged, merge_collections
from genm.records import Collection, Note


def test_mc_has_the_papers_counts(smart_data):
    mc = load_merged(data=smart_data)
    assert len(mc.doc_ids) == len(set(mc.doc_ids)) == len(mc.doc_texts) == 7097
    assert len(mc.query_ids) == len(set(mc.query_ids)) == len(mc.query_texts) == 431
    assert len(mc.qrels.queries) == 383
    assert len(mc.qrels.doc) == 696 + 1837 + 3114 + 796
    assert (mc.doc_ids[0], mc.doc_ids[-1]) == ("med-1", "cacm-3204")
    assert (mc.query_ids[0], mc.query_ids[-1]) == ("med-1", "cacm-64")
    docs = list(mc.qrels.docs)
    for i, query_id in enumerate(mc.qrels.queries):
        part = query_id.split("-")[0]
        rows = mc.qrels.doc[mc.qrels.starts[i] : mc.qrels.starts[i + 1]]
        assert all(docs[row].startswith(f"{part}-") for row in rows)


def test_source_paper_reaches_cran(smart_data):
    assert len(load_merged(data=smart_data, source_paper=False).qrels.doc) == 696 + 1612 + 3114 + 796


def tiny(name, *, left_out=()):
    return Collection(
        name=name,
        doc_ids=("1", "2"),
        doc_texts=(f"{name} one", f"{name} two"),
        query_ids=("2", "1"),
        query_texts=("q two", "q one"),
        qrels=make_qrels([("1", "2", 3), ("2", "1", 1), ("2", "2", 0)], query_order=("2", "1")),
        left_out={"1": frozenset(left_out)} if left_out else {},
        notes=(Note("x", 1, name),),
    )


def test_ids_grades_order_and_exclusions_are_carried_over():
    both = merge_collections("both", [tiny("a"), tiny("b", left_out=["1"])])
    assert both.doc_ids == ("a-1", "a-2", "b-1", "b-2")
    assert both.doc_texts == ("a one", "a two", "b one", "b two")
    assert both.query_ids == tuple(both.qrels.queries) == ("a-2", "a-1", "b-2", "b-1")
    assert both.qrels.starts.tolist() == [0, 2, 3, 5, 6]
    assert [list(both.qrels.docs)[d] for d in both.qrels.doc] == ["a-1", "a-2", "a-2", "b-1", "b-2", "b-2"]
    assert both.qrels.relevance.tolist() == [1, 0, 3, 1, 0, 3]
    assert both.left_out == {"b-1": frozenset({"b-1"})}
    assert [n.text for n in both.notes] == ["a", "b"]


@pytest.mark.parametrize("parts", [[], [tiny("a")]])
def test_merging_few_is_no_special_case(parts):
    assert len(merge_collections("m", parts).doc_ids) == 2 * len(parts)
