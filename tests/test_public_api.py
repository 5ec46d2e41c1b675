"""The root exports what it says it exports, and costs little."""

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


def test_importing_the_root_loads_nothing_heavy() -> None:
    code = "import sys, genm; print([m for m in ('numpy', 'numba', 'scipy', 'polars') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_serving_and_exporting_load_no_learner() -> None:
    heavy = ("genm.learn", "genm.evidence", "genm._math.exact", "scipy.optimize")
    code = f"import sys, genm.export, genm.model; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_packages_load_when_they_are_used() -> None:
    code = "import sys, genm; print('genm.explain' in sys.modules, genm.explain.explain_model.__module__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False genm.explain.worth\n"


def test_a_package_that_loads_when_used_is_there() -> None:
    for name in genm._PACKAGES:
        assert getattr(genm, name).__name__ == f"genm.{name}"
