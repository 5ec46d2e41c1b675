"""The root exports what it says it exports, and costs little."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import genm

ROOT = Path(__file__).parent.parent


def test_every_exported_name_is_there_and_sorted() -> None:
    assert genm.__all__ == sorted(genm.__all__)
    for name in genm.__all__:
        assert getattr(genm, name) is not None
    assert dir(genm) == genm.__all__


ORDERS = [
    "import genm; evaluate, fuse = genm.evaluate, genm.fuse",
    "from genm import evaluate, fuse",
    "import genm.evaluate, genm.fuse; evaluate, fuse = genm.evaluate, genm.fuse",
    "import genm.learn, genm; evaluate, fuse = genm.evaluate, genm.fuse",
    "import genm.evaluate as evaluate, genm.fuse as fuse",
    "from genm.evaluate import evaluate_run; from genm.fuse import METHODS; from genm import evaluate, fuse",
]
CHECK = """
import inspect, sys, genm
a = genm.Run.from_dict({"q": {"x": 2.0, "y": 1.0}}, name="a")
assert evaluate is genm.evaluate is sys.modules["genm.evaluate"] and fuse is genm.fuse is sys.modules["genm.fuse"]
assert evaluate(a, genm.Qrels.from_dict({"q": {"y": 1}}), "RR").mean("RR") == 0.5
assert list(fuse([a], method="rrf")["q"]) == ["x", "y"]
assert evaluate.parse_measure("AP").name == "AP" and "rrf" in fuse.METHODS
assert inspect.signature(evaluate) == inspect.signature(genm.evaluate_run)
assert inspect.signature(fuse) == inspect.signature(genm.fuse_runs)
"""


def test_evaluate_and_fuse_are_functions_and_modules_whatever_is_imported_first() -> None:
    """One process forgets genm before each order, so that only genm is loaded again."""
    code = f"""import sys
for lines in {ORDERS!r}:
    for name in [name for name in sys.modules if name.partition(".")[0] == "genm"]:
        del sys.modules[name]
    exec(lines + {CHECK!r}, {{}})
    print("fine")"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("fine\n" * len(ORDERS), "")


def test_every_name_of_the_root_is_that_of_its_home() -> None:
    from genm import evaluate, evidence, fuse, learn, training

    assert genm.train is training.train
    assert genm.cross_validate is evidence.cross_validate
    assert genm.evaluate_run is evaluate.evaluate_run
    assert genm.fuse_runs is fuse.fuse_runs
    for name in (
        "AutoFuser",
        "BarrierFuser",
        "BoostFuser",
        "CotrainFuser",
        "ExactFuser",
        "ExpectedFuser",
        "NewtonFuser",
        "OnlineFuser",
    ):
        assert getattr(genm, name) is getattr(learn, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="frobnicate"):
        _ = genm.frobnicate  # type: ignore[attr-defined]


def test_the_version_is_the_one_that_is_packaged() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    source = (ROOT / settings["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(.*)"$', source, re.MULTILINE) == [genm.__version__]


STEPS = {
    "root": ("import genm", ("numpy", "numba", "scipy", "polars", "genm.explain")),
    "collections": ("import genm.collections", ("sklearn", "scipy.sparse", "ir_datasets", "polars")),
    "serving": (
        "import genm.export, genm.model",
        ("genm.learn", "genm.evidence", "genm._math.exact", "scipy.optimize"),
    ),
    "learning": (
        "import genm.learn, genm.evidence, genm.evaluate, genm.cli.fit, genm.cli.fuse",
        ("jinja2", "markupsafe", "matplotlib"),
    ),
}
"""What is imported, and what that must not load; each step comes after those above it, in one process."""


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    lines = ["import json, sys", "found = {}"]
    for name, (statement, heavy) in STEPS.items():
        lines += [statement, f"found[{name!r}] = [m for m in {heavy} if m in sys.modules]"]
    lines += ["found['on use'] = [genm.explain.explain_model.__module__]", "print(json.dumps(found))"]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("step", STEPS)
def test_importing_loads_nothing_heavy(loaded: dict[str, list[str]], step: str) -> None:
    """Serving and exporting load no learner; fitting and fusing load no template engine and no drawing."""
    assert loaded[step] == []


def test_packages_load_when_they_are_used(loaded: dict[str, list[str]]) -> None:
    assert "genm.explain" in STEPS["root"][1]  # not before
    assert loaded["on use"] == ["genm.explain.worth"]


@pytest.mark.parametrize("name", genm._PACKAGES)
def test_a_package_that_loads_when_used_is_there(name: str) -> None:
    if name == "client":
        pytest.importorskip("httpx", reason="needs the extra serve")
    assert getattr(genm, name).__name__ == f"genm.{name}"
