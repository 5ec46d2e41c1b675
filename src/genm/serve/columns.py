"""Bodies of `/v1/fuse` whose lists are columns, read without making an object of each id.

Most of the time of a request with thousands of documents goes into strings: making them, looking them up, writing
them again. Here the ids stay bytes of the body. They are numbered by a kernel, and the answer's ids are copied out
of the same bytes. Only plain ASCII ids are read so, and only for models whose result does not depend on the order
of the rows. Everything else, faults too, is left to the general way, which says what is wrong.
"""

from collections.abc import Sequence
from itertools import chain
from typing import overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from genm._math.json_text import GAVE_UP, enter_columns, write_ids
from genm._typing import Ints
from genm.serve.bodies import SECRET, check_keys, count_keys, table_size
from genm.serve.fusion import Fusion, QueryScores
from genm.serve.messages import MAX_NAME, FuseRequest, Name, RequestError


class RawColumns(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One ranker's list as two columns, the ids as they stand in the body."""

    doc_ids: msgspec.Raw
    scores: list[float]


class ColumnarRequest(FuseRequest, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A fuse request whose lists are all columns."""

    runs: dict[Name, RawColumns]  # type: ignore[assignment]


class TextIds(Sequence[str]):
    """Ids that are parts of a text; each becomes a string when it is asked for."""

    def __init__(self, text: NDArray[np.uint8], spans: Ints) -> None:
        """Take the text, and where each id begins and ends in it."""
        self._text, self._spans = text, spans

    def __len__(self) -> int:
        return len(self._spans)

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...

    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        start, end = self._spans[row]
        return self._text[start:end].tobytes().decode("ascii")

    def encoded(self, rows: Ints) -> msgspec.Raw:
        """Return the ids of some rows as a JSON list."""
        out = np.empty(len(self._text) + 2, np.uint8)
        return msgspec.Raw(out[: write_ids(self._text, self._spans, rows, out)].tobytes())


class ColumnReader:
    """Reads columnar bodies for one model."""

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self._decoder = msgspec.json.Decoder(ColumnarRequest)

    def read(self, content: bytes) -> tuple[FuseRequest, QueryScores] | None:
        """Return the request and its documents with normalised scores, or None where the general way is needed."""
        if self.fusion.needs_order:
            return None
        try:
            request = self._decoder.decode(content)
            names = self.fusion.names(request.runs, request.rankers)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, RequestError):
            return None
        if len(names) < len(request.runs):
            return None
        query = self._join([request.runs[name] for name in names], names)
        if query is None:
            return None
        check_keys(content, count_keys(request, n_columns=len(names)))
        return request, query

    def _join(self, lists: Sequence[RawColumns], names: Sequence[str]) -> QueryScores | None:
        sizes = [len(one.scores) for one in lists]
        if any(not 0 < size <= deepest for size, deepest in zip(sizes, self.fusion.deepest(names), strict=True)):
            return None
        n = sum(sizes)
        text = np.frombuffer(b"".join(one.doc_ids for one in lists), np.uint8)
        scores = np.fromiter(chain.from_iterable(one.scores for one in lists), np.float64, n)
        table, spans = np.full(table_size(n), -1, np.int32), np.empty((n, 2), np.int64)
        raw, retrieved = self.fusion.empty_table(n)
        n_docs = enter_columns(
            text,
            np.array(sizes),
            self.fusion.columns_of(names),
            scores,
            MAX_NAME,
            SECRET,
            table,
            spans,
            raw,
            retrieved,
        )
        if n_docs == GAVE_UP:
            return None
        raw, retrieved = raw[:n_docs], retrieved[:n_docs]
        normalized = self.fusion.normalize(raw, retrieved, names)
        return QueryScores(TextIds(text, spans[:n_docs]), False, raw, retrieved, normalized)  # noqa: FBT003
