"""Files appear whole or not at all, whatever stands at their place before."""

import gzip
import os
import stat
import sys
import threading
from pathlib import Path

import pytest
import zstandard

from genm.errors import InputError
from genm.io import locked, make_folder, whole_file, write_text


def test_an_interrupt_while_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "m.json"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_failure_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_text(path, "old")
    path.chmod(0o640)
    with pytest.raises(TypeError), whole_file(path) as file:
        file.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]
    write_text(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_file_behind_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "current.md").symlink_to("real.md")
    write_text(tmp_path / "current.md", "text")
    assert (tmp_path / "current.md").is_symlink()
    assert (tmp_path / "real.md").read_text() == "text"


def test_a_pipe_and_a_device_are_written_to_and_stay(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert pipe.is_fifo()
    write_text(os.devnull, "text")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_names_tell_how_a_text_is_packed(tmp_path: Path) -> None:
    write_text(tmp_path / "page.html.gz", "tëxt")
    assert gzip.decompress((tmp_path / "page.html.gz").read_bytes()).decode() == "tëxt"
    write_text(tmp_path / "page.html.zst", "tëxt")
    packed = (tmp_path / "page.html.zst").read_bytes()
    assert zstandard.ZstdDecompressor().decompressobj().decompress(packed).decode() == "tëxt"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "no folder" / "x", tmp_path):
        with pytest.raises(InputError, match="expected a file that can be written"):
            write_text(path, "text")


def test_a_folder_is_made_or_refused(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b").is_dir()
    assert make_folder(str(tmp_path / "a")) == tmp_path / "a"
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file/out: cannot make this folder"):
        make_folder(tmp_path / "file" / "out")


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_a_second_holder_of_a_lock_waits_and_then_holds_the_new_file(tmp_path: Path) -> None:
    path, waits, order = tmp_path / "m.json", threading.Event(), list[str]()
    write_text(path, "old")

    def second() -> None:
        with locked(path, waiting=waits.set):
            order.append(path.read_text())
            with locked(tmp_path / "none", waiting=lambda: None):  # no file, nothing to wait for
                order.append("done")

    with locked(path, waiting=lambda: order.append("waited")):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(30)
        write_text(path, "new")  # replaces the file, and with it the one that the second has opened
    thread.join(30)
    assert order == ["new", "done"]
