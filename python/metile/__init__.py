"""Tile kernels in Python: functions that are traced, compiled by Vortex and run on the CPU and on GPUs.

    @metile.kernel
    def scale(X, Out, N, BLOCK: metile.constexpr):
        offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        mask = offs < N
        metile.store(Out + offs, metile.load(X + offs, mask=mask) * 2.0, mask=mask)

    scale[(metile.cdiv(n, 256),)](x, out, n, BLOCK=256)
"""
import importlib
from typing import TYPE_CHECKING

from . import _ops, compile
from ._loops import persistent_range, tile_range
from ._ops import (abs, arange, atomic_add, atomic_max, atomic_min, barrier, cast, cdiv, device_assert, dot, fast_exp, load, max, maximum, min, minimum, next_power_of_2,
                   num_programs, print, program_id, reverse_bits, scalar, shared, simd_broadcast, simd_lane_id, simd_max, simd_shuffle_xor, simd_sum,
                   simdgroup_role, static_assert, static_print, store, sum, thread_id, tile_load, tile_store, tile_swizzle, transpose, where, zeros)
from ._trace import LoweringError, OutOfResources
from ._values import constexpr
from ._words import did_you_mean as _did_you_mean
from .frontend.kernel import Kernel, kernel
from .runtime.buffer import Buffer
from .runtime.device import Device, set_device

if TYPE_CHECKING:
    from ._ops import (exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, sigmoid, erf,
                       erfc, sqrt, rsqrt, cbrt, floor, ceil, round, trunc)
    from .compiler.graph_fusion import FusionPlan, FusionTarget, plan_graph_fusion
    from .frontend.autotune import Config, autotune
    from .ir.graph_ir import ComputeGraph, GraphBuilder, TensorSpec
    from .ir.layout import Layout, col_major, make_identity, make_layout, print_layout, row_major, simdgroup_layout_8x8
    from .runtime.address_space import GlobalAddressSpace, KernelPipeline, TensorView, TiledView
    from .runtime.block_scaled import BlockScaledWeight, block_scaled_matmul, prepare_block_scaled_matmul

_LATER = {"compiler.graph_fusion": ("FusionPlan", "FusionTarget", "plan_graph_fusion"), "frontend.autotune": ("Config", "autotune"),
          "ir.graph_ir": ("ComputeGraph", "GraphBuilder", "TensorSpec"),
          "ir.layout": ("Layout", "col_major", "make_identity", "make_layout", "print_layout", "row_major", "simdgroup_layout_8x8"),
          "runtime.address_space": ("GlobalAddressSpace", "KernelPipeline", "TensorView", "TiledView"),
          "runtime.block_scaled": ("BlockScaledWeight", "block_scaled_matmul", "prepare_block_scaled_matmul")}
_OF_TRITON = {"jit": "metile.kernel", "device_print": "metile.print", "static_range": "Python's range, which is unrolled", "range": "metile.tile_range",
              "trans": "metile.transpose", "cumsum": "a loop over shared memory", "atomic_cas": "atomic_add, atomic_max and atomic_min",
              "atomic_xchg": "atomic_add, atomic_max and atomic_min", "debug_barrier": "metile.barrier", "full": "metile.zeros(shape) + value",
              **dict.fromkeys(("rand", "randn", "randint"), 'metile.cast(offsets, "u32"), whose products and shifts wrap: a hash of it and a seed'),
              **dict.fromkeys(("sort", "topk", "gather"), "metile.shared with metile.barrier, as in a bitonic sort"), "histogram": "atomic_add on metile.shared",
              **dict.fromkeys(("argmax", "argmin"), "metile.min(metile.where(x == metile.max(x), lanes, N))"), "clamp": "metile.minimum and metile.maximum",
              **dict.fromkeys(("make_block_ptr", "advance", "make_tensor_descriptor"), "metile.tile_load(pointer, row, column, stride, shape)"),
              **dict.fromkeys(("expand_dims", "broadcast_to", "reshape"), "lanes[:, None] and lanes[None, :]"), "swizzle2d": "metile.tile_swizzle",
              **{theirs: f'"{ours}", a text' for theirs, ours in (("float32", "f32"), ("float16", "f16"), ("bfloat16", "bf16"), ("int32", "i32"), ("uint32", "u32"), ("uint8", "u8"))}}


def __getattr__(name: str):
    """What few programs use is imported when it is used."""
    for module, names in _LATER.items():
        if name in names:
            value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    ours = [known for known in __dir__() if not known.startswith("_")]
    instead = f": there is {_OF_TRITON[name]}" if name in _OF_TRITON else "" if name.startswith("_") else _did_you_mean(name, ours)
    raise AttributeError(f"module 'metile' has no attribute '{name}'{instead}")


def __dir__():
    return sorted({*globals(), *(name for names in _LATER.values() for name in names)})


globals().update({name: getattr(_ops, name) for name in _ops.FLOAT_FUNCTIONS})

__version__ = "0.1.0"
__all__ = ["Buffer", "Device", "Kernel", "LoweringError", "OutOfResources", "abs", "arange", "atomic_add", "atomic_max", "atomic_min", "barrier",
           "cast", "cdiv", "constexpr", "device_assert", "dot", "fast_exp", "kernel", "load", "max", "maximum", "min", "minimum",
           "next_power_of_2", "num_programs", "persistent_range", "print", "program_id", "reverse_bits", "scalar", "set_device", "shared",
           "simd_broadcast", "simd_lane_id", "simd_max", "simd_shuffle_xor", "simd_sum", "simdgroup_role", "static_assert", "static_print", "store",
           "sum", "thread_id", "tile_load", "tile_range", "tile_store", "tile_swizzle", "transpose", "where", "zeros",
           *(name for names in _LATER.values() for name in names), *_ops.FLOAT_FUNCTIONS]
