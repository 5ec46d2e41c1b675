"""Files that people have: grades of models and clicks, their own texts, their own earlier output."""

import json

import pytest

pytestmark = pytest.mark.usefixtures("little_evidence")


@pytest.fixture
def fractions(sample):
    """The judgments of the sample as the Search Relevance Workbench writes them, with fractions."""
    lists: dict[str, list[dict[str, str]]] = {}
    for line in (sample / "qrels.txt").read_text().splitlines():
        query, _, doc, grade = line.split()
        lists.setdefault(query, []).append({"docId": doc, "rating": f"{0.9 if int(grade) else 0.1:.3f}"})
    ratings = [{"query": query, "ratings": ratings} for query, ratings in lists.items()]
    (sample / "srw.json").write_text(json.dumps({"judgmentRatings": ratings}))
    return sample


@pytest.mark.parametrize("verb", ["evaluate", "compare", "inspect", "fit", "update", "explain", "report"])
def test_fractions_are_read_by_a_rule_in_every_verb(fractions, genm, verb):
    runs = ("bm25.trec", "dense.trec")
    judged = ("srw.json",) if verb in ("evaluate", "compare") else ("--qrels", "srw.json")
    model = ("--model", "m.json") if verb in ("update", "explain", "report") else ()
    if model:
        assert genm("fit", "--method", "online", "--qrels", "qrels.txt", *runs, "-o", "m.json").code == 0
    command = (verb, *judged, *runs, *model, *(("-o", "r.html") if verb == "report" else ()))
    assert "expected a whole number as relevance; found 0.9. Say how to read fractions" in genm(*command).fault
    outcome = genm(*command, "--grades", "from=0.5")
    assert outcome.code == 0, outcome.err
    assert "grade 0.9 became 1 by the rule from=0.5" in outcome.err
    assert "grades: expected whole, round, probability, times=NUMBER" in genm(*command, "--grades", "half").fault


def test_the_rule_gives_the_same_figures_as_whole_grades(fractions, genm):
    whole = genm("evaluate", "qrels.txt", "bm25.trec", "--format", "json")
    ruled = genm("evaluate", "srw.json", "bm25.trec", "--format", "json", "--grades", "from=0.5")
    assert json.loads(ruled.out)["bm25"]["mean"] == json.loads(whole.out)["bm25"]["mean"]


@pytest.mark.parametrize("tag", ["genm", "mine"])
def test_a_fused_run_among_its_rankers_is_noticed(sample, genm, tag):
    assert genm("fuse", "--method", "rrf", "bm25.trec", "dense.trec", "--tag", tag, "-o", "learned.trec").code == 0
    fit = ("fit", "--method", "enm", "--folds", "2", "--qrels", "qrels.txt", "bm25.trec", "dense.trec")
    outcome = genm(*fit, "learned.trec")
    assert "note: the run learned looks like the output of genm fuse" in outcome.err
    assert outcome.err.count("looks like the output") == 1
    assert "looks like" not in genm(*fit).err
    assert "looks like" not in genm("evaluate", "qrels.txt", "bm25.trec", "dense.trec", "learned.trec").err


def test_own_texts_are_ranked(sample, genm):
    (sample / "docs").mkdir()
    (sample / "docs" / "a.trec").write_text(
        "<DOC><DOCNO>d1</DOCNO>ships sail far</DOC>\n<DOC><DOCNO>d2</DOCNO>trains</DOC>"
    )
    (sample / "topics").write_text("<top><num>1<title>ships</top>\n<top><num>2<title>trains</top>")
    (sample / "rel.csv").write_text("query,docid,rating\n1,d1,1\n2,d2,1\n")
    outcome = genm("rank", "docs", "--queries", "topics", "--qrels", "rel.csv", "--rankers", "tfidf", "-o", "runs")
    assert outcome.code == 0, outcome.err
    assert (sample / "runs" / "qrels.txt").read_text() == "1 0 d1 1\n2 0 d2 1\n"
    assert (sample / "runs" / "tfidf.trec").read_text().count("\n") == 4
    outcome = genm("rank", "docs", "--queries", "topics", "--rankers", "tfidf", "-o", "unjudged")
    assert outcome.code == 0, outcome.err
    assert not (sample / "unjudged" / "qrels.txt").exists()
    assert "--qrels, --grades and --lenient belong to --queries" in genm("rank", "docs", "--qrels", "rel.csv").fault
    assert "Documents in files need their queries too" in genm("rank", "docs").fault


def test_ties_of_a_rank_based_engine_are_counted(sample, genm):
    lines = [line.split() for line in (sample / "bm25.trec").read_text().splitlines()]
    rounded = [" ".join([*cells[:4], f"{float(cells[4]):.0f}", cells[5]]) for cells in lines]
    (sample / "bm25.trec").write_text("\n".join(rounded) + "\n")
    command = ("fit", "--target", "langchain", "--qrels", "qrels.txt", "bm25.trec", "dense.trec", "-o", "m.json")
    outcome = genm(*command)
    assert "of 60 lists hold equal scores. LangChain EnsembleRetriever fuses ranks" in outcome.err
    assert "so they count in the order of the runs' lines" in outcome.err
    outcome = genm("export", "m.json", "bm25.trec", "dense.trec")
    assert "of 60 lists hold equal scores" in outcome.err
    assert "hold equal scores" not in genm(*command[:1], *command[3:]).err


def test_words_that_people_write(sample, genm):
    runs = ("bm25.trec", "dense.trec")
    usual = genm("fuse", "--method", "sum", "--normalize", "minmax", *runs)
    for word in ("min-max", "min_max", "MinMax"):
        assert genm("fuse", "--method", "sum", "--normalize", word, *runs) == usual
    assert genm("fuse", "--method", "sum", "--normalize", "z-score", *runs).code == 0
    assert genm("fit", "-m", "nDCG@10", "--qrels", "qrels.txt", *runs, "-o", "m.json").code == 0
    assert "Did you mean elasticsearch or elasticsearch-rrf?" in genm("export", "m.json", "--to", "elastic").fault
    assert "Did you mean qdrant?" in genm("export", "m.json", "--to", "qdrnat").fault
    assert "Did you mean" not in genm("export", "m.json", "--to", "xyz").fault


def test_notes_of_an_export_are_few_and_complete(sample, genm):
    runs = ("bm25.trec", "dense.trec")
    genm("fit", "--target", "langchain", "--qrels", "qrels.txt", *runs, "-o", "m.json")
    outcome = genm("export", "m.json")
    assert "marks the place" not in outcome.err
    assert "remarks on how LangChain" in outcome.err
    assert outcome.err.count("\n") <= 3
    genm("fit", "--target", "opensearch", "--qrels", "qrels.txt", *runs, "-o", "m.json")
    outcome = genm("export", "m.json")
    assert (
        "note: Placeholders, to replace for each query: QUERY for the words searched for, [0.1, 0.2, 0.3]"
        in outcome.err
    )
    assert outcome.err.count("\n") <= 5


@pytest.mark.parametrize("number", ["1" + "0" * 30, "1" + "0" * 5000])
def test_huge_numbers_are_refused_in_one_line(sample, genm, number):
    runs = ("bm25.trec", "dense.trec")
    for command in (
        ("fuse", "--method", "sum", "--depth", number, *runs),
        ("fuse", "--method", "rrf", "--top", number, *runs),
        ("compare", "qrels.txt", *runs, "--resamples", number),
        ("fit", "--target", "qdrant-rrf", "--window", number, "--qrels", "qrels.txt", *runs),
        ("inspect", "--depth", f"bm25={number},dense=5", *runs),
    ):
        assert len(genm(*command).fault) < 500


def test_rounding_errors_are_shown_as_0():
    from genm.cli.console import weight_text

    assert [weight_text(w) for w in (0.0, 2e-17, -3e-16, 1e-9, 0.5)] == [
        "0.0000",
        "0.0000",
        "-0.0000",
        "1e-09",
        "0.5000",
    ]


def test_no_terminal_code_is_printed(sample, genm):
    odd = "q\x9b31m\u202eevil\u2066"
    (sample / "x.json").write_text(json.dumps({odd: {"d1": 1.0}}))
    (sample / "r.json").write_text(json.dumps({odd: {"d1": 1}}))
    for form in ("json", "table", "tsv"):
        outcome = genm("evaluate", "r.json", "x.json", "-q", "--format", form)
        assert outcome.code == 0, outcome.err
        assert not set(outcome.out) & set("\x9b\u202e\u2066")
    assert list(
        json.loads(genm("evaluate", "r.json", "x.json", "-q", "--format", "json").out)["x"]["per_query"]
    ) == [odd]
