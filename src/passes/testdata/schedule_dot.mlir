// RUN: %vx-opt %s -vx-phases | FileCheck %s

// A product with a bias and an activation is one phase over output tiles.
// CHECK: vx.launch @linear {
// CHECK-NEXT: vx.phase @linear.tensors.0
// CHECK-NEXT: }
// CHECK: vx.kernel @linear.tensors.0
// CHECK-SAME: #vx.size<"ceildiv(dim(0,0), 
// CHECK: vx.dot
// CHECK: arith.addf
// CHECK: math.tanh
// CHECK: vx.tile_store
// CHECK-NOT: vx.kernel
vx.entry @linear : (!vx.view<?x?xf32, global>, !vx.view<?x?xf32, global>, !vx.view<?xf32, global>, !vx.view<?x?xf32, global>) -> ()
    args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}, {name = "b", role = #vx.role<param>, access = #vx.access<read>},
          {name = "bias", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(1,1)">]}]
vx.kernel @linear.body(%a: !vx.view<?x?xf32, global>, %b: !vx.view<?x?xf32, global>, %bias: !vx.view<?xf32, global>, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = vx.dim %a, 0 : !vx.view<?x?xf32, global>
  %k = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  %n = vx.dim %b, 1 : !vx.view<?x?xf32, global>
  %ta = vx.tile_load %a[%c0, %c0] sizes(%m, %k) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %tb = vx.tile_load %b[%c0, %c0] sizes(%k, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %acc = vx.broadcast %zero dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %d = vx.dot %ta, %tb, %acc : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %tbias = vx.tile_load %bias[%c0] sizes(%n) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>
  %wide = vx.broadcast %tbias dims [1] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %s = arith.addf %d, %wide : tensor<?x?xf32>
  %g = math.tanh %s : tensor<?x?xf32>
  vx.tile_store %g, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
}
