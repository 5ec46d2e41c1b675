"""docs/cli.md holds the help of every verb, as it is printed."""

import inspect
import os
import re
from pathlib import Path

import pytest
import typer

import genm as genm_package
from genm import errors
from genm.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
MARK = "<!-- From here on the page is written by GENM_WRITE_DOCS=1 pytest tests/cli/test_reference.py -->\n"
ADVICE = "write it anew: GENM_WRITE_DOCS=1 pytest tests/cli/test_reference.py"


THEIRS = {"--help", "--install-completion", "--show-completion"}
"""Options that typer adds and describes in its own words."""


def paths(command, path=()):
    yield path, command
    for name in names_in(command):
        yield from paths(command.get_command(None, name), (*path, name))


def names_in(command):
    return command.list_commands(None) if hasattr(command, "list_commands") else []


COMMANDS = dict(paths(typer.main.get_command(app)))
every_command = pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(("genm", *path)))


def one_line(text):
    return " ".join(text.replace("\b", "").split())


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sections(page):
    """The help of every command as the page has it."""
    found = re.findall(
        r"^### genm ?([^\n]*)\n\n```text\n(.*?)```$", page.partition(MARK)[2], re.MULTILINE | re.DOTALL
    )
    return {tuple(title.split()): text for title, text in found}


def entries(text, title):
    """Return the entries of a part such as "Options": what stands on the left, and what is said of it."""
    part = re.search(rf"^{title}:\n((?:  .*\n)+)", text, re.MULTILINE)
    found = re.split(r"^  (?=\S)", part[1] if part else "", flags=re.MULTILINE)[1:]
    pairs = [re.split(r"  +|\n +", entry, maxsplit=1) for entry in found]
    return {left.strip(): one_line(right) for left, right in pairs}


def options_of(command):
    return [p for p in command.params if p.param_type_name == "option" and not THEIRS & set(p.opts)]


def test_the_page_can_be_written_anew(genm, page, sections):
    parts = [MARK]
    for path in COMMANDS:
        title = " ".join(("genm", *path))
        parts.append(f"\n### {title}\n\n```text\n{genm(*path, '--help').out.strip()}\n```\n")
    if os.environ.get("GENM_WRITE_DOCS"):
        PAGE.write_text(page.partition(MARK)[0] + "".join(parts), encoding="utf-8")
    assert list(sections) == list(COMMANDS), ADVICE


@every_command
def test_the_page_says_what_each_command_does(genm, sections, path):
    """Word for word, where the words are ours; how lines are broken and what typer adds differ between versions."""
    command, text = COMMANDS[path], sections[path]
    usage, _, rest = text.partition("\n\n")
    assert one_line(usage).startswith(" ".join(("Usage: genm", *path)) + " "), ADVICE
    assert one_line(re.split(r"^\S", rest, maxsplit=1, flags=re.MULTILINE)[0]) == one_line(command.help), ADVICE
    assert one_line(command.help) in one_line(genm(*path, "--help").out)


@every_command
def test_the_page_has_every_option_with_its_words_and_default(genm, sections, path):
    command, shown = COMMANDS[path], entries(sections[path], "Options")
    printed = one_line(genm(*path, "--help").out)
    left = {
        ", ".join(sorted(p.opts, key=len)) + (f" {p.metavar}" if p.metavar else ""): p for p in options_of(command)
    }
    assert [name for name in shown if not THEIRS & set(re.split("[ ,]+", name))] == list(left), ADVICE
    for name, option in left.items():
        said, _, default = shown[name].partition(" [")
        assert said == one_line(option.help), ADVICE
        assert f"{max(option.opts, key=len)} " in printed
        assert one_line(option.help) in printed
        value = getattr(option.default, "value", option.default)
        has_default = option.show_default and value is not None and value is not False
        assert default == (f"default: {value}]" if has_default else "required]" if option.required else ""), ADVICE


@every_command
def test_the_page_has_every_argument_and_verb(sections, path):
    command, text = COMMANDS[path], sections[path]
    arguments = {p.metavar: one_line(p.help) for p in command.params if p.param_type_name == "argument"}
    shown = entries(text, "Arguments")
    assert {name.strip("[].") for name in shown} == set(arguments), ADVICE
    for name, said in shown.items():
        assert said.partition(" [")[0] == arguments[name.strip("[].")], ADVICE
    assert list(entries(text, "Commands")) == names_in(command), ADVICE


def test_every_code_is_explained(page):
    codes = {e.code for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.GenmError)}
    codes -= {errors.GenmError.code}
    assert set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == codes | {"memory", "system", "usage"}


def test_every_variable_is_one_that_is_read(page):
    source = "".join(path.read_text("utf-8") for path in Path(errors.__file__).parent.rglob("*.py"))
    named = re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE)
    assert named
    for variable in named:
        assert f'"{variable}"' in source, variable
    assert set(re.findall(r'environ(?:\.get\(|\[)"(GENM_\w+)"', source)) <= set(named)


@pytest.mark.needs("httpx")
@pytest.mark.needs("starlette")
def test_the_page_names_the_python_call_of_every_command(page):
    """Each call is there, and public: in the `__all__` of its package, or a method of a class that is."""
    part = page.partition("## The same in Python\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `genm ([a-z ]+)` \| (.+) \|$", part, re.MULTILINE))
    commands = [" ".join(path) for path, command in COMMANDS.items() if path and not names_in(command)]
    assert sorted(rows) == sorted(commands)
    for calls in rows.values():
        names = re.findall(r"`(genm\.[\w.]+)`", calls)
        assert names
        for name in names:
            assert is_public(name), name


def is_public(name):
    owner, _, last = name.rpartition(".")
    found = genm_package
    for part in owner.split(".")[1:]:
        found = getattr(found, part)
    if inspect.isclass(found):
        return is_public(owner) and callable(getattr(found, last, None))
    listed = getattr(found, "__all__", None)
    return hasattr(found, last) and (not last.startswith("_") if listed is None else last in listed)
