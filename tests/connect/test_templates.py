import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.connect.engines.weaviate import to_graphql
from genm.connect.templates import Values, fill_json, names_in, read_json_template, read_sql_template
from genm.errors import InputError

HOSTILE = 'x"}}, "match_all": {} // \\" \n $vector ${jndi} {!xmlparser v=\'<a/>\'}'


def values(query="red cars", vector=(0.5, 1.0), depth=7):
    return Values("q1", query, vector, depth)


def filled(template, **given):
    return fill_json(read_json_template(template, "rankers.a"), values(**given), "rankers.a")


def test_names_become_values_of_their_type():
    template = {"a": "$query", "b": ["$vector", {"c": "$depth"}], "d": "$query_id", "e": 3, "f": None}
    assert filled(template) == {"a": "red cars", "b": [[0.5, 1.0], {"c": 7}], "d": "q1", "e": 3, "f": None}


def test_json_text_is_a_template_too():
    assert filled('{"match": {"text": "$query"}}') == {"match": {"text": "red cars"}}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": "$query", "a": 1}', "found 'a' twice"),
        ('{"a": "$query", "b": NaN}', "NaN, which is no JSON number"),
        (f'{{"a": "$query", "b": {"1" * 5000}}}', "4300 digits"),
        ("[" * 100_000, "too many. Flatten it"),
    ],
    ids=["twice", "NaN", "digits", "deep"],
)
def test_json_text_is_read_strictly(text, found):
    with pytest.raises(InputError, match=found):
        read_json_template(text, "rankers.a")


@given(st.text())
def test_a_query_arrives_as_data_whatever_it_contains(query):
    body = filled({"bool": {"must": [{"match": {"text": "$query"}}], "boost": 2}}, query=query)
    assert json.loads(json.dumps(body)) == {"bool": {"must": [{"match": {"text": query}}], "boost": 2}}


def test_a_query_that_looks_like_a_template_is_not_filled_again():
    assert filled({"match": {"text": "$query"}}, query="$vector")["match"]["text"] == "$vector"


@given(st.text(st.characters(codec="utf-8")))
def test_a_graphql_string_ends_where_it_should(query):
    text = to_graphql({"query": query, "operator": "And"}, "rankers.a")
    assert text.startswith('{query: "')
    inner, end = json.JSONDecoder().raw_decode(text[len("{query: ") :])
    assert (inner, text[len("{query: ") + end :]) == (query, ", operator: And}")


def test_numbers_may_stand_inside_a_longer_string():
    template = {"query": "{!knn f=embedding topK=$depth}$vector", "x": "$query"}
    assert filled(template)["query"] == "{!knn f=embedding topK=7}[0.5,1.0]"


@pytest.mark.parametrize("text", ["title:$query", "($query)", "$query^2", "q=$query_id&x"])
def test_a_query_inside_a_longer_string_is_refused(text):
    with pytest.raises(InputError, match=r"rankers\.a\.query_string\.query: expected .* as a whole string"):
        read_json_template({"query_string": {"query": text}}, "rankers.a")


def test_a_doubled_dollar_is_the_text_itself():
    assert filled({"path": "$$query", "q": "$query"})["path"] == "$query"


def test_dollar_signs_of_the_engine_stay():
    template = {"$vectorSearch": {"queryVector": "$vector", "path": "$embedding"}, "v": "{!dismax v=$qq}"}
    body = filled(template)
    assert body == {"$vectorSearch": {"queryVector": [0.5, 1.0], "path": "$embedding"}, "v": "{!dismax v=$qq}"}


@pytest.mark.parametrize("template", [{"match": {"text": "cars"}}, {"knn": {"k": "$depth"}}, {"a": "$$query"}])
def test_a_template_that_ignores_the_query_is_refused(template):
    with pytest.raises(InputError, match="all queries would get the same documents"):
        read_json_template(template, "rankers.a")


def test_text_that_is_no_json_is_refused_with_its_place():
    with pytest.raises(InputError, match=r"rankers\.a: .* not JSON \(line 1, column 20"):
        read_json_template('{"match": {"text": $query}}', "rankers.a")


def test_a_missing_vector_is_named():
    with pytest.raises(InputError, match="expected a vector for query 'q1'"):
        filled({"knn": "$vector"}, vector=None)


def test_a_sparse_vector_stays_an_object():
    sparse = {"indices": [3], "values": [1.5]}
    assert filled({"query": "$vector"}, vector=sparse) == {"query": sparse}


def test_names_in_keys_are_not_names():
    assert names_in({"$query": 1, "b": ["$depth"]}) == {"depth"}


def test_sql_names_become_bind_parameters():
    text = "SELECT id, 100 % 7 FROM t WHERE a = $query AND b <=> $vector::vector LIMIT $depth"
    statement = read_sql_template(text, "rankers.a", "%({})s")
    assert statement.text == (
        "SELECT id, 100 %% 7 FROM t WHERE a = %(query)s AND b <=> %(vector)s::vector LIMIT %(depth)s"
    )
    assert statement.names == {"query", "vector", "depth"}
    assert read_sql_template(text, "rankers.a", ":{}").text.endswith("LIMIT :depth")


@pytest.mark.parametrize("quoted", ["'$query'", '"$query"', "-- $query\n", "/* $query */", "'it''s $query'"])
def test_an_sql_name_in_quotes_is_refused(quoted):
    with pytest.raises(InputError, match="outside quotes and comments"):
        read_sql_template(f"SELECT {quoted}, $query LIMIT $depth", "rankers.a", ":{}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT $query", r"expected \$depth"),
        ("SELECT 1 LIMIT $depth", "same documents"),
        ({"a": 1}, "SQL statement"),
    ],
)
def test_an_sql_template_that_cannot_work_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        read_sql_template(text, "rankers.a", ":{}")
