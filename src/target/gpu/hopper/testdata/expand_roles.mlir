// RUN: %vx-opt %s -vx-expand-roles | FileCheck %s

#map = #vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>

// One thread initialises two barriers per slot before any role begins.
// CHECK: scf.if
// CHECK: vxnv.prefetch_map 0
// CHECK-COUNT-4: vxnv.barrier_init
// CHECK-NEXT: vxnv.barrier_init_fence
// CHECK: vxt.barrier
// CHECK: vxnv.set_registers 40
// The producer finds every slot empty at first: parity 1. It carries slot, parity and the slot it holds.
// CHECK: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: scf.for {{.*}} iter_args(%[[SLOT:.*]] = %{{.*}}, %[[PARITY:.*]] = %[[ONE]], %{{.*}}) -> (i32, i32, i32)
// CHECK: vxnv.barrier_wait {{.*}} parity %[[PARITY]]
// CHECK: vxnv.bulk_load 0
// CHECK: vxnv.barrier_expect {{.*}} bytes 8192
// CHECK: vxnv.set_registers 232 more
// Consumers wait for parity 0, and one lane of each warp releases.
// CHECK: scf.for {{.*}} -> ({{(f32, )+}}i32, i32, i32)
// CHECK: vxnv.barrier_wait
// CHECK: vxnv.wgmma_fence
// CHECK-COUNT-4: vxnv.wgmma
// CHECK-NEXT: vxnv.wgmma_commit
// CHECK: vxnv.wgmma_wait 0
// CHECK: vxnv.barrier_arrive
// What lanes staged is seen by the copy engine before one of them starts the store.
// CHECK: vxnv.async_fence
// CHECK-NEXT: vxt.warp_barrier
// CHECK: vxnv.bulk_store 0
// CHECK-NEXT: vxnv.bulk_commit
// CHECK-NOT: vxnv.r
vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64, vxnv.maps = [#map]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <16>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<16>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <16>
      %waited = vxnv.dot_wait %next pending 0 : <16>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<16>
    }
    %staging = vxt.shared 32768 : !vxt.ptr<shared>
    vxnv.store 0[%c0, %c0] from %staging : !vxt.ptr<shared>
  }
  vxt.return
}
