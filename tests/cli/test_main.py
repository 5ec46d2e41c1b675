"""The command as a process: exit codes, pipes, terminals, start-up."""

import ctypes
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer

import genm as package
from genm import cli
from genm.cli.app import OF_SERVICE, VERBS, app
from genm.cli.compilation import MESSAGE
from genm.cli.main import _code_of_signal, _signal_again

HEAVY = ("numpy", "numba", "llvmlite", "polars", "scipy", "rich", "narwhals", "pandas", "pyarrow", "matplotlib")
WITHOUT_A_CACHE = """
import sys, time, types
sys.modules["genm.cache"] = cache = types.ModuleType("genm.cache")
cache.cache_folder = lambda: "none"
"""
"""`genm cache` counts no entries then, but does what a test wants, and loads nothing to do so."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SystemExit(143), 143),
        (SystemExit(2), None),
        (KeyboardInterrupt(), 130),
        (ValueError(), None),
    ],
)
def test_what_a_signal_raised_is_known_although_python_wraps_it(error, code):
    assert _code_of_signal(error) == code
    wrapped = RuntimeError("Error calling __set_name__")  # what becomes of it where a class is being made
    wrapped.__cause__ = error
    assert _code_of_signal(wrapped) == code


@pytest.mark.parametrize(
    ("kind", "number"), [(KeyboardInterrupt, signal.SIGINT), (SystemExit, signal.SIGTERM)], ids=["int", "term"]
)
def test_a_signal_in_a_call_from_c_is_sent_again(kind, number):
    """ctypes drops what a callback raises; numba's cache of kernels is such a callback."""
    came = threading.Event()
    before = signal.signal(number, lambda *_: came.set())
    hook = sys.unraisablehook
    sys.unraisablehook = _signal_again
    try:

        def callback():
            raise kind

        ctypes.CFUNCTYPE(None)(callback)()
        assert came.wait(60)
    finally:
        sys.unraisablehook = hook
        signal.signal(number, before)


def test_version(genm):
    assert genm("--version").out == f"genm {package.__version__}\n"


def test_the_script_in_the_environment_is_this_command():
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="genm")
    assert script.value == "genm.cli.main:run"


def test_without_a_verb_it_helps(genm):
    found = genm()
    assert (found.code, found.err) == (0, "")
    assert found.out == genm("--help").out


@pytest.mark.parametrize("verb", VERBS)
def test_help_lists_the_verbs(genm, verb):
    assert f"\n  {verb} " in genm("--help").out


def test_every_module_of_a_verb_is_listed():
    folder = Path(cli.__file__).parent
    found = {path.stem for path in folder.glob("*.py") if "\ncommand = " in path.read_text(encoding="utf-8")}
    assert found | set(OF_SERVICE) == set(VERBS)


def test_the_list_of_verbs_imports_none_of_them():
    code = (
        "import sys\n"
        "from genm.cli.app import OF_SERVICE, VERBS\n"
        "print([name for name in VERBS if f'genm.cli.{name}' in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


STARTS = ["--help", "--version", *(f"{verb} --help" for verb in VERBS)]
START_ALL = f"""
import contextlib, io, json, sys
from genm.cli.main import run

found = {{}}
for words in {STARTS}:
    sys.argv = ["genm", *words.split()]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            run()
            code = 0
        except SystemExit as left:
            code = left.code or 0
    found[words] = code, out.getvalue(), [name for name in {HEAVY} if name in sys.modules]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def started():
    """Exit code, output and heavy modules of each start, one after the other in one process.

    A module stays loaded, so a list that is empty after the last start was empty after each.
    """
    done = subprocess.run([sys.executable, "-c", START_ALL], capture_output=True, check=True, text=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


class TestProcess:
    def test_a_fault_is_one_line_and_2(self, process):
        child = process("evaluate")
        assert child.communicate() == (b"", b"genm: usage: Missing argument 'QRELS'. See: genm evaluate --help\n")
        assert child.returncode == 2

    def test_a_reader_that_goes_away_stops_it_quietly(self, process, tmp_path):
        lines = [f"{q} Q0 d{d} 0 {900 - d} x\n" for q in range(20) for d in range(900)]
        (tmp_path / "long.trec").write_text("".join(lines))
        child = process("fuse", "--method", "rrf", "long.trec", cwd=tmp_path)
        assert child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() in (b"", MESSAGE.encode() + b"\n")
        child.stderr.close()
        assert child.wait() == 141

    def test_nobody_reads_the_help(self, process):
        child = process("--help", stderr=subprocess.STDOUT)
        child.stdout.close()
        assert child.wait() == 141

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device that is always full")
    def test_a_full_disk_is_a_fault(self, process):
        with open("/dev/full", "wb") as full:
            child = process("--help", stdout=full)
            _, err = child.communicate()
        assert (child.returncode, err) == (2, b"genm: system: No space left on device.\n")

    def test_interrupted_it_says_so(self):
        code = (
            WITHOUT_A_CACHE + "cache.cache_size = lambda: (print('ready', flush=True), time.sleep(60))\n"
            "from genm.cli.main import run\n"
            "sys.argv = ['genm', 'cache']\n"
            "run()\n"
        )
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGINT)
        assert child.communicate() == (b"", b"genm: interrupted\n")
        assert child.returncode == 130

    def test_interrupted_while_it_loads_it_says_so_too(self):
        code = (
            "import sys\n"
            "class Interrupted:\n"
            "    def find_spec(self, name, *_):\n"
            "        if name == 'typer':\n"
            "            raise KeyboardInterrupt\n"
            "sys.meta_path.insert(0, Interrupted())\n"
            "from genm.cli.main import run\n"
            "run()\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"genm: interrupted\n")

    @pytest.mark.parametrize(("kind", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_a_signal_that_a_library_turns_into_an_error_of_its_own_is_still_a_signal(self, kind, code):
        script = (
            "import os, signal, sys\n"
            "class Turning:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name == 'genm.cli.app':\n"
            "            try:\n"
            f"                os.kill(os.getpid(), {int(kind)})\n"
            "                signal.sigtimedwait([], 5)\n"
            "            except BaseException:\n"
            "                pass\n"
            "            raise TypeError('expected a message argument')\n"
            "sys.meta_path.insert(0, Turning())\n"
            "from genm.cli.main import run\n"
            "run()\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
        said = b"genm: interrupted\n" if kind is signal.SIGINT else b""
        assert (done.returncode, done.stderr) == (code, said)

    def test_terminated_before_the_block_that_removes_a_file_it_removes_it(self, tmp_path):
        script = (
            "import os, signal, sys\n"
            "from genm import io\n"
            "locked = io._lock\n"
            "def lock(file):\n"
            "    os.kill(os.getpid(), signal.SIGTERM)\n"
            "    return locked(file)\n"
            "io._lock = lock\n"
            "from genm.cli.main import run\n"
            "sys.argv = ['genm', 'sample', 'here']\n"
            "run()\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (143, b"")
        assert not list((tmp_path / "here").iterdir())

    def test_terminated_it_leaves_no_half_a_file(self, tmp_path):
        code = (
            WITHOUT_A_CACHE + "from genm.io import whole_file\n"
            "from genm.cli.main import run\n"
            "def writing():\n"
            "    with whole_file('run.trec'):\n"
            "        print('ready', flush=True)\n"
            "        time.sleep(60)\n"
            "cache.cache_size = writing\n"
            "sys.argv = ['genm', 'cache']\n"
            "run()\n"
        )
        words = [sys.executable, "-c", code]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
        assert child.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 1
        child.terminate()
        assert child.communicate() == (b"", b"")
        assert child.returncode == 143
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(("kind", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
    def test_threads_at_work_do_not_keep_it(self, kind, code):
        """Python waits for the threads of a pool at its end, however long they work."""
        script = (
            WITHOUT_A_CACHE + "from concurrent.futures import ThreadPoolExecutor\n"
            "from genm.cli.main import run\n"
            "def work(_):\n"
            "    print('ready', flush=True)\n"
            "    time.sleep(300)\n"
            "pool = ThreadPoolExecutor(1)\n"
            "cache.cache_size = lambda: list(pool.map(work, range(3)))\n"
            "sys.argv = ['genm', 'cache']\n"
            "run()\n"
        )
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            assert child.stdout.readline() == b"ready\n"
            child.send_signal(kind)
            _, err = child.communicate(timeout=60)
        finally:
            child.kill()
        assert child.returncode == code
        assert b"Traceback" not in err

    @pytest.mark.parametrize("words", STARTS)
    def test_it_starts_without_anything_heavy(self, started, words):
        """Which is what lets it start at once; how long that takes, `python -m benchmarks startup` tells."""
        code, out, loaded = started[words]
        assert (code, loaded) == (0, [])
        assert out


def test_a_model_outlives_the_reader_of_the_table(sample, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    words = ["fit", "--method", "uns", "bm25.trec", "dense.trec", "-o", "model.json"]
    with open(writer, "w") as nobody_reads, open(os.devnull, "w") as errors:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", nobody_reads)
            patch.setattr(sys, "stderr", errors)
            with pytest.raises(SystemExit) as left:
                typer.main.get_command(app).main(words, prog_name="genm")
        os.dup2(errors.fileno(), writer)  # a process of its own would end here; this one closes the file
    assert left.value.code == 141
    assert (sample / "model.json").is_file()


class TestCompletion:
    @pytest.mark.parametrize(
        ("words", "offered"),
        [
            ("genm ev", ["evaluate"]),
            ("genm fuse --method comb", ["combsum", "combmnz", "combanz", "combmax", "combmin", "combmed"]),
            ("genm evaluate --format ", ["table", "tsv", "json"]),
            ("genm evaluate -m AP,n", ["AP,nDCG@10"]),
        ],
    )
    def test_bash(self, words, offered, monkeypatch, capsys):
        monkeypatch.setenv("_GENM_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        with pytest.raises(SystemExit) as left:
            typer.main.get_command(app).main([], prog_name="genm")
        assert left.value.code == 0
        assert capsys.readouterr().out.split() == offered

    def test_the_script_for_the_shell_can_be_shown(self, tmp_path):
        script = tmp_path / "show.sh"
        script.write_text(f"{sys.executable} -m genm --show-completion\necho $?\n")
        found = subprocess.run(["/bin/bash", str(script)], capture_output=True, text=True)
        assert "complete" in found.stdout
        assert "_GENM_COMPLETE=complete_bash" in found.stdout
        assert found.stdout.endswith("0\n")


def on_two_terminals(*args):
    """Run a command with standard output and standard error on terminals of their own; return what they show."""
    pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
    pairs = [pty.openpty() for _ in range(2)]
    for _, theirs in pairs:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    settings = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "genm", *args]
    child = subprocess.Popen(command, env=settings | {"TERM": "xterm"}, stdout=pairs[0][1], stderr=pairs[1][1])
    shown = {}
    for ours, theirs in pairs:
        os.close(theirs)
        shown[ours] = b""
    left = set(shown)
    while left:
        for ours in select.select(left, [], [])[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # how Linux says that the other side is closed
                piece = b""
            shown[ours] += piece
            if not piece:
                left.remove(ours)
                os.close(ours)
    return child.wait(), *(text.decode().replace("\r\n", "\n") for text in shown.values())


def test_on_a_terminal_bars_are_drawn_and_results_kept_clean(sample):
    measures = "AP,P@1,P@5,P@10,R@5,R@10,R@20,RR,nDCG,Rprec"
    code, out, err = on_two_terminals("evaluate", "qrels.txt", "bm25.trec", "dense.trec", "-m", measures)
    assert code == 0
    assert "reading bm25.trec" in err
    assert re.search("━|-{5}", err)  # minus signs where the terminal's encoding has no lines
    assert "\x1b[?25h" in err.splitlines()[-1]  # the cursor is back
    assert "\x1b[1m" in out
    plain = out.replace("\x1b[1m", "").replace("\x1b[22m", "")
    assert "\x1b" not in plain
    assert plain.startswith("Mean over 30 judged queries\n\nrun ")
    assert plain.count("\nrun ") == 2  # the columns that had no room go on below
    assert max(map(len, plain.splitlines())) <= 80


def test_an_interrupt_before_the_command_line_is_loaded_shows_no_traceback(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'genm.cli.main':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-m", "genm", "--version"], env=environment, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
