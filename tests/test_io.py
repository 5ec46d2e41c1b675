"""Files appear whole or not at all, whatever stands at their place before."""

import gzip
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import zstandard

from genm.errors import InputError
from genm.io import _new_part, _parts, check_outputs, locked, make_folder, remove_parts, whole_file, write_text


def test_an_interrupt_while_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "m.json"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_ends_removes_what_no_block_will(tmp_path: Path) -> None:
    """A signal between making a temporary file and the block that removes it."""
    place, stack = tmp_path / "a.txt", ExitStack()
    part, file = _new_part(place, stack)
    theirs = tmp_path / ".a.txt.1-00000000.part"
    theirs.write_bytes(b"of another process")
    _parts.add(theirs)
    try:
        remove_parts()
        assert sorted(tmp_path.iterdir()) == [theirs]
    finally:
        file.close()
        stack.close()
        _parts.difference_update([part, theirs])
    write_text(place, "whole")
    with pytest.raises(ZeroDivisionError), whole_file(place):
        raise ZeroDivisionError
    with pytest.raises(OSError, match="No such file"), whole_file(tmp_path / "no folder" / "a"):
        pass
    assert not _parts
    assert place.read_text() == "whole"


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
        assert waits.wait(60)
        write_text(path, "new")  # replaces the file, and with it the one that the second has opened
    thread.join(60)
    assert order == ["new", "done"]


WRITER = """
import sys, time
from genm.io import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def writer(path: Path) -> subprocess.Popen[bytes]:
    """Start a process that has written half of a file."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    killed, alive = writer(tmp_path / "run.trec"), writer(tmp_path / "other.trec")
    try:
        assert len(list(tmp_path.glob(".*.part"))) == 2
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        (tmp_path / ".mine.part").write_text("not ours")
        write_text(tmp_path / "third.trec", "text")
        left = {path.name.split(".")[1] for path in tmp_path.glob(".*.part")}
        assert left == {"other", "mine"}
    finally:
        for process in (killed, alive):
            process.kill()
            process.communicate()
    write_text(tmp_path / "run.trec", "text")
    assert sorted(os.listdir(tmp_path)) == [".mine.part", "run.trec", "third.trec"]


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for _ in range(100):
            write_text(tmp_path / "file", f"{number}" * 1000)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads change places within a call, as processes do
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))  # raises what a writer raised
    finally:
        sys.setswitchinterval(interval)
    assert (tmp_path / "file").read_text() in {f"{n}" * 1000 for n in range(4)}
    assert os.listdir(tmp_path) == ["file"]


def test_no_link_is_followed_where_the_temporary_file_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genm.io.secrets.token_hex", lambda n: "0" * 2 * n)
    precious = tmp_path / "precious"
    precious.write_text("old")
    (tmp_path / f".file.{os.getpid()}-00000000.part").symlink_to(precious)
    with pytest.raises(InputError, match="File exists"):
        write_text(tmp_path / "file", "new")
    assert precious.read_text() == "old"


@pytest.mark.parametrize("how", ["same", "symbolic link", "hard link", "other spelling"])
def test_no_output_is_an_input(tmp_path: Path, how: str) -> None:
    run = tmp_path / "run.trec"
    run.write_text("text")
    output = tmp_path / "out.trec"
    if how == "symbolic link":
        output.symlink_to(run)
    elif how == "hard link":
        output.hardlink_to(run)
    elif how == "other spelling":
        output = tmp_path / "." / ".." / tmp_path.name / "run.trec"
    else:
        output = run
    with pytest.raises(
        InputError, match=r"out|run.*: expected a file that is not read here; found the same file as"
    ):
        check_outputs([None, output], [None, "-", tmp_path / "missing", run])
    check_outputs([output, os.devnull, "-"], [tmp_path / "missing", os.devnull])


@pytest.mark.parametrize(
    ("output", "inputs", "refused"), [("x", ["-"], True), ("-", ["x"], True), ("y", ["-"], False)]
)
def test_standard_streams_are_files_too(tmp_path: Path, output: str, inputs: list[str], refused: bool) -> None:
    (tmp_path / "x").write_text("text")
    (tmp_path / "y").write_text("text")
    call = f"from genm.io import check_outputs; check_outputs([{output!r}], {inputs!r})"
    with (tmp_path / "x").open("r+") as stream:
        done = subprocess.run(
            [sys.executable, "-c", call],
            cwd=tmp_path,
            stdin=stream,
            stdout=stream,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (b"the same file as" in done.stderr) == refused == bool(done.returncode)


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the name of a file; found a NUL in it"):
        write_text(f"{tmp_path}/a\0b", "text")
