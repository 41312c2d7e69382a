// RUN: %vx-opt %s -vx-phases | FileCheck %s

// A product with one column is a sum along rows, which adds to what the product adds to.
// CHECK: vx.kernel @column.tensors.0
// CHECK-NOT: vx.dot
// CHECK: vx.reduce addf {{.*}} dims [1]
// CHECK-NOT: vx.dot
// CHECK-NOT: vx.kernel
vx.entry @column : (!vx.view<?x?xf16, global>, !vx.view<?x1xf16, global>, !vx.view<?x1xf32, global>) -> ()
    args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}, {name = "b", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">, #vx.size<"1">]}]
vx.kernel @column.body(%a: !vx.view<?x?xf16, global>, %b: !vx.view<?x1xf16, global>, %out: !vx.view<?x1xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %m = vx.dim %a, 0 : !vx.view<?x?xf16, global>
  %k = vx.dim %a, 1 : !vx.view<?x?xf16, global>
  %ta = vx.tile_load %a[%c0, %c0] sizes(%m, %k) inbounds : !vx.view<?x?xf16, global> -> tensor<?x?xf16>
  %tb = vx.tile_load %b[%c0, %c0] sizes(%k) inbounds : !vx.view<?x1xf16, global> -> tensor<?x1xf16>
  %acc = vx.tile_load %out[%c0, %c0] sizes(%m) inbounds : !vx.view<?x1xf32, global> -> tensor<?x1xf32>
  %d = vx.dot %ta, %tb, %acc : tensor<?x?xf16>, tensor<?x1xf16> -> tensor<?x1xf32>
  vx.tile_store %d, %out[%c0, %c0] inbounds : tensor<?x1xf32>, !vx.view<?x1xf32, global>
  vx.return
}
