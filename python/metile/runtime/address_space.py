"""One range of memory that tensors are placed in, one behind the other."""
from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..ir.layout import Layout, row_major
from .buffer import Buffer

ALIGNMENT = 256


class GlobalAddressSpace:
    """Memory of a fixed capacity in bytes. Tensors begin at multiples of 256 bytes; what does not fit is a MemoryError."""

    def __init__(self, capacity: int):
        self.capacity, self.used = capacity, 0
        self.metal_buffer = Buffer.zeros((capacity,), dtype=np.uint8)

    def tensor(self, shape, dtype=np.float32, layout: Layout | None = None, name: str = "") -> TensorView:
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        layout = layout or row_major(*extents)
        bytes_needed = max(layout.cobound, math.prod(extents)) * np.dtype(dtype).itemsize
        offset = -(-self.used // ALIGNMENT) * ALIGNMENT
        if offset + bytes_needed > self.capacity:
            raise MemoryError(f"a tensor of {bytes_needed} bytes does not fit: {self.capacity - self.used} of {self.capacity} bytes are free")
        self.used = offset + bytes_needed
        return TensorView(self, extents, np.dtype(dtype), layout, offset, name)

    def reset(self) -> None:
        """Forgets all tensors."""
        self.used = 0


@dataclasses.dataclass(eq=False)
class TensorView:
    """A tensor in an address space."""

    space: GlobalAddressSpace
    shape: tuple
    dtype: np.dtype
    layout: Layout
    byte_offset: int
    name: str = ""

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.numel * self.dtype.itemsize

    @property
    def metal_buffer(self) -> Buffer:
        return self.space.metal_buffer

    def numpy(self) -> np.ndarray:
        """The elements, in the same memory."""
        raw = self.space.metal_buffer.numpy()[self.byte_offset :].view(np.uint8)
        strides = self.layout.stride if isinstance(self.layout.stride, tuple) else (self.layout.stride,)
        return np.ndarray(self.shape, self.dtype, raw, strides=[stride * self.dtype.itemsize for stride in strides])

    def subdivide(self, tile) -> TiledView:
        return TiledView(self, tuple(tile))


@dataclasses.dataclass(eq=False)
class TiledView:
    """A tensor cut into tiles."""

    tensor: TensorView
    tile: tuple

    @property
    def grid(self) -> tuple:
        return tuple(-(-extent // size) for extent, size in zip(self.tensor.shape, self.tile))

    def tile_byte_offset(self, *coordinate: int) -> int:
        first = tuple(index * size for index, size in zip(coordinate, self.tile))
        return self.tensor.byte_offset + self.tensor.layout(first) * self.tensor.dtype.itemsize

    def __repr__(self):
        return f"TiledView(shape={self.tensor.shape}, tile={self.tile}, grid={self.grid})"


@dataclasses.dataclass
class Stage:
    name: str
    kernel: object
    grid: tuple
    inputs: list
    outputs: list
    options: dict


class KernelPipeline:
    """Launches that follow each other in one address space."""

    def __init__(self, space: GlobalAddressSpace):
        self.space, self.stages = space, []

    def add_stage(self, name: str, kernel, grid, inputs, outputs, **options) -> KernelPipeline:
        self.stages.append(Stage(name, kernel, grid, list(inputs), list(outputs), options))
        return self

    def run(self) -> None:
        for stage in self.stages:
            tensors = [tensor.numpy().reshape(-1) for tensor in (*stage.inputs, *stage.outputs)]
            stage.kernel[stage.grid](*tensors, **stage.options)

    def __repr__(self):
        return f"KernelPipeline({' -> '.join(stage.name for stage in self.stages)})"
