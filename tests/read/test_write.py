"""What is written is read back the same, and a file appears whole or not at all."""

import io
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read.bad_cases import as_dict

from genm.errors import InputError
from genm.read import (
    qrels_from_dict,
    read_qrels,
    read_run,
    run_from_dict,
    write,
    write_qrels,
    write_run,
    write_texts,
)

ids = st.text(st.characters(min_codepoint=33, exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=12)
query_ids = ids.filter(lambda text: not text.startswith(("#", "\ufeff")))
scores = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, 1 / 3, 5e-324, -0.0, 1e22, 1e-7])
runs = st.dictionaries(query_ids, st.dictionaries(ids, scores, min_size=1, max_size=8), min_size=1, max_size=4)


@settings(deadline=None, max_examples=100)
@given(runs)
def test_a_run_is_read_back_bit_by_bit(data: dict[str, dict[str, float]]) -> None:
    run = run_from_dict(data)
    file = io.BytesIO()
    write_run(run, file)
    file.seek(0)
    again = read_run(file)
    assert repr(as_dict(again)) == repr(as_dict(run))
    assert again.notes == ()


@settings(deadline=None, max_examples=100)
@given(runs)
def test_few_rows_are_written_as_many(data: dict[str, dict[str, float]]) -> None:
    run, files = run_from_dict(data), [io.BytesIO(), io.BytesIO()]
    write_run(run, files[0], tag="t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "_FEW_ROWS", -1)
        write_run(run, files[1], tag="t")
    assert files[0].getvalue() == files[1].getvalue()


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(
        query_ids, st.dictionaries(ids, st.integers(-5, 5), min_size=1, max_size=5), min_size=1, max_size=4
    )
)
def test_judgments_are_read_back(data: dict[str, dict[str, int]]) -> None:
    file = io.BytesIO()
    write_qrels(qrels_from_dict(data), file)
    file.seek(0)
    assert as_dict(read_qrels(file)) == data


RUN = run_from_dict({"q2": {"a": 1.0, "b": 2.5}, "q1": {"a": 1e-7}}, name="my run")
TEXT = "q2 Q0 b 1 2.5 my_run\nq2 Q0 a 2 1.0 my_run\nq1 Q0 a 1 1e-7 my_run\n"


@pytest.mark.parametrize("name", ["x.trec", "x.trec.gz", "x.trec.zst"])
def test_packing_by_suffix(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_run(RUN, path)
    plain = path.read_bytes() == TEXT.encode()
    assert plain == (name == "x.trec")
    assert repr(as_dict(read_run(path))) == repr(as_dict(RUN))
    assert [p.name for p in tmp_path.iterdir()] == [name]
    write_run(RUN, str(path))
    assert path.read_bytes()[:2] == {"x.trec": b"q2", "x.trec.gz": b"\x1f\x8b", "x.trec.zst": b"\x28\xb5"}[name]


def test_standard_output_and_the_tag(capfdbinary: Any) -> None:
    write_run(RUN, "-", tag="other")
    assert capfdbinary.readouterr().out.decode() == TEXT.replace("my_run", "other")


def test_many_rows_go_out_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "_ROWS", 2)
    file = io.BytesIO()
    write_run(RUN, file)
    assert file.getvalue().decode() == TEXT


@pytest.mark.parametrize(
    ("data", "tag", "message"),
    [
        ({"q 1": {"a": 1.0}}, None, 'query id: expected a word that a TREC line can hold; found "q 1"'),
        ({"#q": {"a": 1.0}}, None, "query id: .* begin with #"),
        ({"q": {"a\tb": 1.0}}, None, r'document id: .*found "a\\tb"'),
        ({"q": {"a": 1.0}}, "a tag", "tag: expected a word"),
        ({"q": {"a": 1.0}}, "", "tag: expected a word"),
    ],
)
def test_what_a_line_cannot_hold_is_refused(tmp_path: Path, data: Any, tag: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_run(run_from_dict(data), tmp_path / "x", tag=tag)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.trec"
    path.write_text("old")
    path.chmod(0o640)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(write, "_write", full)
        with pytest.raises(InputError, match="No space left on device"):
            write_run(RUN, path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.trec"]
    write_run(RUN, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "no folder" / "x", tmp_path):
        with pytest.raises(InputError, match="expected a file that can be written"):
            write_run(RUN, path)


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_run(RUN, path)
    assert os.read(reader, 1000).decode() == TEXT
    os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_the_file_behind_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "current.trec").symlink_to("real.trec")
    write_run(RUN, tmp_path / "current.trec")
    assert (tmp_path / "current.trec").is_symlink()
    assert (tmp_path / "real.trec").read_text() == TEXT


def test_texts_keep_to_their_lines(tmp_path):
    path = tmp_path / "docs.tsv"
    write_texts(["a", "b"], ["one\n two\tthree", ""], path)
    assert path.read_bytes() == b"a\tone two three\nb\t\n"
    with pytest.raises(InputError, match="white space"):
        write_texts(["a b"], ["one"], path)
    assert path.read_bytes() == b"a\tone two three\nb\t\n"


def test_runs_and_judgments_are_not_mixed_up(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run: expected Run; found Qrels. Judgments are written by write_qrels"):
        write_run(qrels_from_dict({"q": {"d": 1}}), tmp_path / "x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"qrels: expected Qrels; found Run"):
        write_qrels(RUN, tmp_path / "x")  # type: ignore[arg-type]
