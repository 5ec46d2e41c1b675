"""How a language model's grades compare with those of people, on the pairs that both judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from genm.judge.agreement import cohen_kappa
from genm.judge.session import Pair
from genm.judge.store import GRADES, PERSON, Opinion, settle


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a model's grades compare with those of people, on the pairs that both judged."""

    model: str
    n: int
    kappa: float | None
    """Cohen's, of the model and the people's settled grade."""
    kappa_relevant: float | None
    """The same for relevant or not."""
    confusion: tuple[tuple[int, ...], ...]
    """confusion[person][model]: how often people gave the one grade and the model the other."""
    probability: tuple[float, ...]
    """How likely people are to find a pair relevant, by the model's grade; half a pair of each kind is added."""


def calibrate(
    people: Mapping[Pair, int], by_model: Mapping[Pair, int], *, model: str, level: int = 1
) -> Calibration:
    """Compare a model's grades with people's."""
    shared = [(people[pair], grade) for pair, grade in by_model.items() if pair in people]
    confusion = tuple(tuple(sum(one == (p, m) for one in shared) for m in GRADES) for p in GRADES)
    relevant = [sum(confusion[p][m] for p in GRADES if p >= level) for m in GRADES]
    seen = [sum(confusion[p][m] for p in GRADES) for m in GRADES]
    return Calibration(
        model,
        len(shared),
        cohen_kappa(shared),
        cohen_kappa([(int(p >= level), int(m >= level)) for p, m in shared]),
        confusion,
        tuple((r + 0.5) / (n + 1.0) for r, n in zip(relevant, seen, strict=True)),
    )


def calibration_of(opinions: Sequence[Opinion], *, level: int = 1) -> list[Calibration]:
    """Compare every model of a store with the people of the same store."""
    people = {
        (one.query, one.document): one.grade for one in settle(one for one in opinions if one.source == PERSON)
    }
    sources = sorted({one.source for one in opinions if one.source != PERSON})
    return [
        calibrate(
            people,
            {one.pair: one.grade for one in opinions if one.source == source and one.grade is not None},
            model=source.partition(":")[2],
            level=level,
        )
        for source in sources
    ]
