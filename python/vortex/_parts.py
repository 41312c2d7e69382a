"""Arguments and results that have parts. A kernel takes structs, tuples, arrays and tensors of structs as one parameter per scalar or tensor
in them, named after the way to it: `p.at.x`, `weights.0`. A tree of those names finds the parts in the caller's object."""
from __future__ import annotations

import dataclasses

import numpy as np


def tree(names: list[str]) -> dict:
    """{"p.at.x": 0, "q": 1} as {"p": {"at": {"x": 0}}, "q": 1}: indices of the names as leaves."""
    root: dict = {}
    for index, name in enumerate(names):
        *path, last = name.split(".")
        node = root
        for step in path:
            node = node.setdefault(step, {})
        node[last] = index
    return root


def flatten(node, value, what: str, out: list) -> None:
    """Appends the parts of the value in the order of the names. TypeError: it has other parts."""
    if isinstance(node, int):
        out.append(value)
        return
    for position, name in enumerate(node):
        flatten(node[name], _part(value, name, position, node, what), f"{what}.{name}", out)


def _part(value, name: str, position: int, node: dict, what: str):
    if isinstance(value, dict):
        if set(value) == set(node):
            return value[name]
    elif isinstance(value, (np.ndarray, np.void)) and value.dtype.names:
        if name in value.dtype.names:
            return value[name]
        if name.isdigit() and len(value.dtype.names) == len(node):
            return value[value.dtype.names[position]]
    elif isinstance(value, np.ndarray) and name.isdigit() and value.ndim and value.shape[-1] == len(node):
        return value[..., position]  # the last axis of the field of a structured array, or of an array of numbers
    elif isinstance(value, (tuple, list)):
        if len(value) == len(node):
            return value[position]
    elif not isinstance(value, np.generic) and hasattr(value, name) and (dataclasses.is_dataclass(value) or not hasattr(value, "__dlpack__")):
        return getattr(value, name)
    raise TypeError(f"{what} has the parts {', '.join(node)}: a dict, a tuple, an object or a structured array with those, not {_described(value)}")


def natural(value):
    """The parts in the order in which the value holds them."""
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, (tuple, list)):
        inner = value
    elif isinstance(value, (np.ndarray, np.void)) and value.dtype.names:
        inner = (value[name] for name in value.dtype.names)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = (getattr(value, field.name) for field in dataclasses.fields(value))
    else:
        yield value
        return
    for part in inner:
        yield from natural(part)


def _described(value) -> str:
    if isinstance(value, dict):
        return f"a dict of {', '.join(map(str, value)) or 'nothing'}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return f"a {type(value).__name__}"


def gather(node, values: list):
    """The values as the tree says: structs as dicts, tuples and arrays as tuples."""
    if isinstance(node, int):
        return values[node]
    made = {name: gather(part, values) for name, part in node.items()}
    return tuple(made.values()) if all(name.isdigit() for name in made) else made
