"""Fuse new runs by a model, under exactly the rules it was learned with."""

from collections.abc import Mapping

from genm.align import Aligned, align_runs
from genm.fuse import fuse_runs
from genm.model import Model, check_rankers
from genm.records import Qrels, Run


def align_for_model(model: Model, runs: Mapping[str, Run], qrels: Qrels | None = None) -> Aligned:
    """Align runs as the model's training did: its rankers in its order, its normalisers, its depths."""
    check_rankers(model, tuple(runs))
    ordered = {name: runs[name] for name in model.rankers}
    return align_runs(ordered, qrels, normalize=model.normalizers, depth=model.depths)


def fuse_with_model(model: Model, runs: Mapping[str, Run], *, name: str = "fused", top: int | None = None) -> Run:
    """Return the ensemble's run; runs whose names do not fit the model are refused."""
    return fuse_runs(align_for_model(model, runs), model.weights, name=name, top=top)
