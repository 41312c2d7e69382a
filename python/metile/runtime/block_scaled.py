"""Weights in the formats of OCP Microscaling: groups of 32 elements along K share one power of two (E8M0), the elements are E2M1 (MXFP4) or
E4M3 (MXFP8). Products decode them in the kernel, so that what is read from memory is the codes."""
from __future__ import annotations

import dataclasses

import numpy as np

from .. import _ops as mt
from .._loops import tile_range
from .._values import constexpr
from ..frontend.kernel import Dispatcher, kernel
from .buffer import Buffer

GROUP = 32
_BIAS = 127  # of the scales


@dataclasses.dataclass(frozen=True)
class _Format:
    """Floats of a sign, `exponent_bits` and `mantissa_bits`, without infinities. `largest` is the greatest that is used."""

    bits: int
    mantissa_bits: int
    bias: int
    largest: float

    @property
    def exponent_of_largest(self) -> int:
        return int(np.floor(np.log2(self.largest)))

    def encode(self, values: np.ndarray) -> np.ndarray:
        """The nearest codes, halves to even; what is larger than the largest becomes that."""
        size = np.minimum(np.abs(values), self.largest)
        exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, 1 - self.bias), 1 - self.bias)
        steps = np.rint(np.ldexp(size, self.mantissa_bits - exponent)).astype(np.int64)  # in units of the last place; may carry over
        code = steps + ((exponent - (1 - self.bias)) << self.mantissa_bits)
        return (code | (np.signbit(values).astype(np.int64) << (self.bits - 1))).astype(np.uint8)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        codes = codes.astype(np.int64)
        mantissa = codes & (1 << self.mantissa_bits) - 1
        exponent = codes >> self.mantissa_bits & (1 << self.bits - 1 - self.mantissa_bits) - 1
        whole = np.where(exponent > 0, mantissa + (1 << self.mantissa_bits), mantissa)
        size = np.ldexp(whole.astype(np.float32), np.maximum(exponent, 1) - self.bias - self.mantissa_bits)
        return np.where(codes >> self.bits - 1, -size, size).astype(np.float32)


FORMATS = {"mxfp4": _Format(4, 1, 1, 6.0), "mxfp8": _Format(8, 3, 7, 448.0)}


class BlockScaledWeight:
    """A K x N matrix of MXFP4 or MXFP8. `codes` holds one byte per element, or of MXFP4 two elements: of each group of 32 rows the first 16 in
    the low four bits, the others above. `scales` has a row per group: exponents of two, biased by 127."""

    def __init__(self, codes: np.ndarray, scales: np.ndarray, format: str):  # noqa: A002 - named as everywhere
        self.codes, self.scales, self.format = Buffer(data=codes), Buffer(data=scales), format
        self.shape = (scales.shape[0] * GROUP, scales.shape[1])

    @classmethod
    def quantize(cls, weight, format: str = "mxfp4") -> BlockScaledWeight:  # noqa: A002
        """ValueError for another format, for weights that are no matrix of finite numbers, and for a K that 32 does not divide."""
        if format not in FORMATS:
            raise ValueError(f"format {format!r} is not one of {', '.join(FORMATS)}")
        values = np.asarray(weight.numpy() if isinstance(weight, Buffer) else weight).astype(np.float32)
        if values.ndim != 2 or 0 in values.shape:
            raise ValueError(f"a weight is a K x N matrix, not an array of shape {values.shape}")
        if values.shape[0] % GROUP:
            raise ValueError(f"K is {values.shape[0]}: groups of {GROUP} elements along K share a scale")
        if not np.isfinite(values).all():
            raise ValueError("a weight is made of finite numbers")
        form = FORMATS[format]
        groups = values.reshape(-1, GROUP, values.shape[1])
        largest = np.abs(groups).max(axis=1)
        exponents = np.where(largest > 0, np.frexp(largest)[1] - 1 - form.exponent_of_largest, 0)
        exponents = np.clip(exponents, -_BIAS, _BIAS)
        codes = form.encode(np.ldexp(groups.astype(np.float64), -exponents[:, None, :]))
        if form.bits == 4:
            codes = codes[:, : GROUP // 2] | codes[:, GROUP // 2 :] << 4
        return cls(codes.reshape(-1, values.shape[1]), (exponents + _BIAS).astype(np.uint8), format)

    def dequantize(self) -> np.ndarray:
        """The f32 matrix that the codes stand for."""
        form, (rows, columns) = FORMATS[self.format], self.shape
        codes = self.codes.numpy().reshape(rows // GROUP, -1, columns)
        if form.bits == 4:
            codes = np.concatenate([codes & 15, codes >> 4], axis=1)
        exponents = self.scales.numpy().astype(np.int64) - _BIAS
        return np.ldexp(form.decode(codes), exponents[:, None, :]).reshape(rows, columns).astype(np.float32)

    def __repr__(self):
        return f"BlockScaledWeight({self.shape[0]} x {self.shape[1]}, {self.format})"


def _decoded(codes, scale, mantissa_bits, exponent_bits, bias):
    """As _Format.decode, of a traced tile; integers below 256 are exact in f32."""
    codes = mt.cast(codes, "i32")
    mantissa, exponent = codes & (1 << mantissa_bits) - 1, codes >> mantissa_bits & (1 << exponent_bits) - 1
    whole = mt.cast(mt.where(exponent > 0, mantissa + (1 << mantissa_bits), mantissa), "f32")
    size = whole * mt.exp2(mt.cast(mt.maximum(exponent, 1) - (bias + mantissa_bits), "f32")) * scale
    return mt.where(codes >> mantissa_bits + exponent_bits & 1 != 0, 0.0 - size, size)


@kernel
def block_scaled_kernel(A, Codes, Scales, Out, M, N, K, IS_NIBBLES: constexpr, BLOCK_M: constexpr, BLOCK_N: constexpr):
    row, column = mt.program_id(0) * BLOCK_M, mt.program_id(1) * BLOCK_N
    acc = mt.zeros((BLOCK_M, BLOCK_N))
    for group in tile_range(0, K // GROUP):
        scale = mt.exp2(mt.cast(mt.tile_load(Scales, group, column, N, (1, BLOCK_N)), "f32") - 127.0)
        if IS_NIBBLES:
            both = mt.tile_load(Codes, group * (GROUP // 2), column, N, (GROUP // 2, BLOCK_N))
            for part, codes in enumerate((both & 15, both >> 4)):
                a = mt.tile_load(A, row, group * GROUP + part * (GROUP // 2), K, (BLOCK_M, GROUP // 2))
                acc = mt.dot(a, _decoded(codes, scale, 1, 2, 1), acc)
        else:
            a = mt.tile_load(A, row, group * GROUP, K, (BLOCK_M, GROUP))
            acc = mt.dot(a, _decoded(mt.tile_load(Codes, group * GROUP, column, N, (GROUP, BLOCK_N)), scale, 3, 4, 7), acc)
    mt.tile_store(Out, row, column, N, acc, (BLOCK_M, BLOCK_N))


def _launch(activations, weight: BlockScaledWeight, output) -> tuple:
    """(the kernel on its grid, arguments, constexprs)"""
    if not isinstance(weight, BlockScaledWeight):
        raise TypeError(f"the weight is a BlockScaledWeight, not a {type(weight).__name__}")
    shape = tuple(activations.shape)
    if len(shape) != 2 or shape[1] != weight.shape[0]:
        raise ValueError(f"activations of shape {shape} and a weight of shape {weight.shape}: their K differ")
    if tuple(output.shape) != (shape[0], weight.shape[1]):
        raise ValueError(f"the output has the shape {tuple(output.shape)}, the product {(shape[0], weight.shape[1])}")
    rows, columns = 16 if shape[0] <= 16 else 64, 64
    constants = {"IS_NIBBLES": weight.format == "mxfp4", "BLOCK_M": rows, "BLOCK_N": columns}
    arguments = (activations, weight.codes, weight.scales, output, shape[0], weight.shape[1], weight.shape[0])
    return block_scaled_kernel[mt.cdiv(shape[0], rows), mt.cdiv(weight.shape[1], columns)], arguments, constants


def block_scaled_matmul(activations, weight: BlockScaledWeight, output=None):
    """activations @ weight, with products and sums in f32. Without an output it is made: of the type and kind of the activations."""
    if output is None:
        extents = (*activations.shape[:-1], weight.shape[1]) if isinstance(weight, BlockScaledWeight) else ()
        output = Buffer.empty(extents, activations.dtype) if isinstance(activations, Buffer) else np.empty(extents, activations.dtype)
    launcher, arguments, constants = _launch(activations, weight, output)
    launcher(*arguments, **constants)
    return output


def prepare_block_scaled_matmul(activations, weight: BlockScaledWeight, output) -> Dispatcher:
    """Computes the product once; the object returned does it again when called."""
    launcher, arguments, constants = _launch(activations, weight, output)
    return launcher.prepare(*arguments, **constants)
