"""Score tables: what is written is read, damage is found, and object stores do what folders do."""

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_cases import qrels_of, run_of

from genm.align import align_runs, renormalize
from genm.errors import InputError, MissingExtraError, TableError
from genm.evaluate import evaluate_run
from genm.model import Model
from genm.normalizers import Normalizer
from genm.read import write_run
from genm.scale import ScoreTable, TableWriter, evaluate_table, fuse_table, write_table
from genm.scale.storage import Storage, shown_path

parquet = pytest.importorskip("pyarrow.parquet")

A = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d1": 5.0}, "q4": {"d5": -1.0, "d6": 0.25}}
B = {"q1": {"d3": 0.9, "d4": 0.1}, "q3": {"d7": 0.5}, "q4": {"d6": 0.5, "d5": 0.25}}
GRADES = {"q1": {"d1": 1, "d9": 2, "d4": 0}, "q2": {"d1": 1}, "q3": {"d8": 1}, "q5": {"d1": 1}, "q4": {"d5": 1}}
RUNS = {"a": run_of(A, "a"), "b": run_of(B, "b")}
QRELS = qrels_of(GRADES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of five queries in shards of two rows."""
    write_table(RUNS, QRELS, tmp_path / "table", shard_rows=2, dtype="float64", normalize="none")
    return tmp_path / "table"


def model(**changes: Any) -> Model:
    minmax = Normalizer("minmax")
    fields: dict[str, Any] = {
        "rankers": ("a", "b"), "weights": (0.75, 0.25), "normalizers": (minmax, minmax), "depths": (None, None),
        "method": "newton", "measure": "AP",
    }  # fmt: skip
    return Model(**{**fields, **changes})


def test_what_the_manifest_says(folder: Path) -> None:
    table = ScoreTable.open(folder)
    assert (table.rankers, table.labelled, table.dtype, table.depths) == (("a", "b"), True, "float64", (None, None))
    assert (table.n_shards, table.n_queries, table.n_rows) == (3, 5, 8)
    assert (table.shard_rows, table.shard_queries) == ((4, 2, 2), (1, 3, 1))
    assert table.n_bytes == sum(path.stat().st_size for path in folder.glob("shard-*"))
    assert repr(table) == "<ScoreTable a, b, judged, float64: 5 queries, 8 rows, 3 shards>"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["format"], manifest["version"], manifest["digest"]) == ("genm-table", 1, table.digest)
    assert [ranker["negative"] for ranker in manifest["rankers"]] == [True, False]
    assert table.normalizers[0].missing == "minimum"  # as for runs in memory: a has a negative score
    assert manifest["columns"]["score_a"] == "float64"


def test_a_shard_is_one_row_group_of_dictionary_encoded_ids(folder: Path) -> None:
    queries = []
    for path in sorted(folder.glob("shard-*")):
        file = parquet.ParquetFile(path)
        assert file.metadata.num_row_groups == 1
        for column in (0, 1):
            assert "RLE_DICTIONARY" in file.metadata.row_group(0).column(column).encodings
        frame = file.read().to_pydict()
        queries += list(dict.fromkeys(frame["query_id"]))
        for row, doc in enumerate(frame["doc_id"]):
            assert (doc is None) == (frame["score_a"][row] is None and frame["score_b"][row] is None)
    assert queries == list(GRADES)  # each query in one file


def test_other_readers_see_judged_documents_that_no_run_returned(folder: Path) -> None:
    frame = parquet.read_table(folder / "shard-000000.parquet").to_pydict()
    assert frame["doc_id"] == ["d4", "d3", "d2", "d1", None]
    assert frame["relevance"] == [0, None, None, 1, 2]
    assert frame["score_b"] == [0.1, 0.9, None, None, None]


def test_without_doc_ids_the_rest_is_the_same(folder: Path) -> None:
    table = ScoreTable.open(folder)
    for number, shard in enumerate(table.read_shards()):
        bare = table.read_shard(number, doc_ids=False)
        assert len(bare.docs) == 0
        assert (bare.doc == -1).all()
        for name in ("starts", "raw", "scores", "relevance", "unretrieved", "query_weights"):
            np.testing.assert_array_equal(getattr(bare, name), getattr(shard, name))


def test_other_normalisers_need_no_new_table(folder: Path) -> None:
    table, aligned = ScoreTable.open(folder), align_runs(RUNS, QRELS)
    for kind in ("minmax", "max", "none", "zscore", "reciprocal"):
        scores = np.concatenate([shard.scores for shard in table.with_normalizers(kind).read_shards()])
        np.testing.assert_array_equal(scores, renormalize(aligned, kind).scores)
    assert table.normalizers == ScoreTable.open(folder).normalizers


def test_plain_float32_scores_are_those_of_the_kernel(tmp_path: Path) -> None:
    scores = {"q": {"a": -0.0, "b": 2.5, "c": -3.0}}
    table = write_table({"r": run_of(scores)}, None, tmp_path / "t", normalize="none")
    aligned = align_runs({"r": run_of(scores)}, normalize="none")
    assert table.read_shard(0).scores.tobytes() == aligned.scores.tobytes()


def test_a_table_can_be_sent_to_another_process(folder: Path) -> None:
    table = ScoreTable.open(folder)
    table.check()
    sent = pickle.loads(pickle.dumps(table))
    assert (sent.digest, sent.shards, sent._verified) == (table.digest, table.shards, set())
    np.testing.assert_array_equal(sent.read_shard(0).scores, table.read_shard(0).scores)


def test_damaged_files_are_found(folder: Path) -> None:
    shard = folder / "shard-000001.parquet"
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(TableError, match=r"shard-000001.parquet: expected .* bytes with SHA-256 .*; found SHA-256"):
        ScoreTable.open(folder).read_shard(1)
    ScoreTable.open(folder).read_shard(0)
    with pytest.raises(TableError, match="found SHA-256"):
        ScoreTable.open(folder).check()
    with pytest.raises(TableError, match=r"expected a shard of this table; found one that cannot be read"):
        ScoreTable.open(folder, verify=False).read_shard(1)
    shard.write_bytes(content[:-1])
    with pytest.raises(TableError, match=rf"expected {len(content):,} bytes.*; found {len(content) - 1:,} bytes"):
        ScoreTable.open(folder).read_shard(1)
    shard.unlink()
    with pytest.raises(TableError, match=r"expected the shard that manifest.json lists; found no such file"):
        ScoreTable.open(folder).read_shard(1)
    with pytest.raises(InputError, match=r"shard: expected 0 to 2 of .*; found 4"):
        ScoreTable.open(folder).read_shard(4)


def test_shards_of_another_table_are_found(folder: Path, tmp_path: Path) -> None:
    write_table(RUNS, QRELS, tmp_path / "other", shard_rows=100)
    content = (tmp_path / "other" / "shard-000000.parquet").read_bytes()
    (folder / "shard-000000.parquet").write_bytes(content)
    with pytest.raises(TableError, match="damaged or changed"):
        ScoreTable.open(folder).read_shard(0)
    with pytest.raises(TableError, match=r"5 queries and 8 rows instead of 1 and 4"):
        ScoreTable.open(folder, verify=False).read_shard(0)


CHANGES: dict[str, tuple[Any, str]] = {
    "format": ({"format": "zip"}, 'expected "format": "genm-table"; found "zip"'),
    "version": ({"version": 9}, "expected table version 1; found 9.*Use the genm release that wrote it"),
    "digest": ({"rows": 9}, "expected the digest .* of what the manifest says; found"),
    "unknown": ({"colour": "red"}, "unknown key 'colour'"),
    "kind": ({"dtype": "float16"}, 'dtype: expected "float32" or "float64"; found "float16"'),
    "shards": ({"shards": [{"file": "x"}]}, r'shards\[0\]: expected the key "sha256"'),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_manifest_is_refused(folder: Path, change: str) -> None:
    place = folder / "manifest.json"
    changes, message = CHANGES[change]
    place.write_text(json.dumps({**json.loads(place.read_text()), **changes}))
    with pytest.raises(TableError, match=message):
        ScoreTable.open(folder)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"expected a score table; found no manifest.json in it. Make one by genm"):
        ScoreTable.open(tmp_path / "nothing")
    (tmp_path / "manifest.json").write_text("[1")
    with pytest.raises(TableError, match=r"manifest.json:1: expected JSON"):
        ScoreTable.open(tmp_path)
    with pytest.raises(InputError, match="dtype: expected float32 or float64; found 'int8'"):
        TableWriter(tmp_path / "t", ("a",), dtype="int8")  # type: ignore[arg-type]


@pytest.mark.parametrize("weights", [(0.75, 0.25), (0.0, 1.0), (0.5, -0.5)])
def test_a_model_gives_on_a_table_what_it_gives_on_runs(folder: Path, tmp_path: Path, weights: Any) -> None:
    table, learned = ScoreTable.open(folder), model(weights=weights)
    expected = learned.fuse(RUNS)
    found = evaluate_table(table, learned, "AP, nDCG@10")
    assert found.means.tolist() == evaluate_run(expected, QRELS, "AP, nDCG@10").means.tolist()
    notes = fuse_table(table, learned, tmp_path / "fused.trec", tag="x", top=2)
    assert notes == ()
    aligned = learned.align(RUNS, QRELS)
    write_run(learned.fuse_aligned(aligned, name="x", top=2), tmp_path / "expected.trec", tag="x")
    assert (tmp_path / "fused.trec").read_bytes() == (tmp_path / "expected.trec").read_bytes()


def test_rankers_are_chosen_by_name(folder: Path, tmp_path: Path) -> None:
    minmax = Normalizer("minmax")
    table, other = ScoreTable.open(folder), model(rankers=("b", "a"), weights=(0.25, 0.75))
    assert evaluate_table(table, other).means.tolist() == evaluate_table(table, model()).means.tolist()
    one = model(rankers=("b",), weights=(1.0,), normalizers=(minmax,), depths=(None,))
    expected = evaluate_run(RUNS["b"], QRELS, "AP")
    assert evaluate_table(table, one).means.tolist() == expected.means.tolist()


def test_a_model_that_does_not_fit_is_refused(folder: Path, tmp_path: Path) -> None:
    table = ScoreTable.open(folder)
    with pytest.raises(TableError, match=r"expected the rankers of the model, a, c; found a, b, without c"):
        evaluate_table(table, model(rankers=("a", "c")))
    with pytest.raises(TableError, match=r"depth of the model for 'b', 10; found all documents"):
        fuse_table(table, model(depths=(None, 10)), tmp_path / "x.trec")
    assert not (tmp_path / "x.trec").exists()
    unjudged = write_table(RUNS, None, tmp_path / "unjudged")
    with pytest.raises(InputError, match=r"expected judgments; found none. Make the table with judgments"):
        evaluate_table(unjudged, model())


def test_notes_of_shards_become_one(folder: Path) -> None:
    notes = {note.code: note for note in evaluate_table(ScoreTable.open(folder), model()).notes}
    assert notes["missing-zero"].count == 1


class TestObjectStores:
    """fsspec's file system in memory stands for an object store: it has no folders and no renaming."""

    @pytest.fixture(autouse=True)
    def store(self) -> Any:
        fsspec = pytest.importorskip("fsspec")
        files = fsspec.filesystem("memory")
        files.store.clear()
        files.pseudo_dirs[:] = [""]
        return files

    def test_the_same_table(self, folder: Path, store: Any) -> None:
        options: Any = {"shard_rows": 2, "dtype": "float64", "normalize": "none"}
        table = write_table(RUNS, QRELS, "memory://bucket/table", **options)
        assert table.digest == ScoreTable.open(folder).digest
        for name in ("manifest.json", "shard-000000.parquet"):
            assert store.cat_file(f"/bucket/table/{name}") == (folder / name).read_bytes()
        opened = pickle.loads(pickle.dumps(ScoreTable.open("memory://bucket/table/")))
        opened.check()
        assert opened.path == "memory://bucket/table"
        np.testing.assert_array_equal(opened.read_shard(0).scores, table.read_shard(0).scores)
        again = write_table(RUNS, None, "memory://bucket/table")  # replaced whole
        assert sorted(Storage("memory://bucket/table").names()) == ["manifest.json", "shard-000000.parquet"]
        assert not again.labelled

    def test_going_on(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        class Killed(BaseException):
            pass

        def die(*_: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(TableWriter, "finish", die)
            with pytest.raises(Killed):
                write_table(RUNS, QRELS, "memory://bucket/t", shard_rows=2)
        said: list[str] = []
        write_table(RUNS, QRELS, "memory://bucket/t", shard_rows=2, tell=said.append)
        assert "going on after 3 shards" in said[-1]

    def test_what_is_missing_or_in_the_way(self, store: Any) -> None:
        with pytest.raises(TableError, match=r"memory://bucket/no: expected a score table; found no manifest.json"):
            ScoreTable.open("memory://bucket/no")
        store.pipe_file("/bucket/full/photo.jpg", b"x")
        with pytest.raises(InputError, match=r"found other files, such as photo.jpg. Name another folder"):
            write_table(RUNS, None, "memory://bucket/full")
        write_table(RUNS, None, "memory://bucket/table")
        store.rm_file("/bucket/table/shard-000000.parquet")
        with pytest.raises(TableError, match=r"expected the shard that manifest.json lists; found no such file"):
            ScoreTable.open("memory://bucket/table").read_shard(0)

    def test_back_ends_that_are_missing(self) -> None:
        with pytest.raises(InputError, match=r"nosuch://x: expected an address that fsspec knows.*Check its"):
            ScoreTable.open("nosuch://x")
        pytest.importorskip("fsspec")
        if "s3fs" not in sys.modules:
            pytest.MonkeyPatch().setitem(sys.modules, "s3fs", None)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"s3://b/t: expected the back end .*Install it: s3fs for s3"):
            ScoreTable.open("s3://b/t")

    def test_without_fsspec(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "fsspec.core", None)
        with pytest.raises(MissingExtraError, match=r"memory://x: an object store .*genm\[scale\]"):
            ScoreTable.open("memory://x")

    def test_credentials_are_never_shown(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        address = "memory://me:hunter2@host/table?sig=SECRET"
        assert shown_path(address) == "memory://host/table"
        storage = Storage("memory://me:hunter2@host/t", {"key": "KEY12345"})
        assert "hunter2" not in repr(storage)

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError("no access for me:hunter2@ with KEY12345 at memory://me:hunter2@host/t")

        monkeypatch.setattr(store, "cat_file", refuse)
        storage._opened = store, "/host/t"
        with pytest.raises(TableError) as caught:
            storage.read("x")
        assert "Check the address, the connection and the credentials" in str(caught.value)
        assert "KEY12345" not in str(caught.value)
        assert "memory://me:hunter2" not in str(caught.value)


def test_without_pyarrow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"a score table .*genm\[scale\]"):
        ScoreTable.open(folder).read_shard(0)
