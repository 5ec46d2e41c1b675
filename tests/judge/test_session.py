import pytest
from judge.sessions import PAIRS, session, standing

from genm.errors import InputError


@pytest.fixture
def begin(tmp_path):
    begun = []

    def start(**options):
        begun.append(session(tmp_path, **options))
        begun[-1].start()
        return begun[-1]

    yield start
    for one in begun:
        one.stop()
        one.store.close()


def judge_all(work, judge):
    seen = []
    while (pair := work.next(judge)) is not None:
        work.add(judge, pair, "grade", 1, key=f"{judge}{len(seen):08}")
        seen.append(pair)
    return seen


def test_one_judge_sees_every_pair_once_and_stays_with_a_query(begin):
    work = begin()
    seen = judge_all(work, "ada")
    assert sorted(seen) == sorted(PAIRS)
    assert [query for query, _ in seen] == ["q1", "q1", "q2", "q2"]
    assert work.next("bob") is None


def test_two_judges_never_look_at_the_same_pair(begin):
    now = [0.0]
    work = begin(clock=lambda: now[0])
    first, second = work.next("ada"), work.next("bob")
    assert first != second
    assert work.next("ada") == first, "asking again gives the same pair"
    now[0] = 601.0
    assert first in {work.next("cyd"), work.next("dan")}, "a pair that nobody came back to is shown again"


def test_a_share_of_the_pairs_is_seen_by_two(begin):
    work = begin(overlap=1.0)
    assert sorted(judge_all(work, "ada")) == sorted(judge_all(work, "bob")) == sorted(PAIRS)
    assert work.next("cyd") is None


def test_skipped_pairs_come_to_others(begin):
    work = begin()
    pair = work.next("ada")
    work.add("ada", pair, "skip", None, key="skipped-1")
    assert pair not in judge_all(work, "ada")
    assert work.next("bob") == pair


def test_undo_brings_the_pair_back(begin):
    work = begin()
    pair = work.next("ada")
    work.add("ada", pair, "grade", 3, key="one-grade")
    assert work.undo("ada", key="one-undo") == pair
    assert work.next("ada") == pair
    assert work.progress("ada").n_judged == 0


def test_progress_counts_what_stands(begin):
    work = begin(assess=standing, overlap=1.0)
    for judge, grade in (("ada", 0), ("bob", 2)):
        work.add(judge, ("q1", "d1"), "grade", grade, key=f"{judge}-grade")
    work.add("ada", ("q2", "d3"), "grade", 2, key="ada-other")
    found = work.progress("ada")
    assert (found.n_judged, found.n_waiting, found.n_disputed) == (2, 2, 1)
    assert (found.grades, found.judges) == ({0: 1, 2: 1}, {"ada": 2, "bob": 1})
    assert (found.n_queries, found.n_queries_relevant) == (2, 1)


def test_a_session_goes_on_where_the_last_one_stopped(begin, tmp_path):
    first = begin()
    first.add("ada", PAIRS[0], "grade", 1, key="from-before")
    again = begin()
    assert again.next("ada") != PAIRS[0]
    assert again.progress("ada").n_judged == 1


def test_strange_pairs_are_refused(begin):
    work = begin()
    with pytest.raises(InputError, match="expected a pair of these runs"):
        work.add("ada", ("q1", "nowhere"), "grade", 1, key="strange-1")
    with pytest.raises(InputError, match="overlap"):
        begin(overlap=2.0)


def test_an_order_that_fails_is_said_and_the_old_one_stays(begin):
    calls = []

    def order(judgments):
        calls.append(len(judgments))
        if len(calls) > 1:
            raise InputError("the pool is broken")
        return PAIRS

    work = begin(order=order, refresh=1)
    work.add("ada", PAIRS[0], "grade", 1, key="break-it-1")
    work.stop()
    work._renew()
    assert work.progress("ada").failure == "the pool is broken"
    assert work.next("ada") in PAIRS[1:]
