"""Replacing parts of a model by kernels. Models of other frameworks are not supported here: the report and the check of the argument are."""
from __future__ import annotations

import dataclasses
import sys
import types


@dataclasses.dataclass
class CompileReport:
    """The features for which parts of a model were replaced, and what was declined, with the reason. False when nothing was replaced."""

    model: object = None
    features: tuple = ()
    replaced: dict = dataclasses.field(default_factory=dict)
    declined: dict = dataclasses.field(default_factory=dict)

    def __bool__(self):
        return bool(self.features) or bool(self.replaced)

    def restore(self) -> None:
        """Puts back what was replaced."""
        for undo in self.replaced.values():
            if callable(undo):
                undo()
        self.replaced = {}

    def __str__(self):
        lines = [f"kept {name}" for name in self.replaced] + [f"declined {name}: {reason}" for name, reason in self.declined.items()]
        return "\n".join(lines) or "nothing was replaced"


def compile_model(model, *, verify: bool = True, features=(), tolerance: float = 0.0) -> CompileReport:
    """A report on the model: no part of it is replaced on this platform."""
    if not callable(model):
        raise TypeError(f"metile.compile takes an MLX-LM model, not a {type(model).__name__}")
    return CompileReport(model=model, declined={"model": "models of MLX run on Apple GPUs only"})


class _Callable(types.ModuleType):
    """`metile.compile` is this module and the function."""

    def __call__(self, *args, **kwargs):
        return compile_model(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
