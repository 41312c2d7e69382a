// RUN: %vx-opt %s -vx-phases | FileCheck %s

// x / sum(x): partial sums, their combination, then the division.
// CHECK: vx.entry @normalize
// CHECK-SAME: #vx.role<temp>
// CHECK: vx.launch @normalize {
// CHECK-NEXT: vx.phase @normalize.partial.0
// CHECK-NEXT: vx.phase @normalize.combine.1
// CHECK-NEXT: vx.phase @normalize.tensors.2
// CHECK-NEXT: }
// CHECK: vx.kernel @normalize.partial.0
// CHECK: %[[PIECE:.*]] = vx.reduce addf
// CHECK: vx.store %[[PIECE]]
// CHECK: vx.kernel @normalize.combine.1
// CHECK: vx.kernel @normalize.tensors.2
// CHECK: vx.load
// CHECK: arith.divf
vx.entry @normalize : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">]}]
vx.kernel @normalize.body(%x: !vx.view<?xf32, global>, %out: !vx.view<?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %n = vx.dim %x, 0 : !vx.view<?xf32, global>
  %t = vx.tile_load %x[%c0] sizes(%n) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>
  %sum = vx.reduce addf %t dims [0] : tensor<?xf32> -> f32
  %sumb = vx.broadcast %sum dims [] sizes(%n) : f32 -> tensor<?xf32>
  %r = arith.divf %t, %sumb : tensor<?xf32>
  vx.tile_store %r, %out[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>
  vx.return
}
