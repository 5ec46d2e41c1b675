"""Feedback, fusing, rollback, setting weights, restarts and a second replica, against a model in memory."""

import os
import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from serve.cases import RANKERS, Driver, judged, lists, model

from genm.align import align_runs
from genm.learn import OnlineFuser
from genm.read import qrels_from_dict, run_from_dict
from genm.serve.learner import Rules
from genm.serve.messages import RequestError
from genm.serve.replay import check_store
from genm.serve.store import SqliteStore, existing_store, open_store

RULES = Rules(influence=None, max_ap_loss=1.0)  # every update is promoted: the guard has tests of its own
MACHINES = int(os.environ.get("GENM_TESTS_MACHINES", "15"))
"""How many walks are taken; a quarter of them over two replicas."""
START = model(method="on", weights=(0.2, 0.3, 0.5))


def started():
    """A model with a stream, so that the oracle needs nothing but the online fuser."""
    aligned = align_of(judged(0))
    fuser = OnlineFuser(beta=40.0).partial_fit(aligned)
    return replace(fuser.to_model(), normalizers=START.normalizers)


def align_of(event):
    runs = {name: run_from_dict({"q": dict(event.runs[name])}, name=name) for name in RANKERS}
    return align_runs(runs, qrels_from_dict({"q": dict(event.judgments)}))


class ServiceMachine(RuleBasedStateMachine):
    """The service on one side; on the other lists, dictionaries and the library's own online fuser."""

    keys = Bundle("keys")

    @initialize()
    def start(self):
        self.begun = started()
        self.open()
        self.versions = {1: self.begun}
        self.champion = self.current = 1
        self.sequence = 2
        self.since = 1
        self.answers = {}

    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.place = str(Path(self.folder.name) / "store.sqlite")
        self.driver = Driver(SqliteStore(self.place), self.begun, RULES)

    def reopen(self):
        self.driver.stop()
        self.driver = Driver(SqliteStore(self.place))

    def close(self):
        self.driver.stop()
        self.folder.cleanup()

    def catch_up(self):
        """Nothing to wait for where there is one service."""

    def learn(self, event):
        """The oracle: a version from the library's fuser, and the answer that the service must give."""
        before = self.versions[self.current]
        fuser = OnlineFuser.from_model(before).partial_fit(align_of(event))
        now = fuser.to_model()
        number = len(self.versions) + 1
        self.versions[number] = replace(before, weights=now.weights, online=now.online)
        self.champion = self.current = number

    @rule(target=keys, number=st.integers(1, 40))
    def feedback(self, number):
        event = judged(number)
        if event.key in self.answers:
            assert self.driver.feedback(event).events == self.answers[event.key]
            return event.key
        self.sequence += 1
        self.learn(event)
        answer = self.driver.feedback(event)
        assert [(one.sequence, one.version, one.outcome) for one in answer.events] == [
            (self.sequence, self.current, "learned")
        ]
        assert answer.champion == self.champion
        self.answers[event.key] = answer.events
        return event.key

    @rule(key=keys)
    def send_again(self, key):
        number = int(key.removeprefix("event-"))
        assert self.driver.feedback(judged(number)).events == self.answers[key]

    @rule(key=keys)
    def send_another_body_with_the_same_key(self, key):
        with pytest.raises(RequestError, match="this key before"):
            self.driver.feedback(judged(99, key=key))

    @rule(data=st.data())
    def roll_back(self, data):
        wanted = data.draw(st.integers(1, len(self.versions)))
        self.sequence += 1
        answer = self.driver.roll_back(wanted, f"back-{self.sequence}")
        assert (answer.sequence, answer.version) == (self.sequence, wanted)
        self.champion = self.current = wanted
        self.since = self.sequence

    @rule()
    def roll_back_too_far(self):
        with pytest.raises(RequestError, match="expected one of 1 to"):
            self.driver.roll_back(len(self.versions) + 1, "too-far")

    @rule(weights=st.tuples(*[st.integers(1, 9)] * 3))
    def set_weights(self, weights):
        self.sequence += 1
        number = len(self.versions) + 1
        answer = self.driver.set_weights(
            dict(zip(RANKERS, map(float, weights), strict=True)), f"set-{self.sequence}"
        )
        assert (answer.sequence, answer.version) == (self.sequence, number)
        self.take_over(number, weights)
        self.since = self.sequence

    def take_over(self, number, weights):
        """The oracle: a version with these weights, from which the stream goes on."""
        total = float(sum(weights))
        vector = tuple(weight / total for weight in weights)
        before = self.versions[self.current]
        gradients, mass = before.online.memory[:2]
        memory = (gradients, mass, *(mass * weight for weight in vector))
        online = replace(before.online, raw_weights=vector, memory=memory)
        self.versions[number] = replace(before, weights=vector, online=online)
        self.champion = self.current = number

    @rule(weights=st.tuples(*[st.integers(1, 9)] * 3))
    def learn_anew_by_itself(self, weights):
        self.sequence += 1
        number = len(self.versions) + 1
        vector = tuple(weight / float(sum(weights)) for weight in weights)
        answer = self.driver.take_over(vector, self.since, f"anew-{self.sequence}")
        assert (answer.sequence, answer.version) == (self.sequence, number)
        self.take_over(number, weights)

    @rule()
    def learn_anew_from_before_a_person_set_the_weights(self):
        with pytest.raises(RequestError, match="nobody has set meanwhile"):
            self.driver.take_over((0.2, 0.3, 0.5), self.since - 1, "too-old")

    @rule(seed=st.integers(0, 20))
    def fuse(self, seed):
        runs = lists(random.Random(seed))
        query = self.driver.engine.lessons.fusion.join(runs)
        order, scores = query.fuse(np.array(self.driver.status.champion.vector))
        expected = self.versions[self.champion].fuse(
            {name: run_from_dict({"q": dict(rows)}, name=name) for name, rows in runs.items()}
        )
        docs = list(expected.docs)
        assert query.doc_ids_of(order) == [docs[code] for code in expected.doc]
        assert scores[order].tolist() == expected.score.tolist()

    @rule()
    def restart(self):
        self.reopen()

    @precondition(lambda self: self.sequence > 4)
    @rule()
    def check(self):
        with existing_store(self.place) as store:
            assert check_store(store).faults == ()

    @invariant()
    def same_state(self):
        self.catch_up()
        status = self.driver.status
        assert (status.sequence, status.n_versions) == (self.sequence, len(self.versions))
        assert (status.champion.version, status.current.version) == (self.champion, self.current)
        expected = self.versions[self.champion]
        assert status.champion.vector == expected.weights
        assert status.champion.state == expected.online

    def teardown(self):
        if hasattr(self, "begun"):
            self.close()


TestServiceMachine = ServiceMachine.TestCase
TestServiceMachine.settings = settings(max_examples=MACHINES, stateful_step_count=20, deadline=None)


def test_replicas_on_postgresql_are_one_service(postgresql):
    """The same machine over two replicas that take turns."""

    class ReplicaMachine(ServiceMachine):
        def open(self):
            self.place, self.turn = postgresql(), 0
            self.replicas = [Driver(open_store(self.place), self.begun, RULES), Driver(open_store(self.place))]

        @property
        def driver(self):
            self.turn += 1
            return self.replicas[self.turn % 2]

        def reopen(self):
            self.replicas[0].stop()
            self.replicas[0] = Driver(open_store(self.place))

        def close(self):
            for one in self.replicas:
                one.stop()

        def catch_up(self):
            stop_at = time.monotonic() + 60.0
            for one in self.replicas:
                while one.status.sequence != self.sequence:
                    assert time.monotonic() < stop_at, "a replica does not follow"
                    time.sleep(0.01)

    run_state_machine_as_test(
        ReplicaMachine, settings=settings(max_examples=(MACHINES + 3) // 4, stateful_step_count=12, deadline=None)
    )
