import pytest

from genm.collections.smart_format import Judgment, SmartRecord, fingerprint, read_judgments, read_records
from genm.errors import FormatError

PLAIN = ".I 1\n.T\nOn  wings\n.A\nOne, A.\n.A\nTwo, B.\n.W\nA wing\n  lifts.\n.I 3\n.T\n.W\n"


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
