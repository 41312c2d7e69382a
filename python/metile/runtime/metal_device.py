"""The device that kernels run on, under the name that programs for Apple GPUs import."""
from .device import Device as MetalDevice

__all__ = ["MetalDevice"]
