"""Exact line search on a score table: what each shard keeps for it, and the lines that are asked of all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from genm._math.exact.line_kernels import BIN_BITS
from genm._math.exact.line_parts import Bins, Span, best_of_bins, steps_of_bins
from genm._math.exact.line_search import Buffers, LineProfile, line_bins, line_swaps, value_at
from genm._math.exact.rank_gains import GainProblem
from genm._math.tiles import Tiles
from genm._typing import Bools, Floats, Ints
from genm.align import Aligned
from genm.evaluate import parse_measure
from genm.learn.exact import gain_problem
from genm.learn.table import TableProblem
from genm.scale.evaluation import Answer, Request

_VALUE, _BINS, _SWAPS = "value", "bins", "swaps"
_N_SUMS = 3


@dataclass(frozen=True, slots=True)
class LineShards:
    """Shards made ready for exact lines of a measure."""

    measure: str

    reads_doc_ids: ClassVar[bool] = False  # documents are told by their rows
    reads_judgments: ClassVar[bool] = True

    def prepare(self, aligned: Aligned, tiles: Tiles) -> "LineShard":
        """Make the problem of a shard's queries."""
        del tiles
        return LineShard(aligned, self.measure)


class LineShard:
    """The problem of one shard; questions are about some of its queries."""

    def __init__(self, aligned: Aligned, measure: str) -> None:
        parsed = parse_measure(measure)
        self._n_queries = len(aligned.queries)
        self._kept = np.flatnonzero((aligned.n_relevant(parsed.rel) > 0) & (aligned.query_weights > 0))
        self._problem: GainProblem | None = None
        self._total, self._buffers = 0.0, Buffers()
        if len(self._kept):
            own = aligned if len(self._kept) == self._n_queries else aligned.select(self._kept)
            self._problem, self._total = gain_problem(own, parsed), float(own.query_weights.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return 0 if self._problem is None else self._problem.columns.nbytes + self._problem.order.nbytes

    def answer(self, request: Request, chosen: Bools) -> Answer:
        """Return value, bins or swaps of the chosen queries, as their share of all that are learned from."""
        problem = self._part(chosen, request.total)
        low, high = np.array(request.weights), np.array(request.numbers[: len(request.weights)])
        if request.question == _VALUE:
            return (np.array(0.0 if problem is None else value_at(problem, low)),)
        if request.question == _BINS:
            if problem is None:
                return np.array(0.0), np.zeros((1 << BIN_BITS, _N_SUMS))
            start, sums = line_bins(problem, low, high, self._buffers)
            return np.array(start), sums
        if problem is None:
            return np.zeros(0, np.int64), np.zeros(0)
        first, last = (np.array([number], np.int64) for number in request.numbers[len(low) :])
        return line_swaps(problem, low, high, first, last, self._buffers)

    def _part(self, chosen: Bools, total: float) -> GainProblem | None:
        """Return the tasks of the chosen queries, each with its share of the total weight; scores are shared."""
        problem = self._problem
        if problem is None or not chosen[self._kept].any():
            return None
        share = self._total / total
        gains = problem.gains
        if chosen[self._kept].all():
            return problem if share == 1.0 else problem._replace(gains=gains._replace(weight=gains.weight * share))
        tasks = np.flatnonzero(chosen[self._kept][problem.query])
        starts, ends = problem.relevant_starts[tasks], problem.relevant_starts[tasks + 1]
        rows = [problem.relevant_rows[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        per_task = {name: getattr(gains, name)[tasks] for name in ("cutoff", "by_rank", "base", "least")}
        return problem._replace(
            query=problem.query[tasks],
            relevant_starts=np.concatenate(([0], np.cumsum(ends - starts))),
            relevant_rows=np.concatenate(rows) if rows else problem.relevant_rows[:0],
            gains=gains._replace(weight=gains.weight[tasks] * share, **per_task),
        )


class TableLines:
    """A measure along lines of weights, from a table: `genm._math.exact.line_search.Lines`.

    The best interval of a line is found exactly, by a few passes. Step functions are known at 4,096 points.
    """

    def __init__(self, problem: TableProblem) -> None:
        self._problem = problem

    def value_at(self, weights: Floats) -> float:
        """Return the measure at one point; ties are broken by row."""
        (found,) = self._problem.ask(weights, kind="own", question=_VALUE, total=self._problem.total)
        return float(found)

    def best(self, origin: Floats, direction: Floats, low: float, high: float) -> LineProfile:
        """Return where on origin + t * direction, low <= t <= high, the measure is best."""

        def bins_of(spans: Sequence[Span]) -> list[Bins]:
            return self._bins(origin, direction, spans)

        def swaps_of(wanted: Sequence[tuple[Span, int, int]]) -> list[tuple[Ints, Floats]]:
            asked = [
                {"weights": origin + span[0] * direction, "question": _SWAPS, "per_query": True,
                 "numbers": (*(origin + span[1] * direction).tolist(), float(first), float(last))}
                for span, first, last in wanted
            ]  # fmt: skip
            return [(keys, steps) for keys, steps in self._asked(asked)]

        return best_of_bins(bins_of, swaps_of, low, high)

    def steps(self, origin: Floats, direction: Floats, low: float, high: float) -> LineProfile:
        """Return the values at 4,096 points of the line."""
        return steps_of_bins(lambda spans: self._bins(origin, direction, spans), low, high)

    def _bins(self, origin: Floats, direction: Floats, spans: Sequence[Span]) -> list[Bins]:
        asked = [
            {"weights": origin + low * direction, "question": _BINS,
             "numbers": tuple((origin + high * direction).tolist())}
            for low, high in spans
        ]  # fmt: skip
        return [Bins(float(start), sums) for start, sums in self._asked(asked)]

    def _asked(self, questions: Sequence[dict[str, object]]) -> list[Answer]:
        """Return the answers to several questions from one pass."""
        return self._problem.ask_all([{"kind": "own", "total": self._problem.total, **one} for one in questions])
