"""Tables as text: aligned by the room that letters take on a screen, and never cut.

A table that is too wide for the window goes on below with its remaining columns of numbers; ids and numbers stay
whole, because a cut number is a wrong one.
"""

import textwrap
from collections.abc import Iterator, Sequence

_GAP = "  "
_LEAST_TEXT = 24


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: int = 1,
    bold: frozenset[tuple[int, int]] = frozenset(),
    width: int | None = None,
    rule: str = "-",
) -> Iterator[str]:
    """Yield the lines of a table; the first `left` columns are text, the rest numbers.

    `bold` holds (row, column) of cells to set in bold by terminal codes; `width` is the room there is, None for
    as much as it takes.
    """
    cells = [tuple(row) for row in rows]
    sizes = [max(map(_size, column)) for column in zip(header, *cells, strict=True)]
    if width is not None and left == len(header):
        header, cells, sizes = _folded(header, cells, sizes, width)
    for number, block in enumerate(_blocks(sizes, left, width)):
        if number:
            yield ""
        yield _line([_padded(header[c], sizes[c], c < left) for c in block])
        yield _line([rule * sizes[c] for c in block])
        for r, row in enumerate(cells):
            padded = [_padded(row[c], sizes[c], c < left) for c in block]
            yield _line(
                [_emphasised(cell) if (r, c) in bold else cell for c, cell in zip(block, padded, strict=True)]
            )


def _size(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # knows the letters that take two columns or none

    return cell_len(text)


def _padded(text: str, size: int, to_the_left: bool) -> str:
    space = " " * (size - _size(text))
    return text + space if to_the_left else space + text


def _emphasised(cell: str) -> str:
    text = cell.strip()
    return cell.replace(text, f"\x1b[1m{text}\x1b[22m") if text else cell


def _line(cells: Sequence[str]) -> str:
    return _GAP.join(cells).rstrip()


def _blocks(sizes: Sequence[int], left: int, width: int | None) -> list[list[int]]:
    """Return which columns stand side by side; the columns of text are repeated in each block."""
    text = list(range(left))
    blocks = [text]
    for column in range(left, len(sizes)):
        wider = [*blocks[-1], column]
        room = sum(sizes[c] for c in wider) + len(_GAP) * (len(wider) - 1)
        if width is not None and room > width and len(blocks[-1]) > left:
            blocks.append([*text, column])
        else:
            blocks[-1] = wider
    return blocks


def _folded(
    header: Sequence[str], rows: list[tuple[str, ...]], sizes: list[int], width: int
) -> tuple[Sequence[str], list[tuple[str, ...]], list[int]]:
    """Fold the last column of a table of text into the room that is left beside the others."""
    room = max(width - sum(sizes[:-1]) - len(_GAP) * (len(sizes) - 1), _LEAST_TEXT)
    if sizes[-1] <= room:
        return header, rows, sizes
    folded = []
    for row in rows:
        lines = textwrap.wrap(row[-1], room, break_long_words=False) or [""]
        folded.append((*row[:-1], lines[0]))
        folded += [(*("" for _ in row[:-1]), line) for line in lines[1:]]
    return header, folded, [*sizes[:-1], max(_size(row[-1]) for row in folded)]
