"""`pip install .` of a checkout into a virtual environment of its own, as a user does it once ./vortex has run. The build tools are those of the tests'
Python, so that nothing is asked of the network. With VORTEX_PIP=1 alone: though ccache has the objects, generating and linking take over a minute of
processor time."""
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def installed(program, tmp_path_factory):
    """Python of the environment."""
    if not os.environ.get("VORTEX_PIP"):
        pytest.skip("VORTEX_PIP=1 builds what pip installs")
    if os.environ.get("VORTEX_SANITIZED") or not list((program.parents[1] / "python").glob("_vortex.*.so")):
        pytest.skip("there is no binding for Python in this build")
    pytest.importorskip("scikit_build_core")
    checkout, environment = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("environment")
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout.split(b"\0")
    for name in filter(None, map(os.fsdecode, tracked)):
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, checkout / name)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin/python"
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True).stdout.strip()
    pathlib.Path(site, "tools_of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", checkout], check=True)
    return python


def test_a_checkout_is_installed_by_pip(installed, tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent("""
        import importlib.metadata
        import numpy as np
        import metile
        import vortex

        program = vortex.compile(source="kernel scale(x: &Tensor<f32, [N]>, a: f32) -> Tensor<f32, [N]> { return x * a }")
        x = np.random.default_rng().standard_normal(1000).astype(np.float32)
        assert np.array_equal(program.scale(x, 2.0), x * 2)

        @metile.kernel
        def double(a, out, n, BLOCK: metile.constexpr):
            i = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
            metile.store(out + i, metile.load(a + i, mask=i < n) * 2.0, mask=i < n)

        out = np.full_like(x, np.nan)
        double[(8,)](x, out, 1000, BLOCK=128)
        assert np.array_equal(out, x * 2)
        print(importlib.metadata.version("vortex-kernels"), vortex.__file__, metile.__file__, sep="\\n")
    """))
    done = subprocess.run([installed, "script.py"], cwd=tmp_path, env={"HOME": str(tmp_path)}, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    version, *files = done.stdout.split("\n")[:3]
    assert version and all(file.startswith(str(installed.parents[1])) for file in files), done.stdout
