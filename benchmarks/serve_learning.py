"""What the service's learner reaches beside `auto`, held out, after the same judgments.

    python -m benchmarks.serve_learning [--splits N] [--seed N] [--rankers LIST] [--stages LIST] [COLLECTION ...]

Two-fold cross-validation over the judged queries of each collection, over seeded splits. The service begins with
equal weights and gets the training queries as feedback, a few per request, each once; `auto` sees them all. Three
stages of the service are measured:

- the stream alone, one step per query, as with --relearn-every 0;
- busy: whenever a tenth is new, the service learns anew by itself, and then the stream goes on; the last queries
  have only been streamed;
- quiet: what is served once the feedback pauses and everything was learned from together. The bar is for this one:
  the mean difference to `auto` must not be below -.005 on any collection.
"""

import argparse
import json
from dataclasses import replace
from typing import Self

import numpy as np

from benchmarks._bars import hold
from genm.align import Aligned, align_runs
from genm.collections import load_collection
from genm.evaluate import parse_measure
from genm.evidence.crossval import cross_validate
from genm.learn import EqualFuser
from genm.learn.auto import AutoFuser
from genm.rankers import PAPER_RANKERS, rank_collection
from genm.serve.automatic_relearning import News
from genm.serve.learner import Learner, Lesson, Rules
from genm.serve.messages import FeedbackEvent
from genm.serve.relearning import MOST_QUERIES, learn_weights

AP = parse_measure("AP")
EVENT = FeedbackEvent("key", "q", {})
RULES = Rules(influence=None)
PER_REQUEST = 5
BAR = -0.005


class ServiceFuser(EqualFuser):
    """The weights of the champion after every training query came once."""

    method = "service"

    def __init__(self, *, stage: str, level: int = 1) -> None:
        super().__init__(level=level)
        self.stage = stage

    def fit(self, aligned: Aligned) -> Self:
        super().fit(aligned)
        model = replace(self.to_model(), beta=None, training={})
        learner = Learner(model, RULES)
        start, seen, n_before = learner.champion, list[Aligned](), 0
        queries = [aligned.select(np.array([i])) for i in np.flatnonzero(aligned.n_relevant(self.level) > 0)]
        for first in range(0, len(queries), PER_REQUEST):
            some = queries[first : first + PER_REQUEST]
            learner.learn([Lesson(EVENT, "judgments", ("x",), RULES, (one,), one) for one in some], 0)
            seen = [*seen, *some][-MOST_QUERIES:]
            is_last = first + PER_REQUEST >= len(queries)
            is_due = News(len(seen) - n_before, n_before).are_due(np.inf if is_last else 0.0)
            if is_due and ((self.stage == "busy" and not is_last) or (self.stage == "quiet" and is_last)):
                learned = learn_weights(model, RULES, seen, start)
                learner.relearn(tuple(learned.tolist()), 0, by_itself=True)
                n_before = len(seen)
        self.weights_ = np.array(learner.champion.vector)
        return self


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="*", default=["med", "cran", "cisi", "cacm", "merged"])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rankers", default=",".join(PAPER_RANKERS))
    parser.add_argument("--seed", type=int, default=200, help="of the first split")
    parser.add_argument("--stages", default="stream,busy,quiet", help="of the service; busy takes longest")
    options = parser.parse_args()
    for name in options.collections:
        collection = load_collection(name)
        aligned = align_runs(rank_collection(collection, options.rankers.split(",")), collection.qrels)
        makers = {"equal": EqualFuser, "auto": AutoFuser}
        for stage in options.stages.split(","):
            makers[stage] = lambda stage=stage: ServiceFuser(stage=stage)
        seeds = range(options.seed, options.seed + options.splits)
        reached = {
            label: np.array([cross_validate(aligned, make, AP, folds=2, seed=seed).mean for seed in seeds])
            for label, make in makers.items()
        }
        found: dict[str, object] = {"collection": name, "splits": options.splits}
        found["auto"] = round(float(reached["auto"].mean()), 4)
        for label, values in reached.items():
            if label != "auto":
                off = values - reached["auto"]
                error = off.std(ddof=1) / np.sqrt(len(off)) if len(off) > 1 else np.nan
                found[label] = [round(float(off.mean()), 4), round(float(error), 4)]
        print(json.dumps(found), flush=True)
        if "quiet" not in reached:
            continue
        off = float((reached["quiet"] - reached["auto"]).mean())
        hold(f"{name}: held-out AP less auto's, 1/1000", 1000 * off, 1000 * BAR, unit="", at_least=True)


if __name__ == "__main__":
    main()
