// RUN: %vx-opt %s -vx-phases='reduction-blocks=64 fused-only=true' | FileCheck %s

// Variances of channels: rows are reduced first, and the mean keeps its axis from [C] to [1, C, 1], so that nothing is left to one block. Where there
// are many rows for a channel, or short ones, columns of [C, S] first.
// CHECK: vx.launch @variances {
// CHECK-NEXT: vx.choose first {
// CHECK-NEXT: vx.case "rows first" when {{.*}}dim(0,2) < 4096{{.*}} < 1
// CHECK-NEXT: vx.phase @variances.tensors.0
// CHECK-NEXT: vx.phase @variances.partial.1
// CHECK-NEXT: vx.phase @variances.combine.2
// CHECK-NEXT: vx.phase @variances.tensors.3
// CHECK-NEXT: vx.phase @variances.partial.4
// CHECK-NEXT: vx.phase @variances.tensors.5
// CHECK-NEXT: }
// CHECK-NEXT: vx.case "columns first"
// CHECK-NEXT: vx.phase @variances.partial.6
// CHECK-NEXT: vx.phase @variances.combine.7
// CHECK-NEXT: vx.phase @variances.tensors.8
// CHECK-NEXT: vx.phase @variances.partial.9
// CHECK-NEXT: vx.phase @variances.combine.10
// CHECK-NEXT: vx.phase @variances.tensors.11
// CHECK: vx.kernel @variances.partial.6
// CHECK: vx.reduce addf %{{.*}} dims [0] : tensor<?x?x?xf32> -> tensor<?x?xf32>
// CHECK: vx.kernel @variances.tensors.8
// CHECK: vx.reduce addf %{{.*}} dims [1] : tensor<?x?xf32> -> tensor<?xf32>
// CHECK: vx.kernel @variances.tensors.0
// CHECK: vx.reduce addf %{{.*}} dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>
// CHECK: vx.kernel @variances.partial.1
// CHECK: vx.reduce addf %{{.*}} dims [0] : tensor<?x?xf32> -> tensor<?xf32>
// CHECK: vx.kernel @variances.tensors.3
// CHECK: vx.reshape %{{.*}} : tensor<?xf32> -> tensor<1x?xf32>
// CHECK: vx.reshape %{{.*}} : tensor<1x?xf32> -> tensor<1x?x1xf32>
// CHECK: vx.reduce addf %{{.*}} dims [2]
vx.entry @variances : (!vx.view<?x?x?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,1)">]}]
vx.kernel @variances.body(%x: !vx.view<?x?x?xf32, global>, %out: !vx.view<?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %b = vx.dim %x, 0 : !vx.view<?x?x?xf32, global>
  %c = vx.dim %x, 1 : !vx.view<?x?x?xf32, global>
  %s = vx.dim %x, 2 : !vx.view<?x?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0, %c0] sizes(%b, %c, %s) inbounds : !vx.view<?x?x?xf32, global> -> tensor<?x?x?xf32>
  %sum = vx.reduce addf %t dims [0, 2] : tensor<?x?x?xf32> -> tensor<?xf32>
  %kept = vx.reshape %sum sizes(%c) : tensor<?xf32> -> tensor<1x?x1xf32>
  %means = vx.broadcast %kept dims [0, 1, 2] sizes(%b, %c, %s) : tensor<1x?x1xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %t, %means : tensor<?x?x?xf32>
  %q = arith.mulf %d, %d : tensor<?x?x?xf32>
  %r = vx.reduce addf %q dims [0, 2] : tensor<?x?x?xf32> -> tensor<?xf32>
  vx.tile_store %r, %out[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>
  vx.return
}
