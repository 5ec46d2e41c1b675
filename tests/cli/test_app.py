import errno
import io
import subprocess
import sys
import warnings

import pytest
import typer

from genm.cli.app import VERBS, QuickCoercion, app, exit_code
from genm.errors import FetchError, FormatError, GenmWarning, InputError


def raising(error):
    def work():
        raise error

    return work


def test_done(capsys):
    assert exit_code(lambda: None) == 0
    assert capsys.readouterr() == ("", "")


def test_a_code_asked_for_is_kept():
    assert exit_code(lambda: 7) == 7


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("two runs."), "genm: input: two runs.\n"),
        (FetchError("no network."), "genm: fetch: no network.\n"),
        (FormatError("f", 3, "x", "y", "Do z."), "genm: format: f:3: expected x; found y. Do z.\n"),
        (InputError("one\nline\n"), "genm: input: one line\n"),
        (InputError("\x1b[31mred"), "genm: input: \\x1b[31mred\n"),
        (typer.BadParameter("no such colour"), "genm: usage: Invalid value: no such colour. See: genm --help\n"),
        (
            PermissionError(errno.EACCES, "Permission denied", "model.json"),
            "genm: system: model.json: Permission denied.\n",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "genm: system: No space left on device.\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_faults_are_one_line_and_2(capsys, error, line):
    assert exit_code(raising(error)) == 2
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize(
    "error", [BrokenPipeError(errno.EPIPE, "Broken pipe"), OSError("Broken pipe (os error 32)")]
)
def test_a_reader_that_went_away_is_no_fault(capsys, error):
    assert exit_code(raising(error)) == 141
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), typer.Abort()])
def test_interrupted(capsys, error):
    assert exit_code(raising(error)) == 130
    assert capsys.readouterr() == ("", "genm: interrupted\n")


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        exit_code(lambda: 1 // 0)


def test_our_warnings_are_notes_each_said_once(capsys):
    def work():
        for _ in range(2):
            warnings.warn("the cache cannot\nbe written to.", GenmWarning, stacklevel=1)

    assert exit_code(work) == 0
    assert capsys.readouterr() == ("", "note: the cache cannot\\nbe written to.\n")


def test_letters_that_the_terminal_lacks_are_escaped(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert exit_code(lambda: sys.stdout.write("fuchs 🦊\n") and None) == 0
    assert raw.getvalue() == b"fuchs \\U0001f98a\n"


def test_closed_streams_are_no_fault(monkeypatch):
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, stream, None)
    assert exit_code(lambda: print("nobody hears this", sys.stdin.buffer.read())) == 0
    sys.stdin.close()
    sys.stdout.close()
    sys.stderr.close()


def coerced(runtime, value, param, ctx):
    try:
        return runtime.coerce(value, param=param, ctx=ctx)
    except typer.BadParameter as error:
        return str(error)


@pytest.mark.parametrize("verb", VERBS)
def test_values_become_what_typer_makes_of_them(verb):
    group = typer.main.get_command(app)
    command = group.get_command(None, verb)
    ctx = typer.Context(command)
    for param in command.params:
        if not hasattr(param, "get_runtime_param"):
            pytest.skip("this typer does not validate with pydantic")
        typers, quick = param.get_runtime_param(), QuickCoercion(param)
        for value in (param.get_default(ctx), None, "x", "7", "0.5", ("a=b", "\udcff"), [], 7, True):
            expected, found = (coerced(how, value, param, ctx) for how in (typers, quick))
            assert (type(found), found) == (type(expected), expected), (param.name, value)


def test_a_plain_command_does_not_load_the_validator():
    code = (
        "import sys\n"
        "from genm.cli.main import run\n"
        "sys.argv = ['genm', 'evaluate', 'no.qrels', 'a=no.trec']\n"
        "try:\n"
        "    run()\n"
        "except SystemExit as left:\n"
        "    print(left.code, 'pydantic' in sys.modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "2 False\n"
