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
  // CHECK: vxt.fence acq_rel block
  vxt.fence acq_rel block
  // CHECK: vxt.fragment_load %{{.*}}[%{{.*}}] pitch 12 transposed : <shared>, index -> <f16>
  %fa = vxt.fragment_load %p[%c0] pitch 12 transposed : !vxt.ptr<shared>, index -> !vxt.fragment<f16>
  // CHECK: vxt.fragment_fill %{{.*}} : f32 -> <f32>
  %fc = vxt.fragment_fill %f : f32 -> !vxt.fragment<f32>
  // CHECK: vxt.fragment_multiply %{{.*}}, %{{.*}}, %{{.*}} : <f16>, <f16>, <f32>
  %fd = vxt.fragment_multiply %fa, %fa, %fc : !vxt.fragment<f16>, !vxt.fragment<f16>, !vxt.fragment<f32>
  // CHECK: vxt.fragment_round %{{.*}} : <f32> -> <bf16>
  %fr = vxt.fragment_round %fd : !vxt.fragment<f32> -> !vxt.fragment<bf16>
  // CHECK: vxt.fragment_store %{{.*}}, %{{.*}}[%{{.*}}] pitch 8 : <bf16>, <shared>, index
  vxt.fragment_store %fr, %p[%c0] pitch 8 : !vxt.fragment<bf16>, !vxt.ptr<shared>, index
  %any = vxt.vote any %ok -> i1
  %a = vxt.load_matrix %p[%c0] of f16 4 : !vxt.ptr<shared>, index -> vector<8xf16>
  %bm = vxt.load_matrix %p[%c0] of f16 2 transposed : !vxt.ptr<shared>, index -> vector<4xf16>
  %acc = arith.constant dense<0.0> : vector<4xf32>
  // CHECK: vxt.mma %{{.*}} [16, 8, 16] : vector<8xf16>, vector<4xf16>, vector<4xf32>
  %d = vxt.mma %a, %bm, %acc [16, 8, 16] : vector<8xf16>, vector<4xf16>, vector<4xf32>
  vxt.assert %ok, 0
  vxt.return
}
