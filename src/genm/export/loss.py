"""How much of a model's ranking an engine keeps: its simulator held against the model's own fusion."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from genm.align import Aligned
from genm.errors import InputError
from genm.export.engines import find_target
from genm.export.normalizer_match import nearest_lines
from genm.export.plan import order_for
from genm.export.simulation import ranking, top
from genm.export.target import Lists
from genm.fuse import fuse_scores
from genm.model import Model, align_for_model
from genm.records import Run

_TIE = 1e-9  # relative: two sums this close are one score computed in another order


@dataclass(frozen=True, slots=True)
class Loss:
    """How many queries get another top of the ranking in the engine than from the model."""

    n_queries: int
    n_changed: int
    """Queries whose first documents differ, in themselves or in their order."""
    n_members_changed: int
    """Queries that lose at least one of their first documents to another."""
    at: int

    @property
    def share(self) -> float:
        """The share of queries whose first documents differ."""
        return self.n_changed / self.n_queries if self.n_queries else 0.0


def measured_loss(
    model: Model,
    to: str,
    runs: Mapping[str, Run] | Aligned,
    *,
    at: int = 10,
    settings: Mapping[str, str] | None = None,
) -> Loss:
    """Return how often the target, told what `export_model` writes for these runs, changes the first `at`.

    Runs are better than an Aligned, whose lists end at the model's depth: an engine with a larger window would
    look further.
    """
    if at < 1:
        raise InputError(f"at: expected a whole number from 1 on; found {at}.")
    if isinstance(runs, Aligned):
        aligned, lists = runs, _lists_of_aligned(runs)
    else:
        aligned = align_for_model(model, runs)
        lists = _lists_of_runs([runs[name] for name in model.rankers], list(aligned.queries))
    if aligned.rankers != model.rankers:
        raise InputError(f"expected the rankers {', '.join(model.rankers)}; found {', '.join(aligned.rankers)}.")
    target = find_target(to)
    order, reasons, _ = order_for(model, target, settings or {})
    if reasons:
        order, _, _ = order_for(model, target, settings or {}, nearest_lines(aligned))
    document = target.code.compose(order)
    kept = [model.rankers.index(part.ranker) for part in order.parts]
    fused = fuse_scores(aligned, np.array(model.weights))
    ids, doc = list(aligned.docs), aligned.doc.tolist()
    n_changed = n_members = 0
    for q, of_query in enumerate(lists):
        rows = range(int(aligned.starts[q]), int(aligned.starts[q + 1]))
        ours = {ids[doc[row]]: float(fused[row]) for row in rows}
        theirs = ranking(target.code.simulate(document, [of_query[i] for i in kept]))[:at]
        n_changed += not same_top(ours, theirs, at)
        n_members += not same_members(ours, theirs, at)
    return Loss(len(aligned.queries), n_changed, n_members, at)


def same_top(ours: Mapping[str, float], theirs: Sequence[str], at: int) -> bool:
    """Whether a ranking starts as our scores say; documents whose scores are all but equal may trade places."""
    best = list(top(ours, at))
    if len(theirs[:at]) != len(best):
        return False
    close = _TIE * max((abs(score) for score in ours.values()), default=0.0)
    return all(
        mine == other or (other in ours and abs(ours[mine] - ours[other]) <= close)
        for mine, other in zip(best, theirs, strict=False)
    )


def same_members(ours: Mapping[str, float], theirs: Sequence[str], at: int) -> bool:
    """Whether the same documents, in any order, come first; the last place may go to an equal."""
    best = top(ours, at)
    if len(theirs[:at]) != len(best):
        return False
    close = _TIE * max((abs(score) for score in ours.values()), default=0.0)
    last = min(best.values(), default=0.0)
    return all(doc in best or (doc in ours and ours[doc] >= last - close) for doc in theirs[:at])


def _lists_of_runs(runs: Sequence[Run], queries: Sequence[str]) -> Iterator[Lists]:
    tables = []
    for run in runs:
        ids, doc, score = list(run.docs), run.doc.tolist(), run.score.tolist()
        place = {query: q for q, query in enumerate(run.queries)}
        tables.append((ids, doc, score, run.starts.tolist(), place))
    for query in queries:
        lists: list[dict[str, float]] = []
        for ids, doc, score, starts, place in tables:
            q = place.get(query)
            rows = range(0) if q is None else range(starts[q], starts[q + 1])
            lists.append({ids[doc[row]]: score[row] for row in rows})
        yield lists


def _lists_of_aligned(aligned: Aligned) -> Iterator[Lists]:
    ids, doc = list(aligned.docs), aligned.doc.tolist()
    for q in range(len(aligned.queries)):
        rows = range(int(aligned.starts[q]), int(aligned.starts[q + 1]))
        yield [
            {ids[doc[row]]: float(aligned.raw[row, k]) for row in rows if aligned.retrieved[row, k]}
            for k in range(len(aligned.rankers))
        ]
