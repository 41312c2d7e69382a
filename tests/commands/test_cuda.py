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
    assert "error[E0802]: there is no device 'cuda:3'; this machine has: cpu, null, metal3.1, cuda:0" in done.stderr


PROGRAM = """kernel double(x: &mut Tensor<f32, [N]>) {
    x[thread.global_id] *= 2.0
}
fn main() {
    var x = zeros::<f32>([%s])
    double(&mut x)
    print("done")
}
"""


def run(vortex, tmp_path, stand_in, text, device="cuda:0", status=1, **settings):
    program = tmp_path / "program.vx"
    program.write_text(text)
    environment = {**stand_in, **{f"FAKE_CUDA_{key}": str(value) for key, value in settings.items()}}
    return vortex("run", program, "--device", device, env=environment, status=status)


def test_every_gpu_can_be_chosen_and_an_index_beyond_them_lists_them(vortex, stand_in, tmp_path):
    assert run(vortex, tmp_path, stand_in, PROGRAM % 1000, device="cuda:1", status=0, devices=2).stdout == "done\n"
    done = run(vortex, tmp_path, stand_in, PROGRAM % 1000, device="cuda:2", devices=2)
    assert "error[E0802]: there is no device 'cuda:2'; this machine has: cpu, null, metal3.1, cuda:0, cuda:1" in done.stderr


def test_a_tensor_larger_than_the_device_is_refused_with_both_sizes(vortex, stand_in, tmp_path):
    done = run(vortex, tmp_path, stand_in, PROGRAM % 300_000_000, memory=1 << 30)
    assert "1200000000 bytes requested" in done.stderr and "of 1073741824" in done.stderr
    assert "done" not in done.stdout


def test_a_driver_that_is_too_old_for_the_code_is_refused_with_both_versions(vortex, stand_in, tmp_path):
    done = run(vortex, tmp_path, stand_in, PROGRAM % 1000, version=11080)
    assert "its PTX has version 8.0, the installed driver is for CUDA 11.8 and takes versions up to 7.8: update the NVIDIA driver" in done.stderr


def test_a_gpu_that_is_too_old_is_named(vortex, stand_in, tmp_path):
    done = run(vortex, tmp_path, stand_in, PROGRAM % 1000, capability=70)
    assert "'cuda:0' (Stand-in 0) is sm_70, older than every GPU that kernels can be compiled for" in done.stderr


def test_a_block_too_large_for_the_gpu_is_refused_with_both_numbers(vortex, stand_in, tmp_path):
    text = """kernel fill(x: &mut Tensor<f32, [N]>) {
    x[thread.global_id] = 1.0
}
fn main() {
    var x = zeros::<f32>([4096])
    fill.launch(grid = 1, block = 70000)(&mut x)
    print("done")
}
"""
    done = run(vortex, tmp_path, stand_in, text)
    assert "error[E0713]" in done.stderr and "blocks of 70000 threads (at most 65536 on sm_90)" in done.stderr


def test_a_library_that_is_broken_is_named(vortex):
    broken = {"VORTEX_LIBCUDA": "/nonexistent/libcuda.so"}
    assert "/nonexistent/libcuda.so" in vortex("run", "examples/scale.vx", "--device", "cuda:0", env=broken, status=1).stderr
    done = vortex("targets", env=broken)
    assert "warning: " in done.stderr and "cpu" in done.stdout


OUTSIDE = """kernel crash(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>, by: usize) {
    let i = thread.global_id
    @unchecked(bounds)
    y[i] = x[i + by]
}

fn main() {
    var y = zeros::<f32>([1000])
    crash(&zeros::<f32>([1000]), &mut y, 1_000_000)
    print("done")
}
"""


def test_an_illegal_address_names_the_kernel_the_launch_and_how_to_find_the_access(vortex, stand_in, tmp_path):
    done = run(vortex, tmp_path, stand_in, OUTSIDE, status=1)
    assert done.stdout == ""
    assert "error[E0708]: the device stopped" in done.stderr and "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stderr
    assert "`vortex run --check` finds it" in done.stderr
    assert " 1 | kernel crash" in done.stderr and " 9 |     crash(&zeros::<f32>([1000]), &mut y, 1_000_000)" in done.stderr


def test_a_run_with_checks_names_the_access_whatever_the_device(vortex, tmp_path):
    program = tmp_path / "program.vx"
    program.write_text(OUTSIDE)
    for device in "cuda:0", "cpu":
        done = vortex("run", program, "--device", device, "--check", status=1)
        assert "error[E0601]: index 1000000 is outside dimension 0 of `x`, which has extent 1000" in done.stderr
        assert " 4 |     y[i] = x[i + by]\n   |            - raised here" in done.stderr
