"""The folder that a run leaves."""

import json

import pytest

from genm.errors import InputError
from genm.reproduce import reproduce_to_folder
from genm.reproduce.figures import learning
from genm.reproduce.page import results_json, write_folder
from genm.reproduce.results import Results


def test_page_tables_figures_and_manifest_are_written(found, tmp_path, monkeypatch):
    two_starts = learning.binary_starts(len(found.collections[0].aligned.rankers))[:2]
    monkeypatch.setattr(learning, "binary_starts", lambda n_rankers: two_starts)  # each is a panel to draw
    written = write_folder(found, tmp_path / "out", command="genm reproduce -o out")
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {"index.html", "manifest.json", "results.json", "figures/recall.svg"} < names
    assert {f"tables/{table.key}.{end}" for table in found.tables for end in ("md", "csv")} < names
    assert "genm reproduce -o out" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["seeds"] == [3, 4]
    assert manifest["command"] == "genm reproduce -o out"
    assert set(manifest["timings"]) == set(written.timings) == {*found.timings, "figures"}


def test_without_figures_nothing_is_drawn(found, tmp_path):
    assert "figures" not in write_folder(found, tmp_path, command="", figures=False).timings
    assert not (tmp_path / "figures").exists()


def test_results_as_data_hold_means_and_spreads(found):
    plain = json.loads(json.dumps(results_json(found)))
    (one,) = found.collections
    for name, method in one.methods.items():
        kept = plain["collections"][one.name]["methods"][name]
        assert kept["mean"] == pytest.approx(method.mean.tolist(), abs=1e-8)
        assert kept["spread"] == pytest.approx(method.spread.tolist(), abs=1e-8)
        assert len(kept["curve"]) == 11


def test_one_call_runs_the_experiment_and_writes_the_folder(found, tmp_path, monkeypatch):
    asked = []

    def run(*names, **options):
        asked.append((names, options))
        return found

    monkeypatch.setattr("genm.reproduce.page.reproduce", run)
    results = reproduce_to_folder(
        tmp_path / "new" / "out", ["tiny"], splits=2, seed=3, further=False, figures=False
    )
    assert results.collections == found.collections
    ((names, options),) = asked
    assert names == (["tiny"],)
    assert {name: options[name] for name in ("splits", "seed", "data", "further")} == {
        "splits": 2, "seed": 3, "data": None, "further": False,
    }  # fmt: skip
    assert (tmp_path / "new" / "out" / "index.html").is_file()


def test_what_would_stop_it_at_the_end_stops_it_at_the_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr("genm.reproduce.page.reproduce", None)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make this folder"):
        reproduce_to_folder(tmp_path / "file" / "out", ["tiny"], figures=False)


def test_a_page_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "index.html").mkdir()
    with pytest.raises(InputError, match="expected a file that can be written"):
        write_folder(Results((), 1, 0), tmp_path, command="", figures=False)
