// RUN: %vx-opt %s | %vx-opt | FileCheck %s

#x = #vxnv.map<bf16 at <"address(0)"> extents [#vx.size<"dim(0,1)">, #vx.size<"dim(0,0)">] strides [#vx.size<"stride(0,0) * 2">] box [64, 128] swizzle 128>
#w = #vxnv.map<bf16 at <"address(1)"> extents [#vx.size<"dim(1,1)">, #vx.size<"dim(1,0)">] strides [#vx.size<"stride(1,0) * 2">] box [64, 64] swizzle 128>

// CHECK: vxt.kernel @product
// CHECK: vxnv.ring stages 4 bytes 24576 at 0 barriers at 98304
// CHECK: vxnv.roles registers [40, 232] producer
// CHECK: vxnv.copy 0
// CHECK: consumers 2
// CHECK: vxnv.dot_start {{.*}} a + {{.*}} b across + {{.*}} of bf16 first : <64>
// CHECK: vxnv.store_wait pending 0 written
vxt.kernel @product(%x: !vxt.ptr<global>, %m: index, %k: index, %n: index, %a: index, %b: index)
    attributes {threads = #vx.size<"384">, shared_bytes = 131072 : i64, vxnv.maps = [#x, #w]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 4 bytes 24576 at 0 barriers at 98304
  vxnv.roles registers [40, 232] producer {
    vxnv.tiles %m {
    ^bb0(%tile: index):
      scf.for %i = %c0 to %k step %c1 {
        %slot = vxnv.acquire %ring
        vxnv.copy 0[%i, %tile] to %slot + 0
        vxnv.copy 1[%tile, %i] to %slot + 16384
        vxnv.publish %ring
      }
    }
  } consumers 2 {
  ^bb0(%group: index):
    vxnv.tiles %m {
    ^bb0(%tile: index):
      %none = vxnv.sums : <64>
      %first = vxnv.await %ring
      %start = vxnv.dot_start %none, %first a + %c0 b across + %c0 of bf16 first : <64>
      %started = vxnv.dot_wait %start pending 1 : <64>
      %sums = scf.for %i = %c1 to %k step %c1 iter_args(%carried = %started) -> (!vxnv.sums<64>) {
        %slot = vxnv.await %ring
        %next = vxnv.dot_start %carried, %slot a + %c0 b across + %c0 of bf16 : <64>
        %waited = vxnv.dot_wait %next pending 1 : <64>
        vxnv.release %ring
        scf.yield %waited : !vxnv.sums<64>
      }
      %done = vxnv.dot_wait %sums pending 0 : <64>
      vxnv.release %ring
      %sum = vxnv.sum %done[31] : <64>
      %staging = vxt.shared 100352 : !vxt.ptr<shared>
      vxnv.store_wait pending 1
      vxnv.store 0[%c0, %tile] from %staging : !vxt.ptr<shared>
    }
    vxnv.store_wait pending 0 written
  }
  vxt.return
}
