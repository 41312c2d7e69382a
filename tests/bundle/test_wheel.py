"""The wheel, unpacked as pip does it, in a folder of its own: packages, compiler and libraries come from there."""
import base64
import csv
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheel(program, tmp_path_factory):
    build = program.parents[1]
    if os.environ.get("VORTEX_SANITIZED") or not list((build / "python").glob("_vortex.*.so")):
        pytest.skip("there is no binding for Python in this build")
    made, unpacked = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site packages")
    subprocess.run([sys.executable, ROOT / "tools/dev/wheel.py", "--fast", "--build", build, "-o", made], check=True)
    (archive,) = made.iterdir()
    with zipfile.ZipFile(archive) as file:
        file.extractall(unpacked)
    return archive, unpacked


def test_name_tag_and_record_agree(wheel):
    archive, unpacked = wheel
    name, version, python, abi, platform = archive.stem.split("-")
    assert python == abi == f"cp{sys.version_info.major}{sys.version_info.minor}" and platform == "manylinux_2_36_x86_64"
    info = unpacked / f"{name}-{version}.dist-info"
    assert f"Tag: {python}-{abi}-{platform}\n" in (info / "WHEEL").read_text()
    assert "Requires-Dist: numpy" in (info / "METADATA").read_text()
    rows = {path: (digest, size) for path, digest, size in csv.reader((info / "RECORD").open())}
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    assert files == set(rows)
    for path, (digest, size) in rows.items():
        data = (unpacked / path).read_bytes()
        assert path.endswith("RECORD") or (len(data) == int(size)
                                           and digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode())


def test_everything_runs_from_the_wheel(wheel, tmp_path):
    _, unpacked = wheel
    (tmp_path / "script.py").write_text(textwrap.dedent("""
        import re
        import numpy as np
        import metile
        import vortex

        program = vortex.compile(source="kernel scale(x: &Tensor<f32, [N]>, a: f32) -> Tensor<f32, [N]> { return x * a }")
        x = np.random.default_rng().standard_normal(1000).astype(np.float32)
        assert np.array_equal(program.scale(x, 2.0), x * 2)

        @metile.kernel
        def add(a, b, out, n, BLOCK: metile.constexpr):
            i = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
            metile.store(out + i, metile.load(a + i, mask=i < n) + metile.load(b + i, mask=i < n), mask=i < n)

        out = np.full_like(x, np.nan)
        add[(8,)](x, x, out, 1000, BLOCK=128)
        assert np.array_equal(out, x + x)
        print(*sorted(set(re.findall(r"/[^\\n]*", open("/proc/self/maps").read()))), sep="\\n")
    """))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env={"HOME": str(tmp_path), "PYTHONPATH": str(unpacked)},
                          capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    loaded = [path for path in done.stdout.splitlines() if re.search(r"LLVM|MLIR|vortex|tbb|libz3", path)]
    assert len(loaded) >= 5 and all(path.startswith(str(unpacked)) or path.startswith(str(tmp_path)) for path in loaded), loaded
