"""Every trap of the collections that is known has its test here; see docs/collections.md."""

import functools
from collections import Counter

import numpy as np
import pytest

from genm.collections.smart import (
    SMART,
    Judgment,
    SmartRecord,
    fingerprint,
    load_merged,
    load_smart,
    merge_collections,
    read_judgments,
    read_records,
    read_smart,
    smart_stopwords,
)
from genm.errors import FormatError, InputError
from genm.records import Collection, Note, make_qrels

load = functools.cache(load_smart)  # records are frozen, so that tests may share them

CISI_UNJUDGED = (
    "36 38 40 47 48 51 53 59 60 63 64 68 70 72 73 74 75 77 78 80 83 85 86 87 88 89 91 93 94 "
    "103 105 106 107 108 110 112"
)
CACM_UNJUDGED = "34 35 41 46 47 50 51 52 53 54 55 56"

PLAIN = ".I 1\n.T\nOn  wings\n.A\nOne, A.\n.A\nTwo, B.\n.W\nA wing\n  lifts.\n.I 3\n.T\n.W\n"


def judged(collection):
    """Return {query id: {doc id: relevance}}."""
    qrels, docs = collection.qrels, list(collection.qrels.docs)
    rows = [slice(*qrels.starts[i : i + 2]) for i in range(len(qrels.queries))]
    return {
        query_id: dict(zip([docs[d] for d in qrels.doc[at]], qrels.relevance[at].tolist(), strict=True))
        for query_id, at in zip(qrels.queries, rows, strict=True)
    }


def note(collection, code):
    (found,) = [n for n in collection.notes if n.code == code]
    return found


def text_of(collection, doc_id):
    return collection.doc_texts[collection.doc_ids.index(doc_id)]


class TestAll:
    @pytest.mark.parametrize(
        ("name", "docs", "queries", "n_judged", "pairs"),
        [
            ("med", 1033, 30, 30, 696),
            ("cran", 1400, 225, 225, 1837),
            ("cisi", 1460, 112, 76, 3114),
            ("cacm", 3204, 64, 52, 796),
        ],
    )
    def test_counts(self, smart_data, name, docs, queries, n_judged, pairs):
        c = load(name, data=smart_data)
        assert c.name == name
        assert c.doc_ids == tuple(str(i) for i in range(1, docs + 1))
        assert c.query_ids == tuple(str(i) for i in range(1, queries + 1))
        assert len(c.doc_texts) == docs
        assert len(c.query_texts) == queries
        assert all(c.query_texts)
        assert len(c.qrels.queries) == n_judged
        assert len(c.qrels.doc) == pairs
        assert set(c.qrels.relevance.tolist()) == {1}
        assert set(c.qrels.docs) <= set(c.doc_ids)
        assert c.left_out == {}
        assert "unknown-copy" not in {n.code for n in c.notes}

    @pytest.mark.parametrize("name", SMART)
    def test_known_hash_is_that_of_the_parsed_records(self, smart_data, name):
        spec = SMART[name]
        files = [smart_data / name / f[0] for f in (spec.docs_files, spec.queries_files, spec.judgments_files)]
        assert read_smart(spec, *files).sha256 == spec.sha256

    def test_links_are_never_part_of_a_text(self, smart_data):
        for name in ("cisi", "cacm"):
            c = load(name, data=smart_data)
            assert not any("\t" in text for text in c.doc_texts)
        assert text_of(load("cacm", data=smart_data), "1") == (
            "Preliminary Report-International Algebraic Language"
        )

    def test_folder_may_come_from_the_environment(self, smart_data, monkeypatch):
        monkeypatch.setenv("GENM_DATA", str(smart_data))
        assert len(load_smart("MED").doc_ids) == 1033


class TestMed:
    def test_no_document_is_relevant_to_two_queries(self, smart_data):
        pairs = judged(load("med", data=smart_data))
        assert max(Counter(d for of_query in pairs.values() for d in of_query).values()) == 1

    def test_third_column_is_the_document(self, smart_data):
        assert {"13", "14", "15"} <= judged(load("med", data=smart_data))["1"].keys()

    def test_grading_is_refused_where_there_are_no_codes(self, smart_data):
        for options in ({"graded": True}, {"source_paper": False}):
            with pytest.raises(InputError, match="Only cran's judgments have codes"):
                load("med", data=smart_data, **options)


class TestCran:
    def test_queries_are_numbered_by_their_place(self, smart_data):
        c = load("cran", data=smart_data)
        assert c.query_texts[2].startswith("what problems of heat conduction in composite slabs")  # .I 004
        assert c.query_ids[2] == "3"
        assert c.query_ids[-1] == "225"  # .I 365
        assert note(c, "query-numbering").count == 223

    def test_the_right_join_shares_more_words_with_its_documents_than_the_wrong_one(self, smart_data):
        c = load("cran", data=smart_data)
        stop = smart_stopwords(smart_data)
        words = {d: set(t.split()) - stop for d, t in zip(c.doc_ids, c.doc_texts, strict=True)}

        def overlap(shift):
            values = []
            for i, query_id in enumerate(c.query_ids[:-shift] if shift else c.query_ids):
                asked = set(c.query_texts[i + shift].split()) - stop
                values += [len(asked & words[d]) / len(asked) for d in judged_pairs[query_id]]
            return np.mean(values)

        judged_pairs = judged(c)
        assert overlap(0) > 0.3
        assert overlap(40) < 0.2

    def test_all_codes_are_relevant(self, smart_data):
        pairs = judged(load("cran", data=smart_data))
        assert sum(map(len, pairs.values())) == 1837
        assert pairs["1"]["184"] == 1

    def test_source_paper_can_be_left_out(self, smart_data):
        c = load("cran", data=smart_data, source_paper=False)
        assert len(c.qrels.doc) == 1612
        assert len(c.qrels.queries) == 225

    def test_graded_is_five_minus_the_code_and_the_source_paper_counts_as_code_1(self, smart_data):
        c = load("cran", data=smart_data, graded=True)
        assert Counter(c.qrels.relevance.tolist()) == {4: 128 + 225, 3: 387, 2: 734, 1: 363}
        assert judged(c)["1"]["184"] == 3  # code 2
        without = load("cran", data=smart_data, graded=True, source_paper=False)
        assert Counter(without.qrels.relevance.tolist()) == {4: 128, 3: 387, 2: 734, 1: 363}

    def test_queries_31_119_and_215_have_no_document_of_codes_1_to_3(self, smart_data):
        pairs = judged(load("cran", data=smart_data, graded=True, source_paper=False))
        assert [q for q, grades in pairs.items() if max(grades.values()) < 2] == ["31", "119", "215"]

    def test_empty_documents_are_kept_and_their_judgment_too(self, smart_data):
        c = load("cran", data=smart_data)
        assert [d for d, t in zip(c.doc_ids, c.doc_texts, strict=True) if not t] == ["471", "995"]
        assert note(c, "empty-document").count == 2
        assert "995" in judged(c)["125"]

    def test_stray_field_marks_do_not_cut_an_abstract(self, smart_data):
        c = load("cran", data=smart_data)
        assert "application to turbulent separations" in text_of(c, "240")
        assert text_of(c, "240").endswith("heat transfer in a laminar separated flow .")
        assert "benser, w.a. limit characteristics" in text_of(c, "576")
        assert "chapter xiii compressor operation" in text_of(c, "578")
        assert note(c, "stray-field-mark").count == 4
        authors = load("cran", data=smart_data, doc_fields=("A", "B"))
        assert text_of(authors, "240") == "dean r. chapman naca technote 3792"

    def test_title_counts_twice_by_default_and_that_is_said(self, smart_data):
        c = load("cran", data=smart_data)
        assert text_of(c, "1").count("aerodynamics of a wing in a slipstream") == 2
        assert note(c, "title-repeated").count == 1396  # word for word; two more differ by a misprint
        once = load("cran", data=smart_data, doc_fields=("W",))
        assert text_of(once, "1").count("aerodynamics of a wing in a slipstream") == 1
        assert not [n for n in once.notes if n.code == "title-repeated"]


class TestCisi:
    def test_unjudged_queries_stay_queries(self, smart_data):
        c = load("cisi", data=smart_data)
        assert sorted(set(c.query_ids) - set(c.qrels.queries), key=int) == CISI_UNJUDGED.split()
        assert note(c, "unjudged-query").count == 36

    def test_query_fields(self, smart_data):
        short = load("cisi", data=smart_data).query_texts[57]
        both = load("cisi", data=smart_data, query_fields=("T", "W")).query_texts[57]
        assert both.endswith(short)
        assert len(both) > len(short)

    def test_all_authors_are_read(self, smart_data):
        authors = text_of(load("cisi", data=smart_data, doc_fields=("A",)), "207")
        assert authors.startswith("Orr, Richard H. Pings, Vern M. Pizer, Irwin H. Olson, Edwin E. ")
        assert authors.count(",") == 5

    def test_marks_followed_by_blanks_open_their_field(self, smart_data):
        assert text_of(load("cisi", data=smart_data, doc_fields=("T",)), "2") == ("Use Made of Technical Libraries")

    def test_documents_with_the_same_text_stay_apart(self, smart_data):
        c = load("cisi", data=smart_data)
        for a, b in (("234", "1440"), ("1084", "1447")):
            assert text_of(c, a) == text_of(c, b)


class TestCacm:
    def test_zero_padded_queries_meet_their_texts(self, smart_data):
        c = load("cacm", data=smart_data)
        assert "1410" in judged(c)["1"]
        assert "TSS (Time Sharing System)" in c.query_texts[0]
        assert sorted(set(c.query_ids) - set(c.qrels.queries), key=int) == CACM_UNJUDGED.split()

    def test_asker_and_wanted_authors_are_not_part_of_the_query(self, smart_data):
        plain = load("cacm", data=smart_data)
        assert "Richard Alexander" not in plain.query_texts[0]
        with_authors = load("cacm", data=smart_data, query_fields=("W", "A"))
        longer = [
            q
            for q, a, b in zip(plain.query_ids, plain.query_texts, with_authors.query_texts, strict=True)
            if a != b
        ]
        assert longer == ["2", "31", "33", "34", "35", "54", "57", "61"]

    def test_titles_stand_in_for_missing_abstracts(self, smart_data):
        assert all(load("cacm", data=smart_data).doc_texts)
        abstracts = load("cacm", data=smart_data, doc_fields=("W",))
        assert note(abstracts, "empty-document").count == 1617
        titles = load("cacm", data=smart_data, doc_fields=("T",))
        assert [d for d, t in zip(titles.doc_ids, titles.doc_texts, strict=True) if not t] == ["3193"]

    def test_repeated_documents_stay_apart(self, smart_data):
        counts = Counter(text.lower() for text in load("cacm", data=smart_data).doc_texts)
        assert sum(n for n in counts.values() if n > 1) == 363
        assert sum(n > 1 for n in counts.values()) == 152


class TestStopwords:
    def test_the_list_has_570_different_words(self, smart_data):
        words = smart_stopwords(smart_data)
        assert len(words) == 570
        assert {"would", "a", "z", "ain't"} <= words

    def test_missing_list_is_named(self, tmp_path):
        with pytest.raises(InputError, match=r"smart_stopwords\.txt: expected the SMART stop list"):
            smart_stopwords(tmp_path)


def small(tmp_path, *, judgments="1 0 1 1\n"):
    """Write a tiny collection in MED's layout."""
    folder = tmp_path / "med"
    folder.mkdir()
    (folder / "MED.ALL").write_text(".I 1\n.W\nred fox\n.I 2\n.W\nblue sea\n")
    (folder / "MED.QRY").write_text(".I 1\n.W\nfox\n")
    (folder / "MED.REL").write_text(judgments)
    return tmp_path


class TestWithoutTheData:
    def test_another_edition_is_read_and_said(self, tmp_path):
        c = load_smart("med", data=small(tmp_path))
        assert c.doc_texts == ("red fox", "blue sea")
        assert note(c, "unknown-copy").count == 1

    def test_names_are_found_in_any_case_and_without_a_sub_folder(self, tmp_path):
        folder = small(tmp_path) / "med"
        (folder / "MED.ALL").rename(folder / "med.all")
        assert len(load_smart("med", data=tmp_path).doc_ids) == 2
        assert len(load_smart("med", data=folder).doc_ids) == 2

    @pytest.mark.parametrize("line", ["1 0 3 1", "2 0 1 1"])
    def test_judgments_of_unknown_things_are_refused(self, tmp_path, line):
        with pytest.raises(FormatError, match="Do the three files belong together"):
            load_smart("med", data=small(tmp_path, judgments=line + "\n"))

    def test_no_folder_given_says_all_three_ways(self, monkeypatch):
        monkeypatch.delenv("GENM_DATA", raising=False)
        with pytest.raises(InputError, match=r"--data DIR .*GENM_DATA.*`genm collections get med --data DIR`"):
            load_smart("med")

    def test_absent_folder_is_named(self, tmp_path, monkeypatch):
        with pytest.raises(InputError, match=r"nowhere: expected the folder .*\(data\)"):
            load_smart("med", data=tmp_path / "nowhere")
        monkeypatch.setenv("GENM_DATA", str(tmp_path / "nowhere"))
        with pytest.raises(InputError, match=r"nowhere: expected the folder .*\(GENM_DATA\)"):
            load_smart("med")

    def test_absent_file_is_named(self, tmp_path):
        with pytest.raises(InputError, match=r"cran: expected the file CRAN\.ALL; .*genm collections get cran"):
            load_smart("cran", data=tmp_path)

    @pytest.mark.parametrize("fields", [(), ("X",), ("T", "N"), "TW", ("t",), ("TW",)])
    def test_fields_without_text_are_refused(self, tmp_path, fields):
        with pytest.raises(InputError, match="doc_fields: expected letters out of T A B W K C"):
            load_smart("med", data=small(tmp_path), doc_fields=fields)
        with pytest.raises(InputError, match="query_fields"):
            load_smart("med", data=tmp_path, query_fields=fields)

    def test_unknown_name_is_refused_with_the_known_ones(self):
        with pytest.raises(InputError, match="'npl': expected one of med, cran, cisi, cacm"):
            load_smart("npl")


def write(tmp_path, text, name="X.ALL"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_fields_are_joined_and_blanks_evened_out(tmp_path):
    records, notes = read_records(write(tmp_path, PLAIN))
    assert [r.number for r in records] == [1, 3]
    assert records[0].fields == {"T": "On wings", "A": "One, A. Two, B.", "W": "A wing lifts."}
    assert records[1].fields == {"T": "", "W": ""}
    assert notes == []


def test_text_takes_the_fields_in_the_order_asked_for():
    record = SmartRecord(1, {"T": "title", "W": "words", "A": ""})
    assert record.text(("W", "T")) == "words title"
    assert record.text(("A", "T", "K")) == "title"
    assert record.text(("A", "K")) == ""


@pytest.mark.parametrize(
    "raw",
    [
        PLAIN.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.encode() + b"\x1a",
        PLAIN.rstrip("\n").encode(),
        PLAIN.replace(".T\n", ".T  \n").encode(),
    ],
    ids=["crlf", "bom", "ctrl-z", "no final newline", "blanks after a mark"],
)
def test_what_does_not_matter_changes_nothing(tmp_path, raw):
    expected, _ = read_records(write(tmp_path, PLAIN))
    found, _ = read_records(write(tmp_path, raw, "Y.ALL"))
    assert found == expected
    assert fingerprint(found, found, []) == fingerprint(expected, expected, [])


def test_a_mark_after_the_last_field_is_a_slip(tmp_path):
    path = write(tmp_path, ".I 7\n.A\nOne\n.W\nfirst\n.A\nsecond\n.B\nthird\n.I 8\n.A\nTwo\n.W\nfourth\n")
    records, notes = read_records(path, last_field="W")
    assert [r.fields for r in records] == [{"A": "One", "W": "first second third"}, {"A": "Two", "W": "fourth"}]
    assert [(n.code, n.count) for n in notes] == [("stray-field-mark", 2)]
    assert "records 7 " in notes[0].text
    strict, _ = read_records(path)
    assert strict[0].fields == {"A": "One second", "W": "first", "B": "third"}


def test_lines_that_only_look_like_marks_are_text(tmp_path):
    records, _ = read_records(write(tmp_path, ".I 1\n.W\n.5 inches\n.Where\n.w\n. A\n.I think\n"))
    assert records[0].fields == {"W": ".5 inches .Where .w . A .I think"}


def test_the_empty_record_at_the_end_of_some_copies_is_dropped_and_said(tmp_path):
    records, notes = read_records(write(tmp_path, ".I 1\n.W\nx\n.I 0\n"))
    assert [r.number for r in records] == [1]
    assert [n.code for n in notes] == ["empty-last-record"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", r"X\.ALL:1: expected a record mark such as \.I 1; found 'hello'"),
        (".I 1\nhello\n", r"X\.ALL:2: expected a field mark such as \.W; found 'hello'"),
        ("", r"expected records opened by \.I; found none"),
        (".I 2\n.W\n.I 1\n.W\n", r"expected ascending record numbers; found \.I 1 after \.I 2"),
        (".I 1\n.W\n.I 1\n.W\n", r"ascending"),
        (b".I 1\n.W\nna\xefve\n", r"X\.ALL:3: expected UTF-8 text; found the byte 0xef"),
    ],
)
def test_what_is_no_smart_file_is_refused_with_its_place(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_records(write(tmp_path, text))


def test_judgments_are_split_at_blanks_and_tabs(tmp_path):
    path = write(tmp_path, "     1     28\t0\t0.000000\n\n02 7  0 0\n")
    columns = ("query", "doc", "constant", "constant")
    assert read_judgments(path, columns) == [Judgment(1, 28, 1), Judgment(2, 7, 1)]
    assert read_judgments(write(tmp_path, "1 184 -1 \n"), ("query", "doc", "code")) == [Judgment(1, 184, -1)]


@pytest.mark.parametrize("line", ["1 2", "1 2 3 4", "1 two 3", "1 2 high"])
def test_a_bad_line_of_judgments_is_named(tmp_path, line):
    path = write(tmp_path, f"1 2 3\n{line}\n", "X.REL")
    with pytest.raises(FormatError, match=r"X\.REL:2: expected 3 columns of numbers \(query, doc, code\)"):
        read_judgments(path, ("query", "doc", "code"))


class TestFingerprint:
    docs = (SmartRecord(1, {"T": "a", "W": "b"}),)
    judged = (Judgment(1, 1, 2), Judgment(1, 2, 3))

    def test_order_of_judgments_and_links_do_not_count(self):
        linked = (SmartRecord(1, {"X": "1 5 1", "W": "b", "T": "a", "N": "stamp"}),)
        assert fingerprint(self.docs, self.docs, self.judged) == fingerprint(linked, linked, self.judged[::-1])

    @pytest.mark.parametrize(
        "docs", [(SmartRecord(2, {"T": "a", "W": "b"}),), (SmartRecord(1, {"T": "a", "W": "c"}),), ()]
    )
    def test_content_counts(self, docs):
        assert fingerprint(docs, self.docs, self.judged) != fingerprint(self.docs, self.docs, self.judged)
        assert fingerprint(self.docs, docs, self.judged) != fingerprint(self.docs, self.docs, self.judged)

    def test_codes_count(self):
        other = (Judgment(1, 1, 1), self.judged[1])
        assert fingerprint(self.docs, self.docs, other) != fingerprint(self.docs, self.docs, self.judged)


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
