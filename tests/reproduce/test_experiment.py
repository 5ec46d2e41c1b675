"""The whole experiment, on a small collection, and on MED against figures that were kept.

Kept figures are written anew by `python tests/reproduce/test_experiment.py`, with GENM_DATA set.
"""

import json
import os
from pathlib import Path

import pytest

from genm.collections import load_collection
from genm.errors import InputError
from genm.rankers import make_ranker
from genm.reproduce import rankings, reproduce, study
from genm.reproduce.methods import AUTO, BAT, ENM, ON, UNS
from genm.reproduce.writing import results_json

KEPT = Path(__file__).with_name("med_2_splits.json")
WITHIN = 2e-8
"""Figures have eight decimals. Only LSA's decomposition goes through LAPACK, whose last digits depend on the
processor. Under the kernels that OpenBLAS has for Prescott, Haswell and SkylakeX no figure moved; a swap of two
documents would move one by 1e-5."""


def test_everything_is_there(found):
    (one,) = found.collections
    assert one.aligned.rankers == ("TFIDF", "LSA", "pLSI", "LDI")
    assert {n.kind for n in one.aligned.normalizers} == {"none"}
    assert {AUTO, BAT, ENM, ON, UNS} < set(one.methods)
    assert "BM25" in one.more_rankers
    assert one.facts.terms_as_printed is None
    assert (one.facts.documents, one.facts.queries, one.facts.judged) == (24, 6, 6)
    assert one.fold.shape == (2, 6)
    assert [table.key for table in found.tables] == [
        "table-3", "rivals", "unsupervised", "repairs", "table-3-map", "table-3-pr-at-1", "table-3-pr-at-5",
        "more-rankers", "weights", "table-1", "table-2", "table-4",
    ]  # fmt: skip


def test_a_second_run_gives_the_same_to_the_last_digit(found, tiny, monkeypatch):
    monkeypatch.delenv("GENM_DATA", raising=False)  # Table 2 counts the paper's terms where its stop list is
    again = reproduce([str(tiny)], splits=2, seed=3)
    for one, other in zip(found.collections, again.collections, strict=True):
        assert one.facts.sha256 == other.facts.sha256
        for name, method in one.methods.items():
            assert method.values.tolist() == other.methods[name].values.tolist(), name
            assert method.weights.tolist() == other.methods[name].weights.tolist(), name
    assert [table.to_csv() for table in found.tables] == [table.to_csv() for table in again.tables]


def test_the_seed_draws_the_splits(found, tiny):
    other = reproduce([str(tiny)], splits=2, seed=4, further=False)
    assert found.collections[0].fold[1].tolist() == other.collections[0].fold[0].tolist()
    assert found.collections[0].fold[0].tolist() != other.collections[0].fold[0].tolist()
    assert other.collections[0].more == {}
    assert "more-rankers" not in [table.key for table in other.tables]


@pytest.mark.needs("Stemmer")
def test_refusals(monkeypatch):
    monkeypatch.delenv("GENM_DATA", raising=False)
    with pytest.raises(InputError, match="GENM_DATA"):
        reproduce(["med"], splits=1)
    ranked = []
    monkeypatch.setattr("genm.reproduce.experiment.paper_rankings", lambda *_: ranked.append(1))
    with pytest.raises(InputError, match="expected one of med"):
        reproduce(["pydocs", "nowhere"], splits=1)
    assert ranked == []  # names are looked up before the long work
    with pytest.raises(InputError, match="different names"):
        reproduce(["med", "med"], splits=1)
    with pytest.raises(InputError, match="at least 1"):
        reproduce(["pydocs"], splits=0)


def test_the_papers_collections_are_known_however_they_are_spelt(tiny):
    for spelt, name, title in (("merged", "mc", "MC"), ("MED", "med", "MED"), ("Other", "Other", "Other")):
        one, _ = study(spelt, load_collection(str(tiny)), splits=1, seed=0, further=False)
        assert (one.name, one.title) == (name, title)


def quick_med(data):
    """MED with two splits; LDI with 40 samples instead of 480, which take a minute."""
    sampled = rankings._paper_rankers() | {"LDI": make_ranker("ldi", n_chains=8, n_sweeps=20, n_samples=1)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rankings, "_paper_rankers", lambda: sampled)
        return reproduce(["med"], splits=2, seed=0, data=data, further=False)


def kept_figures(results):
    methods = results_json(results)["collections"]["med"]["methods"]
    return {name: method["mean"] for name, method in methods.items() if method["kind"] != "printed"}


@pytest.mark.needs("Stemmer")
def test_med_comes_out_as_it_is_kept(smart_data):
    results = quick_med(smart_data)
    ours, kept = kept_figures(results), json.loads(KEPT.read_text(encoding="utf-8"))
    assert set(ours) == set(kept)
    far = {name: (ours[name], kept[name]) for name in kept if ours[name] != pytest.approx(kept[name], abs=WITHIN)}
    assert far == {}
    assert results.collections[0].facts.terms_as_printed == 5775


if __name__ == "__main__":
    KEPT.write_text(json.dumps(kept_figures(quick_med(os.environ["GENM_DATA"])), indent=1) + "\n", encoding="utf-8")
