"""Memory that runs out is a diagnostic with exit status 1 on every device, also under a limit of the process (ulimit -v)."""
import os
import resource
import subprocess

import pytest

LIMIT = 3 << 30
DEVICES = pytest.mark.parametrize("words", [["--device", "cpu"], ["--device", "interpreter"], ["--check"]], ids=lambda words: words[-1].strip("-"))

PROGRAMS = {
    "tile": """
kernel f(a: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {
    let b = a.reshape([N, 1]) + a.reshape([1, N])
    return b.cumsum(1).sum(0)
}
fn main() {
    let x = f(&full(1.0, [1000000]))
    print(x.to_host()[0])
}
""",
    "result": """
kernel f(a: &Tensor<f32, [N]>) -> Tensor<f32, [N, N]> {
    return a.reshape([N, 1]) + a.reshape([1, N])
}
fn main() {
    let x = f(&full(1.0, [1000000]))
    print(x.to_host()[0])
}
""",
    "tensor": "fn main() {\n    let n: usize = 4000000000\n    let x = zeros::<f32>([n])\n    print(x.shape[0])\n}\n",
    "to_host": "fn main() {\n    let x = zeros::<f32>([300000000])\n    let a = x.to_host()\n    let b = x.to_host()\n    let c = x.to_host()\n    print(a[0], b[0], c[0])\n}\n",
    "copy": "fn main() {\n    let x = zeros::<f32>([300000000])\n    let a = x.copy()\n    let b = x.copy()\n    let c = x.copy()\n    print(a.shape[0], b.shape[0], c.shape[0])\n}\n",
    "list": "fn main() {\n    var a = vec![0.0f64; 100000000]\n    let b = a.map(|x| x + 1.0)\n    let c = b.map(|x| x + 1.0)\n    let d = c.map(|x| x + 1.0)\n    let e = d.map(|x| x + 1.0)\n    print(e[0])\n}\n",
    "grown": "fn main() {\n    var a = vec![0.0f64]\n    loop {\n        let b = a.clone()\n        for x in b { a.push(x) }\n    }\n}\n",
}


@DEVICES
@pytest.mark.parametrize("name", ["tile", "result", "tensor", "to_host", "copy"])
def test_running_out_of_memory_is_reported(program, tmp_path, words, name):
    path = tmp_path / "memory.vx"
    path.write_text(PROGRAMS[name])
    done = subprocess.run(
        [program, "run", path, *words], capture_output=True, text=True, timeout=3600, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)))
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr[-2000:])
    assert ("error[E0703]" in done.stderr or "error[E0712]" in done.stderr) and "out of memory" in done.stderr, done.stderr
