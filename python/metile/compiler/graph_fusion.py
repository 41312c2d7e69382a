"""Which nodes of a graph one kernel should compute. A plan is a proposal: nothing is executed.

Rules propose regions, each with an estimate of what it saves. Regions that share a node exclude each other; the best choice is a heaviest
set of vertices of the conflict graph no two of which are joined. In each component of it that is two-colourable this is a minimum cut; other
components are chosen greedily."""
from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator

from ..ir.graph_ir import ComputeGraph, GraphNode, GraphValue


@dataclasses.dataclass(frozen=True)
class FusionTarget:
    """What launches and memory cost, and what a kernel may hold."""

    launch_overhead_ns: float = 12000.0
    memory_bandwidth_bytes_per_ns: float = 0.12
    register_values: int = 64
    threadgroup_memory: int = 32768


@dataclasses.dataclass(frozen=True, eq=False)
class FusionRegion:
    """Nodes for one kernel, with the values that go in and come out."""

    rule: object
    nodes: tuple
    inputs: tuple
    outputs: tuple
    benefit_ns: float


@dataclasses.dataclass(frozen=True, eq=False)
class FusionPlan:
    graph: ComputeGraph
    regions: tuple

    def region_for(self, node: GraphNode) -> FusionRegion | None:
        return next((region for region in self.regions if any(member is node for member in region.nodes)), None)


@dataclasses.dataclass(frozen=True)
class ProducerConsumerRule:
    """A node and one that reads its result."""

    name: str
    producer_op: str
    consumer_op: str
    consumer_input: int = 0
    register_values: int = 2
    threadgroup_memory: int = 0

    def matches(self, graph: ComputeGraph) -> Iterator[tuple]:
        for consumer in graph.nodes:
            if consumer.op != self.consumer_op or self.consumer_input >= len(consumer.inputs):
                continue
            producer = consumer.inputs[self.consumer_input].producer
            if producer is not None and producer.op == self.producer_op:
                yield producer, consumer


@dataclasses.dataclass(frozen=True)
class ParallelEpilogueRule:
    """Two products of one operand, an activation of the first times the second, and the product that reads this."""

    name: str
    activation: str = "silu"
    register_values: int = 8
    threadgroup_memory: int = 0

    def matches(self, graph: ComputeGraph) -> Iterator[tuple]:
        for down in graph.nodes:
            gated = down.inputs[0].producer if down.op == "matmul" else None
            if gated is None or gated.op != "multiply":
                continue
            for first, second in (gated.inputs, gated.inputs[::-1]):
                activated, up = first.producer, second.producer
                gate = activated.inputs[0].producer if activated is not None and activated.op == self.activation else None
                if gate is None or up is None or gate is up or not gate.op == up.op == "matmul" or gate.inputs[0] is not up.inputs[0]:
                    continue
                chain = {id(node) for node in (gate, up, activated, gated, down)}
                if all(_is_private(graph, node.outputs[0], chain) for node in (gate, up, activated, gated)):
                    yield tuple(node for node in graph.nodes if id(node) in chain)
                    break


DEFAULT_RULES = (ProducerConsumerRule("residual_add_rms_norm", "add", "rms_norm", 0, 4), ParallelEpilogueRule("parallel_matmul_swiglu_down"))


def _is_private(graph: ComputeGraph, value: GraphValue, nodes: set) -> bool:
    return not graph.is_output(value) and all(id(user) in nodes for user in graph.users(value))


def plan_graph_fusion(graph: ComputeGraph, target: FusionTarget | None = None, rules=None) -> FusionPlan:
    """The regions that save most, in the order of the graph."""
    target = target or FusionTarget()
    candidates = [region for rule in (DEFAULT_RULES if rules is None else rules) for region in _regions(graph, rule, target)]
    candidates = [region for region in candidates if region.benefit_ns > 0]
    order = {id(node): position for position, node in enumerate(graph.nodes)}
    chosen = sorted(_heaviest(candidates), key=lambda region: order[id(region.nodes[0])])
    return FusionPlan(graph, tuple(chosen))


def _regions(graph: ComputeGraph, rule, target: FusionTarget) -> Iterator[FusionRegion]:
    if rule.register_values > target.register_values or rule.threadgroup_memory > target.threadgroup_memory:
        return
    for nodes in rule.matches(graph):
        inside = {id(node) for node in nodes}
        inputs: dict[int, GraphValue] = {}
        outputs, saved = [], 0
        for node in nodes:
            for value in node.inputs:
                if value.producer is None or id(value.producer) not in inside:
                    inputs[id(value)] = value
            for value in node.outputs:
                reads = sum(id(user) in inside for user in graph.users(value))
                saved += reads * value.spec.nbytes
                if _is_private(graph, value, inside) and graph.users(value):
                    saved += value.spec.nbytes  # it is not written either
                else:
                    outputs.append(value)
        benefit = (len(nodes) - 1) * target.launch_overhead_ns + saved / target.memory_bandwidth_bytes_per_ns
        yield FusionRegion(rule, tuple(nodes), tuple(inputs.values()), tuple(outputs), benefit)


def _heaviest(regions: list[FusionRegion]) -> list[FusionRegion]:
    members = [{id(node) for node in region.nodes} for region in regions]
    joined = [[other for other in range(len(regions)) if other != index and members[index] & members[other]] for index in range(len(regions))]
    chosen: list[int] = []
    seen: set[int] = set()
    for start in range(len(regions)):
        if start in seen:
            continue
        sides, is_bipartite = {start: 0}, True
        queue = deque([start])
        while queue:
            index = queue.popleft()
            for other in joined[index]:
                if other not in sides:
                    sides[other] = 1 - sides[index]
                    queue.append(other)
                is_bipartite = is_bipartite and sides[other] != sides[index]
        seen |= sides.keys()
        chosen += _by_cut(sides, joined, regions) if is_bipartite else _greedily(sides, joined, regions)
    return [regions[index] for index in chosen]


def _greedily(component, joined, regions) -> list[int]:
    taken: list[int] = []
    for index in sorted(component, key=lambda index: (-regions[index].benefit_ns, index)):
        if not any(other in taken for other in joined[index]):
            taken.append(index)
    return taken


def _by_cut(sides: dict, joined, regions) -> list[int]:
    """Source -> side 0 -> side 1 -> sink with the benefits as capacities: what a minimum cut does not cut is the heaviest set."""
    source, sink = -1, -2
    capacity: dict[tuple[int, int], float] = {}
    neighbours: dict[int, set[int]] = {}

    def connect(tail: int, head: int, amount: float) -> None:
        capacity[tail, head] = capacity.get((tail, head), 0.0) + amount
        capacity.setdefault((head, tail), 0.0)
        neighbours.setdefault(tail, set()).add(head)
        neighbours.setdefault(head, set()).add(tail)

    for index, side in sides.items():
        connect(*((source, index) if side == 0 else (index, sink)), regions[index].benefit_ns)
        if side == 0:
            for other in joined[index]:
                connect(index, other, float("inf"))
    while True:
        reached: dict[int, int | None] = {source: None}
        queue = deque([source])
        while queue and sink not in reached:
            tail = queue.popleft()
            for head in neighbours.get(tail, ()):
                if head not in reached and capacity[tail, head] > 1e-9:
                    reached[head] = tail
                    queue.append(head)
        if sink not in reached:
            return [index for index, side in sides.items() if (index in reached) == (side == 0)]
        path, head = [], sink
        while reached[head] is not None:
            path.append((reached[head], head))
            head = reached[head]
        amount = min(capacity[edge] for edge in path)
        for tail, head in path:
            capacity[tail, head] -= amount
            capacity[head, tail] += amount
