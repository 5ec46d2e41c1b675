"""What an engine is told ranks like the model, on any lists."""

import random
from dataclasses import replace
from typing import Any

import pytest
from export.cases import disagreement, model, own_fusion, simulated
from hypothesis import given, settings
from hypothesis import strategies as st

from genm.export import targets
from genm.export.normalizer_match import canonical
from genm.export.plan import usual_technique
from genm.export.target import Target, Technique
from genm.normalizers import Normalizer

DOCS = [f"d{i}" for i in range(9)]
CASES = [(target, technique) for target in targets().values() for technique in target.techniques]


def score(draw: random.Random, target: Target) -> float:
    """Small whole numbers tie, are 0 and lie at the mean; of the others every sum is exact, so equal is equal."""
    found = float(draw.randint(0, 6)) if draw.random() < 0.5 else draw.randint(0, 2000) / 64
    # LlamaIndex gives a list of equal scores 0 instead of 1 if these are not above 0, and OpenSearch's hybrid query
    # leaves out documents with a score of 0: the targets' notes say so
    return found + 1.0 if target.name.startswith(("llamaindex", "opensearch")) else found


def lists_for(draw: random.Random, target: Target, n: int) -> list[dict[str, float]]:
    """Return the lists of one query, of which not all are empty; they are drawn by a seed, which is quicker."""
    if target.window.rerank:
        docs = draw.sample(DOCS, draw.randint(1, len(DOCS)))
        return [{doc: score(draw, target) for doc in docs} for _ in range(n)]
    while True:
        chosen = [draw.sample(DOCS, draw.randint(0, len(DOCS))) for _ in range(n)]
        if any(chosen):
            return [{doc: score(draw, target) for doc in docs} for docs in chosen]


@st.composite
def problems(draw: st.DrawFn, target: Target, technique: Technique) -> tuple[Any, ...]:
    least, most = target.n_rankers
    n = draw(st.integers(max(least, 1), min(most or 3, 3)))
    names = ["text", "dense", "other"][:n]
    used = [technique] * n
    if target.pair and target.words:  # one technique for the text, another for the vector
        used = [next(t for t in target.techniques if t.word == usual_technique(target, name)) for name in names]
    normalizers = [draw(normalizers_of(target, one)) for one in used]
    for field in target.shared:
        value = getattr(normalizers[0], field)
        normalizers = [replace(one, **{field: value}) for one in normalizers]
    parts = draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    if target.weights.equal:
        parts = [1] * n
    weights = [part / sum(parts) for part in parts]
    depths: list[int | None] = [None] * n
    if not target.window.rerank:
        low = target.window.least
        depth = st.integers(low, min(low + 8, target.window.most or low + 8))
        depths = [draw(depth) for _ in range(n)] if target.window.each else [draw(depth)] * n
    made = model([canonical(one) for one in normalizers], weights, names, depths)
    numbers = random.Random(draw(st.integers(0, 2**32 - 1)))
    return made, [lists_for(numbers, target, n) for _ in range(draw(st.integers(1, 6)))]


def normalizers_of(target: Target, technique: Technique) -> st.SearchStrategy[Normalizer]:
    base = technique.normalizer
    if technique.line == "slope":
        return st.sampled_from([base, replace(base, scale=0.25), Normalizer("affine", lower=0.0, upper=8.0)])
    if technique.line == "any":
        lower = st.just(0.0) if target.window.rerank else st.sampled_from([-2.0, 0.0, 1.5])
        missing = st.just(0.0) if target.window.rerank else st.sampled_from([0.0, 0.25, -1.0])
        return st.builds(
            lambda low, gap, k: Normalizer("affine", lower=low, upper=9.5, scale=k, missing=gap),
            lower,
            missing,
            st.sampled_from([1.0, 0.5]),
        )
    choices: dict[str, list[Any]] = {
        "k": [1.0, 20.0, 60.0],
        "missing": [0.0, 0.1, "minimum"],
        "scale": [1.0, 0.5],
        "shift": [0.0, 0.25],
        "constant": [1.0, 0.0, "raw"],
        "floor": [None, 0.125],
        "ddof": [0.0, 1.0],
        "at_mean": [None, 0.5, "max"],
    }
    free = {name: st.sampled_from(choices[name]) for name in choices if name in technique.free}
    if target.window.rerank and "missing" in free and base.kind in ("atan", "sigmoid"):
        free = {"scale": free["scale"]}
    built = st.fixed_dictionaries(free).map(lambda values: replace(base, **values))
    if target.window.rerank and base.kind == "sigmoid":
        built = built.map(lambda one: replace(one, missing=0.5 * one.scale + one.shift))
    if not technique.bounds or base.kind not in ("minmax", "affine"):
        return built
    modes = sorted(technique.bounds)
    ends = [(0.0, 20.0)] if base.kind == "affine" else [(None, None), (2.0, None), (None, 4.0), (2.0, 12.0)]
    return st.builds(
        lambda one, end, low, high: replace(one, lower=end[0], upper=end[1], lower_mode=low, upper_mode=high),
        built,
        st.sampled_from(ends),
        st.sampled_from(modes if base.kind == "minmax" else ["apply", "clip"]),
        st.sampled_from(modes if base.kind == "minmax" else ["apply", "clip"]),
    )


def settings_for(target: Target, made: Any) -> dict[str, str]:
    known = {setting.name for setting in target.ranker_settings}
    said = {f"{name}.type": "text" if name == "text" else "vector" for name in made.rankers if "type" in known}
    if "size" in {setting.name for setting in target.settings}:
        said["size"] = "1"
    return said


@pytest.mark.parametrize(("target", "technique"), CASES, ids=[f"{t.name}-{q.word}" for t, q in CASES])
def test_the_engine_ranks_as_the_model(target: Target, technique: Technique) -> None:
    @settings(max_examples=8, deadline=None)
    @given(problems(target, technique))
    def check(problem: tuple[Any, ...]) -> None:
        made, queries = problem
        assert disagreement(made, target.name, queries, settings_for(target, made)) is None

    check()


def test_the_comparison_can_fail() -> None:
    lists = [{"a": 3.0, "b": 1.0}, {"b": 9.0, "c": 2.0}]
    made = model(targets()["opensearch"].normalizer)
    other = model(Normalizer("minmax", constant=0.5, floor=0.9), rankers=("bm25", "dense"))
    assert disagreement(made, "opensearch", [lists], {}) is None
    assert simulated(made, "opensearch", lists) != pytest.approx(own_fusion(other, [lists])[0])
    swapped = model(targets()["opensearch"].normalizer, weights=(0.9, 0.1))
    assert own_fusion(swapped, [lists])[0] != pytest.approx(simulated(made, "opensearch", lists))
