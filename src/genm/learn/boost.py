"""EnM, the baseline: boosting with the rankers as weak learners, then coordinate search on exact MAP."""

from typing import Self

import numpy as np

from genm._math.elementary import exponentials, logarithms
from genm._math.linear_algebra import dot, times
from genm._typing import Floats
from genm.align import Aligned
from genm.learn.base import Fuser, Step
from genm.learn.batch import check_stopping
from genm.learn.objectives import Problem


class BoostFuser(Fuser):
    """Learn weights by boosting and coordinate search (EnM, a reconstruction: its text is not public).

    Objective: exact MAP. Set: the simplex. The boosting stage is AdaRank (Xu and Li 2007) with the rankers as
    weak learners; `search=False` stops there. The search then tries a grid of weights for each ranker in turn, with
    the others in proportion, and halves the step of the grid when nothing improves.
    """

    method = "enm"
    objective = "exact MAP"
    weight_set = "simplex"

    def __init__(
        self,
        *,
        search: bool = True,
        level: int = 1,
        tol: float = 1e-6,
        min_iter: int = 1,
        max_iter: int = 100,
    ) -> None:
        self.search, self.level = search, level
        self.tol, self.min_iter, self.max_iter = tol, min_iter, max_iter

    def _fit(self, aligned: Aligned) -> Self:
        """Boost, then search."""
        return self.fit_problem(Problem(aligned, level=self.level, beta=1.0))

    def fit_problem(self, problem: Problem) -> Self:
        """Learn from an existing problem, with its relevance level."""
        check_stopping(self.tol, self.min_iter, self.max_iter)
        self._remember(problem)
        self.history_ = []
        weights = self._boost(problem)
        self.converged_ = True
        if self.search and len(weights) > 1:
            weights = self._search(problem, weights)
        self.weights_, self.objective_ = weights, problem.exact(weights)
        self.n_iter_ = len(self.history_)
        self._warn_if_stopped_early()
        return self

    def _boost(self, problem: Problem) -> Floats:
        """Return AdaRank's votes as weights.

        P_1 = 1/L; take the ranker with the largest P-weighted AP; its vote is
        1/2 ln(sum P (1 + E) / sum P (1 - E)); P_{t+1} ~ exp(-AP of the ensemble so far).
        """
        n = len(problem.rankers)
        single = np.array([problem.exact_per_query(unit) for unit in np.eye(n)])
        prior = problem.tiles.query_weights / problem.tiles.query_weights.sum()
        P, votes, best, best_map = prior.copy(), np.zeros(n), np.full(n, 1.0 / n), -1.0
        for t in range(min(self.max_iter, 4 * n)):
            k = int(np.argmax(times(single, P)))
            E = single[k]
            votes[k] += 0.5 * float(logarithms(max(dot(P, 1 + E), 1e-12) / max(dot(P, 1 - E), 1e-12)))
            weights = votes / votes.sum() if votes.sum() > 0.0 else best  # no ranker returned anything relevant
            ap = problem.exact_per_query(weights)
            reached = dot(prior, ap)
            self.history_.append(Step(0, t, reached, reached, tuple(weights.tolist())))
            if reached > best_map + self.tol:
                best, best_map = weights.copy(), reached
            elif t >= max(n, self.min_iter):
                break
            P = prior * exponentials(-ap)
            P /= P.sum()
        return best

    def _search(self, problem: Problem, weights: Floats) -> Floats:
        known: dict[bytes, float] = {}  # half of the points of a finer grid were tried on the coarser one

        def exact(trial: Floats) -> float:
            key = trial.tobytes()
            if key not in known:
                known[key] = problem.exact(trial)
            return known[key]

        reached, step, n = exact(weights), 0.1, len(weights)
        for t in range(self.max_iter):
            before = reached
            for k in range(n):
                rest = weights.copy()
                rest[k] = 0.0
                others = rest / rest.sum() if rest.sum() > 0 else np.full(n, 1.0 / (n - 1)) * (np.arange(n) != k)
                for weight in np.unique(np.clip(weights[k] + step * np.arange(-5, 6), 0.0, 1.0)):
                    trial = (1.0 - weight) * others
                    trial[k] = weight
                    value = exact(trial)
                    if value > reached:
                        weights, reached = trial, value
            self.history_.append(Step(0, len(self.history_), reached, reached, tuple(weights.tolist())))
            if reached - before < self.tol:
                if step < 1e-3 and t + 1 >= self.min_iter:
                    return weights
                step *= 0.5
        self.converged_ = False
        return weights
