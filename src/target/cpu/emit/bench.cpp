// Times of compiling and running typical per-thread kernels on one core: cpu_emit_bench [name part]; with VORTEX_TEST_CPU=<processor> it only compiles
#include "target/cpu/emit/testing/run_kernel.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sys/mman.h>

using namespace vortex::target::cpu::emit::testing;

namespace {

/// Best of several runs, in time of this thread: other processes disturb it least.
double bestSeconds(const std::function<void()>& body) {
  auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  double best = 1e9;
  for (int i = 0; i < 15; ++i) {
    double start = now();
    body();
    best = std::min(best, now() - start);
  }
  return best;
}

/// Zeros on huge pages where the system has them.
template <typename T> struct Pages {
  explicit Pages(size_t count) : count(count) {
    size_t bytes = (count * sizeof(T) + (2u << 20) - 1) & ~size_t((2u << 20) - 1);
    data = static_cast<T*>(std::aligned_alloc(2u << 20, bytes));
    madvise(data, bytes, MADV_HUGEPAGE);
    std::memset(data, 0, bytes);
  }
  ~Pages() { std::free(data); }
  T* data;
  size_t count;
};

const char* filter = "";

void report(const char* name, const std::string& text, const std::vector<Arg>& args, double bytes) {
  if (!std::strstr(name, filter))
    return;
  TestKernel kernel(text);
  if (!kernel.error().empty()) {
    printf("%-18s %s\n", name, kernel.error().c_str());
    return;
  }
  double seconds = std::getenv("VORTEX_TEST_CPU") ? 1 : bestSeconds(kernel.prepare(args));
  const auto& t = kernel.times();
  printf("%-18s compile %5.1f ms (emit %.1f, optimise %.1f, code %.1f), run %8.3f ms, %6.2f GB/s\n", name,
         t.emit + t.optimize + t.codegen, t.emit, t.optimize, t.codegen, seconds * 1e3, bytes / seconds * 1e-9);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at; (at = text.find(from)) != std::string::npos;)
    text.replace(at, from.size(), to);
  return text;
}

const char* kAdd = R"(
  %b = vx.block_id x
  %nx = vx.block_dim x
  %one = arith.constant 1 : index
  %base = arith.muli %b, %nx : index
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %u = vx.load %a[%i] guarded : !vx.view<?xf32, global> -> f32
    %v = vx.load %c[%i] guarded : !vx.view<?xf32, global> -> f32
    %s = arith.addf %u, %v : f32
    vx.store %s, %o[%i] guarded : f32, !vx.view<?xf32, global>
    vx.yield
  })";

const char* kSilu = R"(
  %b = vx.block_id x
  %nx = vx.block_dim x
  %one = arith.constant 1 : index
  %f1 = arith.constant 1.0 : f32
  %base = arith.muli %b, %nx : index
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %w = vx.load %a[%i] guarded : !vx.view<?xTYPE, global> -> TYPE
    %u = arith.extf %w : TYPE to f32
    %m = arith.negf %u : f32
    %e = math.exp %m : f32
    %d = arith.addf %f1, %e : f32
    %s = arith.divf %u, %d : f32
    %t = arith.truncf %s : f32 to TYPE
    vx.store %t, %o[%i] guarded : TYPE, !vx.view<?xTYPE, global>
    vx.yield
  })";

const char* kGather = R"(
  %b = vx.block_id x
  %nx = vx.block_dim x
  %one = arith.constant 1 : index
  %base = arith.muli %b, %nx : index
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %w = vx.load %a[%i] guarded : !vx.view<?xi32, global> -> i32
    %k = arith.index_cast %w : i32 to index
    %v = vx.load %t[%k] guarded : !vx.view<?xi32, global> -> i32
    vx.store %v, %o[%i] guarded : i32, !vx.view<?xi32, global>
    vx.yield
  })";

// Five-point stencil; the border is copied.
const char* kJacobi = R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %c1 = arith.constant 1 : index
  %q = arith.constant 0.25 : f32
  %bx = vx.block_id x
  %by = vx.block_id y
  %x0 = arith.muli %bx, %nx : index
  %y0 = arith.muli %by, %ny : index
  %rows = vx.dim %a, 0 : !vx.view<?x?xf32, global>
  %columns = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  %lastRow = arith.subi %rows, %c1 : index
  %lastColumn = arith.subi %columns, %c1 : index
  vx.threads (%nx, %ny, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %j = arith.addi %x0, %x : index
    %i = arith.addi %y0, %y : index
    %t0 = arith.cmpi ugt, %i, %c1 : index
    %t1 = arith.cmpi ult, %i, %lastRow : index
    %t2 = arith.cmpi uge, %j, %c1 : index
    %t3 = arith.cmpi ult, %j, %lastColumn : index
    %t4 = arith.andi %t0, %t1 : i1
    %t5 = arith.andi %t2, %t3 : i1
    %t = arith.andi %t4, %t5 : i1
    scf.if %t {
      %im = arith.subi %i, %c1 : index
      %ip = arith.addi %i, %c1 : index
      %jm = arith.subi %j, %c1 : index
      %jp = arith.addi %j, %c1 : index
      %v0 = vx.load %a[%im, %j] guarded : !vx.view<?x?xf32, global> -> f32
      %v1 = vx.load %a[%ip, %j] guarded : !vx.view<?x?xf32, global> -> f32
      %v2 = vx.load %a[%i, %jm] guarded : !vx.view<?x?xf32, global> -> f32
      %v3 = vx.load %a[%i, %jp] guarded : !vx.view<?x?xf32, global> -> f32
      %s0 = arith.addf %v0, %v1 : f32
      %s1 = arith.addf %v2, %v3 : f32
      %s2 = arith.addf %s0, %s1 : f32
      %s3 = arith.mulf %s2, %q : f32
      vx.store %s3, %o[%i, %j] guarded : f32, !vx.view<?x?xf32, global>
    }
    vx.yield
  })";

const char* kReduce = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %bid = vx.block_id x
  %base = arith.muli %bid, %nx : index
  %tmp = vx.alloc "tmp" : !vx.view<256xf32, shared>
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %v = vx.load %a[%i] guarded : !vx.view<?xf32, global> -> f32
    vx.store %v, %tmp[%x] : f32, !vx.view<256xf32, shared>
    vx.yield
  }
  vx.barrier
  %end = scf.while (%s = %c128) : (index) -> index {
    %go = arith.cmpi ugt, %s, %c0 : index
    scf.condition(%go) %s : index
  } do {
  ^bb0(%s: index):
    vx.threads (%nx, %c1, %c1) {
    ^bb0(%x: index, %y: index, %z: index, %l: index):
      %c = arith.cmpi ult, %x, %s : index
      scf.if %c {
        %j = arith.addi %x, %s : index
        %v = vx.load %tmp[%x] : !vx.view<256xf32, shared> -> f32
        %w = vx.load %tmp[%j] : !vx.view<256xf32, shared> -> f32
        %r = arith.addf %v, %w : f32
        vx.store %r, %tmp[%x] : f32, !vx.view<256xf32, shared>
      }
      vx.yield
    }
    vx.barrier
    %h = vx.int divu %s, %c2 : index
    scf.yield %h : index
  }
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %first = arith.cmpi eq, %x, %c0 : index
    scf.if %first {
      %total = vx.load %tmp[%c0] : !vx.view<256xf32, shared> -> f32
      vx.store %total, %o[%bid] guarded : f32, !vx.view<?xf32, global>
    }
    vx.yield
  })";

const char* kTranspose = R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %c1 = arith.constant 1 : index
  %bx = vx.block_id x
  %by = vx.block_id y
  %x0 = arith.muli %bx, %nx : index
  %y0 = arith.muli %by, %ny : index
  %tile = vx.alloc "tile" : !vx.view<TILExf32, shared>
  vx.threads (%nx, %ny, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %r = arith.addi %y0, %y : index
    %c = arith.addi %x0, %x : index
    %v = vx.load %a[%r, %c] guarded : !vx.view<?x?xf32, global> -> f32
    vx.store %v, %tile[%y, %x] : f32, !vx.view<TILExf32, shared>
    vx.yield
  }
  vx.barrier
  vx.threads (%nx, %ny, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %r = arith.addi %x0, %y : index
    %c = arith.addi %y0, %x : index
    %v = vx.load %tile[%x, %y] : !vx.view<TILExf32, shared> -> f32
    vx.store %v, %o[%r, %c] guarded : f32, !vx.view<?x?xf32, global>
    vx.yield
  })";

const char* kHistogram = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %bid = vx.block_id x
  %c16 = arith.constant 16 : index
  %span = arith.muli %nx, %c16 : index
  %base = arith.muli %bid, %span : index
  %c0 = arith.constant 0 : index
  %bins = vx.alloc "bins" : !vx.view<256xi32, shared>
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    vx.store %i0, %bins[%x] : i32, !vx.view<256xi32, shared>
    vx.yield
  }
  vx.barrier
  %n = vx.dim %a, 0 : !vx.view<?xi32, global>
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    scf.for %k = %c0 to %c16 step %c1 {
      %off = arith.muli %k, %nx : index
      %t = arith.addi %base, %off : index
      %i = arith.addi %t, %x : index
      %in = arith.cmpi ult, %i, %n : index
      scf.if %in {
        %v = vx.load %a[%i] : !vx.view<?xi32, global> -> i32
        %b = arith.index_cast %v : i32 to index
        %old = vx.atomic_rmw addi relaxed block %i1, %bins[%b] guarded : !vx.view<256xi32, shared> -> i32
      }
    }
    vx.yield
  }
  vx.barrier
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %v = vx.load %bins[%x] : !vx.view<256xi32, shared> -> i32
    %old = vx.atomic_rmw addi relaxed device %v, %o[%x] guarded : !vx.view<?xi32, global> -> i32
    vx.yield
  })";

const char* kMatmul = R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %bx = vx.block_id x
  %by = vx.block_id y
  %x0 = arith.muli %bx, %nx : index
  %y0 = arith.muli %by, %ny : index
  %k = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  vx.threads (%nx, %ny, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %r = arith.addi %y0, %y : index
    %c = arith.addi %x0, %x : index
    %s = scf.for %i = %c0 to %k step %c1 iter_args(%acc = %f0) -> f32 {
      %u = vx.load %a[%r, %i] guarded : !vx.view<?x?xf32, global> -> f32
      %v = vx.load %b[%i, %c] guarded : !vx.view<?x?xf32, global> -> f32
      %p = arith.mulf %u, %v fastmath<contract> : f32
      %q = arith.addf %acc, %p fastmath<contract> : f32
      scf.yield %q : f32
    }
    vx.store %s, %o[%r, %c] guarded : f32, !vx.view<?x?xf32, global>
    vx.yield
  })";

// Hillis-Steele prefix sum of each block, values in "registers" across the barriers.
const char* kScan = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  %bid = vx.block_id x
  %base = arith.muli %bid, %nx : index
  %tmp = vx.alloc "tmp" : !vx.view<256xf32, shared>
  %v0 = vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %v = vx.load %a[%i] guarded : !vx.view<?xf32, global> -> f32
    vx.yield %v : f32
  } : tensor<?xf32>
  %end:2 = scf.while (%s = %c1, %v = %v0) : (index, tensor<?xf32>) -> (index, tensor<?xf32>) {
    %go = arith.cmpi ult, %s, %nx : index
    scf.condition(%go) %s, %v : index, tensor<?xf32>
  } do {
  ^bb0(%s: index, %v: tensor<?xf32>):
    vx.threads (%nx, %c1, %c1) ins(%v : tensor<?xf32>) {
    ^bb0(%x: index, %y: index, %z: index, %l: index, %u: f32):
      vx.store %u, %tmp[%x] : f32, !vx.view<256xf32, shared>
      vx.yield
    }
    vx.barrier
    %w = vx.threads (%nx, %c1, %c1) ins(%v : tensor<?xf32>) {
    ^bb0(%x: index, %y: index, %z: index, %l: index, %u: f32):
      %has = arith.cmpi uge, %x, %s : index
      %r = scf.if %has -> f32 {
        %j = arith.subi %x, %s : index
        %o2 = vx.load %tmp[%j] guarded : !vx.view<256xf32, shared> -> f32
        %q = arith.addf %u, %o2 : f32
        scf.yield %q : f32
      } else {
        scf.yield %u : f32
      }
      vx.yield %r : f32
    } : tensor<?xf32>
    vx.barrier
    %s2 = arith.muli %s, %c2 : index
    scf.yield %s2, %w : index, tensor<?xf32>
  }
  vx.threads (%nx, %c1, %c1) ins(%end#1 : tensor<?xf32>) {
  ^bb0(%x: index, %y: index, %z: index, %l: index, %u: f32):
    %i = arith.addi %base, %x : index
    vx.store %u, %o[%i] guarded : f32, !vx.view<?xf32, global>
    vx.yield
  })";

const char* kMandelbrot = R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %f0 = arith.constant 0.0 : f32
  %f2 = arith.constant 2.0 : f32
  %f4 = arith.constant 4.0 : f32
  %scale = arith.constant 0.005 : f32
  %most = arith.constant 256 : i32
  %bx = vx.block_id x
  %by = vx.block_id y
  %x0 = arith.muli %bx, %nx : index
  %y0 = arith.muli %by, %ny : index
  vx.threads (%nx, %ny, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %x0, %x : index
    %j = arith.addi %y0, %y : index
    %iiWide = arith.index_cast %i : index to i64
    %ii = arith.trunci %iiWide : i64 to i32
    %jiWide = arith.index_cast %j : index to i64
    %ji = arith.trunci %jiWide : i64 to i32
    %fi = arith.sitofp %ii : i32 to f32
    %fj = arith.sitofp %ji : i32 to f32
    %si = arith.mulf %fi, %scale : f32
    %cr = arith.subf %si, %f2 : f32
    %sj = arith.mulf %fj, %scale : f32
    %ci = arith.subf %sj, %f2 : f32
    %r:3 = scf.while (%zr = %f0, %zi = %f0, %n = %i0) : (f32, f32, i32) -> (f32, f32, i32) {
      %a = arith.mulf %zr, %zr : f32
      %b = arith.mulf %zi, %zi : f32
      %m = arith.addf %a, %b : f32
      %small = arith.cmpf olt, %m, %f4 : f32
      %few = arith.cmpi slt, %n, %most : i32
      %go = arith.andi %small, %few : i1
      scf.condition(%go) %zr, %zi, %n : f32, f32, i32
    } do {
    ^bb0(%zr: f32, %zi: f32, %n: i32):
      %a = arith.mulf %zr, %zr : f32
      %b = arith.mulf %zi, %zi : f32
      %d = arith.subf %a, %b : f32
      %nr = arith.addf %d, %cr : f32
      %p = arith.mulf %zr, %zi : f32
      %q = arith.mulf %p, %f2 : f32
      %ni = arith.addf %q, %ci : f32
      %n1 = arith.addi %n, %i1 : i32
      scf.yield %nr, %ni, %n1 : f32, f32, i32
    }
    vx.store %r#2, %o[%j, %i] guarded : i32, !vx.view<?x?xi32, global>
    vx.yield
  })";

void mandelbrotInCpp(std::vector<int32_t>& out, int64_t n) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) {
      float cr = float(int(i)) * 0.005f - 2, ci = float(int(j)) * 0.005f - 2, zr = 0, zi = 0;
      int32_t count = 0;
      for (; zr * zr + zi * zi < 4 && count < 256; ++count) {
        float next = zr * zr - zi * zi + cr;
        zi = zr * zi * 2 + ci;
        zr = next;
      }
      out[j * n + i] = count;
    }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1)
    filter = argv[1];
  const std::string vectors = "%a: !vx.view<?xf32, global>, %c: !vx.view<?xf32, global>, %o: !vx.view<?xf32, global>";
  for (int i = 0; i < 3; ++i) {
    std::vector<float> a(1);
    report("empty", module("%a: !vx.view<?xf32, global>", "1;1;1", "256;1;1", ""), {Arg::tensor(a)}, 4.0);
  }
  for (size_t n : {size_t(8) << 10, size_t(16) << 20}) {
    std::vector<float> a(n, 1.f), c(n, 2.f), out(n);
    report("add", module(vectors, "ceildiv(dim(2,0), 256);1;1", "256;1;1", kAdd),
           {Arg::tensor(a), Arg::tensor(c), Arg::tensor(out)}, 12.0 * n);
    for (auto [type, bytes] : {std::pair("bf16", 2), {"f16", 2}}) {
      std::string view = std::string("!vx.view<?x") + type + ", global>";
      report((std::string("silu_") + type).c_str(),
             module("%a: " + view + ", %o: " + view, "ceildiv(dim(1,0), 256);1;1", "256;1;1",
                    replaced(kSilu, "TYPE", type)),
             {Arg::tensor(a), Arg::tensor(out)}, 2.0 * bytes * n);
    }
    std::vector<int32_t> table(4096), indices(n), picked(n);
    for (size_t i = 0; i < n; ++i)
      indices[i] = (i * 2654435761u >> 8) % 4096;
    report("gather",
           module("%a: !vx.view<?xi32, global>, %t: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>",
                  "ceildiv(dim(2,0), 256);1;1", "256;1;1", kGather),
           {Arg::tensor(indices), Arg::tensor(table), Arg::tensor(picked)}, 12.0 * n);
    report("block_scan",
           module("%a: !vx.view<?xf32, global>, %o: !vx.view<?xf32, global>", "ceildiv(dim(1,0), 256);1;1", "256;1;1",
                  kScan),
           {Arg::tensor(a), Arg::tensor(out)}, 8.0 * n);
    std::vector<float> sums(n / 256);
    report("tree_reduction",
           module("%a: !vx.view<?xf32, global>, %o: !vx.view<?xf32, global>", "dim(1,0);1;1", "256;1;1", kReduce),
           {Arg::tensor(a), Arg::tensor(sums)}, 4.0 * n);
  }
  for (int64_t n : {256, 4096}) {
    Pages<float> a(n * n), out(n * n);
    for (auto [size, tile] : {std::pair("16", "16x17"), {"32", "32x33"}, {"16", "16x16"}})
      report("transpose",
             module("%a: !vx.view<?x?xf32, global>, %o: !vx.view<?x?xf32, global>",
                    std::string("ceildiv(dim(0,1), ") + size + ");ceildiv(dim(0,0), " + size + ");1",
                    std::string(size) + ";" + size + ";1", replaced(kTranspose, "TILE", tile)),
             {Arg::strided(a.data, {n, n}, {n, 1}), Arg::strided(out.data, {n, n}, {n, 1})}, 8.0 * n * n);
  }
  for (int64_t n : {512, 4096}) {
    Pages<float> a(n * n), out(n * n);
    report("jacobi",
           module("%a: !vx.view<?x?xf32, global>, %o: !vx.view<?x?xf32, global>",
                  "ceildiv(dim(0,1), 32);ceildiv(dim(0,0), 8);1", "32;8;1", kJacobi),
           {Arg::strided(a.data, {n, n}, {n, 1}), Arg::strided(out.data, {n, n}, {n, 1})}, 8.0 * n * n);
  }
  {
    size_t n = 16 << 20;
    std::vector<int32_t> a(n), bins(256);
    for (size_t i = 0; i < n; ++i)
      a[i] = (i * 2654435761u >> 8) % 256;
    report("histogram",
           module("%a: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>", "ceildiv(dim(0,0), 4096);1;1", "256;1;1",
                  kHistogram),
           {Arg::tensor(a), Arg::tensor(bins)}, 4.0 * n);
  }
  {
    int64_t n = 512;
    std::vector<float> a(n * n, 1.f), b(n * n, 2.f), out(n * n);
    report("naive_matmul",
           module("%a: !vx.view<?x?xf32, global>, %b: !vx.view<?x?xf32, global>, %o: !vx.view<?x?xf32, global>",
                  "ceildiv(dim(1,1), 16);ceildiv(dim(0,0), 16);1", "16;16;1", kMatmul),
           {Arg::tensor(a, {n, n}), Arg::tensor(b, {n, n}), Arg::tensor(out, {n, n})}, 2.0 * n * n * n);
  }
  {
    int64_t n = 800;
    std::vector<int32_t> out(n * n), expected(n * n);
    report("mandelbrot",
           module("%o: !vx.view<?x?xi32, global>", "ceildiv(dim(0,1), 16);ceildiv(dim(0,0), 16);1", "16;16;1",
                  kMandelbrot),
           {Arg::tensor(out, {n, n})}, 4.0 * n * n);
    double seconds = bestSeconds([&] { mandelbrotInCpp(expected, n); });
    printf("mandelbrot in C++ %.3f ms\n", seconds * 1e3);
  }
  {
    size_t n = 16 << 20;
    std::vector<float> a(n, 1.f), out(n);
    double seconds = bestSeconds([&] { std::memcpy(out.data(), a.data(), n * 4); });
    printf("memcpy %.2f GB/s\n", 8.0 * n / seconds * 1e-9);
  }
}
