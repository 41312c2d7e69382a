// RUN: %vx-opt %s -vx-phases=fused-only | FileCheck %s

// Each round launches a grid for the loop that the program says is parallel. A bound that only the device knows: threads take iterations in turn.
// CHECK: vx.launch @rounds {
// CHECK-NEXT: vx.loop [2] = [#vx.size<"0">] while #vx.size<"scalar(2) < scalar(1)"> next [#vx.size<"scalar(2) + 1">] {
// CHECK-NEXT: vx.phase @rounds.iterate.0
// CHECK-NEXT: vx.phase @rounds.serial.1
// CHECK-NEXT: vx.phase @rounds.iterate.2
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK: vx.kernel @rounds.iterate.0{{.*}} [#vx.size<"ceildiv(select(scalar(2) < dim(0,0), select(0 < {{.*}}, 9223372036854775807), 0), 256)">,
// CHECK: vx.threads
// CHECK: scf.if
// CHECK: vx.kernel @rounds.serial.1
// CHECK: vx.store {{.*}}, %arg3[
// CHECK: vx.kernel @rounds.iterate.2{{.*}} grid [#vx.size<"1024">,
// CHECK: vx.load %arg3[
// CHECK: vx.threads
// CHECK: scf.for
vx.entry @rounds : (!vx.view<?xi32, global>, index) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "n", role = #vx.role<param>}]
vx.kernel @rounds.body(%x: !vx.view<?xi32, global>, %n: index) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : i32
  %s = vx.dim %x, 0 : !vx.view<?xi32, global>
  scf.for %t = %c0 to %n step %c1 {
    scf.for %i = %t to %s step %c1 {
      vx.store %c5, %x[%i] : i32, !vx.view<?xi32, global>
    } {vx.independent = "claimed"}
    %last = vx.load %x[%t] : !vx.view<?xi32, global> -> i32
    %end = arith.index_cast %last : i32 to index
    scf.for %i = %c0 to %end step %c1 {
      vx.store %last, %x[%i] guarded : i32, !vx.view<?xi32, global>
    } {vx.independent = "proven"}
  }
  vx.return
}
