"""A session over four small lists, with texts that try to become markup."""

from genm.judge.session import Session, Standing
from genm.judge.store import JudgmentStore

HOSTILE = '<img src=x onerror="alert(1)"> wing flutter & <script>alert(2)</script>'
QUERIES = {"q1": "wing flutter at high speed", "q2": "boundary layers"}
DOCUMENTS = {"d1": HOSTILE, "d2": "Fluttering wings were tested.", "d3": "Heat", "d4": "A boundary layer."}
PAIRS = [("q1", "d1"), ("q2", "d4"), ("q1", "d2"), ("q2", "d3")]


def in_order(judgments):
    judged = {(one.query, one.document) for one in judgments}
    return [pair for pair in PAIRS if pair not in judged]


def standing(judgments):
    share = sum(one.grade > 0 for one in judgments) / max(1, len(judgments))
    return Standing({"bm25": share, "dense": 1 - share}, {"bm25": (0.0, 1.0)}, "Not decided yet.", "More helps.")


def session(folder, **options):
    options = {"order": in_order, "overlap": 0.0} | options
    store = JudgmentStore(folder / "judgments.sqlite")
    return Session(store, queries=QUERIES, documents=DOCUMENTS, **options)
