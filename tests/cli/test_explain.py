import io
import json
import xml.etree.ElementTree as ET

import pytest

from genm.cli.explain import _bar, _strip
from genm.explain import Figure

RUNS = ("bm25.trec", "dense.trec")
WORDS = ("explain", "--model", "model.json", "--qrels", "qrels.txt", *RUNS)

LOSS = Figure(0.5, 0.4, 0.6, 0.25, 0.75)


@pytest.fixture(scope="session")
def fitted(genm, made_up, tmp_path_factory):
    """The text of a model fitted to the sample."""
    path = tmp_path_factory.mktemp("explain") / "model.json"
    args = (
        "fit",
        "--method",
        "enm",
        "--qrels",
        made_up / "qrels.txt",
        *(made_up / run for run in RUNS),
        "-o",
        path,
    )
    assert genm(*args).code == 0
    return path.read_text().replace('"enm"', '"auto"')


@pytest.fixture
def modelled(sample, fitted):
    (sample / "model.json").write_text(fitted)
    return sample


def test_table(genm, modelled):
    found = genm(*WORDS)
    assert found.code == 0
    lines = found.out.splitlines()
    assert lines[0].startswith("AP 0.5")
    value, fitted = lines[0].split()[1], json.loads((modelled / "model.json").read_text())["training"]["held_out"]
    if value != f"{fitted:.4f}":  # the same quantity by another rule is named as such
        assert f"note: genm fit measured {fitted:.4f} AP held out on these queries, not {value}: " in found.err
        assert lines[1] == f"AP {fitted:.4f} held out as genm fit measured it, learning more thoroughly"
    assert lines[0].endswith("held out, 2 rankers by 'auto'; 3 subsets, 30 queries, 5 folds")
    assert all(len(line) <= 80 for line in lines if not line.endswith("."))
    assert {"Shapley values: shares of the measure, which sum to it", "Similarity of the rankings"} <= set(lines)
    assert "████████████████" in found.out
    assert "●" in found.out
    assert "\nKeep dense: beside bm25 it is worth +0.1" in found.out
    assert "Both stay: each of the 2 smaller choices" in found.out


def test_json_holds_everything(genm, modelled):
    found = json.loads(genm(*WORDS, "--format", "json").out)
    rankers = found["rankers"]
    assert list(rankers) == ["bm25", "dense"]
    assert sum(one["shapley"]["value"] for one in rankers.values()) == pytest.approx(found["held_out"])
    low, high = rankers["bm25"]["loss_without"]["interval"]
    assert low < rankers["bm25"]["loss_without"]["value"] < high
    assert (found["queries"], found["subsets"], found["orders"], found["method"]) == (30, 3, None, "auto")
    assert len(found["by_query"]) == 30
    assert found["pairs"][0]["rankers"] == ["bm25", "dense"]
    assert found["exhaustive"]["rankers"] == ["bm25", "dense"]
    assert found["sentences"]


def test_tsv_says_the_same(genm, modelled):
    found = json.loads(genm(*WORDS, "--format", "json").out)
    rows = [line.split("\t") for line in genm(*WORDS, "--format", "tsv").out.splitlines()]
    told = {(what, whom): float(value) for what, whom, value in rows}
    for name, one in found["rankers"].items():
        assert told["leave_out", name] == (one["verdict"] in ("hurts", "not needed"))
    assert told["held_out_of_fit", "AP"] == pytest.approx(found["held_out_of_fit"], abs=1e-6)
    assert told["held_out", "AP"] == pytest.approx(found["held_out"], abs=1e-6)
    for name, one in found["rankers"].items():
        assert told["shapley", name] == pytest.approx(one["shapley"]["value"], abs=1e-6)
        assert told["loss.p", name] == pytest.approx(one["loss_without"]["p_corrected"], rel=1e-5)
        assert told["gain.7", name] == pytest.approx(found["by_query"]["7"]["gain"][name], abs=1e-6)


def test_options_reach_the_work(genm, modelled):
    def outcome(*more):
        return json.loads(genm(*WORDS, "--format", "json", *more).out)

    usual = outcome()
    other = outcome(
        "--measure", "nDCG@10", "--folds", "3", "--confidence", "0.8", "--margin", "0.01", "--seed", "4"
    )
    assert (other["measure"], other["folds"], other["margin"]) == ("nDCG@10", 3, 0.01)
    (modelled / "weights.txt").write_text("3 50\n")
    heavy = outcome("--query-weights", "weights.txt")
    assert heavy["held_out"] != usual["held_out"]
    assert heavy["by_query"] == usual["by_query"]
    assert other["held_out"] != usual["held_out"]
    sampled = outcome("--orders", "6", "--method", "enm")
    assert (sampled["orders"], sampled["method"], sampled["exhaustive"]) == (6, "enm", None)


@pytest.mark.needs("matplotlib")
def test_a_picture_is_drawn(genm, modelled):
    found = genm(*WORDS, "--plot", "worth.svg", "--format", "tsv")
    assert found.err.endswith("wrote worth.svg\n")
    words = [e.text for e in ET.parse(modelled / "worth.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert {"bm25", "dense"} <= set(words)


@pytest.mark.needs("matplotlib")
def test_a_picture_replaces_the_file_behind_a_link(genm, modelled):
    (modelled / "current.svg").symlink_to("real.svg")
    assert genm(*WORDS, "--plot", "current.svg", "--format", "tsv").code == 0
    assert (modelled / "current.svg").is_symlink()
    assert (modelled / "real.svg").read_text().endswith("</svg>\n")


def test_a_query(genm, modelled):
    found = json.loads(genm(*WORDS, "--query", "3", "--top", "4", "--format", "json").out)
    assert [one["rank"] for one in found["documents"]] == [1, 2, 3, 4]
    for one in found["documents"]:
        bm25, dense = one["contributions"].values()
        assert one["score"] == bm25 + dense
    assert set(found["gain"]) == {"bm25", "dense"}
    told = [line.split("\t") for line in genm(*WORDS, "--query", "3", "--format", "tsv").out.splitlines()]
    assert ["value.AP", "3", f"{found['value']:.6f}"] in told
    assert sum(what == "score" for what, _, _ in told) == 10
    text = genm(*WORDS, "--query", "3", "--top", "2").out
    assert f"Query 3: AP {found['value']:.4f}; without a ranker, the other weights keep their proportions" in text
    assert "   document  grade   score  bm25 (rank)  dense (rank)" in text


def test_a_document_needs_no_judgments(genm, modelled):
    every = json.loads(genm(*WORDS, "--query", "5", "--top", "60", "--format", "json").out)["documents"]
    gap = next(one for one in every if None in one["ranks"].values())
    words = ("explain", "--model", "model.json", *RUNS, "--query", "5", "--doc", gap["doc"])
    [alone] = json.loads(genm(*words, "--format", "json").out)["documents"]
    assert alone["contributions"] == gap["contributions"]
    assert alone["relevance"] is None
    text = genm(*words).out
    assert "(-): the ranker did not return the document" in text
    assert "AP" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (WORDS[:-1], "model.json: expected runs named bm25, dense; missing dense. Name each run as NAME=FILE."),
        ((*WORDS, "x=bm25.trec"), "unknown x"),
        (("explain", "--model", "model.json", *RUNS), "expected --qrels FILE: contributions are measured"),
        ((*WORDS, "--doc", "d001"), "--doc explains documents of one query. Name it: --query QUERY."),
        ((*WORDS, "--top", "3"), "--top explains documents of one query"),
        ((*WORDS, "--query", "3", "--doc", "d001", "--top", "3"), "Leave one of them out"),
        ((*WORDS, "--query", "3", "--plot", "x.svg"), "Leave --query out"),
        ((*WORDS, "--query", "300"), "query '300': expected one of the judged queries, such as '1'"),
        ((*WORDS, "--query", "3", "--doc", "nix"), "document 'nix': expected one that a ranker returned"),
        ((*WORDS, "--method", "nix"), "expected one of auto, newton"),
        ((*WORDS, "--orders", "3"), "expected an even number from 4 to"),
        ((*WORDS, "--plot", "nowhere/x.svg"), "expected a folder to write into"),
        ((*WORDS, "--plot", "-"), "a picture is written to a file"),
        (("explain", "--model", "none.json", "--qrels", "qrels.txt", *RUNS), "none.json: no such file"),
    ],
)
def test_refusals(genm, modelled, words, message):
    assert message in genm(*words).fault


def test_one_ranker_or_one_query_is_not_enough(genm, modelled):
    lines = (modelled / "qrels.txt").read_text().splitlines()
    (modelled / "one.txt").write_text("\n".join(line for line in lines if line.split()[0] == "1") + "\n")
    words = ("explain", "--model", "model.json", "--qrels", "one.txt", *RUNS)
    fault = genm(*words).err.splitlines()[-1]
    assert fault.startswith("genm: input: 1 judged query: expected at least 2")
    model = json.loads((modelled / "model.json").read_text())
    model["rankers"] = [{**model["rankers"][0], "weight": 1.0}]
    (modelled / "single.json").write_text(json.dumps(model))
    words = ("explain", "--model", "single.json", "--qrels", "qrels.txt", "bm25.trec")
    assert "1 ranker (bm25): expected at least 2" in genm(*words).fault


def test_a_method_that_cannot_be_learned_again_gives_way(genm, modelled):
    path = modelled / "model.json"
    path.write_text(path.read_text().replace('"auto"', '"equal"'))
    found = genm(*WORDS, "--format", "json")
    assert "the model's method 'equal' cannot be learned again" in found.err
    assert json.loads(found.out)["method"] == "auto"


def test_bars_are_drawn_to_an_eighth():
    assert _bar(1.0) == "█" * 16
    assert _bar(0.5) == "█" * 8 + " " * 8
    assert _bar(0.53125) == "█" * 8 + "▌" + " " * 7
    assert _bar(-0.2) == " " * 16


def test_strips_show_where_nothing_is():
    strip = _strip(LOSS, -1.0, 1.0)
    assert strip == " " * 12 + "│  ├──●──┤   "
    assert len(strip) == 25


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_plain_letters_where_others_cannot_be_printed(monkeypatch, encoding):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert _bar(0.5) == "#" * 8 + " " * 8
    assert _strip(LOSS, -1.0, 1.0) == " " * 12 + ":  |--o--|   "
