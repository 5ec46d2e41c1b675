import json

import pytest

TEXTS = {
    "fox": "the red fox hunts mice in the forest at night",
    "sea": "the blue sea is deep and salt water moves with the tide",
    "sky": "the sky is blue because light is scattered by the air",
    "ship": "ships cross the sea and harbours wait for the tide",
    "bird": "birds fly in the sky and sleep in the forest",
    "mice": "mice eat grain and hide from the fox and from birds",
}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A collection of 24 documents and 6 queries, as a BEIR folder."""
    pytest.importorskip("Stemmer", reason="PyStemmer is not installed")
    folder = tmp_path_factory.mktemp("beir") / "tiny"
    (folder / "qrels").mkdir(parents=True)
    words = {name: text.split() for name, text in TEXTS.items()}
    docs = {
        f"{name}{part}": " ".join(texts[part:] + texts[: part + 2] + ["common"] * (part + 1))
        for name, texts in words.items()
        for part in range(4)
    }
    rows = [json.dumps({"_id": name, "title": "", "text": text}) for name, text in docs.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    queries = [json.dumps({"_id": f"q-{name}", "text": " ".join(texts[1:4])}) for name, texts in words.items()]
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n")
    judged = [f"q-{name}\t{name}{part}\t1" for name in TEXTS for part in range(1 + len(name) % 3)]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    return folder


@pytest.fixture(scope="session")
def found(tiny, tmp_path_factory):
    """The whole experiment on the tiny collection."""
    from genm.reproduce import reproduce

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENM_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("GENM_DATA", raising=False)
        return reproduce([str(tiny)], splits=2, seed=3)
