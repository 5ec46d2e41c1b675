import builtins

import numpy as np
import pytest

from genm.errors import InputError, MissingExtraError
from genm.export import frames
from genm.ids import Ids
from genm.records import Qrels

TABLE = {"q1": {"a": 1.0, "b": 3.0}, "q2": {"c": 2.0, "a": 2.0}}


def test_a_run_survives_the_dictionary() -> None:
    run = frames.run_from_dict(TABLE, "mine")
    assert run.name == "mine"
    assert frames.run_to_dict(run) == TABLE
    assert list(frames.run_to_dict(run)["q1"]) == ["b", "a"]  # best first


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"q": {"a": float("nan")}}, "expected finite scores; found nan"),
        ({"q": {"a": "x"}}, "expected numbers for scores"),
        ({"q": {1: 2.0}}, "expected text for a doc id; found int 1"),
        ({1: {"a": 2.0}}, "expected text for a query id; found int 1"),
    ],
)
def test_bad_dictionaries_are_refused(table: dict[str, dict[str, float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        frames.run_from_dict(table, "mine")


def test_frames_have_the_usual_columns() -> None:
    frame = frames.run_to_polars(frames.run_from_dict(TABLE, "mine"))
    assert frame.rows() == [("q1", "b", 3.0, 1), ("q1", "a", 1.0, 2), ("q2", "c", 2.0, 1), ("q2", "a", 2.0, 2)]
    assert frame.columns == ["query_id", "doc_id", "score", "rank"]
    empty = frames.run_to_polars(frames.run_from_dict({}, "mine"))
    assert len(empty) == 0


def test_pandas_frames() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = frames.run_to_pandas(frames.run_from_dict(TABLE, "mine"))
    assert frame["rank"].tolist() == [1, 2, 1, 2]


def test_pandas_is_asked_for_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object) -> object:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'genm\[pandas\]'"):
        frames.run_to_pandas(frames.run_from_dict(TABLE, "mine"))


@pytest.mark.filterwarnings("ignore")
def test_ranx_itself() -> None:
    pytest.importorskip("ranx", reason="ranx is not installed")
    theirs = frames.to_ranx(frames.run_from_dict(TABLE, "mine"))
    assert frames.run_to_dict(frames.from_ranx(theirs)) == TABLE
    assert theirs.name == "mine"


def test_judgments_as_a_dictionary() -> None:
    qrels = Qrels(
        Ids.of(["q"]), Ids.of(["a", "b"]), np.array([0, 2]), np.array([0, 1], np.int32), np.array([1, 0], np.int32)
    )
    assert frames.qrels_to_dict(qrels) == {"q": {"a": 1, "b": 0}}


def test_from_ranx_takes_anything_with_its_shape() -> None:
    class Fake:
        name = "theirs"
        run = TABLE

    run = frames.from_ranx(Fake())
    assert (run.name, frames.run_to_dict(run)) == ("theirs", TABLE)
    with pytest.raises(InputError, match=r"expected a ranx\.Run; found dict"):
        frames.from_ranx(TABLE)
