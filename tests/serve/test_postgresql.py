"""The store in PostgreSQL: the same bits as SQLite, several replicas, and nothing lost when one of them dies."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from serve import crashes
from serve.cases import Driver, judged, model, poisoned, sqlite_driver

from genm.errors import StoreError
from genm.serve.learner import Rules
from genm.serve.messages import Impression
from genm.serve.replay import check_store
from genm.serve.store import Session, copy_to, existing_store, open_store

psycopg = pytest.importorskip("psycopg", reason="needs the extra postgresql")

RULES = Rules(influence=0.3, n_recent=6)
KILLS = int(os.environ.get("GENM_TESTS_REPLICA_KILLS", "3"))


def replica(address, **options):
    return Driver(
        open_store(address), options.pop("given", None), options.pop("rules", None), clock=lambda: 7_000_000
    )


def wait_for(condition, seconds=60.0):
    """Wait until something happens: a moment as a rule, much longer on a busy machine."""
    stop_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < stop_at, "it did not happen"
        time.sleep(0.02)


def test_replicas_take_turns_and_come_to_the_bits_of_one_service(postgresql, tmp_path):
    address = postgresql()
    alone = sqlite_driver(tmp_path / "store.sqlite", rules=RULES, clock=lambda: 7_000_000)
    replicas = [replica(address, given=model(), rules=RULES), replica(address), replica(address)]
    for number in range(15):
        event = poisoned(number) if number % 4 == 3 else judged(number)
        one = replicas[number % 3]
        assert one.feedback(event) == alone.feedback(event)
        if number == 7:
            assert one.roll_back(3, "back") == alone.roll_back(3, "back")
    for one in replicas:
        wait_for(lambda one=one: one.status.sequence == alone.status.sequence)
        assert one.status == alone.status
        one.stop()
    alone.stop()
    with existing_store(address) as store:
        assert check_store(store).faults == ()


def test_a_replica_that_only_fuses_follows_the_champion(postgresql):
    address = postgresql()
    first, second = replica(address, given=model(), rules=Rules(influence=None)), replica(address)
    first.feedback(judged(1), judged(2))
    wait_for(lambda: second.status.champion == first.status.champion)
    assert second.status.champion.version == 2
    first.stop()
    second.stop()


def test_a_retry_at_another_replica_gets_the_same_answer(postgresql):
    address = postgresql()
    first, second = replica(address, given=model(), rules=RULES), replica(address)
    assert first.feedback(judged(1)) == second.feedback(judged(1))
    first.stop()
    second.stop()


def test_changed_rules_reach_the_other_replicas(postgresql):
    address = postgresql()
    first = replica(address, given=model(), rules=Rules(influence=None))
    second = replica(address, rules=Rules(influence=None, position_bias=0.0))
    shown = [doc_id for doc_id, _ in judged(4).runs["bm25"]]
    event = judged(4, judgments=None, impression=Impression(shown, [shown[3]]))
    first.feedback(event)
    assert first.engine.rules.position_bias == 0.0
    first.stop()
    second.stop()
    with existing_store(address) as store:
        assert check_store(store).faults == ()


def test_a_lost_database_is_not_acknowledged_and_comes_back(postgresql):
    address = postgresql()
    one = replica(address, given=model(), rules=RULES)
    one.feedback(judged(1))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'genm serve' AND pid <> pg_backend_pid()"
        )
    with pytest.raises(StoreError, match="expected a store that can be written"):
        one.feedback(judged(2))
    assert one.feedback(judged(2)).events[0].outcome == "learned"
    one.stop()


def test_an_address_that_does_not_answer_is_an_error_without_the_password():
    with pytest.raises(StoreError, match="expected a store that can be written") as caught:
        Driver(open_store("postgresql://user:secret@127.0.0.1:1/nothing"), model())
    assert "secret" not in str(caught.value)


def test_a_backup_moves_from_one_kind_of_store_to_the_other(postgresql, tmp_path):
    address, other = postgresql(), postgresql()
    one = replica(address, given=model(), rules=RULES)
    for number in range(5):
        one.feedback(judged(number))
    status = one.status
    with existing_store(address) as store:
        assert copy_to(store, str(tmp_path / "backup.sqlite")) == status.sequence
    one.stop()
    with existing_store(str(tmp_path / "backup.sqlite")) as store:
        assert check_store(store).faults == ()
        copy_to(store, other)
        with pytest.raises(StoreError, match="expected an empty store"):
            copy_to(store, other)
    again = replica(other)
    assert again.status == status
    again.stop()


def test_killed_replicas_lose_nothing(postgresql):
    done = subprocess.run(
        [sys.executable, crashes.__file__, "--kills", str(KILLS), "--postgresql", postgresql(), "--settle", "0.5"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "replay equal" in done.stdout
    print(done.stdout)


def test_a_learner_that_was_stopped_cannot_write_after_another_took_over(postgresql):
    address = postgresql()
    with psycopg.connect(address, autocommit=True) as connection:  # the service must not depend on this default
        connection.execute(
            f"ALTER DATABASE {connection.info.dbname} SET default_transaction_isolation = 'serializable'"
        )
    done = subprocess.run(
        [sys.executable, crashes.__file__, "--pauses", "5", "--idle-ms", "1500", "--postgresql", address],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "5 learners stopped in their transactions, none wrote after another had taken over" in done.stdout


def test_the_isolation_that_a_database_has_by_default_does_not_matter(postgresql):
    address = postgresql()
    with psycopg.connect(address, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    replicas = [replica(address, given=model(), rules=RULES), replica(address)]
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(replicas[number % 2].feedback, judged(number)) for number in range(20)]
        sequences = sorted(one.result().events[0].sequence for one in done)
    assert sequences == list(range(3, 23))
    for one in replicas:
        one.stop()


def test_a_connection_that_dies_in_a_transaction_leaves_nothing_and_frees_the_lock(postgresql, monkeypatch):
    monkeypatch.setattr("genm.serve.postgresql.IDLE_MS", 600_000)  # the lock is not freed for being held too long
    address = postgresql()
    first, second = replica(address, given=model(), rules=RULES), replica(address)
    first.feedback(judged(1))
    before, plain = first.status.sequence, Session.point

    def cut_off(session, **options):
        plain(session, **options)
        monkeypatch.setattr(Session, "point", plain)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (session._connection.info.backend_pid,))

    monkeypatch.setattr(Session, "point", cut_off)
    with pytest.raises(StoreError, match="expected a store that can be written"):
        first.feedback(judged(2))
    assert second.feedback(judged(3)).events[0].sequence == before + 1
    assert first.feedback(judged(2)).events[0].sequence == before + 2
    first.stop()
    second.stop()
    with existing_store(address) as store:
        assert check_store(store).faults == ()
