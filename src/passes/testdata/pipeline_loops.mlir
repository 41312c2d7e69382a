// RUN: %vx-opt %s -vx-pipeline-loops -split-input-file -verify-diagnostics | FileCheck %s

// Two iterations are copied before the loop; each one waits for its own copy, and starts that of the second after it.
// CHECK-LABEL: vx.kernel @copies
// CHECK: %[[SLOTS:.*]] = vx.alloc "tile" {vx.type = "[Tensor<f32, [64]> @shared; 3]"} : <3x64xf32, shared>
// CHECK: vx.stage_wait 0
// CHECK-NEXT: vx.barrier
// CHECK: scf.if
// CHECK: vx.stage_copy
// CHECK: vx.stage_commit
// CHECK: scf.if
// CHECK: vx.stage_copy
// CHECK: vx.stage_commit
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[N:.*]] step
// CHECK: vx.stage_wait 1
// CHECK-NEXT: vx.barrier
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]]
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[NEXT]], %[[N]]
// CHECK: scf.if %[[IS]] {
// CHECK: %[[ROW:.*]] = vx.int remu %[[NEXT]]
// CHECK: vx.stage_copy %{{.*}}[%[[ROW]], %{{.*}}]
// CHECK: vx.stage_commit
// CHECK: %[[OWN:.*]] = vx.subview %[[SLOTS]]
// CHECK-NOT: stage
// CHECK: vx.tile_load %[[OWN]]
vx.kernel @copies(%x: !vx.view<?x?xf32, global>, %y: !vx.view<?xf32, global>, %n: index) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %tile = vx.alloc "tile" {vx.type = "Tensor<f32, [64]> @shared"} : !vx.view<64xf32, shared>
  scf.for %i = %c0 to %n step %c1 {
    %row = vx.int remu %i, %c7 : index
    vx.barrier
    vx.stage_copy %x[%row, %c0] to %tile dropped [0] : !vx.view<?x?xf32, global> to !vx.view<64xf32, shared>
    vx.stage_commit
    vx.stage_wait 0
    vx.barrier
    %value = vx.tile_load %tile[%c0] inbounds : !vx.view<64xf32, shared> -> tensor<64xf32>
    vx.tile_store %value, %y[%c0] : tensor<64xf32>, !vx.view<?xf32, global>
  } {vx.pipeline = 3 : i64}
  vx.return
}

// -----

// One stage is the loop as written.
// CHECK-LABEL: vx.kernel @one
// CHECK: scf.for
// CHECK-NOT: vx.pipeline
// CHECK: vx.return
vx.kernel @one(%x: !vx.view<?x?xf32, global>, %n: index) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
  } {vx.pipeline = 1 : i64}
  vx.return
}

// -----

vx.kernel @ahead(%x: !vx.view<?x?xf32, global>, %n: index) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tile = vx.alloc "tile" : !vx.view<64xf32, shared>
  scf.for %i = %c0 to %n step %c1 {
    vx.stage_copy %x[%i, %c0] to %tile dropped [0] : !vx.view<?x?xf32, global> to !vx.view<64xf32, shared>
    vx.stage_commit
    // expected-error @+1 {{`@pipeline`: the loop's copies run ahead already}}
    vx.stage_wait 1
    vx.barrier
  } {vx.pipeline = 2 : i64}
  vx.return
}
