// RUN: %vx-opt %s -vx-expand-staging | FileCheck %s

// CHECK-LABEL: vx.kernel @copy
// CHECK: %[[TILE:.*]] = vx.tile_load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : <?x?x?xf16, global> -> tensor<1x128x32xf16>
// CHECK: %[[FLAT:.*]] = vx.reshape %[[TILE]]
// CHECK: vx.tile_store %[[FLAT]], %{{.*}} inbounds
// CHECK-NOT: stage
// CHECK: vx.barrier
vx.kernel @copy(%a: !vx.view<?x?x?xf16, global>) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %i = vx.block_id x
  %tile = vx.alloc "tile" : !vx.view<128x32xf16, shared>
  vx.stage_copy %a[%i, %i, %i] to %tile dropped [0] : !vx.view<?x?x?xf16, global> to !vx.view<128x32xf16, shared>
  vx.stage_commit
  vx.stage_wait 0
  vx.barrier
  vx.return
}
