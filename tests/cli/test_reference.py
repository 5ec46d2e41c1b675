"""docs/cli.md holds the help of every verb, as it is printed."""

import os
import re
from pathlib import Path

import pytest
import typer

from genm import errors
from genm.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
MARK = "<!-- From here on the page is written by GENM_WRITE_DOCS=1 pytest tests/cli/test_reference.py -->\n"


def paths(command, path=()):
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from paths(inner, (*path, name))


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


def test_the_page_is_up_to_date(genm, page):
    parts = [MARK]
    for path in paths(typer.main.get_command(app)):
        title = " ".join(("genm", *path))
        parts.append(f"\n### {title}\n\n```text\n{genm(*path, '--help').out.strip()}\n```\n")
    written = page.partition(MARK)[0] + "".join(parts)
    if os.environ.get("GENM_WRITE_DOCS"):
        PAGE.write_text(written, encoding="utf-8")
    assert page == written, "write it anew: GENM_WRITE_DOCS=1 pytest tests/cli/test_reference.py"


def test_every_code_is_explained(page):
    codes = {e.code for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.GenmError)}
    codes -= {errors.GenmError.code}
    assert set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == codes | {"system", "usage"}


def test_every_variable_is_one_that_is_read(page):
    source = "".join(path.read_text() for path in Path(errors.__file__).parent.rglob("*.py"))
    named = re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE)
    assert named
    for variable in named:
        assert f'"{variable}"' in source, variable
    assert set(re.findall(r'environ(?:\.get\(|\[)"(GENM_\w+)"', source)) <= set(named)
