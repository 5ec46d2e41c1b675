"""Kill the writer at random moments and look for what it had acknowledged.

    python tests/serve/crashes.py --kills 1000                # kill -9
    python tests/serve/crashes.py --kills 200 --power-cut     # and lose what was written but not flushed
    python tests/serve/crashes.py --kills 50 --postgresql postgresql://...    # one of three replicas each time
    python tests/serve/crashes.py --pauses 8 --postgresql postgresql://...    # stop a learner, let another go on

A child process opens the store and learns from events of four threads; weights learned anew are handed over in
between. It notes every acknowledgement in a pipe.
The parent kills it after a random time, reads the notes, and looks up each of them in the store; every so often the
whole log is replayed. With --power-cut a small library (fsync_shadow.c) keeps what was flushed, and after each kill
the store's files are replaced: every page is the flushed one, or at random one that was written since.
"""

import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from serve.cases import Driver, judged, model

from genm.errors import StoreError
from genm.serve.learner import Rules
from genm.serve.replay import check_store
from genm.serve.store import Session, SqliteStore, existing_store, open_store

try:
    from genm.serve import postgresql
except ImportError:  # the extra postgresql is missing
    postgresql = None

RULES = Rules(influence=None, n_recent=8)
PAGE = 4096


def write_until_killed(place, life, notes):
    """Learn, and note every acknowledgement, until a signal comes."""
    driver = Driver(open_store(str(place)), model(), RULES)

    def work(thread):
        for number in range(10**9):
            first = (life * 8 + thread) * 1_000_000 + 2 * number
            answer = driver.feedback(judged(first, seed=first % 50), judged(first + 1, seed=first % 50 + 1))
            done = list(answer.events)
            if number % 5 == 4:  # as the service does when it has learned from all feedback
                share = 0.1 + 0.1 * (number % 7)
                done.append(driver.take_over((share, 0.5 * (1 - share), 0.5 * (1 - share)), 1, f"anew-{first}"))
            for event in done:
                line = json.dumps([event.key, event.sequence, event.version]) + "\n"
                os.write(notes, line.encode())

    for thread in range(4):
        threading.Thread(target=work, args=(thread,), daemon=True).start()
    time.sleep(3600)


def start_child(place, life):
    """Fork a child that writes; return its id and the pipe with its notes."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write_until_killed(place, life, writing)
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


def one_life(path, life, seconds, *, after_first):
    """Let a child write for some time, kill it, and return what it acknowledged.

    The time counts from the start, where the child may have written nothing, or from its first acknowledgement,
    which a busy machine brings late.
    """
    child, reading = start_child(path, life)
    if after_first:
        select.select([reading], [], [])
    stop_at, content = time.monotonic() + seconds, b""
    while (left := stop_at - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                raise AssertionError("the child ended by itself")
            content += part
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(reading, 1 << 16):
        content += part
    os.close(reading)
    return [json.loads(line) for line in content.decode().splitlines()]


def cut_power(path, shadow, draw):
    """Leave of the store's files what was flushed, and at random some pages that were written since."""
    mix = draw.random() < 0.5
    for name in (path.name, f"{path.name}-wal"):
        real, kept = path.with_name(name), shadow / name
        new = real.read_bytes() if real.exists() else b""
        if not kept.exists():
            real.unlink(missing_ok=True)
            continue
        flushed = kept.read_bytes()
        if mix and draw.random() < 0.5:
            size = len(new) if draw.random() < 0.5 else len(flushed)
            pages = []
            for at in range(0, size, PAGE):
                chosen = new if draw.random() < 0.5 else flushed
                pages.append(chosen[at : at + PAGE].ljust(min(PAGE, size - at), b"\0"))
            flushed = b"".join(pages)
        real.write_bytes(flushed)
        kept.write_bytes(flushed)  # this is on disk now
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)


def find(path, acknowledged):
    """Return what was acknowledged and is not in the store as it was answered."""
    store = SqliteStore(path)
    store.open()
    with store.snapshot() as session:
        stored = session.answers(key for key, _, _ in acknowledged)
    store.close()
    return [
        note
        for note in acknowledged
        if note[0] not in stored or [stored[note[0]].sequence, stored[note[0]].version] != note[1:]
    ]


def replay(path):
    store = SqliteStore(path)
    store.open()
    found = check_store(store)
    store.close()
    return found


def run(folder, kills, *, seed=0, power_cut=False, replay_every=100, longest=0.4):
    """Return how many events were acknowledged; raises AssertionError where one is lost or the replay differs."""
    os.environ["GENM_THREADS"] = "1"  # a forked child has no threads of its parent
    path, shadow = Path(folder) / "store.sqlite", Path(folder) / "shadow"
    shadow.mkdir(exist_ok=True)
    os.environ["GENM_SHADOW"] = str(shadow)  # read by fsync_shadow.c, where it is loaded
    draw = random.Random(seed)
    driver = Driver(SqliteStore(path), model(), RULES)
    driver.feedback(judged(0, key="first"))  # everything is compiled before the first fork
    driver.stop()
    total = 0
    for life in range(1, kills + 1):
        acknowledged = one_life(path, life, draw.uniform(0.0, longest), after_first=life % 2 == 0)
        if power_cut:
            cut_power(path, shadow, draw)
        lost = find(path, acknowledged)
        assert not lost, f"kill {life}: {len(lost)} of {len(acknowledged)} acknowledged events are lost: {lost[:3]}"
        total += len(acknowledged)
        if life % replay_every == 0 or life == kills:
            found = replay(path)
            assert found.faults == (), found.faults
            print(
                f"{life} kills, {total:,} events acknowledged, {found.n_events:,} in the log, replay equal",
                flush=True,
            )
            path.unlink()
            for end in ("-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
            for kept in shadow.iterdir():
                kept.unlink()
    return total


def run_replicas(address, kills, *, replicas=3, seed=0, longest=1.0, settle=3.0):
    """Kill one of several replicas on PostgreSQL again and again; they write for `settle` seconds before and after.

    Returns how many events were acknowledged, and the longest time from a kill to the next acknowledgement.
    """
    os.environ["GENM_THREADS"] = "1"
    draw = random.Random(seed)
    driver = Driver(open_store(address), model(), RULES)
    driver.feedback(judged(0, key="first"))
    driver.stop()
    life, notes = replicas, []
    children = [start_child(address, number) for number in range(replicas)]
    unread = {reading: b"" for _, reading in children}
    slowest, killed_at = 0.0, None

    def read(seconds):
        nonlocal slowest, killed_at
        stop_at = time.monotonic() + seconds
        while (left := stop_at - time.monotonic()) > 0:
            for pipe in select.select(list(unread), [], [], left)[0]:
                *lines, unread[pipe] = (unread[pipe] + os.read(pipe, 1 << 16)).split(b"\n")
                notes.extend(json.loads(line) for line in lines)
                if lines and killed_at is not None:
                    slowest, killed_at = max(slowest, time.monotonic() - killed_at), None

    read(settle)
    for _ in range(kills):
        victim = draw.randrange(replicas)
        child, pipe = children[victim]
        read(0.002)  # what was noted before the kill does not count as after it
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        killed_at = time.monotonic()
        while part := os.read(pipe, 1 << 16):
            unread[pipe] += part
        notes.extend(json.loads(line) for line in unread.pop(pipe).splitlines())
        os.close(pipe)
        read(draw.uniform(0.0, longest))
        children[victim] = start_child(address, life)
        unread[children[victim][1]] = b""
        life += 1
    read(settle)
    for child, _ in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    read(0.2)
    with existing_store(address) as store:
        with store.snapshot() as session:
            stored = session.answers(key for key, _, _ in notes)
        found = check_store(store)
    lost = [n for n in notes if n[0] not in stored or [stored[n[0]].sequence, stored[n[0]].version] != n[1:]]
    assert not lost, f"{len(lost)} of {len(notes)} acknowledged events are lost: {lost[:3]}"
    assert found.faults == (), found.faults
    told = (
        f"{kills} kills of {replicas} replicas, {len(notes):,} events acknowledged, {found.n_events:,} in the log"
    )
    print(f"{told}, replay equal; next acknowledgement after at most {slowest:.3f} s", flush=True)
    return len(notes), slowest


PAUSES = ("head", "answers", "write", "add_versions", "point")
"""Calls of a session before which a learner is stopped: it has the lock, and has written no, some or all rows.
Before `write`, it is stopped halfway through a series of statements, as many rows are written."""


def learn_with_a_pause(address, number, method, notes):
    """Learn from one event, stopped in the middle; note whether it was refused, then what a retry was answered."""
    driver = Driver(open_store(address))
    plain = getattr(Session, method)

    def stop_once(session, *words, **options):
        if session._connection is driver.engine.store._writer:  # not while it reads what others have written
            setattr(Session, method, plain)
            if method == "write":
                session._connection.pgconn.enter_pipeline_mode()
                session._connection.pgconn.send_query_params(b"SELECT 1", [])
                session._connection.pgconn.flush()
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0.1)  # another thread may be the one that takes the signal
        return plain(session, *words, **options)

    setattr(Session, method, stop_once)
    event = judged(number)
    try:
        driver.feedback(event)
        refused = False
    except StoreError:
        refused = True
    answer = send_until_stored(driver, event)
    os.write(notes, json.dumps([refused, answer.key, answer.sequence, answer.version]).encode())


def send_until_stored(driver, event):
    """Return the answer to an event that is sent again where the store fails, as clients do.

    A slow machine may need longer than the short time that a test gives a learner.
    """
    for _ in range(5):
        try:
            return driver.feedback(event).events[0]
        except StoreError as error:
            refusal = error
    raise refusal


def one_pause(address, number):
    """Stop a learner, let another one learn, let the first go on.

    Returns what both were answered, and how long the second one waited.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            learn_with_a_pause(address, 1000 + number, PAUSES[number % len(PAUSES)], writing)
        finally:
            os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, os.WUNTRACED)
    assert os.WIFSTOPPED(status), "the child ended before its pause"
    try:
        begun = time.monotonic()
        driver = Driver(open_store(address))
        answer = send_until_stored(driver, judged(2000 + number))
        waited = time.monotonic() - begun
        driver.stop()
        os.kill(child, signal.SIGCONT)
        refused, key, *stored = json.loads(os.read(reading, 1 << 16))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
    assert refused, f"pause {number}: a learner that had lost its lock was acknowledged"
    assert stored[0] > answer.sequence, f"pause {number}: it wrote before the learner that took over"
    return {answer.key: [answer.sequence, answer.version], key: stored}, waited


def run_pauses(address, pauses, *, idle_ms=None):
    """Stop learners inside their transactions; returns how long the next one waited at most.

    Raises AssertionError where a stopped one wrote what it had learned from old weights, or the replay differs.
    """
    os.environ["GENM_THREADS"] = "1"
    driver = Driver(open_store(address), model(), RULES)
    driver.feedback(judged(0, key="first"))  # everything is compiled before the first fork
    driver.stop()
    if idle_ms is not None:
        postgresql.IDLE_MS = idle_ms
    slowest, known = 0.0, {}
    for number in range(pauses):
        answers, waited = one_pause(address, number)
        known |= answers
        slowest = max(slowest, waited)
    with existing_store(address) as store:
        with store.snapshot() as session:
            found = session.answers(known)
        checked = check_store(store)
    assert {key: [one.sequence, one.version] for key, one in found.items()} == known
    assert checked.faults == (), checked.faults
    told = f"{pauses} learners stopped in their transactions, none wrote after another had taken over"
    print(f"{told}, replay equal; the next one learned after at most {slowest:.1f} s", flush=True)
    return slowest


def build_shadow_library(folder):
    """Compile the library; None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = Path(folder) / "fsync_shadow.so"
    source = Path(__file__).with_name("fsync_shadow.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def run_with_power_cuts(folder, kills, seed, longest=0.4):
    """Run this file again under the library."""
    library = build_shadow_library(folder)
    if library is None:
        return None
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    numbers = {"--kills": kills, "--seed": seed, "--longest": longest, "--folder": folder}
    arguments = [sys.executable, __file__, *(word for pair in numbers.items() for word in map(str, pair))]
    return subprocess.run(
        [*arguments, "--under-shadow"], env=environment, check=False, capture_output=True, text=True
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=0.4, help="seconds of a life; more for a busy machine")
    parser.add_argument("--power-cut", action="store_true")
    parser.add_argument("--postgresql", help="address of a database that three replicas share")
    parser.add_argument("--pauses", type=int, default=0, help="with --postgresql: stop learners instead")
    parser.add_argument("--idle-ms", type=int, help="after how long a stopped learner loses its lock")
    parser.add_argument("--settle", type=float, default=3.0, help="seconds before the first kill, after the last")
    parser.add_argument("--folder")
    parser.add_argument("--under-shadow", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.postgresql and options.pauses:
        run_pauses(options.postgresql, options.pauses, idle_ms=options.idle_ms)
        return
    if options.postgresql:
        run_replicas(options.postgresql, options.kills, seed=options.seed, settle=options.settle)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or name
        if options.power_cut:
            found = run_with_power_cuts(folder, options.kills, options.seed, options.longest)
            if found is None:
                sys.exit("needs Linux and a C compiler")
            print(found.stdout, found.stderr, sep="")
            sys.exit(found.returncode)
        run(folder, options.kills, seed=options.seed, power_cut=options.under_shadow, longest=options.longest)


if __name__ == "__main__":
    main()
