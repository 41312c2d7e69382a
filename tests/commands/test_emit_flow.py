"""`vortex check --emit=flow` prints the graph of each kernel."""
import re


def graphs(vortex, tmp_path, text):
    path = tmp_path / "a.vx"
    path.write_text(text)
    return vortex("check", "--emit=flow", path).stdout


KERNELS = """
kernel scale(x: &mut Tensor<f32, [N]>) { x[thread.global_id] *= 2.0 }

@launch(grid = [1], block = 64)
kernel sum(x: &Tensor<u32, [64]>, y: &mut Tensor<u32, [64]>, n: u32) {
    var total = 0u32
    for i in 0..n { if x[i as usize] == 7 { break }; total += x[i as usize] }
    y[thread.local_id] = total
}
"""


def test_each_kernel_has_a_graph(vortex, tmp_path):
    text = graphs(vortex, tmp_path, KERNELS)
    assert re.findall(r"^kernel (\w+)", text, re.M) == ["scale", "sum"]


def test_blocks_and_edges_agree(vortex, tmp_path):
    text = graphs(vortex, tmp_path, KERNELS).split("kernel sum")[1]
    known, edges = {}, set()
    for line in text.splitlines():
        if block := re.match(r"b(\d+)(?: from ([b\d ]+?))?(?: in loop \d+)?:$", line):
            at = int(block[1])
            known[at] = {int(one) for one in re.findall(r"b(\d+)", block[2] or "")}
        elif jump := re.search(r" jump b(\d+)", line):
            edges.add((at, int(jump[1])))
        elif branch := re.search(r" branch .* \? b(\d+) : b(\d+)", line):
            edges |= {(at, int(branch[1])), (at, int(branch[2]))}
    assert edges and edges == {(source, to) for to, sources in known.items() for source in sources}


def test_a_loop_shows_what_it_counts(vortex, tmp_path):
    text = graphs(vortex, tmp_path, KERNELS)
    assert re.search(r"loop 0: header b\d+, back from b\d+, exits b\d+ b\d+, counts v\d+ from 0 to n by 1", text), text


def test_another_form_is_refused(vortex, tmp_path):
    path = tmp_path / "a.vx"
    path.write_text(KERNELS)
    vortex("check", "--emit=llvm", path, status=2)
