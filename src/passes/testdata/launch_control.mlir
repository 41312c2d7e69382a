// RUN: %vx-opt %s -vx-phases=fused-only | FileCheck %s

// Blocks cannot carry rows of any length: the launch runs the loop, and what is carried has two temporaries.
// CHECK: vx.launch @power {
// CHECK-NEXT: vx.phase @power.tensors.0
// CHECK-NEXT: vx.loop [3] = [#vx.size<"0">] while #vx.size<"scalar(3) < scalar(1)"> next [#vx.size<"scalar(3) + 1">] {
// CHECK-NEXT: vx.phase @power.tensors.1
// CHECK-NEXT: vx.exchange 4, 5
// CHECK-NEXT: }
// CHECK-NEXT: vx.phase @power.tensors.2
// CHECK-NEXT: }
// CHECK: vx.kernel @power.tensors.0
// CHECK: vx.tile_store {{.*}}, %arg4
// CHECK: vx.kernel @power.tensors.1
// CHECK: vx.tile_load %arg4
// CHECK: vx.dot
// CHECK: vx.tile_store {{.*}}, %arg5
// CHECK: vx.kernel @power.tensors.2
// CHECK: vx.tile_load %arg4
// CHECK: vx.tile_store {{.*}}, %arg2
vx.entry @power : (!vx.view<?x?xf32, global>, index, !vx.view<?x?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "n", role = #vx.role<param>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(0,0)">]}]
    constraints [#vx.constraint<#vx.size<"dim(0,1) == dim(0,0)">, "square">]
vx.kernel @power.body(%x: !vx.view<?x?xf32, global>, %n: index, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%s, %s) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> (tensor<?x?xf32>) {
    %zero = arith.constant 0.0 : f32
    %zeros = vx.broadcast %zero dims [] sizes(%s, %s) : f32 -> tensor<?x?xf32>
    %b = vx.dot %a, %t, %zeros : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
    scf.yield %b : tensor<?x?xf32>
  }
  vx.tile_store %y, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
}
