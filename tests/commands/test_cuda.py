"""CUDA devices on the command line, over the stand-in for libcuda (which compiles nothing and runs no kernel of ours)."""
import json

import pytest


@pytest.fixture
def stand_in(program):
    path = program.parents[1] / "lib/libvortex_fake_cuda.so"
    if not path.exists():
        pytest.skip("the stand-in is not built")
    return {"VORTEX_LIBCUDA": str(path)}


@pytest.mark.parametrize("command", ["targets", "info"])
def test_devices_are_listed_with_what_to_compile_for(vortex, stand_in, command):
    assert "cuda:0      Stand-in 0 (sm_90), 4 workers, 1024 MiB" in vortex(command, env=stand_in).stdout


def test_devices_are_listed_as_json(vortex, stand_in):
    found = [device for device in json.loads(vortex("targets", "--json", env=stand_in).stdout) if device["device"] == "cuda:0"]
    assert found == [{"device": "cuda:0", "product": "Stand-in 0", "target": "sm_90", "memoryBytes": 1 << 30, "workers": 4}]


def test_kernels_are_compiled_for_the_device_and_given_to_its_driver(vortex, stand_in, tmp_path):
    program = tmp_path / "double.vx"
    program.write_text("kernel double(x: &mut Tensor<f32, [N]>) {\n    x[thread.global_id] *= 2.0\n}\n"
                       "fn main() {\n    var x = random.normal::<f32>([1000], seed = 1)\n    double(&mut x)\n    print(\"done\")\n}\n")
    assert vortex("run", program, "--device", "cuda:0", env=stand_in).stdout == "done\n"


def test_an_index_beyond_the_devices_is_an_error(vortex, stand_in):
    done = vortex("run", "examples/scale.vx", "--device", "cuda:3", env=stand_in, status=1)
    assert "error[E0802]: there is no device 'cuda:3'; this machine has: cpu, null, cuda:0" in done.stderr


def test_a_library_that_is_broken_is_named(vortex):
    broken = {"VORTEX_LIBCUDA": "/nonexistent/libcuda.so"}
    assert "/nonexistent/libcuda.so" in vortex("run", "examples/scale.vx", "--device", "cuda:0", env=broken, status=1).stderr
    done = vortex("targets", env=broken)
    assert "warning: " in done.stderr and "cpu" in done.stdout
