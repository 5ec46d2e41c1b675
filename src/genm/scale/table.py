"""Score tables: aligned runs on disk, as Parquet files of whole queries and a manifest.

A table is a folder with `manifest.json` and one Parquet file per shard. A shard holds some queries completely, in
one row group, so no reader ever sees a part of a query. Its columns are

    query_id      text, dictionary-encoded; the rows of a query are together
    doc_id        text, dictionary-encoded; descending within a query, as `Aligned` has it
    relevance     32-bit grade; null where the document is not judged
    query_weight  the weight of the query, the same in all its rows
    score_NAME    the raw score of the ranker NAME, float32 or float64; null where it did not return the document

A judged document that no ranker returned has a row without doc_id and scores, after the others of its query. A
query without any document has one row with nothing but its id and weight.

Scores are stored as the rankers gave them and normalised when a shard is read, by the normalisers in the manifest:
the normalisers see one query at a time, so this gives the same numbers as aligning everything in memory.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from genm._math.scaling import scale_lists
from genm.align import UNJUDGED, Aligned, check_aligned
from genm.align.aligned import offsets, per_query
from genm.errors import InputError, MissingExtraError, ModelError, TableError
from genm.ids import Ids
from genm.io import PathLike
from genm.normalizers import (
    Normalize,
    Normalizer,
    kernel_rules,
    negative_columns,
    normalizer_from_json,
    normalizer_to_json,
    normalizers_by_sign,
    normalizers_of,
)
from genm.records import Note
from genm.scale.storage import Storage
from genm.strict_json import Count, PositiveCount, Strict, convert, parse_json

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "manifest.json"
TABLE_VERSION = 1
SHARD_BYTES = 64 * 2**20
"""About how large a shard is by default: large enough for object stores, small beside a worker's memory."""

ScoreType = Literal["float32", "float64"]

_HEAD = "genm-table"
_WITHOUT_SCORES = 16
"""About how many bytes a row takes beside its scores."""
_FIXED = ("query_id", "doc_id", "relevance", "query_weight")


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a table: what the manifest says of it."""

    file: str
    sha256: str
    bytes: int
    queries: int
    rows: int
    """Rows of `Aligned`: documents that a ranker returned."""
    first_query: str


class _ShardRow(Strict, frozen=True):
    """The fields of `Shard`."""

    file: str
    sha256: str
    bytes: PositiveCount
    queries: PositiveCount
    rows: Count
    first_query: str


class _RankerRow(Strict, frozen=True):
    name: str
    depth: PositiveCount | None
    negative: bool
    """Whether a score is below 0: some normalisers depend on it."""
    normalizer: dict[str, Any]


class _NoteRow(Strict, frozen=True):
    code: str
    count: int
    text: str


class _Manifest(Strict, frozen=True):
    """The layout of the manifest, in the order of its keys."""

    format: str
    version: int
    digest: str
    dtype: ScoreType
    labelled: bool
    queries: Count
    rows: Count
    columns: dict[str, str]
    rankers: tuple[_RankerRow, ...]
    shards: tuple[_ShardRow, ...]
    notes: tuple[_NoteRow, ...]


class ScoreTable:
    """A score table that was opened: what its manifest says, and its shards on demand.

    It holds no scores, can be sent to other processes, and reads a shard at each call. The first time that a shard
    is read, its checksum is compared with the manifest's.
    """

    def __init__(self, storage: Storage, manifest: _Manifest, *, verify: bool = True) -> None:
        self.path = storage.shown
        """Where the table is, without credentials."""
        self.rankers: tuple[str, ...] = tuple(row.name for row in manifest.rankers)
        self.depths: tuple[int | None, ...] = tuple(row.depth for row in manifest.rankers)
        self.normalizers: tuple[Normalizer, ...] = tuple(
            normalizer_from_json(row.normalizer, f"{self.path}/{MANIFEST}", f"rankers[{i}].normalizer")
            for i, row in enumerate(manifest.rankers)
        )
        self._negative = np.array([row.negative for row in manifest.rankers], np.bool_)
        self.labelled = manifest.labelled
        """Whether judgments were given."""
        self.dtype: ScoreType = manifest.dtype
        """The type in which scores are stored."""
        self.shards: tuple[Shard, ...] = tuple(
            Shard(s.file, s.sha256, s.bytes, s.queries, s.rows, s.first_query) for s in manifest.shards
        )
        self.notes: tuple[Note, ...] = tuple(Note(n.code, n.count, n.text) for n in manifest.notes)
        """What was repaired or left out when the table was made."""
        self.digest = manifest.digest
        """A SHA-256 of the content: equal for equal tables, wherever they are."""
        self._storage, self._verify = storage, verify
        self._verified: set[int] = set()

    @classmethod
    def open(
        cls, path: PathLike, *, verify: bool = True, storage_options: Mapping[str, Any] | None = None
    ) -> "ScoreTable":
        """Open the table in a folder, or at an address such as s3://bucket/table.

        `verify=False` trusts the files and compares no checksums. `storage_options` go to the back end of fsspec.
        """
        storage = Storage(path, storage_options)
        place = f"{storage.shown}/{MANIFEST}"
        try:
            content = storage.read(MANIFEST)
        except (FileNotFoundError, NotADirectoryError):
            raise TableError(
                f"{storage.shown}: expected a score table; found no {MANIFEST} in it. Make one by genm shard; if "
                "that was interrupted, run it again and it goes on."
            ) from None
        except OSError as error:
            raise TableError(f"{place}: cannot be read ({error.strerror}). Check its permissions.") from None
        return cls(storage, _manifest_of(content, place), verify=verify)

    def __repr__(self) -> str:
        """Return the rankers and sizes on one line."""
        return (
            f"<ScoreTable {', '.join(self.rankers)}, {'' if self.labelled else 'not '}judged, {self.dtype}: "
            f"{self.n_queries:,} queries, {self.n_rows:,} rows, {self.n_shards:,} shards>"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Another process reads through its own connection, so it verifies for itself."""
        return {**self.__dict__, "_verified": set()}

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.shards)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return sum(self.shard_queries)

    @property
    def n_rows(self) -> int:
        """Number of rows: documents that a ranker returned."""
        return sum(self.shard_rows)

    @property
    def shard_rows(self) -> tuple[int, ...]:
        """Rows of each shard."""
        return tuple(shard.rows for shard in self.shards)

    @property
    def shard_queries(self) -> tuple[int, ...]:
        """Queries of each shard."""
        return tuple(shard.queries for shard in self.shards)

    @property
    def n_bytes(self) -> int:
        """Bytes of all shards on disk."""
        return sum(shard.bytes for shard in self.shards)

    def with_normalizers(self, normalize: Normalize) -> "ScoreTable":
        """Return the same table under other normalisers, which are applied when shards are read."""
        other: ScoreTable = object.__new__(ScoreTable)
        chosen = normalizers_by_sign(normalize, self.rankers, self._negative)
        other.__dict__.update(self.__dict__, normalizers=chosen)
        return other

    def read_shard(self, number: int, *, doc_ids: bool = True) -> Aligned:
        """Return the queries of one shard as `align_runs` would: judgments, weights and normalised scores.

        Without `doc_ids`, which learning does not need, reading is several times as fast: `docs` is then empty and
        `doc` -1 everywhere; the order of the rows is the same.
        """
        return self.read_columns(number, doc_ids=doc_ids).aligned()

    def read_columns(self, number: int, *, doc_ids: bool = False) -> "ShardColumns":
        """Return one shard as its columns, from which any of its queries are brought into rows."""
        if not 0 <= number < self.n_shards:
            raise InputError(f"shard: expected 0 to {self.n_shards - 1} of {self.path}; found {number}.")
        shard = self.shards[number]
        content = self._content(number, shard)
        try:
            return ShardColumns(self, content, shard, doc_ids=doc_ids)
        except (KeyError, ValueError, TypeError, OSError) as error:  # pyarrow's errors are of these kinds
            raise TableError(
                f"{self.path}/{shard.file}: expected a shard of this table; found one that cannot be read "
                f"({error!s:.120}). Make the table again by genm shard."
            ) from None

    def read_shards(self, *, doc_ids: bool = True) -> Iterator[Aligned]:
        """Yield all shards in order, one at a time."""
        for number in range(self.n_shards):
            yield self.read_shard(number, doc_ids=doc_ids)

    def check(self) -> None:
        """Read every file and compare it with the manifest; a damaged or missing one raises TableError."""
        for number, shard in enumerate(self.shards):
            self._verified.discard(number)
            self._compare(self._read(shard), shard)
            self._verified.add(number)

    def _read(self, shard: Shard) -> bytes:
        place = f"{self.path}/{shard.file}"
        try:
            return self._storage.read(shard.file)
        except FileNotFoundError:
            raise TableError(
                f"{place}: expected the shard that {MANIFEST} lists; found no such file. Copy the whole folder, or "
                "make the table again by genm shard."
            ) from None
        except OSError as error:
            raise TableError(f"{place}: cannot be read ({error.strerror}). Check its permissions.") from None

    def _content(self, number: int, shard: Shard) -> bytes:
        content = self._read(shard)
        if self._verify and number not in self._verified:
            self._compare(content, shard)
            self._verified.add(number)
        return content

    def _compare(self, content: bytes, shard: Shard) -> None:
        found = f"{len(content):,} bytes"
        if len(content) == shard.bytes:
            found = f"SHA-256 {hashlib.sha256(content).hexdigest()[:16]}..."
            if hashlib.sha256(content).hexdigest() == shard.sha256:
                return
        raise TableError(
            f"{self.path}/{shard.file}: expected {shard.bytes:,} bytes with SHA-256 {shard.sha256[:16]}..., as "
            f"{MANIFEST} says; found {found}. The file was damaged or changed: copy it again, or make the table "
            "again."
        )

    @property
    def keeps_scores(self) -> bool:
        """Whether normalised scores are the raw ones, where nothing is missing; -0 becomes 0 in both."""
        return self.dtype == "float32" and all(
            replace(n, missing=0.0) == Normalizer("none") for n in self.normalizers
        )


class ShardColumns:
    """The columns of a shard, read and decompressed.

    `aligned` brings some of its queries into rows. A block of queries at a time needs little memory beside the
    columns, and what is computed from a block finds it in the processor's cache.
    """

    def __init__(self, table: ScoreTable, content: bytes, shard: Shard, *, doc_ids: bool) -> None:
        arrow, parquet = _pyarrow()
        self._table = table
        names = ["query_id", *["doc_id"] * doc_ids, *_FIXED[2:], *(f"score_{name}" for name in table.rankers)]
        frame = parquet.ParquetFile(arrow.BufferReader(content)).read(columns=names, use_threads=False)
        query = frame.column("query_id").combine_chunks()
        self.queries = _ids_of(query.dictionary)
        self._starts = offsets(np.bincount(query.indices.to_numpy(), minlength=len(self.queries)))
        self._weights = frame.column("query_weight").to_numpy()[self._starts[:-1]]
        self._relevance = frame.column("relevance").fill_null(int(UNJUDGED)).to_numpy()
        self._scores = [frame.column(f"score_{name}").combine_chunks() for name in table.rankers]
        self._is_row: NDArray[np.bool_] | None = None
        """Whether a ranker returned it, for each row of the file; None if that holds for all."""
        if all(column.null_count for column in self._scores):
            held = [column.is_valid().to_numpy(zero_copy_only=False) for column in self._scores]
            is_row = np.logical_or.reduce(held)
            self._is_row = None if is_row.all() else is_row
        self._docs, self._doc = Ids.of(()), None
        if doc_ids:
            doc = frame.column("doc_id").combine_chunks()
            self._docs, self._doc = _ids_of(doc.dictionary), doc.indices.fill_null(-1).to_numpy()
        n_rows = int(self._starts[-1] if self._is_row is None else self._is_row.sum())
        if (len(self.queries), n_rows) != (shard.queries, shard.rows):
            raise ValueError(
                f"{len(self.queries)} queries and {n_rows} rows instead of {shard.queries} and {shard.rows}"
            )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.queries)

    def blocks(self, n_rows: int) -> list[tuple[int, int]]:
        """Return consecutive ranges of queries with at most so many rows each, and at least one query."""
        cuts = [0]
        while cuts[-1] < self.n_queries:
            last = int(np.searchsorted(self._starts, self._starts[cuts[-1]] + n_rows, side="right")) - 1
            cuts.append(min(max(last, cuts[-1] + 1), self.n_queries))
        return list(itertools.pairwise(cuts))

    def aligned(self, first: int = 0, last: int | None = None) -> Aligned:
        """Return the queries first:last as `align_runs` would; all of them by default."""
        last = self.n_queries if last is None else last
        begin, end = int(self._starts[first]), int(self._starts[last])
        starts, table = self._starts[first : last + 1] - begin, self._table
        raw = np.empty((end - begin, len(table.rankers)))
        retrieved, complete = np.ones(raw.shape, np.bool_), True
        for k, column in enumerate(self._scores):
            raw[:, k] = column.slice(begin, end - begin).to_numpy(zero_copy_only=False)
            if column.null_count:
                complete = False
                retrieved[:, k] = ~np.isnan(raw[:, k])
                raw[~retrieved[:, k], k] = 0.0
        relevance = self._relevance[begin:end]
        doc = np.full(end - begin, -1, np.int32) if self._doc is None else self._doc[begin:end]
        unretrieved_starts, unretrieved = np.zeros(last - first + 1, np.int64), np.zeros(0, np.int32)
        if self._is_row is not None:
            is_row = self._is_row[begin:end]
            left = ~is_row & (relevance != UNJUDGED)
            unretrieved_starts, unretrieved = offsets(per_query(left, starts)), relevance[left]
            starts = offsets(per_query(is_row, starts))
            raw, retrieved, relevance, doc = raw[is_row], retrieved[is_row], relevance[is_row], doc[is_row]
        if complete and table.keeps_scores:
            raw += 0.0  # minus zero becomes zero, as in `scale_lists`
            scores = raw
        else:
            scores = self._normalized(raw, retrieved, starts)
        return Aligned(
            rankers=table.rankers,
            queries=self.queries.take(np.arange(first, last)),
            docs=self._docs,
            starts=starts,
            doc=np.require(doc, np.int32, ("C", "W")),
            raw=raw,
            retrieved=retrieved,
            scores=scores,
            normalizers=table.normalizers,
            depths=table.depths,
            labelled=table.labelled,
            relevance=np.require(relevance, np.int32, ("C", "W")),
            unretrieved_starts=unretrieved_starts,
            unretrieved=np.require(unretrieved, np.int32, ("C", "W")),
            query_weights=np.require(self._weights[first:last], np.float64, ("C", "W")),
        )

    def _normalized(
        self, raw: NDArray[np.float64], retrieved: NDArray[np.bool_], starts: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return scale_lists(raw, retrieved, starts, kernel_rules(self._table.normalizers))


class TableWriter:
    """Writes a table shard by shard: `add` for each shard in order, then `finish`, which writes the manifest."""

    def __init__(
        self,
        to: PathLike | Storage,
        rankers: Sequence[str],
        *,
        normalize: Normalize = "minmax",
        depths: Sequence[int | None] | None = None,
        labelled: bool = True,
        dtype: ScoreType = "float32",
    ) -> None:
        self.storage = to if isinstance(to, Storage) else Storage(to)
        self.rankers, self.normalize, self.labelled, self.dtype = tuple(rankers), normalize, labelled, dtype
        if dtype not in ("float32", "float64"):
            raise InputError(f"dtype: expected float32 or float64; found {dtype!r}.")
        normalizers_of(normalize, self.rankers)
        self.depths = tuple(depths) if depths is not None else (None,) * len(self.rankers)
        self.shards: list[Shard] = []
        self._negative = np.zeros(len(self.rankers), np.bool_)
        self.storage.make()

    def add(self, aligned: Aligned) -> Shard:
        """Write the next shard, and return what the manifest will say of it."""
        content, shard = encode_shard(aligned, len(self.shards), self.dtype)
        self.storage.write(shard.file, content)
        self.append(shard, negative_columns(aligned.raw, aligned.retrieved))
        return shard

    def append(self, shard: Shard, negative: NDArray[np.bool_]) -> None:
        """Enter a shard that is already written, and which of its rankers have negative scores."""
        self.shards.append(shard)
        self._negative |= negative

    def finish(self, notes: Sequence[Note] = ()) -> ScoreTable:
        """Write the manifest, which makes the folder a table, and open it."""
        normalizers = normalizers_by_sign(self.normalize, self.rankers, self._negative)
        rankers = [
            {"name": name, "depth": depth, "negative": negative, "normalizer": normalizer_to_json(normalizer)}
            for name, depth, negative, normalizer in zip(
                self.rankers, self.depths, self._negative.tolist(), normalizers, strict=True
            )
        ]
        content = {
            "dtype": self.dtype,
            "labelled": self.labelled,
            "queries": sum(shard.queries for shard in self.shards),
            "rows": sum(shard.rows for shard in self.shards),
            "columns": _column_types(self.rankers, self.dtype),
            "rankers": rankers,
            "shards": [asdict(shard) for shard in self.shards],
        }
        document = {"format": _HEAD, "version": TABLE_VERSION, "digest": _digest(content), **content}
        document["notes"] = [asdict(note) for note in notes]
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        self.storage.write(MANIFEST, text.encode())
        return ScoreTable(self.storage, _manifest_of(text.encode(), f"{self.storage.shown}/{MANIFEST}"))


def rows_per_shard(n_rankers: int, dtype: ScoreType, n_bytes: int = SHARD_BYTES) -> int:
    """Return how many rows make a shard of about so many bytes."""
    return max(1, n_bytes // (n_rankers * np.dtype(dtype).itemsize + _WITHOUT_SCORES))


def encode_shard(aligned: Aligned, number: int, dtype: ScoreType) -> tuple[bytes, Shard]:
    """Return the Parquet file of a shard, the same bytes for the same content, and its line of the manifest."""
    check_aligned(aligned)
    if not len(aligned.queries):
        raise InputError("shard: expected at least one query; found none.")
    arrow, parquet = _pyarrow()
    lengths, n_left = np.diff(aligned.starts), np.diff(aligned.unretrieved_starts)
    n_bare = ((lengths + n_left) == 0).astype(np.int64)
    starts = offsets(lengths + n_left + n_bare)
    n = int(starts[-1])
    everywhere = n == len(aligned.doc)
    row = np.arange(len(aligned.doc))
    if not everywhere:
        row += np.repeat(starts[:-1] - aligned.starts[:-1], lengths)
    absent = np.ones(n, np.bool_)
    absent[row] = False
    relevance = np.full(n, UNJUDGED)
    relevance[row] = aligned.relevance
    left = np.arange(len(aligned.unretrieved))
    left += np.repeat(starts[:-1] + lengths - aligned.unretrieved_starts[:-1], n_left)
    relevance[left] = np.maximum(aligned.unretrieved, UNJUDGED + np.int32(1))
    doc = np.zeros(n, np.int32)
    docs, doc[row] = used_docs(aligned)
    query = np.repeat(np.arange(len(lengths), dtype=np.int32), np.diff(starts))
    encoded = arrow.DictionaryArray.from_arrays
    columns = {
        "query_id": encoded(arrow.array(query), _texts(aligned.queries)),
        "doc_id": encoded(arrow.array(doc, mask=None if everywhere else absent), _texts(docs)),
        "relevance": arrow.array(relevance, mask=relevance == UNJUDGED),
        "query_weight": arrow.array(aligned.query_weights[query]),
    }
    for k, name in enumerate(aligned.rankers):
        score, missing = np.zeros(n, dtype), np.ones(n, np.bool_)
        score[row], missing[row] = aligned.raw[:, k], ~aligned.retrieved[:, k]
        columns[f"score_{name}"] = arrow.array(score, mask=missing if missing.any() else None)
    table = arrow.table(columns)
    sink = arrow.BufferOutputStream()
    with parquet.ParquetWriter(
        sink,
        table.schema,
        use_dictionary=list(_FIXED),
        dictionary_pagesize_limit=2**31 - 1,
        compression={name: "zstd" if name in _FIXED else "lz4" for name in table.column_names},
        write_statistics=["query_id"],
    ) as writer:
        writer.write_table(table, row_group_size=n)
    content = sink.getvalue().to_pybytes()
    digest = hashlib.sha256(content).hexdigest()
    name = shard_file(number)
    return content, Shard(name, digest, len(content), len(lengths), len(aligned.doc), aligned.queries[0])


def shard_file(number: int) -> str:
    """Return the name of a shard's file."""
    return f"shard-{number:06}.parquet"


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("a score table", "scale") from None
    return pa, parquet


def _column_types(rankers: Sequence[str], dtype: ScoreType) -> dict[str, str]:
    scores = {f"score_{name}": dtype for name in rankers}
    return {"query_id": "string", "doc_id": "string", "relevance": "int32", "query_weight": "float64", **scores}


def used_docs(aligned: Aligned) -> tuple[Ids, NDArray[np.int32]]:
    """Return the documents that occur, in the order of their codes, and each row's code among them."""
    used = np.zeros(len(aligned.docs), np.bool_)
    used[aligned.doc] = True
    if used.all():
        return aligned.docs, aligned.doc
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return aligned.docs.take(np.flatnonzero(used)), number[aligned.doc]


def _texts(ids: Ids) -> "pa.Array":
    arrow, _ = _pyarrow()
    if len(ids.text) >= 2**31:
        raise InputError(f"shard: expected ids of less than 2 GiB in all; found {len(ids.text):,} bytes.")
    buffers = [None, arrow.py_buffer(ids.starts.astype(np.int32)), arrow.py_buffer(np.ascontiguousarray(ids.text))]
    return arrow.Array.from_buffers(arrow.string(), len(ids), buffers)


def _ids_of(texts: "pa.Array") -> Ids:
    _, starts, text = texts.buffers()
    begin = np.frombuffer(starts, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    content = np.frombuffer(text, np.uint8) if text is not None else np.zeros(0, np.uint8)
    return Ids(content[begin[0] : begin[-1]].copy(), begin - begin[0])


def _digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what the manifest says of the data."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _manifest_of(content: bytes, place: str) -> _Manifest:
    advice = "Give a folder that genm shard wrote."
    try:
        document = parse_json(content, place, what="a manifest", advice=advice)
        found = document.get("format") if isinstance(document, dict) else None
        if found != _HEAD:
            raise TableError(
                f'{place}: expected "format": "{_HEAD}"; found {json.dumps(found)[:60]}. This is not the manifest '
                f"of a score table. {advice}"
            )
        if document.get("version") != TABLE_VERSION:
            found = json.dumps(document.get("version"))[:60]
            raise TableError(
                f"{place}: expected table version {TABLE_VERSION}; found {found}. "
                "Use the genm release that wrote it, or make the table again."
            )
        manifest = convert(document, _Manifest, place)
    except ModelError as error:
        raise TableError(str(error)) from None
    said = {key: document[key] for key in document if key not in ("format", "version", "digest", "notes")}
    if _digest(said) != manifest.digest:
        raise TableError(
            f"{place}: expected the digest {manifest.digest[:16]}... of what the manifest says; found "
            f"{_digest(said)[:16]}... Was the file edited by hand? Make the table again by genm shard."
        )
    return manifest
