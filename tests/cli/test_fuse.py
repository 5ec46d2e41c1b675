import pytest

from genm.cli.fuse import ON_RANKS, Rule
from genm.fuse import METHODS
from genm.model import Model, save_model
from genm.normalizers import Normalizer

A = "1 Q0 x 1 10 a\n1 Q0 y 2 5 a\n1 Q0 z 3 0 a\n"
B = "1 Q0 z 1 4 b\n1 Q0 y 2 3 b\n1 Q0 x 3 0 b\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.trec").write_text(A)
    (tmp_path / "b.trec").write_text(B)
    return tmp_path


def ranked(text):
    return [(doc, int(rank), float(score)) for _, _, doc, rank, score, _ in map(str.split, text.splitlines())]


def test_the_rules_are_those_of_the_library():
    assert {rule.value for rule in Rule} == set(METHODS)


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_runs_and_says_nothing(genm, files, rule):
    found = genm("fuse", "--method", rule.value, "a.trec", "b.trec")
    assert (found.code, found.err) == (0, "")
    assert {doc for doc, _, _ in ranked(found.out)} == {"x", "y", "z"}


def test_weights(genm, files):
    found = genm("fuse", "--weights", "a=0.25,b=0.75", "a.trec", "b.trec")
    assert ranked(found.out) == [("z", 1, 0.75), ("y", 2, 0.25 * 0.5 + 0.75 * 0.75), ("x", 3, 0.25)]
    assert (
        genm("fuse", "--weights", "a=0.25", "--weights", "b=0.75", "--method", "sum", "a.trec", "b.trec") == found
    )


def test_negative_and_zero_weights_are_weights(genm, files):
    found = genm("fuse", "--weights", "a=-1,b=0", "a.trec", "b.trec")
    assert [doc for doc, _, _ in ranked(found.out)] == ["z", "y", "x"]
    assert ranked(found.out)[2] == ("x", 3, -1.0)


def test_rrf_and_its_constant(genm, files):
    found = ranked(genm("fuse", "--method", "rrf", "--k", "0", "a.trec", "b.trec").out)
    assert found[0] == ("z", 1, 1 / 1 + 1 / 3)
    assert ranked(genm("fuse", "--method", "rrf", "a.trec", "b.trec").out)[0][2] == 1 / 61 + 1 / 63


def test_normalize_depth_top_and_tag(genm, files):
    raw = genm(
        "fuse", "--method", "combsum", "--normalize", "none", "a.trec", "b.trec", "--tag", "mine", "--top", "1"
    )
    assert raw.out == "1 Q0 x 1 10.0 mine\n"
    mixed = genm("fuse", "--method", "combsum", "--normalize", "a=none,b=minmax", "a.trec", "b.trec")
    assert ranked(mixed.out)[0] == ("x", 1, 10.0)
    cut = genm("fuse", "--method", "combsum", "--depth", "a=1,b=1", "a.trec", "b.trec")
    assert {doc for doc, _, _ in ranked(cut.out)} == {"x", "z"}
    assert genm("fuse", "--method", "combsum", "--depth", "1", "a.trec", "b.trec") == cut


@pytest.mark.parametrize("name", ["fused.trec", "fused.trec.gz", "fused.trec.zst"])
def test_a_file_holds_what_would_have_been_printed(genm, files, name):
    printed = genm("fuse", "--method", "borda", "a.trec", "b.trec").out
    written = genm("fuse", "--method", "borda", "a.trec", "b.trec", "-o", name)
    assert (written.code, written.out) == (0, "")
    assert genm("fuse", "--method", "combsum", "--normalize", "none", f"f={name}").out == printed


def test_standard_input(genm, files):
    found = genm("fuse", "--method", "rrf", "a=-", "b.trec", stdin=A)
    assert found == genm("fuse", "--method", "rrf", "a.trec", "b.trec")


def test_queries_that_one_run_lacks_are_said(genm, files):
    (files / "b.trec").write_text(B + "2 Q0 x 1 1 b\n")
    found = genm("fuse", "--method", "rrf", "a.trec", "b.trec")
    assert found.err.startswith("note: run 'a' returned nothing for 1 of 2 queries")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a.trec",), "expected one of --method, --weights and --model"),
        (("a.trec", "--method", "rrf", "--model", "m.json"), "expected one of --method, --weights and --model"),
        (("a.trec", "--weights", "a=1", "--method", "rrf"), "--weights go with --method sum; rrf takes none"),
        (("a.trec", "--weights", "a=1", "--k", "3"), "--k is the constant of --method rrf"),
        (("a.trec", "--method", "rrf", "--k", "-1"), "expected a number above -1"),
        (("a.trec", "--model", "m.json", "--depth", "3"), "come from the model"),
        (("a.trec", "--model", "nowhere.json"), "genm: model: nowhere.json: no such file"),
        (("a.trec", "--weights", "a=1,c=2"), "--weights: expected one weight for each of a; unknown: c"),
        (("a.trec", "b.trec", "--weights", "a=1"), "missing: b"),
        (("a.trec", "b.trec", "--weights", "a=0,b=0"), "expected at least one that is not 0"),
        (("a.trec", "--method", "sum", "--normalize", "median"), "expected one of none, "),
        (("a.trec", "--method", "sum", "--normalize", "c=l2"), "c"),
        (
            ("a.trec", "--method", "rrf", "-o", "nowhere/f.trec"),
            "expected a folder to write into; found no nowhere",
        ),
        (("a.trec", "--method", "rrf", "-o", "."), "expected a file to write; found a folder"),
        (("a.trec", "--method", "rrf", "--tag", "two words"), "expected a word that a TREC line can hold"),
        (("a.trec", "a=b.trec", "--method", "rrf"), "two runs are called 'a'"),
        (("a=-", "b=-", "--method", "rrf"), "can be read only once"),
    ],
)
def test_refusals(genm, files, words, message):
    assert message in genm("fuse", *words).fault


@pytest.mark.parametrize("rule", sorted(ON_RANKS))
def test_a_normaliser_that_nothing_reads_is_refused(genm, files, rule):
    assert f"{rule} reads ranks" in genm("fuse", "--method", rule, "--normalize", "l2", "a.trec").fault


@pytest.fixture
def model(files):
    path = files / "m.json"
    save_model(Model(("a", "b"), (0.25, 0.75), (Normalizer(), Normalizer()), (None, None), "auto", "AP"), path)
    return path


def test_a_model_from_a_file_or_standard_input(genm, files, model):
    by_hand = genm("fuse", "--weights", "a=0.25,b=0.75", "a.trec", "b.trec")
    assert genm("fuse", "--model", model, "b.trec", "a.trec") == by_hand
    assert genm("fuse", "--model", "-", "a.trec", "b.trec", stdin=model.read_text()) == by_hand
    assert "can be read only once" in genm("fuse", "--model", "-", "a=-", "b.trec").fault


def test_with_a_model_nothing_is_silent_either(genm, files, model):
    (files / "b.trec").write_text(B.replace("1 Q0", "2 Q0"))
    found = genm("fuse", "--model", model, "a.trec", "b.trec")
    assert "note: run 'b' returned nothing for 1 of 2 queries, the first is '1'.\n" in found.err


def test_names_that_do_not_fit_the_model_are_refused_before_runs_are_read(genm, files, model):
    message = f"{model}: expected runs named a, b; missing b and unknown c."
    assert message in genm("fuse", "--model", model, "a.trec", "c=nowhere.trec").fault
    assert "found unknown c" in genm("fuse", "--method", "sum", "--depth", "c=3", "a=nowhere.trec").fault
