// RUN: %vx-opt %s -vx-phases='reduction-blocks=64 fused-only=true' | FileCheck %s

// A vector is stored beside sums of rows which have an axis that it lacks: two phases, as each block would have the rows of the whole batch.
// CHECK: vx.launch @sums {
// CHECK-NEXT: vx.phase @sums.tensors.0
// CHECK-NEXT: vx.phase @sums.tensors.1
// CHECK-NEXT: }
// CHECK: vx.kernel @sums.tensors.0
// CHECK-NOT: vx.reduce
// CHECK: vx.kernel @sums.tensors.1
// CHECK: vx.reduce addf %{{.*}} dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>
vx.entry @sums : (!vx.view<?x?x?xf32, global>, !vx.view<?xf32, global>, !vx.view<?xf32, global>, !vx.view<?x?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "y", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,1)">]},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(0,1)">]}]
vx.kernel @sums.body(%x: !vx.view<?x?x?xf32, global>, %y: !vx.view<?xf32, global>, %doubled: !vx.view<?xf32, global>, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %b = vx.dim %x, 0 : !vx.view<?x?x?xf32, global>
  %c = vx.dim %x, 1 : !vx.view<?x?x?xf32, global>
  %s = vx.dim %x, 2 : !vx.view<?x?x?xf32, global>
  %v = vx.tile_load %y[%c0] sizes(%c) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>
  %w = arith.addf %v, %v : tensor<?xf32>
  vx.tile_store %w, %doubled[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>
  %t = vx.tile_load %x[%c0, %c0, %c0] sizes(%b, %c, %s) inbounds : !vx.view<?x?x?xf32, global> -> tensor<?x?x?xf32>
  %means = vx.broadcast %w dims [1] sizes(%b, %c, %s) : tensor<?xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %t, %means : tensor<?x?x?xf32>
  %r = vx.reduce addf %d dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>
  vx.tile_store %r, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
}
