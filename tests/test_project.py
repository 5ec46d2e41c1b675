"""The files around the code say the same thing: version, Python versions, pages, tools, typed names."""

import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import genm

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a script of docs/tools by its name."""
    monkeypatch.syspath_prepend(str(DOCS / "tools"))

    def import_tool(name: str) -> ModuleType:
        return importlib.import_module(name)

    return import_tool


def test_the_citation_has_the_version() -> None:
    citation = load(ROOT / "CITATION.cff")
    assert citation["version"] == genm.__version__
    assert citation["license"] == SETTINGS["project"]["license"]


def test_the_changelog_has_the_version_or_is_before_the_first_release() -> None:
    released = re.findall(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert not released or released[0] == genm.__version__


def python_versions() -> list[str]:
    names = [name.rpartition(" :: ")[2] for name in SETTINGS["project"]["classifiers"]]
    return [name for name in names if re.fullmatch(r"3\.\d+", name)]


def test_the_classifiers_begin_with_the_lowest_python() -> None:
    assert SETTINGS["project"]["requires-python"] == f">={python_versions()[0]}"


def test_every_python_is_tested_on_every_system() -> None:
    matrix = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["newest"]["strategy"]["matrix"]
    assert matrix["python"] == python_versions()
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read_and_pin_their_actions(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 60
        for step in job["steps"]:
            assert re.search(r"@(v\d+|release/v\d+)$", step.get("uses", "@v0")), step
            if step.get("uses", "").startswith("actions/checkout"):
                assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda p: p.stem
)
def test_issue_forms_ask_for_something(path: Path) -> None:
    form = load(path)
    assert form["name"]
    assert form["description"]
    assert any(part.get("validations", {}).get("required") for part in form["body"])


def test_hooks_before_a_commit_have_the_versions_of_the_checks() -> None:
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line
    )
    revisions = {repo["repo"]: repo["rev"] for repo in load(ROOT / ".pre-commit-config.yaml")["repos"]}
    assert revisions["https://github.com/astral-sh/ruff-pre-commit"] == f"v{pins['ruff']}"
    assert revisions["https://github.com/codespell-project/codespell"] == f"v{pins['codespell']}"


LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_a_lock_file_has_hashes_and_the_versions_of_the_constraints(path: Path) -> None:
    pins = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, _, version = line.partition("==")
        pins[re.sub("[-_.]+", "-", name).lower()] = version
    entries = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    assert len(entries) > 20
    for entry in entries:
        found = re.match(r"([A-Za-z0-9_.-]+)==(\S+)", entry)
        assert found is not None, entry
        assert "--hash=sha256:" in entry, entry
        name = re.sub("[-_.]+", "-", found[1]).lower()
        assert pins.get(name, found[2]) == found[2], f"{path.name}: {entry[:60]}: run make lock"


def test_the_lock_files_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = list(project["project"]["dependencies"])
    for extra in ("rankers", "pandas", "plots", "pyterrier", "sklearn"):
        asked += project["project"]["optional-dependencies"][extra]
    for group in ("test", "engines", "lint"):
        asked += project["dependency-groups"][group]
    locked = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
    names = {
        re.sub("[-_.]+", "-", name).lower() for name in re.findall(r"^([A-Za-z0-9_.-]+)==", locked, re.MULTILINE)
    }
    for requirement in asked:
        name = re.match("[A-Za-z0-9_.-]+", requirement)
        assert name is not None
        assert re.sub("[-_.]+", "-", name[0]).lower() in names, f"{requirement}: run make lock"


def leaves(nav: Any) -> Iterator[str]:
    """The pages of a navigation, in order."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from leaves(part)


def test_the_navigation_lists_every_page_once() -> None:
    listed = list(leaves(load(ROOT / "mkdocs.yml")["nav"]))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    pages = {page for page in pages if not page.startswith("results/tables/")} | {"results/index.html"}
    pages |= {path.relative_to(DOCS).with_suffix(".md").as_posix() for path in DOCS.rglob("*.ipynb")}
    assert sorted(listed) == sorted(pages)


def test_every_public_package_has_a_page(tool: Any) -> None:
    pages = tool("api_pages")
    assert pages.public_names()["genm"] == [name for name in genm.__all__ if name != "__version__"]
    assert pages.page_names()[0] == "genm"
    for name in pages.page_names():
        assert importlib.import_module(name).__doc__
    for package, names in pages.public_names().items():
        assert all(hasattr(importlib.import_module(package), name) for name in names)


def test_the_check_of_the_site_finds_what_is_broken(tool: Any, tmp_path: Path) -> None:
    check = tool("check_site")
    (tmp_path / "other").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="other/#here">1</a> <a href="other/#there">2</a> <a href="no/">3</a>'
    )
    (tmp_path / "other" / "index.html").write_text('<h2 id="here">A</h2> <a href="../">4</a> <img src="x.png">')
    assert check.broken_links(tmp_path) == [
        "index.html: no anchor for other/#there",
        "index.html: no file for no/",
        "other/index.html: no file for x.png",
    ]
    page = tmp_path / "api" / "genm"
    page.mkdir(parents=True)
    (page / "index.html").write_text("".join(f'<h2 id="genm.{name}">' for name in genm.__all__ if name != "fit"))
    missing = check.missing_names(tmp_path)
    assert "genm: no entry for fit" in missing
    assert not any(line.startswith("genm: ") for line in missing if line != "genm: no entry for fit")


def test_the_typing_tests_name_everything_on_the_root() -> None:
    text = (ROOT / "tests" / "typing" / "public_api.py").read_text(encoding="utf-8")
    assert not [name for name in genm.__all__ if not re.search(rf"\bgenm\.{name}\b", text)]
