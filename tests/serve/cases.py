"""Made-up queries for the tests of the service, and engines over throw-away stores."""

import random

from genm.model import Model
from genm.normalizers import Normalizer
from genm.serve.engine import Action, Engine, Feedback
from genm.serve.messages import (
    FeedbackEvent,
    Relearned,
    RelearnRequest,
    RollbackRequest,
    WeightsRequest,
    read_weights,
)
from genm.serve.store import SqliteStore

RANKERS = ("bm25", "dense", "sparse")
QUALITY = (1.2, 0.7, 0.2)


def model(**changes):
    settings = {
        "rankers": RANKERS,
        "weights": (0.2, 0.3, 0.5),
        "normalizers": (Normalizer(),) * 3,
        "depths": (None,) * 3,
        "method": "given",
        "measure": "AP",
    }
    return Model(**{**settings, **changes})


def lists(draw, relevant=(), n=8, pool=20):
    """Lists of three rankers; the first sees relevance best."""
    found = {}
    for name, quality in zip(RANKERS, QUALITY, strict=True):
        docs = draw.sample(range(pool), n)
        found[name] = [(f"d{doc:02}", round(quality * (doc in relevant) + draw.gauss(0, 0.5), 3)) for doc in docs]
    return found


def judged(number, *, seed=None, relevant_docs=None, **changes):
    """An event with judgments, the same for the same number."""
    draw = random.Random(number if seed is None else seed)
    relevant = set(draw.sample(range(20), 4)) if relevant_docs is None else relevant_docs
    settings = {
        "key": f"event-{number}",
        "query_id": f"q{number}",
        "runs": lists(draw, relevant),
        "judgments": {f"d{doc:02}": 1 for doc in sorted(relevant)} | {"d99": 0},
    }
    return FeedbackEvent(**{**settings, **changes})


def poisoned(number, **changes):
    """An event that praises what the worst ranker puts first."""
    runs = lists(random.Random(number))
    best = sorted(runs["sparse"], key=lambda pair: -pair[1])[:3]
    return judged(number, runs=runs, judgments={doc_id: 1 for doc_id, _ in best}, **changes)


class Driver:
    """An engine that is called and waited for."""

    def __init__(self, store, given=None, rules=None, clock=None):
        self.engine = Engine(store, **({} if clock is None else {"clock": clock}))
        self.engine.start(given, rules)

    def feedback(self, *events, client="test"):
        work = Feedback([self.lesson(event, number, client) for number, event in enumerate(events)])
        self.engine.submit(work)
        return work.done.result(30)

    def lesson(self, event, number=0, client="test"):
        clients = (client,) if event.client is None else (client, f"{client}/{event.client}")
        numbers = () if event.interleaved is None else map(int, event.interleaved.id.split("-")[:2])
        versions = {number: self.engine.weights_of(number) for number in numbers}
        return self.engine.lessons.prepare(event, clients, f"body.events[{number}]", versions)

    def roll_back(self, version, key):
        work = Action("admin", RollbackRequest(version, key))
        self.engine.submit(work)
        return work.done.result(30)

    def set_weights(self, weights, key):
        vector = tuple(read_weights("body.weights", weights, self.engine.model, distribution=True).values())
        work = Action("admin", WeightsRequest(weights, key), vector)
        self.engine.submit(work)
        return work.done.result(30)

    def take_over(self, vector, since, key, *, by_itself=True, upto=0, n_queries=1):
        """Hand over weights that were learned anew."""
        told = Relearned(key, 2000, upto, n_queries, vector, by_itself=by_itself, since=since)
        work = Action("genm", RelearnRequest(key, 2000), vector, told)
        self.engine.submit(work)
        return work.done.result(30)

    @property
    def status(self):
        return self.engine.status

    def stop(self):
        self.engine.stop()


def sqlite_driver(path, **options):
    return Driver(SqliteStore(path), options.pop("given", model()), **options)
