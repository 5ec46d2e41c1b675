"""A table of distinct ids: the text is kept once, everything else works with the integer codes.

Ids are strings of UTF-8 text. Their order is the order of their bytes, which is also the order of Python's
`str` and of trec_eval's `strcmp`.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """Distinct ids; the id with code i is the bytes text[starts[i]:starts[i + 1]]."""

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, code: int) -> str:
        if not 0 <= code < len(self):
            raise IndexError(code)
        return bytes(self.text[self.starts[code] : self.starts[code + 1]]).decode()

    def __iter__(self) -> Iterator[str]:
        text, starts = self.text.tobytes(), self.starts.tolist()
        return (text[a:b].decode() for a, b in itertools.pairwise(starts))

    @classmethod
    def of(cls, strings: Iterable[str]) -> Self:
        """Make a table of the given strings, which must be distinct, in their order."""
        parts = [s.encode() for s in strings]
        starts = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(p) for p in parts], out=starts[1:])
        return cls(np.frombuffer(b"".join(parts), np.uint8), starts)

    def take(self, codes: NDArray[np.integer]) -> "Ids":
        """Return the table of the ids at `codes`, in that order."""
        lengths = np.diff(self.starts)[codes]
        starts = np.zeros(len(codes) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        at = np.arange(starts[-1]) + np.repeat(self.starts[:-1][codes] - starts[:-1], lengths)
        return Ids(self.text[at], starts)


def encode(strings: Iterable[str]) -> tuple[Ids, NDArray[np.int32]]:
    """Return the table of the different strings, in order of first appearance, and each string's code."""
    seen: dict[str, int] = {}
    codes = np.fromiter((seen.setdefault(s, len(seen)) for s in strings), np.int32)
    return Ids.of(seen), codes


def byte_order(ids: Ids) -> NDArray[np.int32]:
    """Return the codes in ascending order of their ids."""
    listed = list(ids)
    return np.array(sorted(range(len(listed)), key=listed.__getitem__), np.int32)


def find(table: Ids, wanted: Ids) -> NDArray[np.int32]:
    """Return, for every id of `wanted`, its code in `table`, or -1."""
    code = {s: i for i, s in enumerate(table)}
    return np.fromiter((code.get(s, -1) for s in wanted), np.int32, len(wanted))


def unite(tables: Sequence[Ids]) -> tuple[Ids, list[NDArray[np.int32]]]:
    """Return one table of all ids in ascending order, and for each given table its codes in it."""
    listed = sorted({s for t in tables for s in t})
    united = Ids.of(listed)
    return united, [find(united, t) for t in tables]
