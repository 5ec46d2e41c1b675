"""How good and how dear every single ranker is on the collections: AP, P@1, P@5 and seconds.

`python -m benchmarks.rankers [--data DIR] [--collections med,cran] [--rankers lsa,bm25] [--stem english]`; the
folder of the SMART collections may also come from GENM_DATA, else only `pydocs` is measured. `--forms` measures the
single models, pLSI's other forms and, beside our sampler, the topic models of tomotopy and scikit-learn. Nothing
is read from or written to the cache.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from genm._math.parallel import n_threads
from genm.collections import load_collection
from genm.evaluate import evaluate_run
from genm.rankers import DEFAULT, Ranker, TextProfile, make_ranker, rank_collection, ranker_names
from genm.rankers.ldi import LdiRanker, topics_of_words
from genm.records import Collection

MEASURES = ("AP", "P@1", "P@5")
SMART = ("med", "cran", "cisi", "cacm", "merged")


class BorrowedLdi(LdiRanker):
    """LDI over the topics of another library."""

    def __init__(self, *, library: str, n_topics: tuple[int, ...], n_sweeps: int = 200) -> None:
        super().__init__(n_topics=n_topics, n_sweeps=n_sweeps)
        self.library = library

    def _learn(self, documents, progress):  # noqa: ARG002 (the libraries tell no progress)
        phi = {"tomotopy": tomotopy_phi, "sklearn": sklearn_phi}[self.library]
        return {f"words{k}": topics_of_words(phi(documents, k, self.n_sweeps)) for k in self.n_topics}

    def _models(self):
        return (self.learned_[f"words{k}"] for k in self.n_topics)


def tomotopy_phi(documents, n_topics: int, n_sweeps: int) -> np.ndarray:
    import tomotopy

    counts = documents.counts
    words = np.array(documents.vocabulary, object)[np.repeat(counts.indices, counts.data.astype(int))].tolist()
    ends = np.cumsum(np.asarray(counts.sum(axis=1))).astype(int).tolist()
    model = tomotopy.LDAModel(k=n_topics, alpha=0.1, eta=0.01, seed=1)
    model.optim_interval = 0
    for low, high in zip([0, *ends], ends, strict=False):
        if high > low:
            model.add_doc(words[low:high])
    model.train(n_sweeps, workers=1)
    at = {w: i for i, w in enumerate(model.used_vocabs)}
    phi = np.array([model.get_topic_word_dist(k) for k in range(n_topics)], np.float64)
    return phi[:, [at[w] for w in documents.vocabulary]]


def sklearn_phi(documents, n_topics: int, n_sweeps: int) -> np.ndarray:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        n_topics, doc_topic_prior=0.1, topic_word_prior=0.01, max_iter=min(n_sweeps, 20), random_state=0
    )
    weights = model.fit(documents.counts).components_
    return weights / weights.sum(axis=1, keepdims=True)


def forms() -> dict[str, Ranker]:
    found: dict[str, Ranker] = {
        "tfidf log": make_ranker("tfidf", tf="log"),
        "tfidf smooth": make_ranker("tfidf", idf="smooth"),
    }
    for weighting in ("log-entropy", "tf-idf"):
        found[f"lsa {weighting}"] = make_ranker("lsa", weighting=weighting)
    for k in (50, 100, 200, 400):
        found[f"lsa k={k}"] = make_ranker("lsa", n_factors=(k,))
    found["plsi topics"] = make_ranker("plsi", space="topics")
    found["plsi patience 3"] = make_ranker("plsi", patience=3)
    for exponent in (0.7, 0.8, 1.0):
        found[f"plsi b={exponent}"] = make_ranker("plsi", exponent=exponent)
    for share in (0.0, 0.1):
        found[f"plsi share={share}"] = make_ranker("plsi", share=share)
    found["plsi K=64"] = make_ranker("plsi", n_topics=(64,))
    for k in (50, 100, 150, 300):
        found[f"ldi K={k}"] = make_ranker("ldi", n_topics=(k,))
    found["ldi 50,100,150"] = make_ranker("ldi", n_topics=(50, 100, 150))
    for library in ("tomotopy", "sklearn"):
        if importlib.util.find_spec(library):
            found[f"ldi 50,100,150 {library}"] = BorrowedLdi(library=library, n_topics=(50, 100, 150))
    return found


def measure(collection: Collection, name: str, ranker: Ranker, profile: TextProfile) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    run = rank_collection(collection, {name: ranker}, profile=profile, cache=False)[name]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    found = evaluate_run(run, collection.qrels, MEASURES)
    line: dict[str, object] = {"collection": collection.name, "ranker": name}
    line |= {m: round(float(v), 4) for m, v in zip(MEASURES, found.means, strict=True)}
    line |= {"cpu_s": round(cpu, 1), "wall_s": round(wall, 1)}
    if "exponent" in getattr(ranker, "learned_", {}):
        line["exponent"] = float(ranker.learned_["exponent"])
    print(json.dumps(line), flush=True)


def versions(packages: Iterable[str]) -> dict[str, str]:
    return {p: importlib.metadata.version(p) for p in packages if importlib.util.find_spec(p)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GENM_DATA"))
    parser.add_argument("--collections")
    parser.add_argument("--rankers")
    parser.add_argument("--stem")
    parser.add_argument("--forms", action="store_true")
    given = parser.parse_args()
    names = given.collections.split(",") if given.collections else [*(SMART if given.data else ()), "pydocs"]
    known = [r for r in ranker_names() if r != "dense" or importlib.util.find_spec("wordllama")]
    rankers = given.rankers.split(",") if given.rankers else known
    profile = replace(DEFAULT, stem=given.stem)
    packages = ("numpy", "scipy", "numba", "bm25s", "tomotopy", "wordllama")
    about = {"machine": platform.processor() or platform.machine(), "threads": n_threads(), "seed": 0}
    print(json.dumps(about | {"stem": given.stem, "versions": versions(packages)}), flush=True)
    # compiled once, so that no ranker pays for it below
    toy = replace(load_collection("pydocs"), doc_texts=("a b", "b c"), doc_ids=("1", "2"), left_out={})
    rank_collection(toy, ("tfidf", "lsa", "plsi", "ldi"), profile=TextProfile("warm"), cache=False, top=1)
    for name in names:
        collection = load_collection(name, data=given.data)
        for label, ranker in forms().items() if given.forms else ((r, make_ranker(r)) for r in rankers):
            measure(collection, label, ranker, profile)


if __name__ == "__main__":
    main()
