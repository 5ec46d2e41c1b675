import numpy as np
import pytest

from genm.align import align_runs
from genm.errors import NotFittedError
from genm.export.equal import EqualFuser
from genm.fuse import fuse_runs
from genm.read import run_from_dict


def test_every_ranker_gets_the_same_weight() -> None:
    runs = {
        "a": run_from_dict({"q": {"x": 3.0, "y": 1.0}}, name="a"),
        "b": run_from_dict({"q": {"y": 9.0, "z": 4.0}}, name="b"),
        "c": run_from_dict({"q": {"z": 0.5}}, name="c"),
    }
    aligned = align_runs(runs, normalize="zscore", depth=7)
    fuser = EqualFuser(level=2).fit(aligned)
    assert fuser.weights_ == pytest.approx(np.full(3, 1 / 3))
    fused, rule = fuser.fuse(aligned), fuse_runs(aligned, np.ones(3), method="sum")
    assert [fused.docs[int(doc)] for doc in fused.doc] == [rule.docs[int(doc)] for doc in rule.doc]
    model = fuser.to_model()
    assert (model.method, model.relevance_level, model.depths) == ("equal", 2, (7, 7, 7))
    assert model.normalizers == aligned.normalizers


def test_it_is_not_ready_before_it_has_seen_rankers() -> None:
    with pytest.raises(NotFittedError, match="EqualFuser has no weights yet"):
        EqualFuser().to_model()
