"""Lists of scores that a simulator and the engine itself are both given, with every edge case among them."""

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from genm.export import export_model, find_target, training_rules
from genm.export.target import Exported
from genm.model import Model

DOCS = tuple(f"d{i:02}" for i in range(12))


@dataclass(frozen=True)
class Case:
    """One query: what each ranker returned, and what is exported for it."""

    what: str
    window: int | None
    lists: Sequence[Mapping[str, float]]
    exported: Exported
    simulated: Mapping[str, float]


def score_lists(seed: int, n: int, *, negative: bool) -> Iterator[tuple[str, list[dict[str, float]]]]:
    """Yield lists of n rankers; scores are multiples of 1/64, which single precision holds exactly."""
    draw = random.Random(seed)

    def some(score: Callable[[], float], least: int = 2) -> list[dict[str, float]]:
        return [{doc: score() for doc in draw.sample(DOCS, draw.randint(least, 10))} for _ in range(n)]

    def any_score() -> float:
        return draw.randint(-400 if negative else 1, 900) / 64

    for _ in range(6):
        yield "random", some(any_score)
    for _ in range(2):
        yield "ties", some(lambda: float(draw.randint(0, 3)))
    yield "constant", [dict.fromkeys(draw.sample(DOCS, 4), 1.5), *some(any_score)[1:]]
    yield "constant everywhere", [dict.fromkeys(draw.sample(DOCS, 3), 2.0) for _ in range(n)]
    yield "single hit", [{draw.choice(DOCS): 3.25}, *some(any_score)[1:]]
    yield "single hits", [{draw.choice(DOCS): 0.5} for _ in range(n)]
    yield "zeros", [dict.fromkeys(draw.sample(DOCS, 3), 0.0), *some(any_score)[1:]]
    yield "no hits", [{}, *some(any_score)[1:]]
    yield "disjoint", [{doc: any_score() for doc in DOCS[i::n]} for i in range(n)]
    if negative:
        yield "all negative", some(lambda: draw.randint(-900, -1) / 64)


def cases(
    target: str,
    technique: str,
    settings: Callable[[Sequence[Mapping[str, float]]], Mapping[str, str]],
    *,
    rankers: tuple[str, ...] = ("a", "b"),
    seed: int = 1,
    negative: bool = False,
    windows: Sequence[int | None] = (100, 3),
    change: Mapping[str, object] | None = None,
) -> Iterator[Case]:
    """Yield cases with random weights: the exported text and what the simulator makes of the lists.

    `change` replaces fields of the technique's normaliser, such as bounds.
    """
    draw = random.Random(seed)
    rules = training_rules(target, rankers, techniques={"*": technique})
    normalizers = [replace(rules.normalizers[r], **(change or {})) for r in rankers]  # type: ignore[arg-type]
    simulate = find_target(target).code.simulate
    for window in windows:
        for what, lists in score_lists(seed, len(rankers), negative=negative):
            shares = [draw.randint(1, 9) for _ in rankers]
            if find_target(target).weights.equal:
                shares = [1 for _ in rankers]
            weights = tuple(share / sum(shares) for share in shares)
            model = Model(rankers, weights, tuple(normalizers), (window,) * len(rankers), "newton", "AP")
            exported = export_model(model, target, settings=settings(lists))
            yield Case(f"{what}, window {window}", window, lists, exported, simulate(exported.document, lists))


def ties_matter(lists: Sequence[Mapping[str, float]], window: int | None, *, by_rank: bool) -> bool:
    """Whether an engine that orders equal scores by a rule of its own may rank these lists differently."""
    for scores in lists:
        values = sorted(scores.values(), reverse=True)
        if by_rank and len(set(values)) < len(values):
            return True
        if window is not None and len(values) > window and values[window - 1] == values[window]:
            return True
    return False


def check(case: Case, answer: Mapping[str, float], *, relative: float = 2e-6) -> None:
    """Hold the engine's answer, doc id to score in its order, to the simulator's scores."""
    said = f"{case.what}: {case.lists}\nengine {answer}\nsimulator {case.simulated}"
    assert set(answer) == set(case.simulated), said
    room = relative * max([1.0, *map(abs, case.simulated.values())])
    assert all(abs(answer[doc] - case.simulated[doc]) <= room for doc in answer), said
    in_order = [case.simulated[doc] for doc in answer]
    assert all(b <= a + room for a, b in itertools.pairwise(in_order)), said
