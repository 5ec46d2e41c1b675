"""What all simulators share, and what none of them may depend on."""

import os
import subprocess
import sys
from pathlib import Path

from genm.export.simulation import every_doc

ANSWERS = """
from export.cases import model, simulated, some_lists
from genm.export import targets

for target in targets().values():
    settings = {f"{name}.type": kind for name, kind in (("bm25", "text"), ("dense", "vector"))
                if "type" in {setting.name for setting in target.ranker_settings}}
    depth = None if target.window.rerank else max(20, target.window.least)
    weights = (0.5, 0.5) if target.weights.equal else (0.35, 0.65)
    found = simulated(model(target.normalizer, weights, depth=depth), target.name, some_lists(), settings)
    print(target.name, list(found.items()))
"""


def answers(seed: str) -> list[str]:
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", ANSWERS], env=env, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_simulator_answers_the_same_in_every_process() -> None:
    """To the last bit and in the same order, whatever the seed of Python's hashes."""
    first, second = answers("1"), answers("2")
    assert first == second
    assert len(first) > 10


def test_documents_come_once_in_the_order_of_the_lists() -> None:
    assert every_doc([{"b": 1.0, "a": 2.0}, {"c": 0.0, "a": 1.0}]) == ["b", "a", "c"]
