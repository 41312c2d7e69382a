// RUN: %vx-opt %s -vx-phases=fused-only | FileCheck %s

// A cheap branch is a select; a loop keeps what depends on it, and loads stand before it.
// CHECK: vx.launch @relax {
// CHECK-NEXT: vx.phase @relax.tensors.0
// CHECK-NEXT: }
// CHECK: vx.kernel @relax.tensors.0
// CHECK: %[[Z:.*]] = vx.tile_load %arg1[{{.*}}] sizes({{[^)]*}}) :
// CHECK: %[[X:.*]] = vx.tile_load %arg0
// CHECK: %[[LOOP:.*]] = scf.for {{.*}} iter_args(%[[Y:.*]] = %[[X]])
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[Y]], %[[Z]]
// CHECK-NEXT: scf.yield %[[SUM]]
// CHECK: arith.select
// CHECK: vx.tile_store
vx.entry @relax : (!vx.view<?xf32, global>, !vx.view<?xf32, global>, index, i1, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "z", role = #vx.role<param>, access = #vx.access<read>},
          {name = "n", role = #vx.role<param>}, {name = "on", role = #vx.role<param>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">]}]
vx.kernel @relax.body(%x: !vx.view<?xf32, global>, %z: !vx.view<?xf32, global>, %n: index, %on: i1, %out: !vx.view<?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = vx.dim %x, 0 : !vx.view<?xf32, global>
  %t = vx.tile_load %x[%c0] sizes(%s) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> (tensor<?xf32>) {
    %u = vx.tile_load %z[%c0] sizes(%s) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>
    %b = arith.addf %a, %u : tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  %r = scf.if %on -> (tensor<?xf32>) {
    %n1 = arith.negf %y : tensor<?xf32>
    scf.yield %n1 : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  vx.tile_store %r, %out[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>
  vx.return
}
