// RUN: %vx-opt %s | %vx-opt | FileCheck %s

// CHECK-LABEL: vxt.kernel @all
vxt.kernel @all(%x: !vxt.ptr<global>, %n: index, %s: index, %f: f32) attributes {threads = #vx.size<"128">, shared_bytes = 2048 : i64} {
  %t = vxt.thread_id : index
  %b = vxt.block_id x : i32
  %g = vxt.grid_dim y : index
  %c0 = arith.constant 0 : index
  %ok = arith.cmpi ult, %t, %n : index
  // CHECK: vxt.load %{{.*}}[%{{.*}}] mask %{{.*}} {alignment = 16 : i64, cache = #vxt<cache read_only>} : <global>, index -> vector<4xf32>
  %v = vxt.load %x[%t] mask %ok {alignment = 16 : i64, cache = #vxt<cache read_only>} : !vxt.ptr<global>, index -> vector<4xf32>
  // CHECK: vxt.shared 512 : <shared>
  %p = vxt.shared 512 : !vxt.ptr<shared>
  %l = vxt.local 8 x f32 : !vxt.ptr<local>
  %q = vxt.offset %p[%t] of f32 : !vxt.ptr<shared>, index
  vxt.store %v, %q[%c0] {alignment = 16 : i64} : vector<4xf32>, !vxt.ptr<shared>, index
  vxt.async_copy %p[%c0], %x[%t], 16 of f32 : !vxt.ptr<shared>, index, !vxt.ptr<global>, index
  vxt.async_commit
  vxt.async_wait 0
  vxt.barrier
  // CHECK: vxt.atomic_rmw addf relaxed device
  %old = vxt.atomic_rmw addf relaxed device %f, %x[%c0] : f32, !vxt.ptr<global>, index
  %one = arith.constant 1 : i32
  %r = vxt.shuffle xor %f, %one : f32
  %any = vxt.vote any %ok -> i1
  %a = vxt.load_matrix %p[%c0] of f16 4 : !vxt.ptr<shared>, index -> vector<8xf16>
  %bm = vxt.load_matrix %p[%c0] of f16 2 transposed : !vxt.ptr<shared>, index -> vector<4xf16>
  %acc = arith.constant dense<0.0> : vector<4xf32>
  // CHECK: vxt.mma %{{.*}} [16, 8, 16] : vector<8xf16>, vector<4xf16>, vector<4xf32>
  %d = vxt.mma %a, %bm, %acc [16, 8, 16] : vector<8xf16>, vector<4xf16>, vector<4xf32>
  vxt.assert %ok, 0
  vxt.return
}
