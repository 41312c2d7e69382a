"""Launchers for printed kernels: the header compiles with the names of vortex::metal, which are metal-cpp's, and the program gives NumPy's numbers."""
import os
import pathlib
import subprocess

import numpy as np
import pytest

KERNELS = """
kernel softmax_rows(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {
    let e = exp(x - x.max(dim = -1, keepdim = true))
    return e / e.sum(dim = -1, keepdim = true)
}
kernel chain(x: &Tensor<f32, [S, S]>, n: usize) -> Tensor<f32, [S, S]> {
    var y = x * 1.0
    for i in 0..n { y = y @ x }
    return y
}
kernel swap(x: &Tensor<i32, [S, S]>, h: usize) -> Tensor<i32, [S, S]> {
    var a = x * 1
    var b = x * 2
    var k = h
    while k > 0 {
        let c = a.transpose() - b
        a = b
        b = c
        if k % 2 == 1 { b = b + a.transpose() }
        k = k / 2
    }
    return a - b
}
kernel scaled(x: &mut Tensor<f32, [N]>, factor: f32) {
    assert(factor != 0.0, "the factor is zero")
    x[thread.global_id] *= factor
}
"""
MAIN = """
#include "out/kernels.softmax_rows.metal.hpp"
#include "out/kernels.chain.metal.hpp"
#include "out/kernels.swap.metal.hpp"
#include "out/kernels.scaled.metal.hpp"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

static MTL::Device* device;
static MTL::CommandQueue* queue;

static MTL::Buffer* buffer(const std::string& file, size_t bytes) {
  MTL::Buffer* made = device->newBuffer(bytes, MTL::ResourceStorageModeShared);
  if (!file.empty() && !std::ifstream(file).read(static_cast<char*>(made->contents()), static_cast<std::streamsize>(bytes))) std::exit(2);
  return made;
}
static void save(const std::string& file, const MTL::Buffer* memory) {
  std::ofstream(file).write(static_cast<const char*>(memory->contents()), static_cast<std::streamsize>(memory->length()));
}
template <class Kernel, class... Rest> static int launch(Kernel& kernel, Rest... rest) {
  MTL::CommandBuffer* commands = queue->commandBuffer();
  const int status = kernel(commands, rest...);
  if (status != 0) return status;
  commands->commit();
  commands->waitUntilCompleted();
  if (commands->error()) std::fprintf(stderr, "%s\\n", commands->error()->localizedDescription()->utf8String());
  return commands->status() == MTL::CommandBufferStatusCompleted ? 0 : 3;
}
template <class Kernel> static void load(Kernel& kernel) {
  NS::Error* error = nullptr;
  if (kernel.load(device, &error)) return;
  std::fprintf(stderr, "%s\\n", error->localizedDescription()->utf8String());
  std::exit(4);
}

int main() {
  NS::AutoreleasePool* pool = NS::AutoreleasePool::alloc()->init();
  device = MTL::CreateSystemDefaultDevice();
  queue = device->newCommandQueue();
  kernels::softmax_rows softmax;
  load(softmax);
  for (int64_t n : {1, 70, 257}) {
    MTL::Buffer *x = buffer("softmax" + std::to_string(n), 5 * n * 4), *y = buffer("", 5 * n * 4);
    if (kernels::softmax_rows::softmax_rows_result0_extent1({x}, 5, n) != n) return 5;
    if (int status = launch(softmax, kernels::Slice{x}, 5, n, kernels::Slice{y})) return 10 - status;
    save("softmax" + std::to_string(n) + ".out", y);
  }
  const int64_t s = 23;
  kernels::chain chain;
  kernels::swap swap;
  load(chain);
  load(swap);
  MTL::Buffer *f = buffer("floats", s * s * 4 + 4), *i = buffer("integers", s * s * 4);
  for (uint64_t n = 0; n < 4; ++n) {
    MTL::Buffer *y = buffer("", s * s * 4), *z = buffer("", s * s * 4);
    if (int status = launch(chain, kernels::Slice{f, 4}, s, s, n, kernels::Slice{y})) return 20 - status;
    if (int status = launch(swap, kernels::Slice{i}, s, s, n + 3, kernels::Slice{z})) return 30 - status;
    save("chain" + std::to_string(n), y);
    save("swap" + std::to_string(n), z);
  }
  kernels::scaled scaled;
  load(scaled);
  MTL::Buffer* report = buffer("", 96);
  if (int status = launch(scaled, kernels::Slice{f, 4}, s * s, 2.5f, kernels::Slice{report})) return 40 - status;
  if (*static_cast<uint32_t*>(report->contents()) != 0) return 6;
  save("scaled", f);
  if (launch(scaled, kernels::Slice{f, 4}, s * s, 0.0f, kernels::Slice{report}) != 0 || *static_cast<uint32_t*>(report->contents()) == 0) return 7;
  pool->release();
}
"""


def swap(x, h):
    a, b = x, x * 2
    while h > 0:
        a, b, odd = b, a.T - b, h % 2 == 1
        if odd:
            b = b + a.T
        h //= 2
    return a - b


@pytest.fixture
def libraries(program):
    folder = program.parents[1] / "lib"
    if not (folder / "libvortex_metal.so").exists():
        pytest.skip("libvortex_metal.so is not built")
    return folder


def test_launchers_compile_against_our_names_and_give_numpys_numbers(vortex, libraries, root, tmp_path):
    (tmp_path / "kernels.vx").write_text(KERNELS)
    vortex("build", tmp_path / "kernels.vx", "--target", "metal3.1", "-o", tmp_path / "out")
    (tmp_path / "main.cpp").write_text(MAIN)
    subprocess.run(["clang++-19", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-Wno-unused-label", "-I", root / "include", "-o", "main",
                    "main.cpp", f"-L{libraries}", "-lvortex_metal", f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined"], cwd=tmp_path, check=True)
    rng = np.random.default_rng()
    rows = {n: rng.standard_normal((5, n)).astype("f4") for n in (1, 70, 257)}
    for n, x in rows.items():
        x.tofile(tmp_path / f"softmax{n}")
    f = rng.standard_normal((23, 23)).astype("f4") / 5
    i = rng.integers(-2**31, 2**31, (23, 23)).astype(np.int32)
    np.concatenate([np.full(1, np.nan, "f4"), f.ravel()]).tofile(tmp_path / "floats")
    i.tofile(tmp_path / "integers")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "VORTEX_METAL_DEVICE": "cpu"}
    done = subprocess.run(["./main"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    read = lambda name, kind, shape: np.fromfile(tmp_path / name, kind).reshape(shape)
    for n, x in rows.items():
        e = np.exp(x.astype("f8") - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(read(f"softmax{n}.out", "f4", (5, n)), e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7)
    y = f.astype("f8")
    with np.errstate(over="ignore"):
        for n in range(4):
            np.testing.assert_allclose(read(f"chain{n}", "f4", (23, 23)), y, rtol=1e-3, atol=1e-5)
            y = y @ f.astype("f8")
            assert (read(f"swap{n}", np.int32, (23, 23)) == swap(i, n + 3)).all()
    assert (np.fromfile(tmp_path / "scaled", "f4")[1:] == f.ravel() * np.float32(2.5)).all()


NAMES = """
kernel scale(class: &Tensor<f32, [N]>, new: f32) -> Tensor<f32, [N]> { return class * new }
kernel while_(using: &Tensor<f32, [M, N]>, while_: f32, Slice: f32) -> Tensor<f32, [M, N]> { return using * while_ + Slice }
"""
CHECKED = """
#include "out/names.scale.metal.hpp"
#include "out/names.while_.metal.hpp"
#include <cstdio>

int main() {
  NS::AutoreleasePool* pool = NS::AutoreleasePool::alloc()->init();
  MTL::Device* device = MTL::CreateSystemDefaultDevice();
  MTL::CommandQueue* queue = device->newCommandQueue();
  kernels::scale scale;
  NS::Error* error = nullptr;
  if (!scale.load(device, &error)) return 1;
  MTL::Buffer *x = device->newBuffer(40, MTL::ResourceStorageModeShared), *y = device->newBuffer(40, MTL::ResourceStorageModeShared);
  auto launch = [&](kernels::Slice from, int64_t n, kernels::Slice to) { std::printf("%d ", scale(queue->commandBuffer(), from, n, 2.0f, to)); };
  launch({x}, 10, {y});
  launch({x, 4}, 9, {y, 4});
  launch({}, 0, {});
  launch({}, 10, {y});
  launch({x}, 10, {});
  launch({x}, 11, {y});
  launch({x, 4}, 10, {y});
  launch({x, 44}, 1, {y});
  launch({x, 2}, 5, {y});
  launch({x}, -5, {y});
  launch({x}, INT64_MAX, {y});
  pool->release();
}
"""


def test_launchers_refuse_memory_that_is_too_small_and_take_names_that_are_keywords(vortex, libraries, root, tmp_path):
    (tmp_path / "names.vx").write_text(NAMES)
    vortex("build", tmp_path / "names.vx", "--target", "metal3.1", "-o", tmp_path / "out")
    (tmp_path / "main.cpp").write_text(CHECKED)
    subprocess.run(["clang++-19", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-Wno-unused-label", "-I", root / "include", "-o", "main",
                    "main.cpp", f"-L{libraries}", "-lvortex_metal", f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined"], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "VORTEX_METAL_DEVICE": "cpu"}, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == ["0"] * 3 + ["-1"] * 8, (done.returncode, done.stdout, done.stderr)
