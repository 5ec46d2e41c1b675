"""Learning from the stored feedback: from what, how far it may go, when it happens, and that a replay agrees."""

import random
import threading

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import numpy as np
from serve.cases import Driver, judged, lists, model, poisoned, sqlite_driver

from genm.align import align_runs
from genm.errors import StoreError
from genm.learn.auto import AutoFuser
from genm.read import qrels_from_dict, run_from_dict
from genm.serve import relearning
from genm.serve.automatic_relearning import AutomaticRelearning, News, find_news
from genm.serve.guards import NANO
from genm.serve.learner import RELEARNING, Rules
from genm.serve.messages import FeedbackEvent, Impression, RequestError
from genm.serve.relearning import LearningProcess, Order, learn_anew
from genm.serve.replay import check_store
from genm.serve.store import now_ms, open_store

FREE = Rules(influence=None)


@pytest.fixture
def driver(tmp_path):
    made = []

    def start(**options):
        made.append(sqlite_driver(tmp_path / "store.sqlite", **{"rules": FREE, **options}))
        return made[-1]

    yield start
    for one in made:
        one.stop()


def order_of(driver, *, by_itself=True, last=2000):
    return Order(driver.engine.store.address, last, by_itself)


def learn(driver, **options):
    return learn_anew(driver.engine.store, order_of(driver, **options))


def weights_of_auto(events):
    names = list(events[0].runs)
    runs = {name: run_from_dict({e.query_id: dict(e.runs[name]) for e in events}, name=name) for name in names}
    return AutoFuser().fit(align_runs(runs, qrels_from_dict({e.query_id: e.judgments for e in events}))).weights_


def take_over(driver, found, *, by_itself=True, key="by itself"):
    return driver.take_over(
        found.weights, found.since, key, by_itself=by_itself, upto=found.upto, n_queries=found.n_queries
    )


def assert_sound(driver):
    assert check_store(driver.engine.store).faults == ()


def test_the_first_weights_count_as_much_as_the_queries_behind_them(driver):
    one = driver(given=model(training={"queries": 5}))
    events = [judged(number) for number in range(15)]
    one.feedback(*events)
    found = learn(one)
    expected = (5 * np.array(model().weights) + 15 * weights_of_auto(events)) / 20
    assert (found.since, found.upto, found.n_queries) == (1, 17, 15)
    assert found.weights == pytest.approx(expected, abs=1e-12)


def test_nothing_stored_is_nothing_learned(driver):
    assert learn(driver()) is None


def test_a_rollback_takes_back_what_came_before_it(driver):
    one = driver()
    one.feedback(*(judged(number) for number in range(6)))
    one.feedback(*(poisoned(number) for number in range(100, 130)))
    one.roll_back(2, "back")
    assert learn(one) is None, "the events before the rollback count by the weights of version 2 alone"
    later = [judged(number) for number in range(200, 204)]
    one.feedback(*later)
    found = learn(one)
    version = one.engine.weights_of(2)
    behind = version.state.n_seen
    expected = (behind * np.array(version.vector) + 4 * weights_of_auto(later)) / (behind + 4)
    assert (found.n_queries, behind) == (4, 7)
    assert found.weights == pytest.approx(expected, abs=1e-12)
    assert learn(one, by_itself=False).n_queries == 40, "an administrator learns from all judgments"


def test_clicks_are_learned_from_and_limited_events_are_not(driver):
    one = driver(rules=Rules(influence=0.05, prior_queries=50))
    one.feedback(judged(1))
    runs = lists(random.Random(5))
    shown = [doc for doc, _ in sorted(runs["bm25"], key=lambda pair: -pair[1])]
    clicked = FeedbackEvent("clicks", "q", runs, impression=Impression(shown, shown[:2]))
    one.feedback(clicked, client="another")
    outcomes = {one.feedback(poisoned(number)).events[0].outcome for number in range(100, 140)}
    assert "limited" in outcomes
    with one.engine.store.snapshot() as session:
        learned = [row for row in session.events(0, 100) if row.outcome == "learned"]
    found = learn(one)
    assert found.n_queries == len(learned) + 1, "two clicks are two queries"
    assert learn(one, by_itself=False).n_queries == 41


def test_only_the_newest_queries_count_and_only_as_many_as_memory_holds(driver, monkeypatch):
    one = driver()
    one.feedback(*(judged(number) for number in range(12)))
    assert learn(one, last=7).n_queries == 7
    size = 3 * len(one.engine.store.address) + 2000
    monkeypatch.setattr(relearning, "MOST_BYTES", size)
    n = learn(one).n_queries
    assert 1 <= n < 12
    monkeypatch.setattr(relearning, "MOST_BYTES", 1)
    assert learn(one).n_queries == 1, "the newest one always counts"


def test_a_process_of_its_own_learns_the_same(driver):
    one = driver()
    one.feedback(*(judged(number) for number in range(12)))
    process = LearningProcess()
    assert process(order_of(one)) == learn(one)
    process.stop()
    with pytest.raises(StoreError, match="stopping"):
        process(order_of(one))


def test_a_process_that_fails_says_why(tmp_path):
    with pytest.raises(StoreError, match="there is no such file"):
        LearningProcess()(Order(str(tmp_path / "none.sqlite"), 10, by_itself=True))


def test_a_process_that_cannot_start_or_ends_badly_is_an_error(driver, monkeypatch):
    one = driver()
    monkeypatch.setattr(relearning.sys, "executable", "/nowhere/python")
    with pytest.raises(StoreError, match="expected to start a process"):
        LearningProcess()(order_of(one))
    monkeypatch.setattr(relearning.sys, "executable", "/bin/false")
    with pytest.raises(StoreError, match="ended with status 1: no message"):
        LearningProcess()(order_of(one))
    monkeypatch.setattr(relearning.sys, "executable", "/bin/echo")
    with pytest.raises(StoreError, match="expected an answer in JSON"):
        LearningProcess()(order_of(one))


def test_what_it_learned_by_itself_is_served_and_replayed(driver, tmp_path):
    one = driver()
    one.feedback(*(judged(number) for number in range(12)))
    found = learn(one)
    answer = take_over(one, found)
    assert (answer.version, one.status.champion.version) == (3, 3)
    assert one.status.champion.vector == found.weights
    with one.engine.store.snapshot() as session:
        assert session.audit(10) == [], "that is no action of an administrator"
        assert session.version(3).reason == "relearn"
    one.feedback(judged(50))
    assert one.status.champion.version == 4, "the stream goes on from it"
    before = one.status
    assert_sound(one)
    one.stop()
    again = Driver(open_store(str(tmp_path / "store.sqlite")))
    assert again.status == before
    assert again.engine._learner.influence.used(RELEARNING, now_ms()) > 0
    again.stop()


def test_it_moves_the_weights_no_further_than_the_limit(driver):
    one = driver(rules=Rules(influence=0.1, max_ap_loss=1.0, prior_queries=50))
    one.feedback(judged(1))
    start = np.array(one.status.champion.vector)
    found = learn(one)
    wanted = relearning.Learned(found.since, found.upto, found.n_queries, (1.0, 0.0, 0.0))
    take_over(one, wanted, key="first")
    moved = np.array(one.status.champion.vector) - start
    assert 0.5 * np.abs(moved).sum() == pytest.approx(0.1, abs=2e-9)
    assert moved[0] > 0.0
    with pytest.raises(RequestError, match=r"at most 0\.1 in an hour"):
        take_over(one, wanted, key="second")
    with one.engine.store.snapshot() as session:
        assert session.last_event("relearn").moved <= 0.1 * NANO
    take_over(one, wanted, by_itself=False, key="an administrator may")
    assert one.status.champion.vector == (1.0, 0.0, 0.0)
    assert_sound(one)


def test_what_was_learned_before_a_person_set_the_weights_is_not_taken_over(driver):
    one = driver()
    one.feedback(*(judged(number) for number in range(5)))
    found = learn(one)
    one.set_weights({"bm25": 1.0, "dense": 1.0, "sparse": 1.0}, "set")
    with pytest.raises(RequestError, match="nobody has set meanwhile"):
        take_over(one, found)
    one.feedback(judged(9))
    take_over(one, learn(one))
    assert_sound(one)


@pytest.mark.parametrize(
    ("news", "quiet", "expected"),
    [
        (News(0, 0), 100.0, False),
        (News(1, 0), 0.0, True),
        (News(1, 100), 0.0, False),
        (News(1, 100), 5.0, True),
        (News(10, 100), 0.0, True),
        (News(9, 100), 4.9, False),
    ],
)
def test_it_is_due_when_feedback_is_quiet_or_a_tenth_is_new(news, quiet, expected):
    assert news.are_due(quiet) is expected


def test_news_are_what_came_since_the_last_time_or_since_a_person_set_the_weights(driver):
    one = driver()

    def news():
        with one.engine.store.snapshot() as session:
            return find_news(session)

    assert news() == News(0, 0)
    one.feedback(*(judged(number) for number in range(5)))
    assert news() == News(5, 0)
    take_over(one, learn(one), key="first")
    assert news() == News(0, 5)
    one.feedback(judged(10))
    take_over(one, learn(one, by_itself=False), by_itself=False, key="an administrator's")
    assert news() == News(6, 0), "that one is no start of the service's own"
    take_over(one, learn(one), key="second")
    one.set_weights({"bm25": 1.0, "dense": 1.0, "sparse": 1.0}, "set")
    assert news() == News(0, 0)
    one.feedback(judged(11))
    assert news() == News(1, 0)


def test_nothing_is_looked_up_by_reading_the_whole_log(driver):
    one = driver()
    one.feedback(*(judged(number) for number in range(5)))
    plans = []
    with one.engine.store.snapshot() as session:
        rows = session.rows

        def explained(sql, *values):
            plans.extend((sql, step[3]) for step in rows(f"EXPLAIN QUERY PLAN {sql}", *values))
            return rows(sql, *values)

        session.rows = explained
        for kind in ("model", "rules", "relearn"):
            session.first_event(kind)
            session.last_event(kind)
        session.last_setting()
        session.n_learned(3, 100)
        for only_learned in (False, True):
            assert session.newest_feedback(3, 3, only_learned=only_learned, most_bytes=10**6) == [5, 6, 7]
        session.judged_events(3)
        session.ap_values(3)
    read = [(sql, step) for sql, step in plans if "events" in step]
    assert len(read) == 12
    assert [sql for sql, step in read if "INDEX lessons" not in step and "INDEX changes" not in step] == []


class Clock:
    """A clock that tests set."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def watched(driver, learn_by=None, rest=30.0):
    clock = Clock()
    learn_by = learn_by or (lambda order: learn_anew(driver.engine.store, order))
    return AutomaticRelearning(driver.engine, learn_by, rest=rest, clock=clock), clock


def test_it_learns_by_itself_until_nothing_is_new(driver):
    one = driver()
    automatic, clock = watched(one)
    automatic.look()
    assert automatic.n_done == 0
    one.feedback(*(judged(number) for number in range(20)))
    automatic.look()
    assert (automatic.n_done, one.status.champion.version) == (1, 3)
    automatic.look()
    assert automatic.n_done == 1, "nothing is new"
    one.feedback(judged(30))
    automatic._last_feedback = clock.now
    automatic.look()
    assert automatic.n_done == 1, "one of 20 is less than a tenth, and more may come"
    clock.now += 5.0
    automatic.look()
    assert automatic.n_done == 2
    assert_sound(one)


def test_it_rests_longer_after_long_learning(driver):
    one = driver()

    def slowly(order):
        clock.now += 10.0
        return learn_anew(one.engine.store, order)

    automatic, clock = watched(one, slowly)
    one.feedback(judged(1))
    automatic.look()
    assert automatic._next == pytest.approx(clock.now + 200.0)


@pytest.mark.parametrize("failure", [StoreError("no memory"), RuntimeError("no memory")])
def test_a_failure_is_counted_and_tried_again_later(driver, caplog, failure):
    one = driver()

    def fail(_):
        raise failure

    automatic, clock = watched(one, fail)
    one.feedback(judged(1))
    automatic.look()
    assert (automatic.n_failed, automatic._next) == (1, clock.now + 600.0)
    assert "no memory" in caplog.text
    assert automatic._changed.is_set()


def test_the_thread_starts_by_itself_and_ends_with_the_service(driver):
    one = driver()
    done = threading.Event()

    def learn_and_tell(order):
        found = learn_anew(one.engine.store, order)
        done.set()
        return found

    automatic = AutomaticRelearning(one.engine, learn_and_tell, rest=0.01)
    automatic.start()
    one.feedback(*(judged(number) for number in range(8)))
    assert done.wait(60)
    automatic.stop(lambda: None)
    assert automatic.n_done >= 1
    assert_sound(one)


def test_one_replica_at_a_time_learns_by_itself(postgresql):
    address = postgresql()
    first, second = Driver(open_store(address), model(), FREE), Driver(open_store(address))
    first.feedback(*(judged(number) for number in range(8)))
    others = []

    def learn_while_the_other_tries(order):
        automatic, _ = watched(second, others.append)
        automatic.look()
        assert automatic._changed.is_set(), "it looks again, should the first one fail"
        return learn_anew(first.engine.store, order)

    automatic, _ = watched(first, learn_while_the_other_tries)
    automatic.look()
    assert (automatic.n_done, others) == (1, [])
    process = LearningProcess()
    assert process(Order(address, 2000, by_itself=True)).n_queries == 8
    for one in (first, second):
        one.stop()
