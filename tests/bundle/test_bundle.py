"""The bundle, unpacked into an empty folder, with nothing of this machine but libc."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBC = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "linux-vdso.so.1"}


def unpack(program, tmp_path_factory, *options):
    """The unpacked bundle in a folder that is not the one it was made in. Quick compression: its size is checked when it is made in earnest."""
    if os.environ.get("VORTEX_SANITIZED"):
        pytest.skip("instrumented programs are not bundled")
    made, unpacked = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("unpacked with space")
    build = program.parents[1]
    subprocess.run([sys.executable, ROOT / "tools/dev/bundle.py", "--fast", "--build", build, "-o", made, *options], check=True)
    (archive,) = made.iterdir()
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="fully_trusted") if sys.version_info >= (3, 12) else tar.extractall(unpacked)
    (top,) = unpacked.iterdir()
    assert archive.name == top.name + "".join("-" + option.strip("-") for option in options) + ".tar.xz"
    return top


@pytest.fixture(scope="session")
def bundle(program, tmp_path_factory):
    return unpack(program, tmp_path_factory)


@pytest.fixture(scope="session")
def metal_bundle(program, tmp_path_factory):
    if not (program.parents[1] / "lib/libvortex_metal.so").exists():
        pytest.skip("libvortex_metal.so is not built")
    return unpack(program, tmp_path_factory, "--metal")


def run(bundle, tmp_path, *arguments):
    """With an empty environment and a home of its own, from an empty folder."""
    done = subprocess.run([bundle / "bin/vortex", *arguments], cwd=tmp_path, env={"HOME": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_but_libc_comes_from_the_bundle(bundle, tmp_path):
    lines = subprocess.run(["ldd", bundle / "bin/vortex"], env={}, capture_output=True, text=True, check=True).stdout.splitlines()
    for line in lines:
        name = pathlib.Path(line.split()[0]).name
        assert name in LIBC or f"{bundle.parent}/" in line, line


def test_examples_run(bundle, tmp_path):
    assert run(bundle, tmp_path, "run", bundle / "examples/softmax.vx").startswith("softmax: ")
    assert run(bundle, tmp_path, "run", bundle / "examples/reduce.vx").startswith("reduce: ")


def test_the_second_run_comes_from_the_cache_in_the_scratch_home(bundle, tmp_path):
    run(bundle, tmp_path, "run", bundle / "examples/scale.vx")
    kept = [path for path in (tmp_path / ".cache/vortex").rglob("*") if path.is_file()]
    assert kept
    run(bundle, tmp_path, "run", bundle / "examples/scale.vx")
    assert kept == [path for path in (tmp_path / ".cache/vortex").rglob("*") if path.is_file()]


def test_the_readme_links_to_what_is_there(bundle):
    text = re.sub(r"^```.*?^```$", "", (bundle / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^):]+)\)", text)
    assert links and all((bundle / link).exists() for link in links)


def test_the_standard_library_is_found(bundle, tmp_path):
    assert str(bundle / "std") in run(bundle, tmp_path, "info")


def test_metal_source_needs_the_bundle_with_its_reader(bundle, metal_bundle, tmp_path):
    words = ["run", "examples/metal/gemm_naive.metal", "--grid", "3,2", "--block", "3,2", "--print", "2", "--buffer", "0=f32:1,2,3,4",
             "--buffer", "1=f32:1,0,0,1,1,1", "--buffer", "2=f32[6]", "--buffer", "3=u32:2,2,3"]
    words[1] = metal_bundle / words[1]
    assert run(metal_bundle, tmp_path, *words) == "1 2 3 3 4 7\n"
    done = subprocess.run([bundle / "bin/vortex", *words], cwd=tmp_path, env={"HOME": str(tmp_path / "other")}, capture_output=True, text=True)
    assert done.returncode == 1 and "error[E0903]" in done.stderr
    for name in ("msl", "metal"):
        lines = subprocess.run(["ldd", metal_bundle / f"lib/libvortex_{name}.so"], env={}, capture_output=True, text=True, check=True).stdout.splitlines()
        for line in lines:
            assert pathlib.Path(line.split()[0]).name in LIBC or f"{metal_bundle.parent}/" in line, line


def test_the_study_builds_against_the_bundle(metal_bundle, device, tmp_path):
    subprocess.run(["cmake", "-S", metal_bundle / "examples/metal/gemm_study", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={metal_bundle}",
                    "-DCMAKE_CXX_COMPILER=clang++-19"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
    done = subprocess.run([tmp_path / "build/gemm_study", device, "--size", "4x8x8", "--dispatches", "1"], env={"HOME": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("Perf of naive dim 4x8x8 is "), done.stderr


def test_runs_where_there_is_only_libc(bundle, tmp_path):
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("only root may change the root folder")
    top = tmp_path / "root"
    shutil.copytree(bundle, top / "vortex")
    for folder in ("lib64", "lib/x86_64-linux-gnu", "proc", "tmp"):
        (top / folder).mkdir(parents=True)
    shutil.copy("/lib64/ld-linux-x86-64.so.2", top / "lib64")
    for name in ("libc.so.6", "libm.so.6"):
        shutil.copy(f"/lib/x86_64-linux-gnu/{name}", top / "lib/x86_64-linux-gnu")
    script = 'mount --bind /proc "$1/proc" && exec env -i HOME=/tmp "$2" "$1" /vortex/bin/vortex run /vortex/examples/softmax.vx'
    chroot = shutil.which("chroot", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    done = subprocess.run(["unshare", "-m", "bash", "-c", script, "bash", top, chroot], capture_output=True, text=True)
    assert done.stdout.startswith("softmax: "), done.stderr
