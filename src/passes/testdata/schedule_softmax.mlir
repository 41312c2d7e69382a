// RUN: %vx-opt %s -vx-phases | FileCheck %s

// Softmax over rows stays one phase that splits the rows.
// CHECK: vx.kernel @softmax.tensors.0
// CHECK-SAME: grid [#vx.size<"ceildiv(dim(0,0), 
// CHECK: arith.minui
// CHECK: vx.tile_load {{.*}} sizes(%{{.*}}, %{{.*}}) inbounds : <?x?xf32, global> -> tensor<?x?xf32>
// CHECK: vx.reduce maxf
// CHECK: math.exp
// CHECK: vx.reduce addf
// CHECK: vx.tile_store
// CHECK-NOT: vx.kernel
vx.entry @softmax : (!vx.view<?x?xf32, global>, !vx.view<?x?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>,
           extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(0,1)">]}]
vx.kernel @softmax.body(%x: !vx.view<?x?xf32, global>, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %max = vx.reduce maxf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %t, %maxb : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %sum = vx.reduce addf %e dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.divf %e, %sumb : tensor<?x?xf32>
  vx.tile_store %r, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
}
