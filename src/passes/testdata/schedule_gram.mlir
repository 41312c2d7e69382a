// RUN: %vx-opt %s -vx-phases | FileCheck %s

// Rows and columns of x @ transpose(x) come from one tensor, and are still axes of their own: two loads, one phase over output tiles.
// CHECK: vx.kernel @gram.tensors.0
// CHECK: vx.tile_load
// CHECK: vx.tile_load
// CHECK: vx.dot
// CHECK-NOT: vx.kernel
vx.entry @gram : (!vx.view<?x?xf32, global>, !vx.view<?x?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(0,0)">]}]
vx.kernel @gram.body(%x: !vx.view<?x?xf32, global>, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %k = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %tx = vx.tile_load %x[%c0, %c0] sizes(%m, %k) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %t = vx.transpose %tx [1, 0] : tensor<?x?xf32> -> tensor<?x?xf32>
  %acc = vx.broadcast %zero dims [] sizes(%m, %m) : f32 -> tensor<?x?xf32>
  %d = vx.dot %tx, %t, %acc : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  vx.tile_store %d, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
}
