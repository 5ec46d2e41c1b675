"""Eight float64 numbers that a kernel handles at once, with the same result on every processor.

A compiler that may reorder a sum (`reassoc`) splits it into as many lanes as a register holds. One that may fuse a
product with a sum (`contract`) does so where the processor can. The last digits then differ from machine to
machine. Here the lanes are part of the program: a sum of 64 numbers is eight lanes of eight, added up at the end in
one fixed tree. Every operation rounds as IEEE 754 says, so AVX-512, AVX2, SSE2 and NEON give the same bits.

Kernels call the functions below and write + - * / between lanes, or between lanes and a number. Python cannot call
them.

Sixteen wide lanes serve where a long chain of operations is computed for each number: a core then works on twice as
many chains at once. They know fewer functions.
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
WIDE = 16


def _vector(width: int) -> Any:
    return ir.VectorType(ir.DoubleType(), width)


_VECTOR = _vector(WIDTH)
_INTEGERS = ir.VectorType(ir.IntType(64), WIDTH)
_BYTES = ir.IntType(8).as_pointer()


class LanesType(types.Type):
    """The numba type of some float64 numbers in registers."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Lanes{width}")


LANES = LanesType(WIDTH)
WIDE_LANES = LanesType(WIDE)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector(kind.width))


def _splat(builder: Any, number: Any, width: int = WIDTH) -> Any:
    undefined = ir.Constant(_vector(width), ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
    return builder.shuffle_vector(one, undefined, places)


def _define(operation: Any, instruction: str) -> None:
    """Let kernels write `operation` between lanes, or between lanes and a float64."""
    calls = [
        signature(lanes, *pair)
        for lanes in (LANES, WIDE_LANES)
        for pair in ((lanes, lanes), (lanes, types.float64), (types.float64, lanes))
    ]

    @infer_global(operation)
    class _Typing(ConcreteTemplate):
        cases: ClassVar[list[Any]] = calls

    def generate(_context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        left, right = (
            value if kind == called.return_type else _splat(builder, value, called.return_type.width)
            for value, kind in zip(arguments, called.args, strict=True)
        )
        return getattr(builder, instruction)(left, right)

    for call in calls:
        lower_builtin(operation, *call.args)(generate)


for _operations, _instruction in (
    ((operator.add, operator.iadd), "fadd"),
    ((operator.sub, operator.isub), "fsub"),
    ((operator.mul, operator.imul), "fmul"),
    ((operator.truediv, operator.itruediv), "fdiv"),
):
    for _operation in _operations:
        _define(_operation, _instruction)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, offset: Any, width: int = WIDTH) -> Any:
    """Return where `width` numbers begin: `offset` numbers into the memory of a contiguous array."""
    data = context.make_array(kind)(context, builder, array).data
    start = builder.gep(data, [offset])
    number = ir.FloatType() if kind.dtype == types.float32 else ir.DoubleType()
    return builder.bitcast(start, ir.VectorType(number, width).as_pointer())


def _is_row(array: Any) -> bool:
    return isinstance(array, types.Array) and array.layout == "C" and array.dtype in (types.float32, types.float64)


def _loading(lanes: LanesType, array: Any, offset: Any) -> Any:
    """Return the signature of a load into such lanes and what generates it, or None if there is no such load."""
    if not _is_row(array) or not isinstance(offset, types.Integer):
        return None

    def generate(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        offset = context.cast(builder, arguments[1], called.args[1], types.intp)
        place = _pointer(context, builder, called.args[0], arguments[0], offset, lanes.width)
        is_double = called.args[0].dtype == types.float64
        numbers = builder.load(place, align=8 if is_double else 4)
        return numbers if is_double else builder.fpext(numbers, _vector(lanes.width))

    return lanes(array, offset), generate


@intrinsic
def _load(_typing: Any, array: Any, offset: Any) -> Any:
    return _loading(LANES, array, offset)


@intrinsic
def _load_wide(_typing: Any, array: Any, offset: Any) -> Any:
    return _loading(WIDE_LANES, array, offset)


@intrinsic
def _store(_typing: Any, array: Any, offset: Any, lanes: Any) -> Any:
    if not _is_row(array) or array.dtype != types.float64 or not isinstance(lanes, LanesType):
        return None

    def generate(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        offset = context.cast(builder, arguments[1], called.args[1], types.intp)
        place = _pointer(context, builder, called.args[0], arguments[0], offset, lanes.width)
        builder.store(arguments[2], place, align=8)
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


@intrinsic
def _twice(_typing: Any, _a: Any, _b: Any, _c: Any, _d: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        lanes = ir.Constant(_VECTOR, ir.Undefined)
        for place, number in enumerate(arguments):
            lanes = builder.insert_element(lanes, number, ir.Constant(ir.IntType(32), place))
        places = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0, 1, 2, 3] * 2)
        return builder.shuffle_vector(lanes, ir.Constant(_VECTOR, ir.Undefined), places)

    return LANES(types.float64, types.float64, types.float64, types.float64), generate


@intrinsic
def _totals(_typing: Any, _a: Any, _b: Any, _c: Any, _d: Any) -> Any:
    def chosen(builder: Any, left: Any, right: Any, places: list[int]) -> Any:
        kind = ir.VectorType(ir.IntType(32), WIDTH)
        return builder.shuffle_vector(left, right, ir.Constant(kind, places))

    def added(builder: Any, left: Any, right: Any, places: list[int], apart: int) -> Any:
        """Add what stands at these places, those of the right from 8 on, to what stands so far behind them."""
        return builder.fadd(
            chosen(builder, left, right, places), chosen(builder, left, right, [x + apart for x in places])
        )

    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        a, b, c, d = arguments
        neighbours = [0, 8, 2, 10, 4, 12, 6, 14]
        ab, cd = added(builder, a, b, neighbours, 1), added(builder, c, d, neighbours, 1)
        quarters = added(builder, ab, cd, [0, 1, 8, 9, 4, 5, 12, 13], 2)
        halves = chosen(builder, quarters, quarters, [4, 5, 6, 7, 0, 1, 2, 3])
        return builder.fadd(quarters, halves)

    return LANES(LANES, LANES, LANES, LANES), generate


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
        width = number.type.count if isinstance(number.type, ir.VectorType) else 0
        integers: Any = ir.VectorType(ir.IntType(64), width) if width else ir.IntType(64)

        def constant(value: int) -> Any:
            return ir.Constant(integers, [value] * width if width else value)

        exponent = builder.add(builder.bitcast(number, integers), constant(1023))
        return builder.bitcast(builder.shl(exponent, constant(52)), number.type)

    return shifted(shifted), generate


@intrinsic
def _scale(_typing: Any, number: Any, _shifted: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        width = arguments[0].type.count if isinstance(arguments[0].type, ir.VectorType) else 0
        integers: Any = ir.VectorType(ir.IntType(64), width) if width else ir.IntType(64)
        places = ir.Constant(integers, [52] * width if width else 52)
        bits, exponent = (builder.bitcast(x, integers) for x in arguments)
        return builder.bitcast(builder.add(bits, builder.shl(exponent, places)), arguments[0].type)

    return number(number, number), generate


@intrinsic
def _bits_of(_typing: Any, _number: Any) -> Any:
    def generate(_context: Any, builder: Any, _called: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.float64), generate


Lanes = Any
"""Eight float64 numbers, or sixteen; numba knows them as `LANES` and `WIDE_LANES`."""

# The decorator hides that a call leaves the typing context out.
load: Callable[[Any, int], Lanes] = cast("Any", _load)
"""load(array, offset): the eight numbers from `offset` on in the memory of a contiguous float array."""
load_wide: Callable[[Any, int], Lanes] = cast("Any", _load_wide)
"""load_wide(array, offset): sixteen numbers from there on, for + - * /, `power_of_two`, `scale` and `store`."""
store: Callable[[Any, int, Lanes], None] = cast("Any", _store)
"""store(array, offset, lanes): write them there."""
prefetch: Callable[[Any, int], None] = cast("Any", _prefetch)
"""prefetch(array, offset): ask for the memory around that place, which may lie past the end; changes no result."""
fill: Callable[[float], Lanes] = cast("Any", _fill)
"""fill(number): eight times the same."""
twice: Callable[[float, float, float, float], Lanes] = cast("Any", _twice)
"""twice(a, b, c, d): a, b, c, d, a, b, c, d."""
total: Callable[[Lanes], float] = cast("Any", _total)
"""total(lanes): their sum, in the order ((0+4)+(2+6)) + ((1+5)+(3+7))."""
totals: Callable[[Lanes, Lanes, Lanes, Lanes], Lanes] = cast("Any", _totals)
"""totals(a, b, c, d): `twice` of their sums, each in the order ((0+1)+(2+3)) + ((4+5)+(6+7))."""
at_most: Callable[[Lanes, Lanes], Lanes] = cast("Any", _at_most)
"""at_most(a, b): 1 in the lanes where a <= b, else 0."""
first: Callable[[Lanes, int], Lanes] = cast("Any", _first)
"""first(lanes, n): the first n of them, 0 in the others' places."""
power_of_two: Callable[[Lanes], Lanes] = cast("Any", _power_of_two)
"""power_of_two(x): 2^k, where k stands in the lowest bits of the float64 x; for a number, or for lanes."""
scale: Callable[[Lanes, Lanes], Lanes] = cast("Any", _scale)
"""scale(p, x): p times the 2^k of `power_of_two`, both normal float64; for a number, or for lanes."""
bits_of: Callable[[float], np.uint64] = cast("Any", _bits_of)
"""bits_of(number): the 64 bits of one number; a view of an array takes .8 s to compile."""
lower, lowest = cast("tuple[Callable[[Lanes, Lanes], Lanes], Callable[[Lanes], float]]", _make_choice("<"))
"""lower(a, b): the lesser in each lane; lowest(lanes): the least of the eight."""
higher, highest = cast("tuple[Callable[[Lanes, Lanes], Lanes], Callable[[Lanes], float]]", _make_choice(">"))
"""higher(a, b): the greater in each lane; highest(lanes): the greatest of the eight."""
