"""Words, vocabularies and counts, step by step; the figures of the two named profiles."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm.collections import load_collection, smart_stopwords
from genm.errors import InputError
from genm.rankers.text import DEFAULT, ENGLISH, TextProfile, paper_profile, read_documents, read_queries

PLAIN = TextProfile("plain")


def terms(text, profile):
    return list(read_documents([text], profile).vocabulary)


def test_case_symbols_and_hyphens_separate_words():
    assert terms("Blood-Vessel, BLOOD_vessel; (x)", PLAIN) == ["blood", "vessel", "x"]


def test_digits_are_letters_or_separators():
    assert terms("vitamin b12 in 1962", PLAIN) == ["1962", "b12", "in", "vitamin"]
    assert terms("vitamin b12 in 1962", replace(PLAIN, characters="letters")) == ["b", "in", "vitamin"]


def test_contractions_split_at_the_apostrophe():
    assert terms("don't", PLAIN) == ["don", "t"]
    assert terms("don't they'll you've", DEFAULT) == []


def test_letters_beyond_ascii_are_letters():
    assert terms("Größe naïve ÉTUDE", PLAIN) == ["größe", "naïve", "étude"]


def test_min_length_drops_short_words():
    assert terms("a bc def", replace(PLAIN, min_length=2)) == ["bc", "def"]


@pytest.mark.needs("Stemmer")
def test_stop_words_go_before_stemming():
    # "having" is a stop word; "haves" is none, although both stem to "have"
    profile = replace(PLAIN, stopwords=frozenset({"having"}), stem="english")
    assert terms("having haves", profile) == ["have"]
    assert terms("having", profile) == []


@pytest.mark.needs("Stemmer")
def test_stemming_joins_forms_and_counts_them_together():
    read = read_documents(["connected connection connecting"], replace(PLAIN, stem="english"))
    assert read.vocabulary == ("connect",)
    assert read.counts.toarray().tolist() == [[3.0]]


def test_min_docs_counts_documents_and_min_count_counts_occurrences():
    texts = ["twice twice once", "both", "both"]
    assert read_documents(texts, replace(PLAIN, min_docs=2)).vocabulary == ("both",)
    assert read_documents(texts, replace(PLAIN, min_count=2)).vocabulary == ("both", "twice")


def test_counts_and_rows_of_a_small_corpus(three):
    assert three.vocabulary == ("bird", "cat", "dog", "fish")
    assert three.counts.toarray().tolist() == [[0, 2, 1, 0], [1, 0, 1, 0], [2, 0, 0, 1]]


def test_queries_are_counted_in_the_documents_vocabulary(three):
    read = read_queries(["cat wolf cat", "", "wolf"], three)
    assert read.counts.toarray().tolist() == [[0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_no_documents_and_empty_documents_are_allowed():
    assert read_documents([], PLAIN).counts.shape == (0, 0)
    assert read_documents(["", "..."], PLAIN).counts.shape == (2, 0)
    assert read_queries(["word"], read_documents(["", "..."], PLAIN)).counts.shape == (1, 0)


@pytest.mark.needs("Stemmer")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"characters": "bytes"}, "'letters' or 'alphanumeric'; found 'bytes'"),
        ({"min_docs": 0}, "min_docs of at least 1; found 0"),
        ({"stem": "klingon"}, "a Snowball language .*; found 'klingon'"),
    ],
)
def test_a_profile_that_cannot_be_used_says_why(change, message):
    with pytest.raises(InputError, match=message):
        read_documents(["word"], replace(PLAIN, **change))


def test_the_papers_profile_wants_its_stop_list():
    with pytest.raises(InputError, match="found an empty list"):
        paper_profile([])


def test_our_stop_list_is_lower_case_and_holds_no_single_letters_but_words():
    assert {w for w in ENGLISH if w != w.lower() or not w.isalpha()} == set()
    assert {w for w in ENGLISH if len(w) == 1} == {"a", "i"}


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(alphabet="ab1 -.É", max_size=30), max_size=6))
def test_counts_agree_with_counting_word_by_word(texts):
    read = read_documents(texts, PLAIN)
    for text, row in zip(texts, read.counts.toarray(), strict=True):
        words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
        assert dict(zip(read.vocabulary, row, strict=True)) == {w: words.count(w) for w in read.vocabulary}
        assert row.sum() == len(words)


def test_med_has_the_terms_of_table_2(smart_data):
    texts = load_collection("med", data=smart_data).doc_texts
    assert len(read_documents(texts, paper_profile(smart_stopwords(smart_data))).vocabulary) == 5775


def test_the_merged_collection_is_read_whole(smart_data):
    texts = load_collection("merged", data=smart_data).doc_texts
    read = read_documents(texts)
    assert read.counts.shape[0] == 7097
    assert np.asarray(read.counts.sum(axis=0)).min() >= 2
