"""Learning from a score table that may be larger than memory, by any engine of `genm.scale`.

The fusers are those that learn from aligned runs. `TableProblem` and `TableScorer` give them the same numbers as
`Problem` and `Scorer`, but ask an engine for them: sums over all shards, and the exact value of every query where
the choice of the shrinkage compares queries. Nothing else of a query leaves its shard, so learning needs about
2 K + 10 numbers per query in memory for K rankers, whatever the number of documents.

Fits of several folds run side by side and share the passes over the table (`genm.scale.lockstep`).
"""

import copy
import itertools
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import items_run_by
from genm._typing import Floats
from genm.errors import InputError
from genm.evaluate import Measure
from genm.ids import Ids
from genm.learn.objectives import (
    Beta,
    GradientOfPart,
    Problem,
    Scorer,
    StreamLearner,
    check_beta,
    each_alone,
    sharpness_for,
    with_level,
)
from genm.progress import Progress, silent
from genm.scale.checkpoint import Checkpoint
from genm.scale.engines import Engine, Table
from genm.scale.evaluation import Answer, Request, Settings, combine
from genm.scale.lockstep import Lockstep
from genm.scale.tiled_shard import TiledShard

MOST_AT_ONCE = 20_000
"""Queries up to which `auto` searches on all of them from the beginning."""
SAMPLED = 10_000
"""Of more queries, about how many `auto` begins with, and how many choose the shrinkage."""
FEWEST_SHARDS = 8
"""Shards from which that sample is taken at least, if there are as many."""
_MOST_REMEMBERED = 64
"""Exact means that are kept beside the weights they belong to: a pass for derivatives finds them as well."""
_remembering = threading.Lock()


class TableQueries:
    """The queries of a table, and the engine that evaluates them: what learning and evidence ask.

    Use it as a context: jobs that run inside share passes over the table. `ahead` are requests that are known
    before anything is learned: they are answered in the first pass, while the documents are read.
    """

    def __init__(
        self,
        table: Table,
        engine: Engine,
        settings: Settings,
        *,
        ahead: Sequence[Request] = (),
        checkpoint: Checkpoint | None = None,
        progress: Progress = silent,
    ) -> None:
        if not table.labelled and (settings.learner is None or settings.learner.reads_judgments):
            raise InputError("this table carries no judgments. Make one with judgments: genm shard --qrels ...")
        self.table, self.engine, self.settings, self._progress = table, engine, settings, progress
        self.checkpoint = Checkpoint() if checkpoint is None else checkpoint
        self.lockstep = Lockstep(self.evaluate, self.checkpoint.known)
        self._runs_items = items_run_by(self.lockstep)
        self.ends = np.cumsum([0, *table.shard_queries])
        """Where the queries of each shard begin, and where the last ones end."""
        self._ahead: dict[Request, Answer] = {}
        found, *others = self.lockstep.ask([Request("survey"), *ahead])
        self._ahead = dict(zip(ahead, others, strict=True))
        self.query_weights, self.n_relevant, self.lengths, self.variances, text, starts = found
        self.query_ids = Ids(text, starts)
        self.teaching = np.flatnonzero((self.n_relevant > 0) & (self.query_weights > 0))
        """Positions of the queries that have relevant documents and a weight."""

    def __enter__(self) -> Self:
        self._runs_items.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs_items.__exit__(kind, error, trace)
        self.lockstep.close()

    @property
    def n_queries(self) -> int:
        """Number of queries in all shards."""
        return len(self.query_weights)

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers of the whole table: one pass of the engine for what is not known."""
        left = [request for request in requests if request not in self._ahead]
        found = dict(zip(left, self._ask(left) if left else [], strict=True))
        return [self._ahead[request] if request in self._ahead else found[request] for request in requests]

    def _ask(self, requests: Sequence[Request]) -> list[Answer]:
        def ask(some: Sequence[Request]) -> list[Answer]:
            by_shard = self.engine.evaluate(some)
            return [combine(request, [answers[r] for answers in by_shard]) for r, request in enumerate(some)]

        found = self.checkpoint.ask(requests, ask)
        self._progress("passes over the table", self.checkpoint.n_passes, 0)
        return found

    def marks(self, positions: NDArray[np.integer]) -> tuple[bytes, ...]:
        """Return positions of queries as a request has them: a bit for every query of each shard."""
        marked = np.zeros(self.n_queries, np.bool_)
        marked[positions] = True
        cuts = zip(self.ends[:-1], self.ends[1:], strict=True)
        return tuple(np.packbits(marked[low:high]).tobytes() for low, high in cuts)

    def stream(self, positions: NDArray[np.integer], learner: StreamLearner, rules: str) -> None:
        """Let a learner see these queries, shard by shard in the table's order; two shards are in memory.

        A shard that the checkpoint knows to lead from the learner's state to another is not read. `rules` names
        what else the steps depend on.
        """
        marked = np.zeros(self.n_queries, np.bool_)
        marked[positions] = True
        own = [marked[low:high] for low, high in itertools.pairwise(self.ends)]
        todo = [i for i in range(self.table.n_shards) if own[i].any()]
        with ThreadPoolExecutor(1, thread_name_prefix="genm-read") as reader:
            following: Future[TiledShard] | None = None
            for at, i in enumerate(todo):
                before = learner.state()
                key = sha256(f"stream;{i};{rules};".encode() + before.tobytes() + own[i].tobytes()).hexdigest()
                known = self.checkpoint.recall(key)
                if known is not None:
                    learner.restore(known[0])
                    continue
                shard = self._ready(i) if following is None else following.result()
                following = reader.submit(self._ready, todo[at + 1]) if at + 1 < len(todo) else None
                learner.pass_over(shard.part(own[i]))
                self.checkpoint.remember({key: (learner.state(),)})

    def _ready(self, number: int) -> TiledShard:
        return TiledShard(number, self.table.read_columns(number), self.settings)


class TableProblem(Problem):
    """The smoothed and exact MAP of the queries of a table, or of some of them; positions are in rising order."""

    in_memory = False
    teacher = -1
    """The ranker whose labels count; -1: judgments."""

    def __init__(
        self,
        table: TableQueries,
        queries: NDArray[np.integer] | None = None,
        *,
        beta: Beta = "auto",
        smooth_j: bool = False,
        curve: bool = True,
    ) -> None:
        wanted = np.ones(table.n_queries, np.bool_)
        if queries is not None:
            wanted[:] = False
            wanted[queries] = True
        level = table.settings.level
        self.kept = table.teaching[wanted[table.teaching]]
        if len(self.kept) == 0:
            raise InputError(
                f"no query has a document judged {level} or higher. Check the judgments, or lower the level."
            )
        self.n_set_aside = int(wanted.sum()) - len(self.kept)
        self.rankers, self.normalizers = table.table.rankers, table.table.normalizers
        self.depths, self.smooth_j, self.curve = table.table.depths, smooth_j, curve
        variances = table.variances[wanted & (table.lengths > 1)]
        self.beta = sharpness_for(variances) if beta == "auto" else check_beta(beta)
        self.table = table
        self._chosen()

    def _chosen(self) -> None:
        """Set what depends on the chosen queries."""
        self._query_weights: Floats = self.table.query_weights[self.kept]
        self.total = float(self._query_weights.sum())
        whole = len(self.kept) == len(self.table.teaching)
        self._marks = None if whole else self.table.marks(self.kept)
        self._exact: dict[bytes, float] = {}

    @property
    def query_weights(self) -> Floats:
        """How much each query counts."""
        return self._query_weights

    def select(self, queries: NDArray[np.integer]) -> Self:
        """Return the problem of some of the kept queries, in rising order."""
        other = copy.copy(self)
        other.kept = self.kept[queries]
        if (np.diff(other.kept) <= 0).any():
            raise InputError("queries of a table: expected positions in rising order, each once.")
        other._chosen()
        return other

    def sample(self) -> NDArray[np.intp] | None:
        """Return which of the kept queries a search should begin with; None: with all of them.

        The sample of many queries comes from a few shards that are spread evenly over the table, so that the others
        are not read for it.
        """
        n = len(self.kept)
        if n <= MOST_AT_ONCE:
            return None
        ends = self.table.ends
        n_shards = len(ends) - 1
        n_sampled = min(n_shards, max(FEWEST_SHARDS, -(-n_shards * SAMPLED // n)))
        shards = np.arange(n_sampled) * n_shards // n_sampled
        of_query = np.searchsorted(ends, self.kept, side="right") - 1
        found = np.flatnonzero(np.isin(of_query, shards))
        return found if len(found) <= SAMPLED else found[np.arange(SAMPLED) * len(found) // SAMPLED]

    def ask(self, weights: Floats, **what: Any) -> Answer:
        """Return the answer of the chosen queries at these weights; `what` are the fields of the request."""
        (found,) = self.ask_all([{"weights": weights, **what}])
        return found

    def ask_all(self, questions: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Return the answers to several questions from one pass; each is the fields of a request."""
        return self.table.lockstep.ask(
            [
                Request(queries=self._marks, teacher=self.teacher, **{**one, "weights": _numbers(one["weights"])})
                for one in questions
            ]
        )

    def with_beta(self, beta: float) -> Self:
        """Return the same queries under another sharpness."""
        other = copy.copy(self)
        other.beta = check_beta(beta)
        return other

    def exact_per_query(self, weights: Floats) -> Floats:
        """Return the average precision of every kept query."""
        return self.ask(weights, kind="exact", per_query=True)[0]

    def exact_per_query_each(self, weights: Floats) -> Floats:
        """Return (W, Q) the same for each of (W, K) weights."""
        return each_alone(self.exact_per_query, weights)

    def exact(self, weights: Floats) -> float:
        """Return the mean average precision (P1)."""
        known = self._exact.get(np.asarray(weights, np.float64).tobytes())
        return float(self.ask(weights, kind="exact")[0] / self.total) if known is None else known

    def value(self, weights: Floats) -> float:
        """Return the smoothed objective."""
        return float(self._smooth(weights, 0)[0])

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the smoothed objective and its gradient (Eq. 16)."""
        value, gradient = self._smooth(weights, 1)
        return float(value), gradient

    def gradients_at(self, weights: Floats) -> GradientOfPart:
        """Return a function that gives objective and gradient for some of the queries.

        In a pass with several parts, each query is evaluated once for all of them.
        """
        return lambda queries: self.select(queries).gradient(weights)

    def derivatives(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return the smoothed objective, its gradient (Eq. 16) and its Hessian (Eq. 17 as in Appendix A)."""
        value, gradient, hessian = self._smooth(weights, 2)
        return float(value), gradient, hessian

    def _smooth(self, weights: Floats, order: int) -> list[Floats]:
        """Return means: of the objective, its gradient and its Hessian as far as asked for."""
        what = {"beta": self.beta, "order": order, "smooth_j": self.smooth_j, "total": self.total}
        exact, *sums = self.ask(weights, kind="smooth", with_exact=self.curve, **what)
        if self.curve:
            self._remember_exact(weights, float(exact / self.total))
        return [*(one / self.total for one in sums[:2]), *sums[2:]]  # Hessians are means already

    def _remember_exact(self, weights: Floats, exact: float) -> None:
        with _remembering:  # searches from several starts ask at the same time
            while len(self._exact) >= _MOST_REMEMBERED:
                self._exact.pop(next(iter(self._exact)))
            self._exact[np.asarray(weights, np.float64).tobytes()] = exact

    def pass_over(self, learner: StreamLearner) -> None:
        """Let the learner see the queries in the order of the table, one shard after the other."""
        self.table.stream(self.kept, learner, f"{self.beta!r}")


class TableScorer(Scorer):
    """Exact values of one measure per training query of a table."""

    def __init__(self, problem: TableProblem, measure: Measure, level: int) -> None:
        self.measure = with_level(measure, level)
        self._table_problem = problem
        self._quick = self.measure.has_smoothed_form
        self.query_weights = problem.query_weights

    def per_query(self, weights: Floats) -> Floats:
        """Return the measure of every training query."""
        if self._quick:
            return self._table_problem.exact_per_query(weights)
        return self._table_problem.ask(weights, kind="measure", measure=str(self.measure), per_query=True)[0]

    def per_query_each(self, weights: Floats) -> Floats:
        """Return (W, Q) the measure of every training query under each of (W, K) weights."""
        return each_alone(self.per_query, weights)

    def mean(self, weights: Floats) -> float:
        """Return the measure's mean over the training queries."""
        if self._quick:
            return self._table_problem.exact(weights)
        found = self._table_problem.ask(weights, kind="measure", measure=str(self.measure))[0]
        return float(found / self._table_problem.total)

    def select(self, queries: NDArray[np.integer]) -> "TableScorer":
        """Return the scorer of some of the training queries."""
        return TableScorer(self._table_problem.select(queries), self.measure, 1)


def _numbers(weights: Floats) -> tuple[float, ...]:
    return tuple(np.asarray(weights, np.float64).tolist())
