"""JSON files: nested objects, and the judgment lists of OpenSearch's Search Relevance Workbench."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from read.bad_cases import as_dict

from genm.errors import FormatError, InputError
from genm.read import read_qrels, read_run

RATINGS = [
    {"query": "red dress", "ratings": [{"docId": "B07", "rating": "3.000"}, {"docId": "B01", "rating": "0.000"}]},
    {"query": "blue", "ratings": [{"docId": "B07", "rating": 1}]},
]
JUDGED = {"red dress": {"B07": 3, "B01": 0}, "blue": {"B07": 1}}
IMPORT = {"name": "Imported", "type": "IMPORT_JUDGMENT", "judgmentRatings": RATINGS}
ANSWER = {"took": 3, "hits": {"total": {"value": 1}, "hits": [{"_id": "x", "_source": IMPORT}]}}


@pytest.mark.parametrize("document", [RATINGS, IMPORT, {"_id": "x", "_source": IMPORT}, ANSWER])
def test_judgment_lists_of_opensearch(document: Any) -> None:
    qrels = read_qrels(io.StringIO(json.dumps(document, indent=1)))
    assert as_dict(qrels) == JUDGED
    assert qrels.notes == ()


def test_fractions_of_a_judgment_list_need_a_rule() -> None:
    text = json.dumps(
        [{"query": "q", "ratings": [{"docId": "a", "rating": "0.735"}, {"docId": "b", "rating": "0.1"}]}]
    )
    with pytest.raises(FormatError, match=r"expected a whole number as relevance; found 0.735. Say how to read"):
        read_qrels(io.StringIO(text))
    assert as_dict(read_qrels(io.StringIO(text), grades="times=100")) == {"q": {"a": 74, "b": 10}}
    assert as_dict(read_qrels(io.StringIO(text), grades="from=0.5")) == {"q": {"a": 1, "b": 0}}
    qrels = read_qrels(io.StringIO(text), grades="round")
    assert as_dict(qrels) == {"q": {"a": 1, "b": 0}}
    assert [(n.code, n.count) for n in qrels.notes] == [("grades-mapped", 2)]
    assert 'query "q", document "a": grade 0.735 became 1 by the rule round' in qrels.notes[0].text


@pytest.mark.parametrize(
    "rule", ["", "half", "round=1", "times", "times=0", "times=-1", "times=x", "from=", "from=nan", 7]
)
def test_rules_that_are_none(rule: Any) -> None:
    with pytest.raises(InputError, match="grades: expected whole, round, probability, times=NUMBER or from=NUMBER"):
        read_qrels(io.StringIO("q 0 a 1\n"), grades=rule)


def test_halves_go_up_and_rules_hold_for_dictionaries_and_frames() -> None:
    data = {"q": {"a": 0.5, "b": 1.5, "c": -0.5, "d": 2.4}}
    assert as_dict(read_qrels(data, grades="round")) == {"q": {"a": 1, "b": 2, "c": 0, "d": 2}}
    assert as_dict(read_qrels({"q": {"a": 1e9}}, grades="times=2", lenient=True)) == {"q": {"a": 2_000_000_000}}
    with pytest.raises(FormatError, match="expected a whole number as relevance"):
        read_qrels({"q": {"a": 1e9}}, grades="times=3")


ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)


@given(
    st.dictionaries(ids, st.dictionaries(ids, st.floats(-1e9, 1e9).map(lambda x: x + 0.0), min_size=1), min_size=1)
)
def test_nested_objects_come_back(data: dict[str, dict[str, float]]) -> None:
    run = read_run(io.StringIO(json.dumps(data)))
    assert {query: dict(sorted(docs.items())) for query, docs in as_dict(run).items()} == {
        query: dict(sorted(docs.items())) for query, docs in data.items()
    }


def test_a_query_without_documents_and_a_model_in_place_of_judgments() -> None:
    qrels = read_qrels(io.StringIO('{"q": {}, "r": {"a": 1}}'))
    assert as_dict(qrels) == {"r": {"a": 1}}
    assert [n.code for n in qrels.notes] == ["empty-query"]
    with pytest.raises(
        FormatError, match='an object of documents for each query; found "genm-model" for query "format"'
    ):
        read_qrels(io.StringIO('{"format": "genm-model"}'))
    with pytest.raises(FormatError, match="expected queries such as"):
        read_qrels(io.StringIO('[{"question": "q"}]'))
    with pytest.raises(FormatError, match="expected ratings such as"):
        read_qrels(io.StringIO('[{"query": "q", "ratings": [1]}]'))
    with pytest.raises(FormatError, match="expected an object of queries"):
        read_qrels(io.StringIO("7"), format="json")


def test_quepid_and_spellings_of_columns() -> None:
    for header in ("query,docid,rating", "Query Text,Doc ID,Rating", "QUERY-ID,Document Id,Grade"):
        assert as_dict(read_qrels(io.StringIO(f"{header}\nstar wars,11,3\n"))) == {"star wars": {"11": 3}}
