"""`vortex build --memory`: where shared tensors lie, against the scopes of random programs."""
import json
import random

import pytest


class Nest:
    """A kernel of nested blocks and loops with shared tensors of one size; `spans`: name → first and last statement it is needed at."""

    def __init__(self, seed):
        self.random, self.clock, self.count = random.Random(seed), 0, 0
        self.spans, self.lines, self.scopes = {}, [], {}
        self.body([], 0)

    def use(self, name, write):
        self.clock += 1
        self.spans[name][1] = self.clock
        pad = "    " * (self.depth + 1)
        if write:
            self.lines.append(f"{pad}{name}[thread.local_id] = x[thread.global_id] + {self.clock}.0")
        else:
            self.lines.append(f"{pad}y[thread.global_id] = y[thread.global_id] + {name}[255 - thread.local_id]")
        self.lines.append(f"{pad}sync_block()")

    def body(self, visible, depth):
        self.depth, pad, own = depth, "    " * (depth + 1), []
        for _ in range(self.random.randint(3, 6)):
            kind = self.random.random()
            if kind < 0.45 or not visible + own:
                name = f"t{self.count}"
                self.count += 1
                self.clock += 1
                self.spans[name] = [self.clock, self.clock]
                self.lines.append(f"{pad}let {name}: Tensor<f32, [256]> @shared")
                own.append(name)
                self.use(name, True)
            elif kind < 0.7 or depth == 3:
                self.use(self.random.choice(visible + own), self.random.random() < 0.5)
            else:
                is_loop, start = self.random.random() < 0.5, self.clock + 1
                self.lines.append(pad + ("for i" + str(self.clock) + " in 0..3 {" if is_loop else "{"))
                before = {name: span[1] for name, span in self.spans.items()}
                self.body(visible + own, depth + 1)
                self.depth = depth
                self.lines.append(pad + "}")
                self.clock += 1
                if is_loop:  # what is used in a loop and declared outside is needed until it ends
                    for name in visible + own:
                        if self.spans[name][1] != before[name] and self.spans[name][1] >= start:
                            self.spans[name][1] = self.clock

    def text(self):
        head = "@launch(block = 256)\nkernel nest(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {\n"
        return head + "\n".join(self.lines) + "\n    y[thread.global_id] = x[thread.global_id]\n}\n"


def overlaps(a, b):
    return a[0] <= b[1] and b[0] <= a[1]


@pytest.mark.parametrize("target", ["sm_90", "cpu"])
@pytest.mark.parametrize("seed", range(6))
def test_tensors_share_bytes_exactly_where_their_lifetimes_allow(vortex, tmp_path, seed, target):
    nest = Nest(seed)
    path = tmp_path / "nest.vx"
    path.write_text(nest.text())
    [report] = json.loads(vortex("build", path, "--target", target, "--memory", "--json", "--no-cache", "-o", tmp_path).stdout)
    tensors = {tensor["name"]: tensor for tensor in report["sharedTensors"]}
    assert set(tensors) == set(nest.spans)
    for a in tensors:
        for b in tensors:
            if a < b and overlaps(nest.spans[a], nest.spans[b]):
                assert not overlaps(*[(t["offset"], t["offset"] + t["bytes"] - 1) for t in (tensors[a], tensors[b])]), (a, b)
    ends = range(1, nest.clock + 1)
    most = max(sum(span[0] <= at <= span[1] for span in nest.spans.values()) for at in ends) * 1024
    assert max(tensor["offset"] + tensor["bytes"] for tensor in tensors.values()) == most  # no more than what is alive at once
    if target == "sm_90":
        assert report["phases"][0]["sharedBytes"] == most


def test_the_report_names_tensors_lines_limits_and_what_fits(vortex, tmp_path):
    done = vortex("build", "examples/memory_model/lifetimes.vx", "--target", "sm_90", "--memory", "-o", tmp_path)
    assert "1,024 of 232,448 bytes per block" in done.stdout
    assert "`tile`: Tensor<f32, [256]> @shared, line 24" in done.stdout
    assert "`other`: Tensor<f32, [256]> @shared, line 33" in done.stdout
    [report] = json.loads(vortex("build", "examples/memory_model/lifetimes.vx", "--target", "sm_90", "--memory", "--json", "-o", tmp_path).stdout)
    tile, other = report["sharedTensors"]
    assert tile["offset"] == other["offset"] == 0 and tile["lastLine"] < other["line"] == other["firstLine"]
    phase = report["phases"][0]
    if phase["registers"]:
        assert phase["residentThreads"] == phase["blocksPerMultiprocessor"] * 256
    plain = vortex("build", "examples/memory_model/lifetimes.vx", "--target", "sm_90", "-o", tmp_path).stdout
    assert "Shared memory:  1,024 of 232,448 bytes per block" in plain and "`tile`" not in plain
    assert ("Occupancy: " in plain) == bool(phase["registers"])
    assert "Shared memory" not in vortex("build", "examples/memory_model/lifetimes.vx", "--target", "cpu", "-o", tmp_path).stdout


def test_staged_buffers_keep_their_bytes_while_copies_are_in_flight(vortex, tmp_path):
    text = """@tile(m = 64, n = 64, k = 32)
kernel staged(a: &Tensor<f16, [M, K]>, b: &Tensor<f16, [K, N]>) -> Tensor<f16, [M, N]> {
    let buf_a: [Tensor<f16, [64, 32]> @shared; 2]
    let buf_b: [Tensor<f16, [32, 64]> @shared; 2]
    var acc: Tensor<f32, [64, 64]> @local = zeros()
    async_stage(&a[block_m..+64, 0..+32], &mut buf_a[0])
    async_stage(&b[0..+32, block_n..+64], &mut buf_b[0])
    for (k, s) in range(0, K, 32).enumerate() {
        if k + 32 < K {
            async_stage(&a[block_m..+64, k + 32..+32], &mut buf_a[(s + 1) % 2])
            async_stage(&b[k + 32..+32, block_n..+64], &mut buf_b[(s + 1) % 2])
        }
        sync_block()
        acc += buf_a[s % 2] @ buf_b[s % 2]
    }
    let late: Tensor<f32, [1024]> @shared = zeros()
    sync_block()
    return acc + late[0]
}
"""
    path = tmp_path / "staged.vx"
    path.write_text(text)
    [report] = json.loads(vortex("build", path, "--target", "sm_90", "--memory", "--json", "-o", tmp_path).stdout)
    tensors = {tensor["name"]: tensor for tensor in report["sharedTensors"]}
    a, b, late = tensors["buf_a"], tensors["buf_b"], tensors["late"]
    assert a["bytes"] == b["bytes"] == 8192 and late["bytes"] == 4096
    assert not overlaps(*[(t["offset"], t["offset"] + t["bytes"] - 1) for t in (a, b)])
    assert late["offset"] < 16384  # the buffers are over
    code = vortex("build", path, "--target", "sm_90", "--emit", "asm").stdout
    assert "cp.async.wait_group \t0" in code.replace("wait_group 0", "wait_group \t0")
