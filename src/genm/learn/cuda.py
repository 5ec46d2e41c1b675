"""Learning on a GPU: the objective of the fusers, evaluated by the kernels of `genm.scale.cuda`.

    AutoFuser().fit_problem(CudaProblem(aligned))

The fusers are those of the CPU; they optimise on the CPU and ask the GPU for values and derivatives.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from genm._math.tiles import Tiles
from genm._typing import Bools, Floats
from genm.align import Aligned
from genm.errors import InputError
from genm.learn.objectives import Beta, Problem, StreamLearner, check_beta, sharpness_for
from genm.normalizers import Normalizer
from genm.scale.cuda import Device, DeviceShard, SmoothSums, find_device, upload


class CudaProblem(Problem):
    """Mean average precision over labelled queries, evaluated on a GPU: a `Problem` of scores in float32.

    `device` is "cuda", the first GPU, or "cuda:1" and so on.
    """

    shard: DeviceShard
    _device: Device | str = "cuda"

    def __init__(
        self,
        aligned: Aligned,
        *,
        level: int = 1,
        beta: Beta = "auto",
        smooth_j: bool = False,
        device: Device | str = "cuda",
    ) -> None:
        self._device = find_device(device) if isinstance(device, str) else device  # before anything is computed
        super().__init__(aligned, level=level, beta=beta, smooth_j=smooth_j)

    @classmethod
    def from_shard(
        cls, shard: DeviceShard, rankers: Sequence[str], *, beta: Beta = "auto", smooth_j: bool = False
    ) -> Self:
        """Return the problem of scores that are on the GPU already, by `genm.scale.cuda.upload`, as they are."""
        if len(rankers) != shard.n_rankers:
            raise InputError(
                f"rankers: expected {shard.n_rankers} names, one for each column; found {len(rankers)}."
            )
        problem = cls.__new__(cls)
        kept = np.flatnonzero((shard.n_relevant > 0) & (shard.query_weights > 0))
        if len(kept) == 0:
            raise InputError("no query has a relevant document. Check the labels.")
        problem.rankers, problem.depths = tuple(rankers), (None,) * len(rankers)
        problem.normalizers = (Normalizer("none"),) * len(rankers)
        problem._set(shard, kept, beta=beta, smooth_j=smooth_j)
        return problem

    def _build(
        self,
        aligned: Aligned,
        kept: NDArray[np.intp],
        relevant: NDArray[np.bool_],
        n_relevant: NDArray[np.int64],
        *,
        beta: Beta,
        smooth_j: bool,
    ) -> None:
        device = find_device(self._device) if isinstance(self._device, str) else self._device
        self.rankers, self.normalizers, self.depths = aligned.rankers, aligned.normalizers, aligned.depths
        weights = aligned.query_weights
        shard = upload(aligned.starts, aligned.scores, relevant, n_relevant, weights, device=device)
        self._set(shard, kept, beta=beta, smooth_j=smooth_j)

    def _set(self, shard: DeviceShard, kept: NDArray[np.intp], *, beta: Beta, smooth_j: bool) -> None:
        self.n_set_aside, self.kept, self.smooth_j = shard.n_queries - len(kept), kept, smooth_j
        if beta == "auto":
            variances = shard.variances(np.full(shard.n_rankers, 1.0 / shard.n_rankers))
            self.beta = sharpness_for(variances[shard.sizes > 1])
        else:
            self.beta = check_beta(beta)
        self.shard = shard.select(kept) if self.n_set_aside else shard

    @property
    def query_weights(self) -> Floats:
        """How much each query counts."""
        return self.shard.query_weights

    def select(self, queries: NDArray[np.integer]) -> Self:
        """Return the problem of some of the kept queries; no score is copied."""
        return self._with(shard=self.shard.select(queries), kept=self.kept[queries])

    def with_rankers(self, columns: Sequence[int], tiles: Tiles | None = None) -> Self:
        """Return the same queries under some of the rankers; the sharpness stays."""
        if tiles is not None:
            raise InputError("tiles: a problem on a GPU has none. Use Problem, or leave them out.")
        return self._with(
            shard=self.shard.take_rankers(columns),
            rankers=tuple(self.rankers[k] for k in columns),
            normalizers=tuple(self.normalizers[k] for k in columns),
            depths=tuple(self.depths[k] for k in columns),
        )

    def with_labels(self, relevant: Bools) -> Self:
        """Return the same queries with other labels: `relevant` marks rows of the aligned scores."""
        return self._with(shard=self.shard.relabel(relevant))

    def exact_per_query(self, weights: Floats) -> Floats:
        """Return the average precision of every kept query, ties settled as trec_eval does (P1's summands)."""
        return np.asarray(self.shard.exact_ap(weights[None])[0])

    def exact_per_query_each(self, weights: Floats) -> Floats:
        """Return (W, Q) the same for each of (W, K) weights, evaluated together."""
        return np.asarray(self.shard.exact_ap(weights))

    def exact(self, weights: Floats) -> float:
        """Return the mean average precision (P1)."""
        return float(self._mean(self.exact_per_query(weights)))

    def value(self, weights: Floats) -> float:
        """Return the smoothed objective."""
        return float(self._sums(weights, 0).value[0] / self.shard.total_weight)

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the smoothed objective and its gradient (Eq. 16)."""
        sums, total = self._sums(weights, 1), self.shard.total_weight
        return float(sums.value[0] / total), np.asarray(sums.gradient[0] / total)

    def gradients(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return (Q) the smoothed average precision of every query and (Q, K) its gradient (Eq. 16)."""
        values, gradients = self.shard.smooth(weights[None], self.beta, order=1, smooth_j=self.smooth_j)
        return values[0], gradients[0]

    def average_gradient(self, values: Floats, gradients: Floats) -> tuple[float, Floats]:
        """Return the means over the queries of what `gradients` returns."""
        return float(self._mean(values)), self._mean(gradients)

    def derivatives(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return the smoothed objective, its gradient (Eq. 16) and its Hessian (Eq. 17 as in Appendix A)."""
        sums, total = self._sums(weights, 2), self.shard.total_weight
        return float(sums.value[0] / total), sums.gradient[0] / total, sums.hessian[0] / total

    def pass_over(self, learner: StreamLearner) -> None:  # noqa: ARG002
        """Refuse: queries one after the other leave a GPU idle."""
        raise InputError("method (--method) online: it learns from one query at a time, on the CPU. Use Problem.")

    def _sums(self, weights: Floats, order: int) -> SmoothSums:
        return self.shard.smooth_sums(weights[None], self.beta, order=order, smooth_j=self.smooth_j)

    def _mean(self, per_query: Floats) -> Floats:
        weights = self.query_weights.reshape(-1, *([1] * (per_query.ndim - 1)))
        return np.asarray((weights * per_query).sum(axis=0) / self.shard.total_weight)
