import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.errors import InputError
from genm.grouping import (
    OTHER,
    SEEN_CHARACTERS,
    Grouping,
    GroupRule,
    check_pattern,
    count_groups,
    groups_of_queries,
    parse_grouping,
)

RULES = "id: ^[A-Z0-9-]+$, short: words<=2, question: ^(who|what|how)\\b, german: lang=de"


@pytest.mark.parametrize(
    ("query", "group"),
    [
        ({"text": "AB-12"}, "id"),
        ({"text": "red shoes"}, "short"),
        ({"text": "how to tie red shoes"}, "question"),
        ({"text": "rote Schuhe mit Band", "lang": "de"}, "german"),
        ({"text": "red shoes with laces"}, OTHER),
        ({}, None),
    ],
)
def test_the_first_rule_that_is_true_gives_the_group(query, group):
    assert parse_grouping(RULES).group_of(query) == group


def test_rules_are_written_back_as_they_came():
    grouping = parse_grouping(RULES)
    assert str(grouping) == RULES
    assert parse_grouping(str(grouping)) == grouping
    assert grouping.columns == ("text", "lang")
    assert parse_grouping(["a: x{1,2}, b: y", "c: z"]).rules[0] == GroupRule("a", "x{1,2}, b: y")


@pytest.mark.parametrize(
    ("test", "yes", "no"),
    [
        ("words<2", "a", "a b"),
        ("words>=2", "a b", "a"),
        ("words = 2", "a b", "a b c"),
        ("characters>3", "abcd", "abc"),
        ("digits", "a 1", "a b"),
        ("(?i)^sku", "SKU 1", "a sku"),
        (r"[\]x]{1,3}", "]", "a"),
        ("^(?:who|what)? is", "what is", "it is"),
    ],
)
def test_tests(test, yes, no):
    grouping = parse_grouping(f"g: {test}")
    assert grouping.group_of({"text": yes}) == "g"
    assert grouping.group_of({"text": no}) == OTHER


def test_a_word_is_a_column():
    grouping = parse_grouping("source")
    assert grouping == Grouping("column", column="source")
    assert grouping.group_of({"source": "shop"}) == "shop"
    assert grouping.group_of({"text": "a"}) is None
    assert grouping.group_of({"source": ""}) is None


def test_groups_that_are_given_come_first():
    found = groups_of_queries(
        parse_grouping("long: words>1"), ["a", "b", "c"], queries={"a": "x y", "b": {"text": "x"}}, given={"b": "z"}
    )
    assert found == ["long", "z", None]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a b", "expected NAME: TEST"),
        ("a:", "expected a test behind the colon"),
        ("other: x", '"other" is the name'),
        ("a: x, a: y", "a name of its own"),
        ("a: [", "expected a regular expression; unterminated"),
        ("a: [0-\n]", r"bad character range 0-\\n"),
        ("a: [[a]", "Possible nested set"),
        ("a: " + "x" * 201, "at most 200 characters; found 201"),
        ("a: (x+)+$", "the repeated group"),
        ("a: (x|y)*z", "the repeated group"),
        ("a: (?:xy){3}", "the repeated group"),
        ("a: (?=x)y", r"found \(\?="),
        (r"a: (x)\1", "the back reference"),
        ("a: .*.*.*x", "so many repeats"),
        ("a: ^.*.*.*.*x", "so many repeats"),
        ("a: ^x|.*.*.*y", "so many repeats"),
    ],
)
def test_refusals(text, fault):
    with pytest.raises(InputError, match=fault):
        parse_grouping(text)


@given(st.text("ab*+?()[]{},.|^$\\1", max_size=12))
def test_whatever_pattern_is_accepted_comes_to_an_end(pattern):
    try:
        check_pattern(pattern, "pattern")
    except InputError:
        return
    re.search(pattern, "a" * SEEN_CHARACTERS)  # one that backtracks without end would never come back


def test_too_many_groups_are_refused():
    assert count_groups(["b", None, "a", "b"]) == {"b": 2, "a": 1}
    with pytest.raises(InputError, match="at most 100 groups; found 101"):
        count_groups(map(str, range(101)))
