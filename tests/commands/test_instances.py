"""`vortex build` of generic kernels: every instance has files and symbols of its own."""
import json
import shutil
import subprocess

import pytest

INSTANCES = """
kernel twice<T: Numeric>(x: &mut Tensor<T, [N]>) {
    x[thread.global_id] = x[thread.global_id] + x[thread.global_id]
}

kernel plus<T: Numeric, const C: i32>(x: &mut Tensor<T, [N]>) {
    x[thread.global_id] = x[thread.global_id] + C as T
}

kernel plain(x: &mut Tensor<i32, [N]>) {
    x[thread.global_id] = 7
}

fn main() {
    var a: Tensor<f32, [4]> = full(1.0)
    var b: Tensor<u64, [4]> = full(1)
    twice(&mut a)
    twice(&mut b)
    plus::<f32, 3>(&mut a)
    plus::<f32, -3>(&mut a)
}
"""


@pytest.fixture
def built(vortex, tmp_path):
    (tmp_path / "gen.vx").write_text(INSTANCES)
    done = vortex("build", tmp_path / "gen.vx", "-o", tmp_path / "out", "--json")
    return json.loads(done.stdout)


def test_each_instance_has_files_of_its_own(built, tmp_path):
    files = [file for report in built for file in report["files"]]
    assert len(files) == len(set(files)) == 15
    names = {report["kernel"] for report in built}
    assert {"plain", "twice-f32", "twice-u64"} <= names
    # The arguments 3 and -3 are spelled alike in file names: both carry a hash.
    rest = sorted(name for name in names if name.startswith("plus"))
    assert len(rest) == 2 and all(name.startswith("plus-f32-3-") and len(name) == len("plus-f32-3-") + 8 for name in rest)


def test_c_calls_two_instances_in_one_program(built, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "main.c").write_text("""#include <stdio.h>
#include "gen.twice-f32.h"
#include "gen.twice-u64.h"
int main(void) {
  float a[3] = {1.5f, 2.0f, -3.0f};
  uint64_t b[3] = {1, 1ull << 40, 7};
  if (twice_f32(a, 3) || twice_u64(b, 3)) return 1;
  printf("%g %g %g %llu %llu %llu\\n", a[0], a[1], a[2], (unsigned long long)b[0], (unsigned long long)b[1], (unsigned long long)b[2]);
  return 0;
}
""")
    compiler = shutil.which("clang-19")
    objects = [str(out / f"gen.twice-{t}.o") for t in ("f32", "u64")]
    subprocess.run([compiler, "-O1", f"-I{out}", str(tmp_path / "main.c"), *objects, "-lm", "-o", str(tmp_path / "main")], check=True)
    printed = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True).stdout.split()
    assert printed[:3] == ["3", "4", "-6"] and [int(n) for n in printed[3:]] == [2, 2 << 40, 14]


def test_an_instance_is_chosen_by_its_name(vortex, tmp_path):
    (tmp_path / "gen.vx").write_text(INSTANCES)
    done = vortex("build", tmp_path / "gen.vx", "--kernel", "twice-u64", "-o", tmp_path / "one")
    assert "twice-u64:" in done.stdout
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [f"gen.twice-u64.{end}" for end in ("h", "o", "vxk")]
    assert len(json.loads(vortex("build", tmp_path / "gen.vx", "--kernel", "twice", "-o", tmp_path / "two", "--json").stdout)) == 2


OPEN = """
kernel plain(x: &mut Tensor<i32, [N]>) {
    x[thread.global_id] = 7
}

kernel typed<T: Numeric, const C: i32>(x: &mut Tensor<T, [N]>) {
    x[thread.global_id] = C as T
}

@launch(block = B)
kernel sized<const B: usize, const W: u8>(x: &mut Tensor<f32, [N]>) {
    x[thread.global_id] = (B + W as usize) as f32
}
"""


def test_generic_kernels_that_nothing_calls_are_built_for_named_constants_only(vortex, tmp_path):
    path = tmp_path / "open.vx"
    path.write_text(OPEN)

    def built(*options, status=0):
        done = vortex("--json", "build", path, "-o", tmp_path / "out", *options, status=status)
        told = json.loads(done.stderr)[0] if done.stderr else None
        return [report["kernel"] for report in json.loads(done.stdout or "[]")], told

    names, told = built()
    assert names == ["plain"] and (told["id"], told["severity"]) == ("E0805", "note")
    assert "`typed`" in told["message"] and "call it in the program" in told["message"] and "--dim B=… --dim W=…" in told["message"]
    names, told = built("--kernel", "sized", "--dim", "B=64", status=1)
    assert names == [] and told["severity"] == "error" and told["message"].endswith("add --dim W=…")
    assert built("--kernel", "sized", "--dim", "B=64", "--dim", "W=9") == (["sized-64-9"], None)
    # A number that the parameter's type has not names nothing.
    _, told = built("--kernel", "sized", "--dim", "B=64", "--dim", "W=300", status=1)
    assert "`W`" in told["message"]
    _, told = built("--header", "--kernel", "typed", "--dim", "C=4", status=1)
    assert told["message"].endswith("call it in the program") and "`C`" not in told["message"]


def test_launchers_of_two_instances_are_two_classes(vortex, tmp_path):
    (tmp_path / "gen.vx").write_text(INSTANCES)
    vortex("build", tmp_path / "gen.vx", "--header", "--kernel", "twice", "-o", tmp_path / "out")
    headers = sorted((tmp_path / "out").iterdir())
    assert [h.name for h in headers] == ["gen.twice-f32.hpp", "gen.twice-u64.hpp"]
    assert "class twice_f32 {" in headers[0].read_text() and "class twice_u64 {" in headers[1].read_text()
