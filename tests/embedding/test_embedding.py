"""Programs of others that use the runtime: found with find_package in an installed tree, without LLVM."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def call(*arguments, **options):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(program, tmp_path_factory):
    if os.environ.get("VORTEX_SANITIZED"):
        pytest.skip("instrumented libraries are not installed")
    prefix = tmp_path_factory.mktemp("installed with space")
    call("cmake", "--install", program.parents[1], "--prefix", prefix, "--component", "vortex")
    # The bundle carries LLVM beside the driver; here the system's must do.
    return prefix


@pytest.fixture(scope="module")
def embedding(installed, tmp_path_factory):
    build = tmp_path_factory.mktemp("embedding")
    environment = {**os.environ, "LD_LIBRARY_PATH": "/usr/lib/llvm-19/lib", "XDG_CACHE_HOME": str(build / "cache")}
    call("cmake", "-S", ROOT / "examples/embedding", "-B", build, f"-DCMAKE_PREFIX_PATH={installed}", "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_C_COMPILER=clang-19", env=environment)
    call("cmake", "--build", build, env=environment)
    return build


def test_the_cpp_program_runs_its_embedded_kernels(embedding, device):
    assert call(embedding / "embedding").startswith("embedding: 100003 elements on ")


def test_a_device_that_the_kernels_were_not_built_for_is_an_error(embedding):
    done = subprocess.run([embedding / "embedding", "abacus"], capture_output=True, text=True)
    assert done.returncode == 1 and "there is no device 'abacus'" in done.stderr


def test_the_c_program_runs_an_artifact(embedding, vortex, tmp_path):
    vortex("build", ROOT / "examples/embedding/kernels.vx", "--kernel", "saxpy", "-o", tmp_path)
    assert call(embedding / "embedding_c", tmp_path / "kernels.saxpy.vxk").startswith("embedding_c: 1000 elements on ")


def test_the_runtime_is_small_and_free_of_llvm(installed):
    library = installed / "lib/libvortex_runtime.so"
    assert library.stat().st_size < 5_000_000
    needed = call("readelf", "-d", library)
    assert "LLVM" not in needed and "MLIR" not in needed


def test_the_c_header_is_c(installed, tmp_path):
    (tmp_path / "user.c").write_text("#include <vortex/vortex.h>\nint main(void) { return vortex_of_f32(1).bits == 0; }\n")
    call("clang-19", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", installed / "include", "-c", "-o", tmp_path / "user.o", tmp_path / "user.c")


def test_several_targets_go_into_one_header(vortex, tmp_path):
    vortex("build", ROOT / "examples/embedding/kernels.vx", "--kernel", "saxpy", "--header", "--target", "cpu,sm_90,sm_80", "-o", tmp_path)
    text = (tmp_path / "kernels.saxpy.hpp").read_text()
    assert '{"sm_90", bytes1}' in text and '{"sm_80", bytes2}' in text
    assert "operator()(vortex::Stream& stream, float arg_alpha, const vortex::Tensor& arg_x, const vortex::Tensor& arg_y" in text
    done = vortex("build", ROOT / "examples/embedding/kernels.vx", "--header", "--target", "cpu,vax", "-o", tmp_path, status=1)
    assert "there is no target `vax`" in done.stderr
