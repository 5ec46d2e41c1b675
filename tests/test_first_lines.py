"""The first lines that a user of scikit-learn, PyTerrier or ir_measures types work, or say what to do.

`test_ten_lines` runs ten lines as they would stand in a notebook; the others are one line each.
"""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import genm
from genm.errors import InputError
from genm.evaluate import Evaluation
from genm.evidence import HeldOut
from genm.export import export_model
from genm.interop import to_pandas, to_polars
from genm.learn import AutoFuser, Fuser, NewtonFuser

ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pytest.importorskip("sklearn.model_selection")
AP, nDCG, ParameterGrid = ir_measures.AP, ir_measures.nDCG, sklearn.model_selection.ParameterGrid

N_QUERIES = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with judgments, q, and two runs, a.trec and b.trec."""
    place = tmp_path_factory.mktemp("lines")
    queries, docs = range(N_QUERIES), range(10)
    for name, k in (("a", 3), ("b", 8)):
        scores = {(q, d): (7 * d * (q + k)) % 23 + 3.0 * (d == q % 10) + d / 100 for q in queries for d in docs}
        lines = [f"q{q} Q0 d{d} 0 {score} {name}" for (q, d), score in scores.items()]
        (place / f"{name}.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")
    grades = [f"q{q} 0 d{d} {int(d in (q % 10, (q + 3) % 10))}" for q in queries for d in docs]
    (place / "q").write_text("\n".join(grades) + "\n", encoding="utf-8")
    return place


@pytest.fixture(autouse=True)
def few_refits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refit a few times only."""
    monkeypatch.setattr("genm.evidence.resampling.N_RESAMPLES", 10)
    monkeypatch.setattr("genm.evidence.resampling.N_WHOLE", 10)


@pytest.fixture(scope="module")
def at(folder: Path) -> SimpleNamespace:
    """What the lines start from: runs a and b, judgments, the same aligned, and a fitted fuser."""
    qrels, a, b = (
        genm.read_qrels(folder / "q"),
        genm.read_run(folder / "a.trec"),
        genm.read_run(folder / "b.trec"),
    )
    al = genm.align_runs([a, b], qrels)
    frame = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["d1", "d2"], "score": [1.0, 2.0]})
    ea, eb = (genm.evaluate(run, qrels, "AP, nDCG@10") for run in (a, b))
    fuser = genm.fit(al, method="newton")
    return SimpleNamespace(folder=folder, qrels=qrels, a=a, b=b, al=al, frame=frame, ea=ea, eb=eb, fuser=fuser)


def test_ten_lines(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    qrels, a, b = genm.read_qrels("q"), genm.read_run("a.trec"), genm.read_run("b.trec")
    evaluation = genm.evaluate(a, qrels, "AP, nDCG@10")
    fused = genm.fuse([a, b], method="rrf")
    trained = genm.train([a, b], qrels, measure="nDCG@10", target="opensearch")
    print(trained.verdict)
    trained.save("model.json")
    frame = genm.load_model("model.json").fuse([a, b]).to_pandas()
    mean = genm.cross_validate(NewtonFuser(beta=200), [a, b], qrels, "AP").mean
    weights = sklearn.base.clone(AutoFuser(measure="RR@10")).fit([a, b], qrels).weights_

    assert evaluation.means.shape == (2,)
    assert len(fused) == N_QUERIES
    assert "Held out, the learned weights" in capsys.readouterr().out
    assert json.loads(Path("model.json").read_text(encoding="utf-8"))["target"] == "opensearch"
    assert Path("model.evidence.json").is_file()
    assert list(frame.columns) == ["query_id", "doc_id", "score", "rank"]
    assert 0.0 < mean < 1.0
    assert weights.sum() == pytest.approx(1.0)


Line = Callable[[SimpleNamespace], Any]

WORK: dict[str, tuple[Line, Callable[[Any], bool]]] = {
    "genm.read_qrels(path)": (lambda at: genm.read_qrels(str(at.folder / "q")), lambda r: len(r) == N_QUERIES),
    "genm.read_run(path)": (lambda at: genm.read_run(at.folder / "a.trec"), lambda r: r.name == "a"),
    "genm.read_run({...})": (lambda _: genm.read_run({"q1": {"d1": 1.0}}), lambda r: r == {"q1": {"d1": 1.0}}),
    "genm.read_run(frame)": (lambda at: genm.read_run(at.frame), lambda r: list(r["q1"]) == ["d2", "d1"]),
    "genm.read_run(path).to_pandas()": (
        lambda at: genm.read_run(at.folder / "a.trec").to_pandas(),
        lambda r: len(r) == 120,
    ),
    "genm.evaluate(a, qrels, [AP, nDCG@10])": (
        lambda at: genm.evaluate(at.a, at.qrels, [AP, nDCG @ 10]),
        lambda r: isinstance(r, Evaluation) and len(r.measures) == 2,
    ),
    "genm.evaluate_run(a, qrels, [AP, nDCG@10])": (
        lambda at: genm.evaluate_run(at.a, at.qrels, [AP, nDCG @ 10]),
        lambda r: isinstance(r, Evaluation),
    ),
    "genm.evaluate(a, qrels, 'map').mean('AP')": (
        lambda at: genm.evaluate(at.a, at.qrels, "map").mean("AP"),
        lambda r: 0.0 < r < 1.0,
    ),
    "ir_measures on run.to_dict()": (
        lambda at: (
            ir_measures.calc_aggregate([AP], at.qrels.to_dict(), at.a.to_dict())[AP]
            - genm.evaluate(at.a, at.qrels, AP).mean(AP)
        ),
        lambda r: abs(r) < 1e-12,
    ),
    "genm.fit([a, b], qrels)": (lambda at: genm.fit([at.a, at.b], at.qrels), lambda r: isinstance(r, AutoFuser)),
    "genm.fit({'a': a, 'b': b}, qrels)": (
        lambda at: genm.fit({"x": at.a, "y": at.b}, at.qrels, method="boost").rankers_,
        lambda r: r == ("x", "y"),
    ),
    "genm.fit(genm.align_runs([a, b], qrels))": (lambda at: genm.fit(at.al), lambda r: isinstance(r, Fuser)),
    "genm.fit(al, method='newton')": (
        lambda at: genm.fit(at.al, method="newton"),
        lambda r: isinstance(r, NewtonFuser),
    ),
    "genm.fit(al, method='gEnM.BAT')": (
        lambda at: genm.fit(at.al, method="gEnM.BAT"),
        lambda r: isinstance(r, NewtonFuser),
    ),
    "genm.fuse([a, b], method='rrf')": (
        lambda at: genm.fuse([at.a, at.b], method="rrf"),
        lambda r: isinstance(r, genm.Run),
    ),
    "genm.fuse_runs([a, b], [0.3, 0.7])": (
        lambda at: genm.fuse_runs([at.a, at.b], [0.3, 0.7]),
        lambda r: isinstance(r, genm.Run),
    ),
    "fuser.fuse([a, b])": (lambda at: at.fuser.fuse([at.a, at.b]) == at.fuser.fuse(at.al), bool),
    "model.fuse([a, b])": (lambda at: at.fuser.to_model().fuse([at.a, at.b]) == at.fuser.fuse(at.al), bool),
    "fuser.get_params()": (lambda at: at.fuser.get_params()["beta"], lambda r: r == "auto"),
    "fuser.set_params(beta=200)": (lambda at: at.fuser.clone().set_params(beta=200).beta, lambda r: r == 200),
    "sklearn.base.clone(fuser)": (
        lambda at: sklearn.base.clone(at.fuser),
        lambda r: isinstance(r, NewtonFuser) and not hasattr(r, "weights_"),
    ),
    "fuser.score(al)": (lambda at: at.fuser.score(at.al), lambda r: 0.0 < r < 1.0),
    "fuser.score([a, b], qrels, nDCG@10)": (
        lambda at: at.fuser.score([at.a, at.b], at.qrels, nDCG @ 10),
        lambda r: 0.0 < r < 1.0,
    ),
    "a grid search": (
        lambda at: [
            genm.cross_validate(NewtonFuser().set_params(**p), at.al, "AP", folds=2).mean
            for p in ParameterGrid({"beta": [20.0, 200.0]})
        ],
        lambda r: len(r) == 2,
    ),
    "genm.cross_validate(al, make, 'AP')": (
        lambda at: genm.cross_validate(at.al, NewtonFuser, "AP", folds=2),
        lambda r: isinstance(r, HeldOut),
    ),
    "genm.cross_validate(fuser, al)": (
        lambda at: genm.cross_validate(at.fuser, at.al, folds=2).mean,
        lambda r: 0.0 < r < 1.0,
    ),
    "genm.compare_runs([ea, eb])": (lambda at: genm.compare_runs([at.ea, at.eb]).contrasts, lambda r: len(r) == 2),
    "len(run), sorted(run), 'q1' in run": (
        lambda at: (len(at.a), sorted(at.a)[0], "q1" in at.a, "x" in at.a),
        lambda r: r == (N_QUERIES, "q0", True, False),
    ),
    "run['q1']": (lambda at: list(at.a["q1"].values()), lambda r: r == sorted(r, reverse=True)),
    "dict(run) == run.to_dict()": (lambda at: dict(at.a) == at.a.to_dict() == at.a, bool),
    "genm.Run.from_dict(run.to_dict())": (lambda at: genm.Run.from_dict(at.a.to_dict()) == at.a, bool),
    "genm.Qrels.from_dict({...})": (lambda _: genm.Qrels.from_dict({"q": {"d": 1}})["q"], lambda r: r == {"d": 1}),
    "to_pandas(run), to_polars(run)": (
        lambda at: (len(to_pandas(at.a)), len(to_polars(at.a))),
        lambda r: r == (120, 120),
    ),
    "genm.train([a, b], qrels).report(path)": (
        lambda at: (
            genm.train([at.a, at.b], at.qrels, method="boost", folds=2).report(at.folder / "page.html")
            or (at.folder / "page.html").read_text(encoding="utf-8")
        ),
        lambda r: "<html" in r,
    ),
    "genm.train(al).evidence.held_out.mean": (
        lambda at: genm.train(at.al, method="boost", folds=2).evidence.held_out.mean,
        lambda r: 0.0 < r < 1.0,
    ),
    "genm.train([a, b]).model": (lambda at: genm.train([at.a, at.b]).model.method, lambda r: r == "uns"),
    "export_model(trained.model, 'opensearch')": (
        lambda at: (
            export_model(
                genm.train([at.a, at.b], at.qrels, method="boost", folds=2, target="opensearch").model, "opensearch"
            ).text
        ),
        lambda r: "hybrid" in r,
    ),
}

REFUSED: dict[str, tuple[Line, type[Exception], str]] = {
    "genm.fuse(a)": (lambda at: genm.fuse(at.a), InputError, "Give runs by name, or a list of them"),
    "genm.fit(['a.trec', 'b.trec'], 'q')": (
        lambda _: genm.fit(["a.trec", "b.trec"], "q"),  # type: ignore[list-item, arg-type]
        InputError,
        "Read it first, by genm.read_run",
    ),
    "genm.fit([a, b])": (lambda at: genm.fit([at.a, at.b]), InputError, "Give qrels, or use CotrainFuser"),
    "genm.fit(al, qrels)": (lambda at: genm.fit(at.al, at.qrels), InputError, "Give it to genm.align_runs"),
    "genm.evaluate(frame, qrels, 'AP')": (
        lambda at: genm.evaluate(at.frame, at.qrels, "AP"),
        InputError,
        "Read it first, by genm.read_run",
    ),
    "genm.fit([a, a], qrels)": (
        lambda at: genm.fit([at.a, at.a], at.qrels),
        InputError,
        "Pass a mapping of name to run to name them yourself",
    ),
    "genm.fit(al, method='adam')": (lambda at: genm.fit(at.al, method="adam"), InputError, "one of auto, newton"),
    "genm.fit(al, measure='AUC')": (lambda at: genm.fit(at.al, measure="AUC"), InputError, "is not known"),
    "NewtonFuser().fuse([a, b])": (
        lambda at: NewtonFuser().fuse([at.a, at.b]),
        ValueError,
        r"Call NewtonFuser.fit\(runs, qrels\) first",
    ),
    "fuser.fuse([a])": (lambda at: at.fuser.fuse([at.a]), ValueError, "expected runs named a, b; missing b"),
    "run['x']": (lambda at: at.a["x"], KeyError, "no query 'x' in <Run 'a'.* such as 'q0'"),
    "genm.compare_runs([a, b])": (
        lambda at: genm.compare_runs([at.a, at.b]),
        InputError,
        "Give what genm.evaluate_run returned",
    ),
    "genm.cross_validate([a, b], qrels, fuser)": (
        lambda at: genm.cross_validate([at.a, at.b], at.qrels, at.fuser),
        InputError,
        r"The order is cross_validate\(fuser, runs, qrels, measure\)",
    ),
}


@pytest.mark.parametrize("line", WORK)
def test_line_works(at: SimpleNamespace, line: str) -> None:
    call, is_right = WORK[line]
    found = call(at)
    assert is_right(found), found


@pytest.mark.parametrize("line", REFUSED)
def test_line_is_refused_with_what_to_do(at: SimpleNamespace, line: str) -> None:
    call, error, advice = REFUSED[line]
    with pytest.raises(error, match=advice):
        call(at)
