"""The tool that runs the suite in disguise: what it reads from the project."""

import re

import disguises
import pytest


def test_the_lowest_version_is_read_whatever_stands_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    project = {
        "dependencies": ["plain>=1.2", "without>=1.20,!=1.43.*", "marked>=3.1; python_version < '3.13'", "any"],
        "optional-dependencies": {"one": ["with-parts[a,b]>=2", "plain>=1.10"], "other": ["unasked>=1"]},
    }
    monkeypatch.setattr(disguises, "_project", lambda: {"project": project})
    assert disguises._lower_bounds(["one"]) == {
        "plain": "1.10",
        "without": "1.20",
        "marked": "3.1",
        "with-parts": "2",
    }


def test_every_bound_of_the_project_is_found() -> None:
    project = disguises._project()["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for name in disguises.EXTRAS for one in extras[name])]
    bounded = {re.split(r"[\[>]", requirement)[0] for requirement in wanted if ">=" in requirement}
    assert set(disguises._lower_bounds(disguises.EXTRAS)) == bounded


def test_a_python_that_does_not_run_is_not_installed(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert disguises._no_python("python3.99") == "python3.99 is not installed"
    found = tmp_path / "versions" / "3.99.2" / "bin" / "python3.99"
    found.parent.mkdir(parents=True)
    found.write_text("#!/bin/sh\necho here\n")
    found.chmod(0o755)
    assert disguises._interpreter("python3.99") == str(found)
    assert disguises._no_python("python3.99") == ""
