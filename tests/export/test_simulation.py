"""What all simulators share, and what none of them may depend on."""

import os
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import get_args

import pytest
from export.cases import model, own_fusion
from hypothesis import given, settings
from hypothesis import strategies as st

from genm.export.normalizer_match import canonical
from genm.export.simulation import every_doc, filled, normalized
from genm.normalizers import Normalizer, NormalizerKind

ANSWERS = """
from export.cases import model, simulated, some_lists
from genm.export import targets, training_rules

for target in targets().values():
    settings = {f"{name}.type": kind for name, kind in (("bm25", "text"), ("dense", "vector"))
                if "type" in {setting.name for setting in target.ranker_settings}}
    depth = None if target.window.rerank else max(20, target.window.least)
    weights = (0.5, 0.5) if target.weights.equal else (0.35, 0.65)
    own = tuple(training_rules(target.name, ("bm25", "dense")).normalizers.values())
    found = simulated(model(own, weights, depth=depth), target.name, some_lists(), settings)
    print(target.name, list(found.items()))
"""

LIST = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-40, 300).map(lambda x: x / 8), min_size=1)


def answers_elsewhere() -> list[str]:
    """Of a process whose hashes have another seed than those of this one."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
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
    with redirect_stdout(StringIO()) as said:
        exec(ANSWERS, {})
    here = said.getvalue().splitlines()
    assert here == answers_elsewhere()
    assert len(here) > 10


def test_documents_come_once_in_the_order_of_the_lists() -> None:
    assert every_doc([{"b": 1.0, "a": 2.0}, {"c": 0.0, "a": 1.0}]) == ["b", "a", "c"]


@st.composite
def normalizers(draw: st.DrawFn) -> Normalizer:
    kind = draw(st.sampled_from(get_args(NormalizerKind)))
    ends = {"lower": 1.5, "upper": 7.0} if kind == "affine" else {}
    if kind == "minmax":
        ends = {"lower": draw(st.sampled_from([None, -2.0, 3.0])), "upper": draw(st.sampled_from([None, 5.0, 9.0]))}
    modes = st.sampled_from(["apply", "clip"] if kind == "affine" else ["apply", "clip", "within", "ignore"])
    return canonical(
        replace(
            Normalizer(kind, **ends),
            lower_mode=draw(modes),
            upper_mode=draw(modes),
            constant=draw(st.sampled_from([1.0, "raw"])),
            ddof=draw(st.sampled_from([0.0, 1.0])),
            at_mean=draw(st.sampled_from([None, "max", 0.25])),
            floor=draw(st.sampled_from([None, 0.125])),
            scale=draw(st.sampled_from([1.0, -0.5])),
            missing=draw(st.sampled_from([0.0, "minimum"])),
        )
    )


@settings(max_examples=60, deadline=None)
@given(normalizers(), LIST)
def test_both_ways_give_the_same(normalizer: Normalizer, scores: dict[str, float]) -> None:
    made = model([normalizer, Normalizer("none")], weights=(1.0, 0.0), depth=None)
    everyone = dict.fromkeys("abcdefgh", 0.0)
    ours = own_fusion(made, [[scores, everyone]])[0]
    assert filled(normalized(scores, normalizer), everyone, normalizer) == pytest.approx(ours, abs=1e-12)
