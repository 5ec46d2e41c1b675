"""gEnM.ON: weights from a stream of judged queries."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from genm._math.average_precision import QueryGradients, smooth_ap
from genm._math.linear_algebra import dot
from genm._math.parallel import over_items
from genm._math.simplex_optimizers import as_distribution, project_to_simplex
from genm._math.tiles import Tiles, build_tiles, take
from genm._typing import Floats
from genm.align import Aligned, AlignedOrRuns, as_aligned
from genm.errors import InputError, ModelError
from genm.grouping import Grouping, count_groups
from genm.learn.base import Fuser, Step
from genm.learn.batch import check_stopping
from genm.learn.objectives import Beta, Problem, beta_of, check_beta
from genm.learn.starts import STRIDE, Schedule, Starts, check_free, check_schedule, starting_points
from genm.model import Groups, GroupWeights, Model, OnlineState
from genm.records import Note, Qrels, check_kind, merge_qrels


class OnlineFuser(Fuser):
    """Learn weights one query at a time by stochastic ascent (gEnM.ON, Algorithm 3).

    Objective: the query's own summand of Problem P4, j sorted. Set: free with `schedule="paper"` (step 1/t,
    negative weights set to 0 at the end); the simplex with `schedule="adaptive"` (steps shrink with the size of
    the gradients seen so far, each is projected back onto the simplex, and `weights_` is the mean of the path).

    `free` uses the starts without scaling them to sum 1, zeros included, and evaluates every pass with the
    unconstrained weights (P4), as the paper's learning curves do; the default `starts` are then all binary vectors.

    `batch` queries share a step, along the mean of their gradients; 1 is Algorithm 3. A batch ends where the data
    of a call end, or a shard of a table.

    `partial_fit` continues from the current weights. `fit` starts again: it passes over the queries in their order
    from every start until a pass changes the objective by less than `tol`. Queries with no relevant documents are
    skipped and not counted.
    """

    method = "on"
    objective = "smoothed AP of each query, j sorted"
    weight_set = "free (paper) or simplex (adaptive)"

    beta_: float
    raw_weights_: Floats
    n_seen_: int
    memory_: Floats

    def __init__(
        self,
        *,
        schedule: Schedule = "adaptive",
        beta: Beta = "auto",
        level: int = 1,
        starts: Starts = None,
        free: bool = False,
        batch: int = 1,
        tol: float = 1e-4,
        min_iter: int = 1,
        max_iter: int = 20,
    ) -> None:
        self.schedule, self.beta, self.level, self.starts, self.free = schedule, beta, level, starts, free
        self.batch = batch
        self.tol, self.min_iter, self.max_iter = tol, min_iter, max_iter

    def _fit(self, aligned: Aligned) -> Self:
        """Reset, then pass over the queries from every start; keep the result with the highest exact MAP."""
        return self.fit_problem(Problem(aligned, level=self.level, beta=self.beta))

    def fit_problem(self, problem: Problem) -> Self:
        """Learn from prepared queries, with the level and beta of the problem."""
        check_stopping(self.tol, self.min_iter, self.max_iter)
        check_free(free=self.free, schedule=check_schedule(self.schedule))
        uniform = np.full((1, len(problem.rankers)), 1.0)
        given = uniform if self.starts is None and not self.free else self.starts
        starts = starting_points(len(problem.rankers), seed=0, given=given, free=self.free)
        paths = over_items(lambda s: self._passes(problem, s, starts[s]), range(len(starts)))
        best = max(paths, key=lambda path: path.history_[-1].exact)
        for name in ("beta_", "raw_weights_", "n_seen_", "memory_", "weights_", "converged_", "n_iter_"):
            setattr(self, name, getattr(best, name))
        self._remember(problem)
        self.objective_ = best.history_[-1].objective
        self.history_ = [step for path in paths for step in path.history_]
        if self.max_iter > 1:
            self._warn_if_stopped_early()
        return self

    def partial_fit(self, runs: AlignedOrRuns, qrels: Qrels | None = None) -> Self:
        """Take one step for each query, in their order; t = 1 + queries seen, as Algorithm 3 counts."""
        if hasattr(self, "rankers_") and not isinstance(runs, Aligned):
            aligned = self.prepare(runs, qrels)
        else:
            aligned = as_aligned(runs, qrels)
        if not hasattr(self, "raw_weights_"):
            self._remember(aligned)
            beta = beta_of(aligned) if self.beta == "auto" else check_beta(self.beta)
            self._begin(beta, np.full(len(aligned.rankers), 1.0 / len(aligned.rankers)))
            self.history_, self.converged_, self.n_iter_ = [], False, 0
        self._check_rankers(aligned.rankers)
        if not aligned.labelled:
            raise InputError("these runs carry no judgments. Give qrels.")
        n_relevant = aligned.n_relevant(self.level)
        relevant = aligned.relevance >= self.level
        tiles = build_tiles(aligned.starts, aligned.scores, relevant, n_relevant, aligned.query_weights)
        self.pass_over(take(tiles, np.flatnonzero((n_relevant > 0) & (aligned.query_weights > 0))))
        return self

    def pass_over(self, tiles: Tiles) -> None:
        """Take one step for each of these queries, or each batch of them, in their order."""
        if self.batch == 1:
            one_by_one = QueryGradients(tiles, self.beta_)
            for q in range(tiles.n_queries):
                self.objective_, gradient = one_by_one.at(q, self.raw_weights_)
                self._step(gradient * tiles.query_weights[q])
        else:
            self._pass_over_batches(tiles)
        self.weights_ = as_distribution(self._served())

    def _pass_over_batches(self, tiles: Tiles) -> None:
        for first in range(0, tiles.n_queries, self.batch):
            some = take(tiles, np.arange(first, min(first + self.batch, tiles.n_queries)))
            found = smooth_ap(some, self.raw_weights_, self.beta_, order=1)
            gradients = found.gradient * some.query_weights[:, None]
            self._step(gradients.sum(axis=0) / some.n_queries, some.n_queries)
            self.objective_ = float(found.value[-1])

    def state(self) -> Floats:
        """Return everything that later steps depend on: weights, memory, queries seen, and the last objective."""
        objective = getattr(self, "objective_", 0.0)
        return np.concatenate([self.raw_weights_, self.memory_, [float(self.n_seen_), objective]])

    def restore(self, state: Floats) -> None:
        """Continue from a state."""
        n = len(self.raw_weights_)
        self.raw_weights_, self.memory_ = state[:n].copy(), state[n:-2].copy()
        self.n_seen_, self.objective_ = int(state[-2]), float(state[-1])
        self.weights_ = as_distribution(self._served())

    @classmethod
    def from_model(cls, model: Model) -> Self:
        """Return the fuser in the state of the model's stream; continuing gives the bits of one long stream."""
        check_kind("model", model, Model, "Read it first, by genm.load_model.")
        state = model.online
        if state is None:
            raise ModelError(
                f"this model was learned by {model.method!r} and has no stream to continue. "
                f"Start one with: genm fit --method online ..."
            )
        fuser = cls(schedule=check_schedule(state.schedule), beta=state.beta, level=model.relevance_level)
        fuser.rankers_, fuser.normalizers_, fuser.depths_ = model.rankers, model.normalizers, model.depths
        fuser.raw_weights_, fuser.n_seen_ = np.array(state.raw_weights), state.n_seen
        fuser.memory_, fuser.beta_ = np.array(state.memory), state.beta
        fuser.weights_ = np.array(model.weights)
        fuser.history_, fuser.converged_, fuser.n_iter_, fuser.objective_ = [], False, 0, np.nan
        return fuser

    def _begin(self, beta: float, start: Floats) -> None:
        check_schedule(self.schedule)
        if isinstance(self.batch, bool) or not isinstance(self.batch, int) or self.batch < 1:
            raise InputError(f"batch (--batch) {self.batch!r}: expected a positive integer.")
        self.beta_, self.raw_weights_, self.n_seen_ = beta, start.copy(), 0
        self.weights_ = as_distribution(start)
        # adaptive: the sum of squared gradients, the sum of the path's weights, and the weighted path
        self.memory_ = np.zeros(2 + len(start)) if self.schedule == "adaptive" else np.zeros(0)

    def _step(self, gradient: Floats, n_queries: int = 1) -> None:
        self.n_seen_ += n_queries
        if self.schedule == "paper":
            self.raw_weights_ = self.raw_weights_ + gradient / (1 + self.n_seen_ / self.batch)
            return
        slope = gradient - gradient.mean()  # a common shift only rescales
        self.memory_[0] += dot(slope, slope)
        if self.memory_[0] > 0.0:
            stride = STRIDE / np.sqrt(self.memory_[0])
            self.raw_weights_ = project_to_simplex(self.raw_weights_ + stride * slope)
        # later weights count more, so that the poor first ones have little effect
        self.memory_[1] += self.n_seen_
        self.memory_[2:] += self.n_seen_ * self.raw_weights_

    def _served(self) -> Floats:
        if self.schedule == "adaptive" and self.n_seen_ > 0:
            return np.asarray(self.memory_[2:] / self.memory_[1])
        return self.raw_weights_

    def _passes(self, problem: Problem, number: int, start: Floats) -> "OnlineFuser":
        """Return a fuser that has passed over the queries until its objective stopped changing."""
        path = OnlineFuser(
            schedule=self.schedule, beta=problem.beta, level=self.level, free=self.free, batch=self.batch
        )
        path._begin(problem.beta, start)
        path.converged_, path.n_iter_ = False, 0
        path.history_ = [path._where(problem, number)]
        while path.n_iter_ < self.max_iter and not path.converged_:
            path.n_iter_ += 1
            problem.pass_over(path)
            path.history_.append(path._where(problem, number))
            change = path.history_[-1].objective - path.history_[-2].objective
            path.converged_ = abs(change) < self.tol and path.n_iter_ >= self.min_iter
        return path

    def _where(self, problem: Problem, number: int) -> Step:
        """Return the current weights as a point of the learning curve."""
        weights = self.raw_weights_ if self.free else self.weights_
        used = np.maximum(weights, 0.0)  # Section 4.1's rule for negative ones
        return Step(number, self.n_iter_, problem.value(weights), problem.exact(used), tuple(weights.tolist()))

    def _online_state(self) -> OnlineState:
        return OnlineState(
            raw_weights=tuple(self.raw_weights_.tolist()),
            n_seen=self.n_seen_,
            schedule=self.schedule,
            beta=self.beta_,
            memory=tuple(self.memory_.tolist()),
        )


def merge_new_judgments(seen: Qrels, qrels: Qrels) -> Qrels:
    """Return the queries of `qrels` that have something new, each with all its judgments, old and new.

    `seen` are the judgments that were learned from before. A query is new, or has a document that was not judged
    before, or another grade for one; the new grade counts. Queries with nothing new are left out. Notes count both.
    """
    merged = merge_qrels(seen, qrels)
    before, now = seen.to_dict(), qrels.to_dict()
    added = {q: [doc for doc in now[q] if doc not in before.get(q, {})] for q in now}
    changed = {q: [doc for doc in now[q] if before.get(q, {}).get(doc, now[q][doc]) != now[q][doc]] for q in now}
    kept = [q for q in now if q not in before or added[q] or changed[q]]
    again = [q for q in kept if q in before]
    n_old, n_added = len(now) - len(kept), sum(len(added[q]) for q in again)
    n_changed = sum(len(changed[q]) for q in again)
    notes = list(qrels.notes)
    if again:
        text = (
            f"{len(again):,} of {len(kept):,} queries were judged before, the first is {again[0]!r}: "
            f"{n_added:,} documents are new, {n_changed:,} have another grade, which counts. Each query takes a "
            f"further step, with all its judgments."
        )
        notes.append(Note("judged-again", len(again), text))
    if n_old:
        text = f"{n_old:,} of {len(now):,} queries have no new judgment and are skipped."
        notes.append(Note("nothing-new", n_old, text))
    all_judgments = merged.to_dict()
    return replace(Qrels.from_dict({q: all_judgments[q] for q in kept}), notes=tuple(notes))


def update_model(model: Model, aligned: Aligned, groups: Sequence[str | None] | None = None) -> Model:
    """Return the model after one step for each new judged query, in their order: what `genm update` does.

    The model must have been learned by OnlineFuser, and `aligned` must be aligned for it (`Model.align`). Updates
    in parts give the same weights, to the bit, as one long stream. The figures of the training belong to the old
    weights and are dropped.

    `groups` names the group of each query. A query of a group moves the global weights and those of its group; a
    new group starts where the global stream stands at its first query. A gate stays as it was learned.
    """
    fuser = OnlineFuser.from_model(model).partial_fit(aligned)
    now = fuser.to_model()
    updated = replace(model, weights=now.weights, online=now.online, training={})
    return updated if groups is None else replace(updated, groups=_updated_groups(model, aligned, groups))


def _updated_groups(model: Model, aligned: Aligned, groups: Sequence[str | None]) -> Groups:
    """Return the weights of every group after the steps of its own queries."""
    if len(groups) != len(aligned.queries):
        raise InputError(f"groups: expected one for each of {len(aligned.queries)} queries; found {len(groups)}.")
    before = Groups(Grouping(), ()) if model.groups is None else model.groups
    members = {one.name: one for one in before.members}
    n_relevant = aligned.n_relevant(model.relevance_level)
    for name in count_groups(groups):
        chosen = np.flatnonzero([group == name for group in groups])
        member = members.get(name, GroupWeights(name, ()))
        if member.online is None:  # its stream begins where the global one stands at the group's first query
            earlier = aligned.select(np.arange(chosen[0]))
            reached = OnlineFuser.from_model(model).partial_fit(earlier).to_model()
            weights = member.weights or reached.weights
            member = replace(member, weights=weights, online=_state_at(reached, weights))
        stream = replace(model, weights=member.weights, online=member.online)
        after = OnlineFuser.from_model(stream).partial_fit(aligned.select(chosen)).to_model()
        n_taught = int((n_relevant[chosen] > 0).sum())
        members[name] = GroupWeights(name, after.weights, member.n_queries + n_taught, after.online)
    return replace(before, members=tuple(members.values()))


def _state_at(model: Model, weights: tuple[float, ...]) -> OnlineState:
    """Return the state of the model's stream, or one as if that stream had led to these weights."""
    state = model.online
    assert state is not None
    if weights == model.weights:
        return state
    if state.schedule != "adaptive":
        return replace(state, raw_weights=weights)
    gradients, total = state.memory[:2]
    memory = (gradients, total, *(total * weight for weight in weights))
    return replace(state, raw_weights=weights, memory=memory)
