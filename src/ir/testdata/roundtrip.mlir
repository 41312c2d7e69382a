// RUN: %vx-opt %s | %vx-opt | FileCheck %s
// RUN: %vx-opt %s -mlir-print-op-generic | %vx-opt | FileCheck %s

// CHECK-LABEL: vx.entry @scale : (!vx.view<?x32xf32, global>, f32, !vx.view<?x?xf32, global>) -> () args
// CHECK-SAME: {access = #vx.access<read>, name = "data", role = #vx.role<param>}
// CHECK-SAME: extents = [#vx.size<"dim(0,0)">, #vx.size<"32">]
// CHECK-SAME: constraints [#vx.constraint<<"!(dim(0,0) == 0)">, "\22data\22 has {0} rows", <"dim(0,0)">>]
vx.entry @scale : (!vx.view<?x32xf32, global>, f32, !vx.view<?x?xf32, global>) -> () args [
    {name = "data", role = #vx.role<param>, access = #vx.access<read>},
    {name = "factor", role = #vx.role<param>},
    {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"32">], zero}]
    constraints [#vx.constraint<#vx.size<"!(dim(0,0) == 0)">, "\"data\" has {0} rows", #vx.size<"dim(0,0)">>]

// CHECK-LABEL: vx.kernel @scale.rows(%arg0: !vx.view<?x32xf32, global>, %arg1: f32, %arg2: !vx.view<?x?xf32, global>)
// CHECK-SAME: grid [#vx.size<"dim(0,0)">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"32">, #vx.size<"1">, #vx.size<"1">]
// CHECK-SAME: attributes {vx.note = "x"} {
vx.kernel @scale.rows(%in: !vx.view<?x32xf32, global>, %factor: f32, %out: !vx.view<?x?xf32, global>)
    grid [#vx.size<"dim(0,0)">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"32">, #vx.size<"1">, #vx.size<"1">]
    attributes {vx.note = "x"} {
  %c1 = arith.constant 1 : index
  // CHECK: %[[ROW:.*]] = vx.block_id x
  %row = vx.block_id x
  %grid = vx.grid_dim y
  // CHECK: %[[N:.*]] = vx.block_dim x
  %n = vx.block_dim x
  // CHECK: vx.threads(%[[N]], %{{.*}}, %{{.*}}) {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index):
  vx.threads(%n, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %linear: index):
    // CHECK-NEXT: vx.load %{{.*}}[%[[ROW]], %[[X]]] : <?x32xf32, global> -> f32
    %v = vx.load %in[%row, %x] : !vx.view<?x32xf32, global> -> f32
    %w = arith.mulf %v, %factor : f32
    vx.store %w, %out[%row, %x] guarded : f32, !vx.view<?x?xf32, global>
  }
  vx.return
}
