"""What the service's learner reaches beside `auto`, held out, after the same judgments.

    python -m benchmarks.serve_learning [--splits N] [--seed N] [--rankers LIST] [--prior N ...] [COLLECTION ...]

Two-fold cross-validation over the judged queries of each collection, averaged over seeded splits. The service
begins with equal weights and gets the training queries as feedback, a few per request, each once; `auto` sees them
all. "relearned" is what the service serves after one POST /v1/relearn at the end, if its guard rail promotes it.
"""

import argparse
import json
from dataclasses import replace
from typing import Self

import numpy as np

from genm.align import Aligned, align_runs
from genm.collections import load_collection
from genm.evaluate import parse_measure
from genm.evidence.crossval import cross_validate
from genm.learn import EqualFuser
from genm.learn.auto import AutoFuser
from genm.rankers import PAPER_RANKERS, rank_collection
from genm.serve.learner import Learner, Lesson, Rules
from genm.serve.messages import FeedbackEvent

AP = parse_measure("AP")
EVENT = FeedbackEvent("key", "q", {})


class ServiceFuser(EqualFuser):
    """The weights of the champion after every training query came once."""

    method = "service"

    def __init__(
        self, *, per_request: int = 5, prior_queries: int | None = None, level: int = 1, relearn: bool = False
    ) -> None:
        super().__init__(level=level)
        self.per_request, self.prior_queries, self.relearn = per_request, prior_queries, relearn

    def fit(self, aligned: Aligned) -> Self:
        super().fit(aligned)
        rules = Rules(influence=None, prior_queries=self.prior_queries)
        learner = Learner(replace(self.to_model(), beta=None), rules)
        for start in range(0, len(aligned.queries), self.per_request):
            queries = [
                aligned.select(np.array([i]))
                for i in range(start, min(start + self.per_request, len(aligned.queries)))
            ]
            queries = [one for one in queries if one.n_relevant()[0] > 0]
            lessons = [Lesson(EVENT, "judgments", ("x",), rules, (one,), one) for one in queries]
            if lessons:
                learner.learn(lessons, 0)
        if self.relearn:
            learner.relearn(tuple(AutoFuser(level=self.level).fit(aligned).weights_.tolist()))
        self.weights_ = np.array(learner.champion.vector)
        return self


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="*", default=["med", "cran", "cisi", "cacm"])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rankers", default=",".join(PAPER_RANKERS))
    parser.add_argument("--seed", type=int, default=100, help="of the first split")
    parser.add_argument("--prior", type=int, nargs="*", default=[1])
    options = parser.parse_args()
    for name in options.collections:
        collection = load_collection(name)
        aligned = align_runs(rank_collection(collection, options.rankers.split(",")), collection.qrels)
        makers = {"equal": EqualFuser, "auto": AutoFuser}
        for prior in options.prior:
            makers[f"service, prior {prior}"] = lambda prior=prior: ServiceFuser(prior_queries=prior)
        makers["service, relearned"] = lambda: ServiceFuser(prior_queries=1, relearn=True)
        seeds = range(options.seed, options.seed + options.splits)
        means = {
            label: float(np.mean([cross_validate(aligned, make, AP, folds=2, seed=seed).mean for seed in seeds]))
            for label, make in makers.items()
        }
        print(
            json.dumps({"collection": name, **{label: round(mean, 4) for label, mean in means.items()}}), flush=True
        )


if __name__ == "__main__":
    main()
