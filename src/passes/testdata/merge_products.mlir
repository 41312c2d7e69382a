// RUN: %vx-opt %s -vx-merge-products -split-input-file | FileCheck %s

// The windows of all steps, whole ones, as one; the shared tile held nothing but copies.
// CHECK-LABEL: vx.kernel @steps
// CHECK-NOT: vx.alloc
// CHECK-NOT: scf.for
// CHECK: %[[STEPS:.*]] = vx.int ceildivu
// CHECK: %[[DEPTH:.*]] = arith.muli %[[STEPS]]
// CHECK: %[[A:.*]] = vx.tile_load %{{.*}}[%{{.*}}, %{{.*}}] sizes(%[[DEPTH]]) : <?x?xf32, global> -> tensor<16x?xf32>
// CHECK: %[[B:.*]] = vx.tile_load %{{.*}}[%{{.*}}, %{{.*}}] sizes(%[[DEPTH]]) : <?x?xf32, global> -> tensor<?x16xf32>
// CHECK: %[[SUM:.*]] = vx.dot %[[A]], %[[B]], %{{.*}} {vx.tf32}
// CHECK: vx.tile_store %[[SUM]]
vx.kernel @steps(%a: !vx.view<?x?xf32, global>, %b: !vx.view<?x?xf32, global>, %c: !vx.view<?x?xf32, global>, %k: index) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %tile = vx.alloc "tile" {vx.type = "Tensor<f32, [16, 8]> @shared"} : !vx.view<16x8xf32, shared>
  %sum = scf.for %i = %c0 to %k step %c8 iter_args(%acc = %zero) -> (tensor<16x16xf32>) {
    vx.barrier
    vx.stage_copy %a[%c0, %i] to %tile : !vx.view<?x?xf32, global> to !vx.view<16x8xf32, shared>
    vx.stage_commit
    vx.stage_wait 0
    vx.barrier
    %x = vx.tile_load %tile[%c0, %c0] inbounds : !vx.view<16x8xf32, shared> -> tensor<16x8xf32>
    %y = vx.tile_load %b[%i, %c0] : !vx.view<?x?xf32, global> -> tensor<8x16xf32>
    %next = vx.dot %x, %y, %acc {vx.tf32} : tensor<16x8xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  vx.tile_store %sum, %c[%c0, %c0] : tensor<16x16xf32>, !vx.view<?x?xf32, global>
  vx.return
}

// -----

// What else a step does keeps the loop.
// CHECK-LABEL: vx.kernel @stores
// CHECK: scf.for
// CHECK: vx.dot
vx.kernel @stores(%a: !vx.view<?x?xf32, global>, %b: !vx.view<?x?xf32, global>, %c: !vx.view<?x?xf32, global>, %k: index) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %sum = scf.for %i = %c0 to %k step %c8 iter_args(%acc = %zero) -> (tensor<16x16xf32>) {
    %x = vx.tile_load %a[%c0, %i] : !vx.view<?x?xf32, global> -> tensor<16x8xf32>
    %y = vx.tile_load %b[%i, %c0] : !vx.view<?x?xf32, global> -> tensor<8x16xf32>
    vx.tile_store %x, %c[%c0, %i] : tensor<16x8xf32>, !vx.view<?x?xf32, global>
    %next = vx.dot %x, %y, %acc : tensor<16x8xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  vx.tile_store %sum, %c[%c0, %c0] : tensor<16x16xf32>, !vx.view<?x?xf32, global>
  vx.return
}
