"""A shard of a score table on a GPU: what engines keep there, and its answers.

Average precision, exact and smoothed, is computed on the GPU, each request by its own launches, so that no answer
depends on what else is asked. Other measures, the rankers' own lists and reciprocal rank fusion are computed on the
CPU, as `TiledShard` does.
"""

import numpy as np

from genm._typing import Bools, Floats
from genm.scale.cuda import Device, DeviceShard, find_device, upload
from genm.scale.evaluation import Answer, Documents, Request, Settings, weighted_sum
from genm.scale.tiled_shard import See, TiledShard, check_labelled

_MOST_PARTS = 64
"""Selections of queries that stay on the device, such as the folds of a cross-validation: 48 bytes per query."""


class CudaShard(TiledShard):
    """A shard made ready on a GPU; scores are rounded to float32."""

    def __init__(
        self,
        number: int,
        documents: Documents,
        settings: Settings,
        see: See | None = None,
        device: Device | None = None,
    ) -> None:
        self._device = find_device(settings.device) if device is None else device
        self._parts: dict[bytes, DeviceShard] = {}
        super().__init__(number, documents, settings, see)

    def _store(self, documents: Documents, see: See | None) -> None:
        aligned, level = documents.aligned(), self._settings.level
        check_labelled(aligned, self._settings)
        if see is not None:
            see((0, self.n_queries), aligned)
        n_relevant = aligned.n_relevant(level)
        self._keep(n_relevant, aligned.query_weights)
        own = aligned if len(self.kept) == self.n_queries else aligned.select(self.kept)
        self._whole = upload(
            own.starts,
            own.scores,
            own.relevance >= level,
            n_relevant[self.kept],
            own.query_weights,
            device=self._device,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the scores on the device and, for other measures than average precision, in memory."""
        return self._whole.nbytes + self._measured_bytes

    def _answers(self, groups: list[list[Request]]) -> list[list[Answer]]:
        """Answer groups of requests; those of a group differ in their selected queries alone."""
        return [
            super(CudaShard, self)._answers([group])[0]
            if group[0].kind == "measure"
            else [self._average_precision(one, one.selected(self.number, self.n_queries)) for one in group]
            for group in groups
        ]

    def _average_precision(self, request: Request, queries: Bools) -> Answer:
        part, weights = self._part(queries), np.array([request.weights])
        (exact,) = part.exact_ap(weights)
        if request.kind == "exact":
            columns: tuple[Floats, ...] = (exact,)
        elif request.per_query:
            values, gradients = part.smooth(weights, request.beta, order=request.order, smooth_j=request.smooth_j)
            columns = (exact, values[0], *([gradients[0]] if request.order else []))
        else:
            sums = part.smooth_sums(weights, request.beta, order=request.order, smooth_j=request.smooth_j)
            derivatives = (sums.gradient[0], sums.hessian[0] / request.total)[: request.order]
            return (weighted_sum(exact, part.query_weights), sums.value[0], *derivatives)
        return columns if request.per_query else tuple(weighted_sum(one, part.query_weights) for one in columns)

    def _part(self, queries: Bools) -> DeviceShard:
        """Return the selected queries that have relevant documents."""
        own = queries[self.kept]
        if own.all():
            return self._whole
        key = np.packbits(own).tobytes()
        found = self._parts.pop(key, None)
        if found is None:
            found = self._whole.select(np.flatnonzero(own))
            while len(self._parts) >= _MOST_PARTS:
                self._parts.pop(next(iter(self._parts)))
        self._parts[key] = found  # the one that was used last is dropped last
        return found
