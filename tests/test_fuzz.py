"""The corpus of inputs that once failed, a few fresh ones, and the oracle against cases worked by hand."""

import io
import random
import signal
import sys
from pathlib import Path

import pytest

import genm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the harness needs the timers of POSIX")
fuzz = pytest.importorskip("fuzz", reason="tools/fuzz.py needs a POSIX system")
import fuzz_oracle as oracle  # noqa: E402

CORPUS = sorted((Path(__file__).parent / "fuzz_corpus").glob("*.bin"))


@pytest.fixture(scope="module", autouse=True)
def here():
    """The harness changes folder and cache; the other tests must not see it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENM_CACHE", "")
        patch.chdir(Path.cwd())
        before = signal.signal(signal.SIGALRM, fuzz._stop)
        fuzz.enter_sample_folder()
        yield
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_once_failed(path: Path) -> None:
    """The file's name begins with its target."""
    fuzz.targets()[path.name.split(".")[0]].check(path.read_bytes())


@pytest.mark.parametrize("name", fuzz.NAMES)
def test_a_few_fresh_inputs(name: str, tmp_path: Path) -> None:
    target, draw, tally = fuzz.targets()[name], random.Random(7), fuzz.Tally()
    for content in (
        *target.seeds,
        *(fuzz.changed(target.seeds, draw) for _ in range(10 if name == "command" else 60)),
    ):
        fuzz.try_once(name, content, tally, tmp_path)
    assert tally.failures == {}
    assert tally.accepted[name] > 0


def test_every_target_is_listed() -> None:
    assert tuple(fuzz.targets()) == fuzz.NAMES


def test_a_failure_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(content: bytes) -> bool:
        raise ValueError("oh")

    monkeypatch.setitem(fuzz.targets(), "broken", fuzz.Target((b"x",), broken))
    tally = fuzz.Tally()
    fuzz.try_once("broken", b"x", tally, tmp_path)
    fuzz.try_once("broken", b"y", tally, tmp_path)
    assert list(tally.failures.values()) == ["oh"]
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"x"]


def test_a_hang_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(content: bytes) -> bool:
        while True:
            pass

    monkeypatch.setattr(fuzz, "HANG_SECONDS", 0.05)
    monkeypatch.setitem(fuzz.targets(), "endless", fuzz.Target((b"x",), endless))
    tally = fuzz.Tally()
    fuzz.try_once("endless", b"x", tally, tmp_path)
    assert "HangError" in next(iter(tally.failures))


CASES = {
    b"q Q0 d 1 2.5 t\n": {"q": {"d": 2.5}},
    b"\xef\xbb\xbfq Q0 d 1 2 t\r\n# c\n\n": {"q": {"d": 2.0}},
    b"q Q0 d 1 2 my tag\n": {"q": {"d": 2.0}},
    b" #q Q0 d 1 2 t": {"#q": {"d": 2.0}},
    b"q Q0 my doc 1 2 t\n": None,
    b"q Q0 doc 7 1 2.0 t\n": None,
    b"q Q0 d 1 nan t\n": None,
    b"q Q0 d 1 1e-400 t\n": None,
    b"q Q0 d 1 2 t\nq Q0 d 2 1 t\n": None,
    b"q Q0 d\0 1 2 t\n": None,
    b"q Q0 d\xff 1 2 t\n": None,
    b"": None,
}


@pytest.mark.parametrize("content", CASES, ids=repr)
def test_the_oracle_by_hand(content: bytes) -> None:
    assert oracle.trec_run(content) == CASES[content]


def test_the_oracle_of_tables_by_hand() -> None:
    def read(text: bytes) -> object:
        return oracle.table(text, ",", "score")

    assert read(b'qid,docno,score\nq,"a ""b""\nc",1\r\rq,d,2') == {"q": {'a "b"\nc': 1.0, "d": 2.0}}
    for wrong in (
        b'qid,docno,score\nq,"a"b,1',
        b'qid,docno,score\nq,"a,1',
        b"qid,docno,score\nq,a,1,",
        b"a,b,c\n1,2,3",
    ):
        assert read(wrong) is None
    assert oracle.json_file(b'{"q": {"d": 1}}', "relevance") == {"q": {"d": 1.0}}
    assert oracle.json_file(b'{"q": {"d": 0.5}}', "relevance") is None


@pytest.mark.parametrize("query", ['{"q', "PAR1", "BZhong", "[{x"])
def test_ids_that_begin_as_other_formats_do(query: str) -> None:
    run = genm.read_run({query: {"d": 1.0}})
    out = io.BytesIO()
    genm.write_run(run, out)
    assert list(genm.read_run(io.BytesIO(out.getvalue()))) == [query]
