"""Every verb's help: examples that stand on their own lines, can be copied, and are right."""

import shlex

import pytest
import typer

from genm.cli.app import app
from genm.cli.verbs import EXAMPLE_WIDTH, described


def verbs(command=None, path=()):
    """Yield the path and the command of everything that can be called."""
    command = command or typer.main.get_command(app)
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from verbs(inner, (*path, name))


ALL = dict(verbs())


def examples(command):
    return [line.strip() for line in command.help.partition("\b\n")[2].splitlines()[1:]]


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "genm")
class TestHelp:
    def test_has_examples_that_can_be_copied(self, genm, path):
        shown = genm(*path, "--help").out.splitlines()
        wanted = examples(ALL[path])
        assert wanted
        for line in wanted:
            assert len(line) <= EXAMPLE_WIDTH
            assert "    " + line in shown

    def test_fits_80_columns(self, genm, path):
        assert max(map(len, genm(*path, "--help").out.splitlines())) <= 80

    def test_begins_with_the_usage(self, genm, path):
        assert genm(*path, "-h").out.startswith(f"Usage: {' '.join(('genm', *path))} [OPTIONS]")

    def test_examples_are_right(self, path):
        for line in examples(ALL[path]):
            words = shlex.split(line, comments=True)
            words = words[words.index("genm") + 1 :]
            words = words[: words.index("|")] if "|" in words else words
            command, context = ALL[()], None
            name = "genm"
            while hasattr(command, "commands"):
                context = command.make_context(name, words[:0] if words else [], parent=context)
                name, *words = words
                command = command.commands[name]
            command.make_context(name, words, parent=context)

    def test_tells_what_every_option_is_for(self, path):
        context = ALL[path].make_context("genm", [], resilient_parsing=True)
        for param in ALL[path].get_params(context):
            assert param.help, param.name
            assert getattr(param, "is_flag", False) or param.metavar, param.name

    def test_has_a_summary_that_is_not_cut(self, genm, path):
        if path:
            shown = genm(*path[:-1], "--help").out
            assert f"  {path[-1]} " in shown
        assert "..." not in genm(*path, "--help").out.partition("Commands:")[2]


def test_usage_names_the_arguments(genm):
    assert "Usage: genm evaluate [OPTIONS] QRELS RUN...\n" in genm("evaluate", "--help").out


def test_options_show_what_they_take_and_their_defaults(genm):
    shown = " ".join(genm("fuse", "--help").out.split())
    assert "-o, --output FILE File to write; - is standard output. [default: -]" in shown
    assert "--lenient Repair" in shown
    assert "--tag NAME The run's name in the last column. [default: genm]" in shown


def test_required_options_say_so(genm):
    assert "[required]" in genm("update", "--help").out


def test_one_example_is_not_called_examples():
    assert "Example:\n  one" in described("text", ("one",))
    assert "Examples:\n  one\n  two" in described("text", ("one", "two"))


@pytest.mark.parametrize("words", [("fit", "--qrels"), ("fit", "-o"), ("fit", "--nope"), ("cache", "--nope")])
def test_a_wrong_call_points_to_the_help_of_the_verb(genm, words):
    found = genm(*words)
    assert found.code == 2
    assert found.err.endswith(f"See: genm {words[0]} --help\n")
