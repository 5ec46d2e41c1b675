"""What the engine acknowledges is stored, learned once, and comes out the same after a restart and in a replay."""

import sqlite3
import threading

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")


from serve.cases import Driver, judged, model, poisoned, sqlite_driver

from genm.errors import StoreError
from genm.serve.learner import Rules
from genm.serve.messages import RequestError
from genm.serve.replay import check_store
from genm.serve.store import SqliteStore, copy_store

FREE = Rules(influence=None, prior_queries=50)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


def checked(path):
    store = SqliteStore(path, alone=False)
    store.open()
    found = check_store(store)
    store.close()
    return found


def test_feedback_moves_the_weights_to_the_better_ranker(path):
    driver = sqlite_driver(path, rules=Rules(influence=None, prior_queries=5))
    before = driver.status.champion.vector
    for number in range(40):
        driver.feedback(judged(number))
    after = driver.status.champion.vector
    driver.stop()
    assert after[0] > before[0] + 0.1
    assert after[2] < before[2]


def test_a_retry_changes_nothing_and_gets_the_same_answer(path):
    driver = sqlite_driver(path, rules=FREE)
    first = driver.feedback(judged(1), judged(2))
    driver.feedback(judged(3))
    status = driver.status
    again = driver.feedback(judged(1), judged(2))
    assert again.events == first.events
    assert driver.status.current == status.current
    assert driver.status.sequence == status.sequence
    mixed = driver.feedback(judged(2), judged(4))
    driver.stop()
    assert mixed.events[0] == first.events[1]
    assert mixed.events[1].sequence == status.sequence + 1


def test_a_key_with_another_body_is_a_conflict(path):
    driver = sqlite_driver(path)
    driver.feedback(judged(1))
    with pytest.raises(RequestError, match="the body that came with this key before") as caught:
        driver.feedback(judged(2, key="event-1"))
    driver.stop()
    assert caught.value.status == 409


def test_going_on_after_a_restart_equals_never_having_stopped(path, tmp_path):
    whole = sqlite_driver(tmp_path / "whole.sqlite", rules=FREE, clock=lambda: 5_000_000)
    parts = sqlite_driver(path, rules=FREE, clock=lambda: 5_000_000)
    for number in range(12):
        assert whole.feedback(judged(number)) == parts.feedback(judged(number))
        if number % 3 == 2:
            parts.stop()
            parts = Driver(SqliteStore(path), model(), FREE, clock=lambda: 5_000_000)
    assert parts.status == whole.status
    whole.stop()
    parts.stop()


def test_a_replay_comes_to_the_same_bits(path):
    driver = sqlite_driver(path)
    for number in range(0, 12, 3):
        driver.feedback(judged(number), judged(number + 1), poisoned(number + 2))
    driver.roll_back(2, "back")
    driver.feedback(judged(20))
    driver.set_weights({"bm25": 2.0, "dense": 1.0, "sparse": 0.0}, "set")
    driver.feedback(judged(21), judged(22, client="user"))
    status = driver.status
    driver.stop()
    found = checked(path)
    assert found.faults == ()
    assert (found.n_events, found.n_versions) == (status.sequence, status.n_versions)


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ("UPDATE versions SET weights = '[0.2,0.3,0.5]' WHERE version = 3", "version 3: expected"),
        ("UPDATE aliases SET version = 1 WHERE name = 'champion'", "aliases: expected champion"),
        ("DELETE FROM events WHERE sequence = 4", "the log has a gap"),
        ("UPDATE events SET ap = 0.5 WHERE sequence = 4", "event 4: expected"),
        ("DELETE FROM versions WHERE version = 2", "version 2: expected it in the store"),
        ("INSERT INTO versions SELECT 99, parent, sequence, created, reason, weights, state, promoted, recent_ap, "
         "champion_recent_ap FROM versions WHERE version = 1", "versions: expected 4; found 5"),
    ],
)  # fmt: skip
def test_the_check_finds_what_was_changed(path, sql, fault):
    driver = sqlite_driver(path, rules=FREE)
    for number in range(3):
        driver.feedback(judged(number))
    driver.stop()
    assert checked(path).faults == ()
    with sqlite3.connect(path) as connection:
        connection.execute(sql)
    connection.close()
    assert any(fault in one for one in checked(path).faults)


def test_an_event_with_nothing_to_learn_from_is_stored_and_skipped(path):
    driver = sqlite_driver(path)
    answer = driver.feedback(judged(1, judgments={"d01": 0}))
    status = driver.status
    driver.stop()
    assert answer.events[0].outcome == "skipped"
    assert (answer.events[0].version, status.n_versions) == (1, 1)
    assert checked(path).faults == ()


def test_rollback_moves_the_champion_and_learning_goes_on_from_it(path):
    driver = sqlite_driver(path, rules=FREE)
    driver.feedback(judged(1))
    second = driver.status.current
    driver.feedback(judged(2))
    answer = driver.roll_back(second.version, "back")
    assert answer.version == driver.status.champion.version == second.version
    assert driver.roll_back(second.version, "back") == answer
    driver.feedback(judged(3))
    other = sqlite_driver(path.with_name("other.sqlite"), rules=FREE)
    other.feedback(judged(1))
    other.feedback(judged(3))
    assert driver.status.champion.vector == other.status.champion.vector
    assert driver.status.n_versions == 4
    with pytest.raises(RequestError, match="expected one of 1 to 4; found 9"):
        driver.roll_back(9, "beyond")
    driver.stop()
    other.stop()


def test_a_bad_update_is_kept_but_not_promoted(path):
    rules = Rules(influence=None, max_ap_loss=0.0, prior_queries=1)
    driver = sqlite_driver(path, given=model(weights=(0.8, 0.15, 0.05)), rules=rules)
    driver.feedback(*(judged(number) for number in range(30)))
    champion = driver.status.champion
    answer = driver.feedback(*(poisoned(number) for number in range(100, 130)))
    status = driver.status
    with driver.engine.store.snapshot() as session:
        row = session.version(status.n_versions)
    driver.stop()
    assert answer.champion == champion.version
    assert status.current.version == status.n_versions > champion.version
    assert row.promoted == 0
    assert row.recent_ap < row.champion_recent_ap
    assert checked(path).faults == ()


def test_one_client_moves_the_weights_only_so_far_in_an_hour(path):
    now = [1_000_000_000_000]
    driver = sqlite_driver(path, rules=Rules(influence=0.1, prior_queries=50), clock=lambda: now[0])
    start = driver.status.current.vector
    outcomes = [driver.feedback(poisoned(number), client="bad").events[0].outcome for number in range(30)]
    moved = sum(abs(a - b) for a, b in zip(start, driver.status.current.vector, strict=True)) / 2
    assert "limited" in outcomes
    assert moved <= 0.1
    assert driver.feedback(judged(50), client="good").events[0].outcome == "learned"
    driver.stop()
    driver = Driver(SqliteStore(path), clock=lambda: now[0])
    assert driver.feedback(poisoned(60), client="bad").events[0].outcome == "limited"
    now[0] += 3_700_000
    assert driver.feedback(poisoned(61), client="bad").events[0].outcome == "learned"
    driver.stop()
    assert checked(path).faults == ()


def test_the_limit_also_holds_for_whom_an_event_names(path):
    driver = sqlite_driver(path, rules=Rules(influence=0.1, prior_queries=50))
    for number in range(30):
        driver.feedback(poisoned(number, client="user"), client="team")
    influence, received = driver.engine._learner.influence, driver.engine._clock()
    used = [influence.used(name, received) for name in ("team", "team/user", "other")]
    driver.stop()
    assert 0 < used[0] == used[1] <= 100_000_000
    assert used[2] == 0


def test_events_of_one_request_are_learned_as_if_they_came_one_by_one(path):
    together = sqlite_driver(path, rules=FREE)
    single = sqlite_driver(path.with_name("single.sqlite"), rules=FREE)
    together.feedback(*(judged(number) for number in range(8)))
    for number in range(8):
        single.feedback(judged(number))
    assert together.status.current.state == single.status.current.state
    together.stop()
    single.stop()


def test_a_second_service_is_refused(path):
    driver = sqlite_driver(path)
    with pytest.raises(StoreError, match="another service has this store open"):
        sqlite_driver(path)
    driver.stop()
    sqlite_driver(path).stop()


def test_a_database_of_another_program_is_not_touched(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="found another SQLite database"):
        sqlite_driver(path)
    assert path.read_bytes() == before


def test_another_model_is_refused(path):
    sqlite_driver(path).stop()
    with pytest.raises(StoreError, match="expected the model that this store began with"):
        sqlite_driver(path, given=model(weights=(0.5, 0.25, 0.25)))


def test_changed_rules_are_an_event(path):
    driver = sqlite_driver(path, rules=FREE)
    driver.feedback(judged(1))
    driver.stop()
    driver = Driver(SqliteStore(path), rules=Rules(influence=None, n_recent=2))
    for number in range(2, 6):
        driver.feedback(judged(number))
    driver.stop()
    assert checked(path).faults == ()


def test_backup_and_restore_keep_everything(path, tmp_path):
    driver = sqlite_driver(path, rules=FREE)
    for number in range(5):
        driver.feedback(judged(number))
    backup = SqliteStore(tmp_path / "backup.sqlite", alone=False)
    backup.open()
    assert copy_store(driver.engine.store, backup) == driver.status.sequence
    backup.close()
    status = driver.status
    driver.stop()
    restored = Driver(SqliteStore(tmp_path / "backup.sqlite"))
    assert restored.status == status
    restored.stop()
    assert checked(tmp_path / "backup.sqlite").faults == ()


def test_what_cannot_be_written_is_not_acknowledged_and_not_learned(path):
    driver = sqlite_driver(path, rules=FREE)
    driver.feedback(judged(1))
    status = driver.status
    store = driver.engine.store
    # SQLite's own limit stands for a full disk: the transaction fails in its middle
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count={pages}")
    big = judged(2, runs={name: [(f"{name}-{i:05}" * 8, float(i)) for i in range(400)] for name in model().rankers})
    with pytest.raises(StoreError, match="full"):
        driver.feedback(big)
    assert driver.status == status
    assert driver.engine.failure
    assert driver.feedback(big).events[0].outcome in ("learned", "skipped")  # a new connection has no such limit
    assert driver.engine.failure is None
    driver.stop()
    assert checked(path).faults == ()


def test_many_clients_at_once_lose_nothing(path):
    driver = sqlite_driver(path, rules=FREE)
    answers = {}

    def send(worker):
        for number in range(10):
            answers[worker, number] = driver.feedback(judged(100 * worker + number)).events[0]

    threads = [threading.Thread(target=send, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.sequence for answer in answers.values()) == list(range(3, 63))
    driver.stop()
    found = checked(path)
    assert (found.faults, found.n_events) == ((), 62)


def test_weights_learned_from_many_queries_move_less(tmp_path):
    moved = {}
    for queries in (1, 10, 1000):
        given = model(training={"queries": queries})
        driver = sqlite_driver(tmp_path / f"{queries}.sqlite", given=given, rules=Rules(influence=None))
        driver.feedback(judged(1))
        after = driver.status.current
        driver.stop()
        assert after.state.n_seen == queries + 1
        moved[queries] = abs(after.vector[0] - given.weights[0])
    assert moved[1] > moved[10] > moved[1000] > 0.0
