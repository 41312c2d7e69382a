"""Graphs of tensor operations, before kernels are chosen for them."""
from __future__ import annotations

import dataclasses
import math

_BYTES = {"bool": 1, "i8": 1, "u8": 1, "f16": 2, "bf16": 2, "i16": 2, "u16": 2, "f32": 4, "i32": 4, "u32": 4}


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """Extents and element type of a tensor."""

    shape: tuple
    dtype: str

    def __post_init__(self):
        object.__setattr__(self, "shape", tuple(self.shape))
        if not all(isinstance(extent, int) and not isinstance(extent, bool) and extent > 0 for extent in self.shape):
            raise ValueError(f"the extents of a tensor are positive integers, not {self.shape}")
        if self.dtype not in _BYTES:
            raise ValueError(f"unknown dtype {self.dtype!r}; there are {', '.join(_BYTES)}")

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * _BYTES[self.dtype]


@dataclasses.dataclass(frozen=True, eq=False)
class GraphValue:
    """An input of a graph, or what a node gives."""

    name: str
    spec: TensorSpec
    producer: GraphNode | None = None


@dataclasses.dataclass(eq=False)
class GraphNode:
    """One operation."""

    op: str
    name: str
    inputs: tuple
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: tuple = ()

    def __repr__(self):
        return f"{self.name}: {self.op}({', '.join(value.name for value in self.inputs)})"


@dataclasses.dataclass(frozen=True, eq=False)
class ComputeGraph:
    """Nodes in an order in which they can be computed."""

    inputs: tuple
    nodes: tuple
    outputs: tuple

    def users(self, value: GraphValue) -> list[GraphNode]:
        return [node for node in self.nodes if any(used is value for used in node.inputs)]

    def is_output(self, value: GraphValue) -> bool:
        return any(output is value for output in self.outputs)


class GraphBuilder:
    """Records operations; ValueError for shapes that do not fit and names given twice."""

    def __init__(self):
        self._inputs: list[GraphValue] = []
        self._nodes: list[GraphNode] = []
        self._names: set[str] = set()

    def input(self, name: str, spec: TensorSpec) -> GraphValue:
        value = GraphValue(self._name(name, "input"), spec)
        self._inputs.append(value)
        return value

    def add(self, left: GraphValue, right: GraphValue, name: str | None = None) -> GraphValue:
        return self._elementwise("add", left, right, name)

    def multiply(self, left: GraphValue, right: GraphValue, name: str | None = None) -> GraphValue:
        return self._elementwise("multiply", left, right, name)

    def silu(self, value: GraphValue, name: str | None = None) -> GraphValue:
        return self._node("silu", (value,), value.spec, name)

    def scale(self, value: GraphValue, factor: float, name: str | None = None) -> GraphValue:
        return self._node("scale", (value,), value.spec, name, factor=factor)

    def softmax(self, value: GraphValue, axis: int = -1, name: str | None = None) -> GraphValue:
        if not -len(value.spec.shape) <= axis < len(value.spec.shape):
            raise ValueError(f"softmax along axis {axis} of {value.spec.shape}")
        return self._node("softmax", (value,), value.spec, name, axis=axis)

    def causal_mask(self, value: GraphValue, name: str | None = None) -> GraphValue:
        if len(value.spec.shape) < 2:
            raise ValueError(f"a causal mask of {value.spec.shape}: it is for the last two axes")
        return self._node("causal_mask", (value,), value.spec, name)

    def rms_norm(self, value: GraphValue, weight: GraphValue, epsilon: float, name: str | None = None) -> GraphValue:
        if weight.spec.shape != value.spec.shape[-1:]:
            raise ValueError(f"rms_norm of {value.spec.shape} with a weight of {weight.spec.shape}")
        return self._node("rms_norm", (value, weight), value.spec, name, epsilon=epsilon)

    def matmul(self, left: GraphValue, right: GraphValue, transpose_right: bool = False, name: str | None = None) -> GraphValue:
        first, second = left.spec.shape, right.spec.shape
        if len(first) < 2 or len(second) < 2:
            raise ValueError(f"matmul of {first} and {second}: both have two axes or more")
        inner, columns = (second[-1], second[-2]) if transpose_right else (second[-2], second[-1])
        if first[-1] != inner or first[:-2] != second[:-2]:
            raise ValueError(f"matmul of {first} and {second}: extents do not fit")
        return self._node("matmul", (left, right), TensorSpec((*first[:-1], columns), left.spec.dtype), name, transpose_right=transpose_right)

    def build(self, outputs) -> ComputeGraph:
        results = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
        if not results:
            raise ValueError("a graph has outputs")
        return ComputeGraph(tuple(self._inputs), tuple(self._nodes), results)

    def _elementwise(self, op: str, left: GraphValue, right: GraphValue, name: str | None) -> GraphValue:
        if left.spec != right.spec:
            raise ValueError(f"{op} of {left.spec} and {right.spec}: both sides have identical shapes and dtypes")
        return self._node(op, (left, right), left.spec, name)

    def _node(self, op: str, inputs: tuple, spec: TensorSpec, name: str | None, **attributes) -> GraphValue:
        node = GraphNode(op, self._name(name, op), inputs, attributes)
        node.outputs = (GraphValue(node.name, spec, node),)
        self._nodes.append(node)
        return node.outputs[0]

    def _name(self, wanted: str | None, kind: str) -> str:
        name = wanted or next(f"{kind}_{number}" for number in range(len(self._names) + 1) if f"{kind}_{number}" not in self._names)
        if name in self._names:
            raise ValueError(f"two values are named {name!r}")
        self._names.add(name)
        return name
