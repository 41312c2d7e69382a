"""Vortex kernels in Python: compile `.vx` programs and call their kernels with NumPy, PyTorch and CuPy arrays.

    import vortex
    program = vortex.compile("scale.vx")
    y = program.scale(x, 2.0)

Importing needs no GPU and loads no compiler; LLVM is loaded when something must be compiled that is not on disk.
"""
from ._devices import Array, Device, asarray, device, devices, empty, synchronize
from ._errors import CompileError, Diagnostic, Error, Label
from ._program import Kernel, Prepared, Program, compile, load

__version__ = "0.1.0"
__all__ = ["Array", "CompileError", "Device", "Diagnostic", "Error", "Kernel", "Label", "Prepared", "Program", "asarray", "compile", "device",
           "devices", "empty", "load", "synchronize"]
