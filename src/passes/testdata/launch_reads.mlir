// RUN: %vx-opt %s -vx-phases=fused-only | FileCheck %s

// Phases compute whether there is another round, and the launch reads it; the last round does nothing else, and its counter stays.
// CHECK: vx.launch @converge {
// CHECK-NEXT: vx.phase @converge.tensors.0
// CHECK-NEXT: vx.loop [3, 4] = [#vx.size<"1">, #vx.size<"0">] while #vx.size<"scalar(3)"> next [#vx.size<"scalar(5)">, #vx.size<"select(scalar(5), scalar(4) + 1, scalar(4))">] {
// CHECK-NEXT: vx.phase @converge.partial.1
// CHECK-NEXT: vx.phase @converge.combine.2
// CHECK-NEXT: vx.phase @converge.serial.3
// CHECK-NEXT: vx.read arg 5 from 8
// CHECK-NEXT: vx.choose first decides {
// CHECK-NEXT: vx.case "then" needs #vx.size<"scalar(5)"> {
// CHECK-NEXT: vx.phase @converge.tensors.4
// CHECK-NEXT: vx.exchange 6, 7
// CHECK-NEXT: }
// CHECK-NEXT: vx.case "else" {
// CHECK: vx.phase @converge.tensors.5
// CHECK: vx.kernel @converge.serial.3
// CHECK: %[[MORE:.*]] = arith.extui
// CHECK: vx.store %[[MORE]], %arg8
// CHECK: vx.kernel @converge.tensors.5
// CHECK: arith.index_cast %arg4
vx.entry @converge : (!vx.view<?x?xf32, global>, f32, !vx.view<?x?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "limit", role = #vx.role<param>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(0,0)">]}]
    constraints [#vx.constraint<#vx.size<"dim(0,1) == dim(0,0)">, "square">]
vx.kernel @converge.body(%x: !vx.view<?x?xf32, global>, %limit: f32, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%s, %s) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %y, %n = scf.while (%a = %t, %i = %c0) : (tensor<?x?xf32>, index) -> (tensor<?x?xf32>, index) {
    %sum = vx.reduce addf %a dims [0, 1] : tensor<?x?xf32> -> f32
    %more = arith.cmpf olt, %sum, %limit : f32
    scf.condition(%more) %a, %i : tensor<?x?xf32>, index
  } do {
  ^bb0(%a: tensor<?x?xf32>, %i: index):
    %zero = arith.constant 0.0 : f32
    %zeros = vx.broadcast %zero dims [] sizes(%s, %s) : f32 -> tensor<?x?xf32>
    %b = vx.dot %a, %t, %zeros : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
    %j = arith.addi %i, %c1 : index
    scf.yield %b, %j : tensor<?x?xf32>, index
  }
  %m = arith.index_cast %n : index to i64
  %f = arith.sitofp %m : i64 to f32
  %rounds = vx.broadcast %f dims [] sizes(%s, %s) : f32 -> tensor<?x?xf32>
  %z = arith.addf %y, %rounds : tensor<?x?xf32>
  vx.tile_store %z, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
}
