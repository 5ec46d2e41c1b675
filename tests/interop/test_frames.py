import builtins
from collections import UserDict
from typing import Any

import pytest

from genm.errors import InputError, MissingExtraError
from genm.interop import from_ranx, to_dict, to_pandas, to_polars, to_ranx
from genm.read import qrels_from_dict, read_qrels, read_run, run_from_dict

TABLE = {"q1": {"a": 1.0, "b": 3.0}, "q2": {"c": 2.0, "a": 2.0}}
GRADES = {"q1": {"a": 2, "b": 0}, "q2": {"c": -1}}


def test_a_run_survives_the_dictionary() -> None:
    run = run_from_dict(TABLE, name="mine")
    assert to_dict(run) == TABLE
    assert list(to_dict(run)["q1"]) == ["b", "a"]  # best first


def test_judgments_as_a_dictionary() -> None:
    assert to_dict(qrels_from_dict(GRADES)) == GRADES


@pytest.mark.parametrize("frame_of", [to_polars, to_pandas])
def test_frames_have_the_usual_columns(frame_of: Any) -> None:
    if frame_of is to_pandas:
        pytest.importorskip("pandas", reason="pandas is not installed")
    frame = frame_of(run_from_dict(TABLE, name="mine"))
    assert list(frame.columns) == ["query_id", "doc_id", "score", "rank"]
    assert frame["query_id"].to_list() == ["q1", "q1", "q2", "q2"]
    assert frame["doc_id"].to_list() == ["b", "a", "c", "a"]
    assert frame["score"].to_list() == [3.0, 1.0, 2.0, 2.0]
    assert frame["rank"].to_list() == [1, 2, 1, 2]
    judged = frame_of(qrels_from_dict(GRADES))
    assert list(judged.columns) == ["query_id", "doc_id", "relevance"]
    assert judged["relevance"].to_list() == [2, 0, -1]


@pytest.mark.parametrize("frame_of", [to_polars, to_pandas])
def test_frames_survive_the_way_back(frame_of: Any) -> None:
    if frame_of is to_pandas:
        pytest.importorskip("pandas", reason="pandas is not installed")
    assert to_dict(read_run(frame_of(run_from_dict(TABLE)))) == TABLE
    assert to_dict(read_qrels(frame_of(qrels_from_dict(GRADES)))) == GRADES
    empty = frame_of(run_from_dict({}, lenient=True))
    assert len(empty) == 0
    assert list(empty.columns) == ["query_id", "doc_id", "score", "rank"]


def test_pandas_is_asked_for_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object) -> object:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'genm\[pandas\]'"):
        to_pandas(run_from_dict(TABLE))


@pytest.mark.filterwarnings("ignore")
def test_ranx_itself(ranx: Any) -> None:
    run, judged = to_ranx(run_from_dict(TABLE, name="mine")), to_ranx(qrels_from_dict(GRADES))
    assert (type(run), type(judged), run.name) == (ranx.Run, ranx.Qrels, "mine")
    assert to_dict(from_ranx(run)) == TABLE
    assert to_dict(from_ranx(judged)) == GRADES


def test_ranx_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ranx", None)
    with pytest.raises(InputError, match="Install it with: pip install ranx"):
        to_ranx(run_from_dict(TABLE))


@pytest.mark.parametrize("mapping", [dict, UserDict])
def test_from_ranx_takes_anything_with_its_shape(mapping: Any) -> None:
    """numba's dictionaries, which a compiled ranx fills, are mappings but no `dict`."""

    class Fake:
        name = "theirs"
        run = mapping({query: mapping(rows) for query, rows in TABLE.items()})

    class FakeJudgments:
        qrels = mapping({query: mapping(rows) for query, rows in GRADES.items()})

    run = from_ranx(Fake())
    assert (getattr(run, "name", None), to_dict(run)) == ("theirs", TABLE)
    assert to_dict(from_ranx(FakeJudgments())) == GRADES


def test_from_ranx_refuses_what_is_not_ranx() -> None:
    with pytest.raises(InputError, match=r"expected a ranx.Run or ranx.Qrels; found dict"):
        from_ranx(TABLE)
