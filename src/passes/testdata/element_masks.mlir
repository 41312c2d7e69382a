// RUN: %vx-opt %s -split-input-file -vx-phases=fused-only | FileCheck %s

// A mask in a branch is one choice, by both conditions.
// CHECK: vx.kernel @mask.tensors.0
// CHECK-NOT: scf.if
// CHECK: %[[ON:.*]] = vx.broadcast %arg1
// CHECK: %[[ABOVE:.*]] = arith.cmpi ugt
// CHECK: %[[BOTH:.*]] = arith.andi %[[ON]], %[[ABOVE]]
// CHECK: %[[R:.*]] = arith.select %[[BOTH]], %{{.*}}, %{{.*}} : tensor<?x?xi1>, tensor<?x?xf32>
// CHECK-NOT: arith.select
// CHECK: vx.tile_store %[[R]]
vx.entry @mask : (!vx.view<?x?xf32, global>, i1, !vx.view<?x?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "on", role = #vx.role<param>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(0,1)">]}]
vx.kernel @mask.body(%x: !vx.view<?x?xf32, global>, %on: i1, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %r = scf.if %on -> (tensor<?x?xf32>) {
    %i = vx.iota 0 sizes(%m, %n) -> tensor<?x?xindex>
    %j = vx.iota 1 sizes(%m, %n) -> tensor<?x?xindex>
    %above = arith.cmpi ugt, %j, %i : tensor<?x?xindex>
    %none = arith.constant 0xFF800000 : f32
    %fill = vx.broadcast %none dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
    %masked = arith.select %above, %fill, %t : tensor<?x?xi1>, tensor<?x?xf32>
    scf.yield %masked : tensor<?x?xf32>
  } else {
    scf.yield %t : tensor<?x?xf32>
  }
  vx.tile_store %r, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
}

// -----

// Scalars in the branch, however many, are no reason to keep it: an offset of the diagonal that arguments give.
// CHECK: vx.kernel @offset.tensors.0
// CHECK-NOT: scf.if
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x?xi1>, tensor<?x?xf32>
vx.entry @offset : (!vx.view<?x?xf32, global>, i1, i64, !vx.view<?x?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "on", role = #vx.role<param>}, {name = "offset", role = #vx.role<param>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(0,1)">]}]
vx.kernel @offset.body(%x: !vx.view<?x?xf32, global>, %on: i1, %offset: i64, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %r = scf.if %on -> (tensor<?x?xf32>) {
    %i = vx.iota 0 sizes(%m, %n) -> tensor<?x?xindex>
    %j = vx.iota 1 sizes(%m, %n) -> tensor<?x?xindex>
    %a = arith.index_castui %n : index to i64
    %b = arith.subi %a, %offset : i64
    %c = arith.index_cast %b : i64 to index
    %d = arith.subi %c0, %m : index
    %e = arith.minsi %c, %n : index
    %f = arith.maxsi %e, %d : index
    %wide = vx.broadcast %f dims [] sizes(%m, %n) : index -> tensor<?x?xindex>
    %end = arith.addi %i, %wide : tensor<?x?xindex>
    %above = arith.cmpi sgt, %j, %end : tensor<?x?xindex>
    %none = arith.constant 0xFF800000 : f32
    %fill = vx.broadcast %none dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
    %masked = arith.select %above, %fill, %t : tensor<?x?xi1>, tensor<?x?xf32>
    scf.yield %masked : tensor<?x?xf32>
  } else {
    scf.yield %t : tensor<?x?xf32>
  }
  vx.tile_store %r, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
}
