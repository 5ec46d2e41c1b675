"""Eight float64 numbers that a kernel handles at once, with the same result on every processor.

A compiler that may reorder a sum (`reassoc`) splits it into as many lanes as a register holds. One that may fuse a
product with a sum (`contract`) does so where the processor can. The last digits then differ from machine to
machine. Here the lanes are part of the program: a sum of 64 numbers is eight lanes of eight, added up at the end in
one fixed tree. Every operation rounds as IEEE 754 says, so AVX-512, AVX2, SSE2 and NEON give the same bits.

Kernels call the functions below and write + - * / between lanes, or between lanes and a number. Python cannot call
them.
"""

import operator
from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

WIDTH = 8

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_INTEGERS = ir.VectorType(ir.IntType(64), WIDTH)
_BYTES = ir.IntType(8).as_pointer()


class LanesType(types.Type):
    """The numba type of eight float64 numbers in a register."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


LANES = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _splat(builder: Any, number: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), places)


def _define(operation: Any, instruction: str) -> None:
    """Let kernels write `operation` between lanes, or between lanes and a float64."""
    pairs = ((LANES, LANES), (LANES, types.float64), (types.float64, LANES))

    @infer_global(operation)
    class _Typing(ConcreteTemplate):
        cases: ClassVar[list[Any]] = [signature(LANES, *pair) for pair in pairs]

    def generate(_context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        left, right = (
            value if kind == LANES else _splat(builder, value)
            for value, kind in zip(arguments, called.args, strict=True)
        )
        return getattr(builder, instruction)(left, right)

    for pair in pairs:
        lower_builtin(operation, *pair)(generate)


for _operations, _instruction in (
    ((operator.add, operator.iadd), "fadd"),
    ((operator.sub, operator.isub), "fsub"),
    ((operator.mul, operator.imul), "fmul"),
    ((operator.truediv, operator.itruediv), "fdiv"),
):
    for _operation in _operations:
        _define(_operation, _instruction)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    """Return where eight numbers begin: `offset` numbers into the memory of a contiguous array."""
    data = context.make_array(kind)(context, builder, array).data
    start = builder.gep(data, [offset])
    number = ir.FloatType() if kind.dtype == types.float32 else ir.DoubleType()
    return builder.bitcast(start, ir.VectorType(number, WIDTH).as_pointer())


def _is_row(array: Any) -> bool:
    return isinstance(array, types.Array) and array.layout == "C" and array.dtype in (types.float32, types.float64)


@intrinsic
def _load(_typing: Any, array: Any, offset: Any) -> Any:
    if not _is_row(array) or not isinstance(offset, types.Integer):
        return None

    def generate(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        offset = context.cast(builder, arguments[1], called.args[1], types.intp)
        place = _pointer(context, builder, called.args[0], arguments[0], offset)
        wide = called.args[0].dtype == types.float64
        numbers = builder.load(place, align=8 if wide else 4)
        return numbers if wide else builder.fpext(numbers, _VECTOR)

    return LANES(array, offset), generate


@intrinsic
def _store(_typing: Any, array: Any, offset: Any, lanes: Any) -> Any:
    if not _is_row(array) or array.dtype != types.float64 or lanes != LANES:
        return None

    def generate(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        offset = context.cast(builder, arguments[1], called.args[1], types.intp)
        builder.store(arguments[2], _pointer(context, builder, called.args[0], arguments[0], offset), align=8)
        return context.get_dummy_value()

    return types.none(array, offset, lanes), generate


@intrinsic
def _prefetch(_typing: Any, array: Any, offset: Any) -> Any:
    if not _is_row(array) or not isinstance(offset, types.Integer):
        return None

    def generate(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        offset = context.cast(builder, arguments[1], called.args[1], types.intp)
        data = context.make_array(called.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [offset]), _BYTES)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(ask, [place, *(ir.Constant(number, n) for n in (0, 3, 1))])  # to read; keep; data
        return context.get_dummy_value()

    return types.none(array, offset), generate


@intrinsic
def _fill(_typing: Any, _number: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        return _splat(builder, arguments[0])

    return LANES(types.float64), generate


def _fold(builder: Any, lanes: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Combine the upper half of the lanes with the lower half until one number is left."""
    width = WIDTH
    while width > 1:
        width //= 2
        kind = ir.VectorType(ir.IntType(32), width)
        undefined = ir.Constant(lanes.type, ir.Undefined)
        low = builder.shuffle_vector(lanes, undefined, ir.Constant(kind, list(range(width))))
        high = builder.shuffle_vector(lanes, undefined, ir.Constant(kind, list(range(width, 2 * width))))
        lanes = combine(low, high)
    return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))


def _chosen(builder: Any, comparison: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: builder.select(builder.fcmp_ordered(comparison, a, b), a, b)


@intrinsic
def _total(_typing: Any, _lanes: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        return _fold(builder, arguments[0], builder.fadd)

    return types.float64(LANES), generate


def _make_choice(comparison: str) -> tuple[Any, Any]:
    """Return what chooses between two lanes, and what chooses one number of the eight."""

    @intrinsic
    def between(_typing: Any, _a: Any, _b: Any) -> Any:
        def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
            return _chosen(builder, comparison)(*arguments)

        return LANES(LANES, LANES), generate

    @intrinsic
    def within(_typing: Any, _lanes: Any) -> Any:
        def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
            return _fold(builder, arguments[0], _chosen(builder, comparison))

        return types.float64(LANES), generate

    return between, within


@intrinsic
def _at_most(_typing: Any, _a: Any, _b: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        ones, zeros = ir.Constant(_VECTOR, [1.0] * WIDTH), ir.Constant(_VECTOR, [0.0] * WIDTH)
        return builder.select(builder.fcmp_ordered("<=", *arguments), ones, zeros)

    return LANES(LANES, LANES), generate


@intrinsic
def _first(_typing: Any, lanes: Any, n: Any) -> Any:
    if lanes != LANES or not isinstance(n, types.Integer):
        return None

    def generate(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        n = context.cast(builder, arguments[1], called.args[1], types.int64)
        many = builder.insert_element(ir.Constant(_INTEGERS, ir.Undefined), n, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        many = builder.shuffle_vector(many, ir.Constant(_INTEGERS, ir.Undefined), zeros)
        places = ir.Constant(_INTEGERS, list(range(WIDTH)))
        kept = builder.icmp_signed("<", places, many)
        return builder.select(kept, arguments[0], ir.Constant(_VECTOR, [0.0] * WIDTH))

    return LANES(LANES, n), generate


@intrinsic
def _power_of_two(_typing: Any, shifted: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        number = arguments[0]
        vector = isinstance(number.type, ir.VectorType)
        integers: Any = _INTEGERS if vector else ir.IntType(64)

        def constant(value: int) -> Any:
            return ir.Constant(integers, [value] * WIDTH if vector else value)

        exponent = builder.add(builder.bitcast(number, integers), constant(1023))
        return builder.bitcast(builder.shl(exponent, constant(52)), number.type)

    return shifted(shifted), generate


@intrinsic
def _bits_of(_typing: Any, _number: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.float64), generate


Lanes = Any
"""Eight float64 numbers; numba knows them as `LANES`."""

# The decorator hides that a call leaves the typing context out.
load: Callable[[Any, int], Lanes] = cast("Any", _load)
"""load(array, offset): the eight numbers from `offset` on in the memory of a contiguous float array."""
store: Callable[[Any, int, Lanes], None] = cast("Any", _store)
"""store(array, offset, lanes): write them there."""
prefetch: Callable[[Any, int], None] = cast("Any", _prefetch)
"""prefetch(array, offset): ask for the memory around that place, which may lie past the end; changes no result."""
fill: Callable[[float], Lanes] = cast("Any", _fill)
"""fill(number): eight times the same."""
total: Callable[[Lanes], float] = cast("Any", _total)
"""total(lanes): their sum, in the order ((0+4)+(2+6)) + ((1+5)+(3+7))."""
at_most: Callable[[Lanes, Lanes], Lanes] = cast("Any", _at_most)
"""at_most(a, b): 1 in the lanes where a <= b, else 0."""
first: Callable[[Lanes, int], Lanes] = cast("Any", _first)
"""first(lanes, n): the first n of them, 0 in the others' places."""
power_of_two: Callable[[Lanes], Lanes] = cast("Any", _power_of_two)
"""power_of_two(x): 2^k, where k stands in the lowest bits of the float64 x; for a number, or for lanes."""
bits_of: Callable[[float], np.uint64] = cast("Any", _bits_of)
"""bits_of(number): the 64 bits of one number; a view of an array takes .8 s to compile."""
lower, lowest = cast("tuple[Callable[[Lanes, Lanes], Lanes], Callable[[Lanes], float]]", _make_choice("<"))
"""lower(a, b): the lesser in each lane; lowest(lanes): the least of the eight."""
higher, highest = cast("tuple[Callable[[Lanes, Lanes], Lanes], Callable[[Lanes], float]]", _make_choice(">"))
"""higher(a, b): the greater in each lane; highest(lanes): the greatest of the eight."""
