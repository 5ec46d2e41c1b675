"""How much the AP of LDI depends on its seed: mean and standard deviation over seeds, for several settings.

`python -m benchmarks.ldi_seeds [--collections med,cacm] [--seeds 10] [--stem english]`. A seed's chains run once,
for 60 sweeps; every setting averages the cosines of its own part of their samples. Groups of eight chains run in
processes of their own: ten seeds of the four collections take about 5,000 s of processor time, those of the merged
one 6,000 s.
"""

import argparse
import json
import os
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np

from genm._math.topic_models import N_CHAINS
from genm.collections import load_collection
from genm.evaluate import evaluate_run
from genm.rankers import DEFAULT, make_ranker
from genm.rankers.base import cosines
from genm.rankers.ldi import sample_topics, tokens_of, topics_of_words, word_distributions
from genm.rankers.text import read_documents, read_queries
from genm.read import read_run

N_GROUPS = 4
SWEEPS = (20, 30, 40, 50, 60)
SETTINGS = {"20-40": (20, 30, 40), "40-60": (40, 50, 60), "20-60": SWEEPS}


def sum_cosines(name: str, stem: str | None, seed: int, group: int) -> dict[int, np.ndarray]:
    """Return the cosines of a group of eight chains, summed over chains and numbers of topics, by sweep."""
    collection = load_collection(name)
    documents = read_documents(collection.doc_texts, replace(DEFAULT, stem=stem))
    queries = read_queries(collection.query_texts, documents)
    _, words = tokens_of(documents.counts)
    ldi = make_ranker("ldi")
    sums = {sweep: np.zeros((len(queries.raw), len(documents.raw))) for sweep in SWEEPS}
    for k in ldi.n_topics:
        samples = sample_topics(
            documents.counts,
            k,
            n_sweeps=SWEEPS[-1],
            n_samples=len(SWEEPS),
            alpha=ldi.alpha,
            eta=ldi.eta,
            seed=(seed, k, group),
        )
        for topic, (_, sweep) in zip(samples, product(range(N_CHAINS), SWEEPS), strict=True):
            by_topic = topics_of_words(word_distributions(words, topic, documents.counts.shape[1], k, ldi.eta))
            sums[sweep] += cosines(queries.counts @ by_topic, documents.counts @ by_topic)
    return sums


def average_precision(collection, scores: np.ndarray) -> float:
    """Return the mean AP of a table of scores."""
    rows = zip(collection.query_ids, scores.tolist(), strict=True)
    run = {query: dict(zip(collection.doc_ids, row, strict=True)) for query, row in rows}
    return float(evaluate_run(read_run(run, name="ldi"), collection.qrels, ("AP",)).means[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", default="med,cran,cisi,cacm,merged")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--stem", default="english")
    given = parser.parse_args()
    os.environ["GENM_THREADS"] = "1"
    found: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    with ProcessPoolExecutor() as pool:
        for name in given.collections.split(","):
            collection = load_collection(name)
            started = time.perf_counter()
            tasks = list(product([name], [given.stem], range(given.seeds), range(N_GROUPS)))
            for (*_, group), sums in zip(tasks, pool.map(sum_cosines, *zip(*tasks, strict=True)), strict=True):
                if group == 0:
                    total = sums
                else:
                    for sweep in SWEEPS:
                        total[sweep] += sums[sweep]
                for setting, sweeps in SETTINGS.items():
                    scores = np.sum([total[sweep] for sweep in sweeps], axis=0)
                    found[name, N_CHAINS * (group + 1), setting].append(average_precision(collection, scores))
            for (where, chains, setting), values in found.items():
                if where == name:
                    line = {"collection": name, "chains": chains, "samples": setting, "seeds": len(values)}
                    line |= {"mean": round(float(np.mean(values)), 4)}
                    line |= {"sd": round(float(np.std(values, ddof=1)), 4)}
                    line |= {"low": round(min(values), 4), "high": round(max(values), 4)}
                    print(json.dumps(line | {"wall_s": round(time.perf_counter() - started)}), flush=True)


if __name__ == "__main__":
    main()
