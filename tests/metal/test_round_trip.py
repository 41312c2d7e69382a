"""tests/equivalence, the examples and, where it lies beside the project, shared/corpus on `--device metal3.1`: what is printed for Metal is read back
and computes what NumPy, or the CPU's own code, does. ./test takes a sample, VORTEX_METAL_SWEEP=1 all of them, which is more than an hour of one core. Programs that use
what Metal lacks are refused with its name."""
import os
import pathlib
import random
import shlex
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
IS_SWEEP = bool(os.environ.get("VORTEX_METAL_SWEEP"))
SAMPLE = [TESTS / f"equivalence/test_{name}.py" for name in ("control_around_tensors", "generics", "shared_scopes", "shuffles", "unrolled_loops")]
ALL = [*sorted(TESTS.glob("equivalence/test_*.py")), *sorted(TESTS.glob("examples/test_*.py"))]
CORPUS = next((path for path in (ROOT.parent / "shared/corpus", ROOT.parents[1] / "shared/corpus") if path.is_dir()), None)
PROGRAMS = sorted(path for folder in ("accepted", "ports", "seed") for path in (CORPUS / folder).glob("**/*.vx")) if CORPUS else []
# What docs/limits.md and docs/metal.md say that kernels for Metal cannot have.
LIMITS = ["Metal has no f64", "the GPU back end does not support a tile of this size", "bytes of shared memory per block", "`@fused`: a reduction is a launch of its own",
          "Metal has no atomics on 64-bit elements", "Metal has no atomics with an order", "Metal has no fences"]
SECONDS = 600


@pytest.mark.parametrize("path", ALL if IS_SWEEP else SAMPLE, ids=lambda path: path.stem)
def test_printed_kernels_compute_what_numpy_does(root, program, path):
    environment = {**os.environ, "VORTEX_BUILD": str(program.parents[1]), "VORTEX_TEST_DEVICE": "metal3.1"}
    words = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "device or verifies", path]
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)
    is_empty = done.returncode == 5 and " deselected" in done.stdout  # a file whose tests are for other devices
    # Skipped is what Metal lacks (METAL_LACKS of conftest.py): of some files, all.
    assert is_empty or (done.returncode == 0 and (" passed" in done.stdout or " skipped" in done.stdout)), done.stdout + done.stderr


def run(program, path, device):
    """The end of a program of the corpus, whose first lines may say what arguments it takes; None: it is no program of its own."""
    head = [line[2:].strip() for line in path.read_text(errors="replace").splitlines()[:8] if line.startswith("//")]
    if "module" in head or not any(line.startswith("fn main") for line in path.read_text(errors="replace").splitlines()):
        return None
    words = [word for line in head if line.startswith("args:") for word in shlex.split(line[5:])]
    return subprocess.run([program, "run", path, "--device", device, *(["--", *words] if words else [])], cwd=path.parent, capture_output=True, text=True, timeout=SECONDS)


@pytest.mark.skipif(not PROGRAMS, reason="shared/corpus is not there")
@pytest.mark.parametrize("number", range(len(PROGRAMS) if IS_SWEEP else 4))
def test_programs_print_what_they_print_on_the_cpu_or_name_what_metal_lacks(program, number):
    path = PROGRAMS[number] if IS_SWEEP else random.choice([each for each in PROGRAMS if "attention" not in each.name])  # those take minutes to compile
    wanted = run(program, path, "cpu")
    if wanted is None or wanted.returncode:
        return
    got = run(program, path, "metal3.1")
    if got.returncode == 0:
        assert got.stdout == wanted.stdout, path
    else:
        assert got.returncode == 1 and "error[E0713]" in got.stderr and any(limit in got.stderr for limit in LIMITS), (path, got.stderr)
