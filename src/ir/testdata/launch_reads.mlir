// RUN: %vx-opt %s | %vx-opt | FileCheck %s
// RUN: %vx-opt %s -mlir-print-op-generic | %vx-opt | FileCheck %s

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<1xi64, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>},
          {name = "go", role = #vx.role<let>}, {name = "goes_on", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]

// CHECK-LABEL: vx.launch @k {
// CHECK-NEXT:  vx.loop [1] = [#vx.size<"1">] while #vx.size<"scalar(1)"> next [#vx.size<"scalar(2)">] {
// CHECK-NEXT:    vx.phase @k.a
// CHECK-NEXT:    vx.read arg 2 from 3
// CHECK-NEXT:  }
vx.launch @k {
  vx.loop [1] = [#vx.size<"1">] while #vx.size<"scalar(1)"> next [#vx.size<"scalar(2)">] {
    vx.phase @k.a
    vx.read arg 2 from 3
  }
}
vx.kernel @k.a(%x: !vx.view<?xf32, global>, %go: index, %on: index, %t: !vx.view<1xi64, global>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  vx.return
}
