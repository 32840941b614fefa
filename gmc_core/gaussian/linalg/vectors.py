"""SIMD vectors as values in numba-compiled code.

LLVM does not turn the short, irregular loops of many small Cholesky
factorizations into vector code. This module gives compiled functions a vector
type of one hardware register and six operations on it; everything else stays
ordinary Python. One vector holds entry (i, j) of ``lanes`` different systems.

    acc = load(w, 0)                 # w[0:lanes]
    acc = fnma(acc, x, y)            # acc - x * y, rounded once
    store(w, 0, acc)
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model


def _register_bytes() -> int:
    """Width of the widest vector register of this processor, in bytes."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 64
    return 32 if features.get("avx2") else 16


REGISTER_BYTES = _register_bytes()


def lanes(itemsize: int) -> int:
    """Numbers of ``itemsize`` bytes in one register: the systems of a batch."""
    return REGISTER_BYTES // itemsize


class Vector(types.Type):
    """The numba type of a register full of ``scalar``."""

    def __init__(self, scalar: types.Float) -> None:
        self.scalar = scalar
        self.lanes = lanes(scalar.bitwidth // 8)
        super().__init__(name=f"Vector({scalar}, {self.lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        scalar = manager.lookup(vector.scalar).get_value_type()
        super().__init__(manager, vector, ir.VectorType(scalar, vector.lanes))


def _address(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, int]:
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, args[0])
    vector = context.get_value_type(Vector(array_type.dtype))
    pointer = builder.gep(array.data, [args[1]])
    return builder.bitcast(pointer, vector.as_pointer()), array_type.dtype.bitwidth // 8


def _call(builder: Any, name: str, args: Any) -> Any:
    """Call the LLVM intrinsic ``name`` on vectors of one type."""
    vector = args[0].type
    bits = 64 if isinstance(vector.element, ir.DoubleType) else 32
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(vector, [vector] * len(args)),
        f"llvm.{name}.v{vector.count}f{bits}",
    )
    return builder.call(function, args)


@intrinsic
def load(typing_context: Any, array: Any, offset: Any) -> Any:
    """The vector ``array[offset : offset + lanes]`` of a contiguous 1-D array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, align = _address(context, builder, signature, args)
        return builder.load(pointer, align=align)

    return Vector(array.dtype)(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, offset: Any, value: Any) -> Any:
    """``array[offset : offset + lanes] = value``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, align = _address(context, builder, signature, args)
        builder.store(args[2], pointer, align=align)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


@intrinsic
def splat(typing_context: Any, array: Any, value: Any) -> Any:
    """A vector of the array's type with every lane equal to the scalar ``value``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = context.get_value_type(signature.return_type)
        first = ir.Constant(ir.IntType(32), 0)
        single = builder.insert_element(ir.Constant(vector, ir.Undefined), args[1], first)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
        return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), mask)

    return Vector(array.dtype)(array, array.dtype), generate


@intrinsic
def mul(typing_context: Any, x: Any, y: Any) -> Any:
    """x · y, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(*args)

    return x(x, x), generate


@intrinsic
def reciprocal(typing_context: Any, x: Any) -> Any:
    """1 / x, lane by lane, correctly rounded."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = ir.Constant(args[0].type, [1.0] * args[0].type.count)
        return builder.fdiv(one, args[0])

    return x(x), generate


@intrinsic
def square_root(typing_context: Any, x: Any) -> Any:
    """√x, lane by lane (NaN for a negative x)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "sqrt", args)

    return x(x), generate


@intrinsic
def fma(typing_context: Any, acc: Any, x: Any, y: Any) -> Any:
    """acc + x · y, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "fma", [args[1], args[2], args[0]])

    return acc(acc, acc, acc), generate


@intrinsic
def fnma(typing_context: Any, acc: Any, x: Any, y: Any) -> Any:
    """acc - x · y, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "fma", [builder.fneg(args[1]), args[2], args[0]])

    return acc(acc, acc, acc), generate
