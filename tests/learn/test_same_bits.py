"""Every fuser learns the same weights, to the last bit, on every processor.

The weights in `same_bits.json` were written once. Whatever the processor, its vector width, the BLAS library or the
number of threads, they come out again; `make disguises` tries some of these on one machine. A change of a learner
changes them: write them anew with `python tests/learn/test_same_bits.py`, and say in the commit why they moved.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import genm
from genm.learn import METHODS, find_method
from genm.normalizers import Normalizer

KEPT = Path(__file__).with_name("same_bits.json")
CODES = tuple(sorted(find_method(name).code for name in METHODS))
CASES = [(normalizer, code) for normalizer in ("minmax", "zscore", "sigmoid") for code in CODES]


@cache
def lists():
    """Four rankers of rising quality, 25 queries, scores with two decimals, so that there are ties."""
    rng = np.random.default_rng(7)
    runs: dict[str, dict[str, dict[str, float]]] = {f"r{k}": {} for k in range(4)}
    qrels = {}
    for q in range(25):
        relevant = np.zeros(80)
        relevant[rng.permutation(80)[:6]] = 1.0
        qrels[f"q{q}"] = {f"d{d}": int(relevant[d]) for d in range(80)}
        for k, run in enumerate(runs.values()):
            score = np.round(rng.random(80) + 0.125 * (k + 1) * relevant * rng.random(80), 2)
            top = np.argsort(-score, kind="stable")[:60]
            run[f"q{q}"] = {f"d{d}": float(score[d]) for d in top}
    return {name: genm.read_run(run) for name, run in runs.items()}, genm.read_qrels(qrels)


def learned(normalizer, method, measure="AP"):
    runs, qrels = lists()
    rule = Normalizer(normalizer)  # gaps are 0, as in models of earlier releases
    fuser = genm.fit(genm.align_runs(runs, qrels, normalize=rule), method=method, measure=measure)
    return [weight.hex() for weight in fuser.weights_.tolist()]


def all_of_them():
    found = {f"{method} {normalizer}": learned(normalizer, method) for normalizer, method in CASES}
    return found | {"auto minmax nDCG@10": learned("minmax", "auto", "nDCG@10")}


@pytest.mark.filterwarnings("ignore::genm.errors.ConvergenceWarning")
@pytest.mark.parametrize(("normalizer", "method"), CASES)
def test_weights(normalizer, method):
    assert learned(normalizer, method) == json.loads(KEPT.read_text())[f"{method} {normalizer}"]


def test_weights_of_another_measure():
    assert learned("minmax", "auto", "nDCG@10") == json.loads(KEPT.read_text())["auto minmax nDCG@10"]


if __name__ == "__main__":
    KEPT.write_text(json.dumps(all_of_them(), indent=1) + "\n")
