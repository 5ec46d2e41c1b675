"""A large file is read piece by piece with the results, notes and errors of a text that is at hand."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from read.bad_cases import as_dict
from read.test_bad_input import Row, table
from read.test_bad_input import test_row_of_the_table as check_row
from thread_counts import use_threads

from genm.errors import FormatError
from genm.ids import Interning
from genm.read import plain_lines, read_qrels, read_run, sources, trec
from genm.read.sources import StoredText

PLAIN = "".join(f"q{i // 50} Q0 d{i % 170}{'-with-a-long-id' * (i % 3)} {i} {1000 - i} t\n" for i in range(500))
MARK = b"\xef\xbb\xbf"

lines = st.lists(
    st.sampled_from(
        [
            b"q1 Q0 d%d 1 %d t\n",
            b"q2 Q0 document-%d 1 -%d.5 t\r\n",
            b"q%d Q0 d%d 1 1e-3 t\n",
            b"q1\tQ0  d%d 7 %d t \n",
            b"q1 Q0 caf\xc3\xa9%d 1 %d t\n",
            b"q1 Q0 d%d 1 %d " + b"x" * 90 + b"\n",
        ]
    ),
    max_size=12,
)
others = st.sampled_from(
    [
        b"",
        b"\n",
        b" \n",
        b"# comment\n",
        b"q1 Q0 d 1 oops t\n",
        b"q1 Q0 d 1 3,5 t\n",
        b"q1 Q0\n",
        b"q1 Q0 e 1 2 t and more\n",
        b"q1 Q0 \xe9 1 2 t\n",
        b"\xe9 Q0 z 1 2 t\n",
        MARK + b"q1 Q0 m 1 2 t\n",
        b"q1 Q0 \x01 1 2 t\n",
        b"q1 \xff f 1 2 \xfe\n",
        b"q1 Q0 " + b"y" * 300 + b" 1 2 t\n",
    ]
)


@contextmanager
def small_chunks(size: int, longest: int = 1 << 16) -> Iterator[pytest.MonkeyPatch]:
    """Let every file be a large one, of chunks of this size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "LARGE", 1)
        patch.setattr(trec, "CHUNK", size)
        patch.setattr(trec, "ROUND", 3)
        patch.setattr(plain_lines, "_LONGEST", longest)
        yield patch


def outcome(read: Callable[..., Any], source: Any, name: str, **options: Any) -> Any:
    """Return all that reading gives, or what it says is wrong, without the name of the source."""
    try:
        found = read(source, **options)
    except FormatError as error:
        return str(error).replace(name, "NAME")
    kept = [getattr(found, kind, "") for kind in ("tag", "given")]
    notes = repr(found.notes).replace(name, "NAME")
    return as_dict(found), notes, repr(kept), list(found.docs), found.doc.tolist(), found.starts.tolist()


@settings(deadline=None, max_examples=300)
@given(lines, others, st.integers(0, 12), st.sampled_from([1, 7, 40, 500, 1 << 20]), st.booleans(), st.booleans())
@example([b"q1 Q0 d%d 1 %d t\n"] * 9, MARK + b"q1 Q0 d 1 2 t\n", 0, 40, True, True)
def test_what_is_read_is_that_of_a_text_at_hand(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[bytes],
    other: bytes,
    at: int,
    chunk: int,
    lenient: bool,
    last_end: bool,
) -> None:
    rows = [part % tuple(range(i, i + part.count(b"%d"))) for i, part in enumerate(parts)]
    content = b"".join([*rows[:at], other, *rows[at:]])
    path = tmp_path_factory.mktemp("plain") / "x.run"
    path.write_bytes(content if last_end else content.rstrip(b"\r\n"))
    for longest in (1 << 16, 64):
        with small_chunks(chunk, longest):
            for read in (read_run, read_qrels):
                options = {"lenient": lenient} | ({"duplicates": "first"} if read is read_run else {})
                expected = outcome(read, io.BytesIO(path.read_bytes()), "<open file>", **options)
                assert outcome(read, path, str(path), **options) == expected


@pytest.mark.parametrize("row", table(), ids=lambda row: row.case)
def test_bad_input_in_a_large_file(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGE", 1)
    check_row(row, tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.run"
    path.write_text(PLAIN)
    return path


def expected() -> Any:
    return outcome(read_run, io.StringIO(PLAIN), "<open file>")


def refused(self: StoredText) -> None:
    raise AssertionError("the text was read")


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("mark", [b"", MARK])
def test_the_text_of_a_plain_file_is_not_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch, threads: str, mark: bytes
) -> None:
    path.write_bytes(mark + PLAIN.encode())
    use_threads(monkeypatch, threads)
    monkeypatch.setattr("genm._math.parallel.SMALL_COST", 1)
    whole = expected()
    with small_chunks(700) as patch:
        patch.setattr(StoredText, "text", property(refused))
        assert outcome(read_run, path, str(path)) == whole


def test_ranks_against_scores_are_told_with_count_and_line(path: Path) -> None:
    path.write_text("".join(f"q Q0 d{i} {i} {i} t\n" for i in range(100)))
    with small_chunks(1 << 20) as patch:
        patch.setattr(StoredText, "text", property(refused))
        (note,) = read_run(path).notes
    assert (note.code, note.count) == ("rank-against-score", 99)
    assert note.text.startswith(f"{path}:2: the rank column")


def test_judgments_and_the_last_line_without_its_end(path: Path) -> None:
    content = "".join(f"q{i // 9} 0 d{i} {i % 4}\n" for i in range(300)).rstrip()
    path.write_text(content)
    whole = outcome(read_qrels, io.StringIO(content), "<open file>")
    with small_chunks(200) as patch:
        patch.setattr(StoredText, "text", property(refused))
        assert outcome(read_qrels, path, str(path)) == whole


def test_a_duplicate_is_told_with_its_line(path: Path) -> None:
    path.write_text(PLAIN + "q9 Q0 d1 1 2 t\n" * 2)
    with small_chunks(500), pytest.raises(FormatError, match=r":502: .*document \"d1\" twice.*first in line 501"):
        read_run(path)


def test_progress_rises_to_the_size_of_the_text(path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with small_chunks(700):
        read_run(path, progress=lambda *step: told.append(step))
    assert len(told) > 3
    assert told == sorted(told)
    assert told[-1] == (f"reading {path}", len(PLAIN), len(PLAIN))


def test_equal_hashes_of_different_ids_are_settled_with_the_text(path: Path) -> None:
    whole = expected()
    with small_chunks(700) as patch:
        patch.setattr(Interning, "table", lambda self, cuts: None)
        assert outcome(read_run, path, str(path)) == whole


@pytest.mark.parametrize("longest", [20, 200])
def test_ids_that_are_too_long_to_be_counted_are_read_with_the_text(path: Path, longest: int) -> None:
    whole = expected()
    with small_chunks(700) as patch:
        patch.setattr(Interning, "LONGEST", longest)
        assert outcome(read_run, path, str(path)) == whole


def test_a_file_of_blank_lines_has_no_room_for_rows(path: Path) -> None:
    path.write_text("\n" * 500)
    with small_chunks(50), pytest.raises(FormatError, match="found no such line"):
        read_run(path)


@pytest.mark.parametrize("difference", [-40, 40])
def test_a_file_that_gives_more_or_less_than_its_size_is_read_whole(path: Path, difference: int) -> None:
    whole = expected()
    with small_chunks(700) as patch:
        patch.setattr(StoredText, "__len__", lambda self: len(PLAIN) + difference)
        assert outcome(read_run, path, str(path)) == whole


def changing(path: Path, change: str) -> None:
    with path.open("r+b") as file:
        file.truncate(2000) if change == "shrink" else file.write(PLAIN.encode() * (1 + (change == "grow")))
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("change", ["shrink", "grow", "rewrite"])
@pytest.mark.parametrize("when", ["before", "while"])
def test_a_file_that_changes_is_refused(path: Path, change: str, when: str) -> None:
    place, name = (StoredText, "opened") if when == "before" else (plain_lines._Reading, "_fill")
    own = getattr(place, name)

    def changed(*values: Any) -> Any:
        changing(path, change)
        return own(*values)

    with small_chunks(700) as patch:
        patch.setattr(place, name, changed)
        with pytest.raises(FormatError, match=r"expected a readable file; found one that changed meanwhile"):
            read_run(path)


@pytest.mark.parametrize("change", ["shrink", "grow", "rewrite"])
def test_a_file_that_changes_before_it_is_read_again_is_refused(path: Path, change: str) -> None:
    path.write_text(PLAIN + "# comment\n")
    own = plain_lines._Reading.rows

    def changed(*values: Any) -> Any:
        changing(path, change)
        return own(*values)

    with small_chunks(700) as patch:
        patch.setattr(plain_lines._Reading, "rows", changed)
        with pytest.raises(FormatError, match=r"expected a readable file; found one that changed meanwhile"):
            read_run(path)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_disk_that_fails_is_told(path: Path, monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    use_threads(monkeypatch, threads)
    monkeypatch.setattr("genm._math.parallel.SMALL_COST", 1)

    def failing(*_: Any) -> int:
        raise OSError(5, "Input/output error")

    with small_chunks(700) as patch:
        patch.setattr(plain_lines._Reading, "_fill", failing)
        with pytest.raises(FormatError, match=r"found an input error \(Input/output error\)"):
            read_run(path)


def test_nothing_is_read_after_an_interrupt(path: Path) -> None:
    seen: list[plain_lines._Reading] = []
    own = plain_lines._Reading.parse

    def noted(self: plain_lines._Reading, n_chunks: int) -> None:
        seen.append(self)
        own(self, n_chunks)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with small_chunks(700) as patch:
        patch.setattr(plain_lines._Reading, "parse", noted)
        with pytest.raises(KeyboardInterrupt):
            read_run(path, progress=interrupt)
    assert len(seen) == 1
    assert seen[0].is_stopped


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    from threading import Thread

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_text(PLAIN))
    whole = expected()
    with small_chunks(700):
        writer.start()
        assert outcome(read_run, pipe, str(pipe)) == whole
        writer.join()
