"""Text in pieces longer than a byte: white space among 64 bytes, words of eight. For kernels alone.

Python cannot call these functions. The processor must store the lowest byte of an integer first, as all that numba
supports do.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WIDTH = 64

_BYTES = ir.VectorType(ir.IntType(8), WIDTH)
_WORD = ir.IntType(64)


def _is_text(text: Any, at: Any) -> bool:
    return text == types.Array(types.uint8, 1, "C") and isinstance(at, types.Integer)


def _place(context: Any, builder: Any, called: Any, arguments: Any, kind: Any) -> Any:
    """Return where what is of this kind begins: the second argument many bytes into the first."""
    data = context.make_array(called.args[0])(context, builder, arguments[0]).data
    offset = context.cast(builder, arguments[1], called.args[1], types.intp)
    return builder.bitcast(builder.gep(data, [offset]), kind.as_pointer())


def _make_search(relation: str, byte: int) -> Any:
    @intrinsic
    def searched(_typing: Any, text: Any, at: Any) -> Any:
        if not _is_text(text, at):
            return None

        def generate(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
            loaded = builder.load(_place(context, builder, called, arguments, _BYTES), align=1)
            found = builder.icmp_unsigned(relation, loaded, ir.Constant(_BYTES, [byte] * WIDTH))
            return builder.bitcast(found, _WORD)

        return types.uint64(text, at), generate

    return searched


@intrinsic
def _load_word(_typing: Any, text: Any, at: Any) -> Any:
    if not _is_text(text, at):
        return None

    def generate(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, called, arguments, _WORD), align=1)

    return types.uint64(text, at), generate


@intrinsic
def _store_word(_typing: Any, text: Any, at: Any, word: Any) -> Any:
    if not _is_text(text, at) or word != types.uint64:
        return None

    def generate(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _place(context, builder, called, arguments, _WORD), align=1)
        return context.get_dummy_value()

    return types.none(text, at, word), generate


@intrinsic
def _reversed_bytes(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), generate


def _make_count(count: str) -> Any:
    @intrinsic
    def counted(_typing: Any, _word: Any) -> Any:
        def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
            return getattr(builder, count)(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), generate

    return counted


@intrinsic
def _ones(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def _bits_of(_typing: Any, _number: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], _WORD)

    return types.uint64(types.float64), generate


# The decorator hides that a call leaves the typing context out.
blanks: Callable[[Any, Any], np.uint64] = cast("Any", _make_search("<=", 32))
"""blanks(text, at): bit i tells whether text[at + i] is a space or lower; all 64 bytes must be there."""
line_feeds: Callable[[Any, Any], np.uint64] = cast("Any", _make_search("==", 10))
"""line_feeds(text, at): bit i tells whether text[at + i] is a line feed; all 64 bytes must be there."""
load_word: Callable[[Any, Any], np.uint64] = cast("Any", _load_word)
"""load_word(text, at): the eight bytes from there, the first the lowest; all of them must be there."""
store_word: Callable[[Any, Any, Any], None] = cast("Any", _store_word)
"""store_word(text, at, word): write eight bytes there, the lowest first."""
reversed_bytes: Callable[[Any], np.uint64] = cast("Any", _reversed_bytes)
"""reversed_bytes(word): the lowest byte becomes the highest, so that words compare as text does."""
trailing_zeros: Callable[[Any], np.uint64] = cast("Any", _make_count("cttz"))
"""trailing_zeros(word): the place of its lowest bit; 64 if it has none."""
leading_zeros: Callable[[Any], np.uint64] = cast("Any", _make_count("ctlz"))
"""leading_zeros(word): how many zeros are above its highest bit; 64 if it has none."""
ones: Callable[[Any], np.uint64] = cast("Any", _ones)
"""ones(word): how many of its bits are set."""
bits_of: Callable[[Any], np.uint64] = cast("Any", _bits_of)
"""bits_of(number): the bits of a float64 as an integer."""
