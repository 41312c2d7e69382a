// RUN: %vx-opt %s -vx-phases='reduction-blocks=64 fused-only=true sums-vectors=true' | FileCheck %s

// A launch with one column sums rows, one with one row sums columns, and others multiply.
// CHECK: vx.case "one column" needs #vx.size<"dim(1,1) == 1">
// CHECK-NEXT: vx.phase @few.tensors.0
// CHECK: vx.case "one row" needs #vx.size<"dim(0,0) == 1">
// CHECK-NEXT: vx.phase @few.partial.1
// CHECK: vx.case "matrices" {

// Rows of a tensor with one column are those of the dimension before.
// CHECK: vx.kernel @few.tensors.0
// CHECK-NOT: vx.dot
// CHECK: vx.subview {{.*}} dropped [1] {vx.unit}
// CHECK: vx.reduce {{.*}}addf {{.*}} dims [1]
// CHECK: vx.kernel @few.partial.1
// CHECK-NOT: vx.dot
// CHECK: vx.reduce {{.*}}addf {{.*}} dims [0]
// CHECK: vx.dot
vx.entry @few : (!vx.view<?x?xf32, global>, !vx.view<?x?xf32, global>, !vx.view<?x?xf32, global>) -> ()
    args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}, {name = "b", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(1,1)">]}]
vx.kernel @few.body(%a: !vx.view<?x?xf32, global>, %b: !vx.view<?x?xf32, global>, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = vx.dim %a, 0 : !vx.view<?x?xf32, global>
  %k = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  %n = vx.dim %b, 1 : !vx.view<?x?xf32, global>
  %ta = vx.tile_load %a[%c0, %c0] sizes(%m, %k) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %tb = vx.tile_load %b[%c0, %c0] sizes(%k, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %acc = vx.broadcast %zero dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %d = vx.dot %ta, %tb, %acc : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  vx.tile_store %d, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
}
