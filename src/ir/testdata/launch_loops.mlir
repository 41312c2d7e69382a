// RUN: %vx-opt %s | %vx-opt | FileCheck %s
// RUN: %vx-opt %s -mlir-print-op-generic | %vx-opt | FileCheck %s

vx.entry @k : (!vx.view<?xf32, global>, index, index, index, !vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "n", role = #vx.role<param>},
          {name = "i", role = #vx.role<let>}, {name = "j", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]

// CHECK-LABEL: vx.launch @k {
// CHECK-NEXT:  vx.loop [2, 3] = [#vx.size<"0">, #vx.size<"1">] while #vx.size<"scalar(2) < scalar(1)"> next [#vx.size<"scalar(2) + 1">, #vx.size<"scalar(2) * scalar(3)">] {
// CHECK-NEXT:    vx.choose first decides {
// CHECK-NEXT:      vx.case "then" needs #vx.size<"scalar(3) < 9"> {
// CHECK-NEXT:        vx.phase @k.a
// CHECK-NEXT:      }
// CHECK-NEXT:      vx.case "else" {
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    vx.exchange 4, 5
// CHECK-NEXT:  }
vx.launch @k {
  vx.loop [2, 3] = [#vx.size<"0">, #vx.size<"1">] while #vx.size<"scalar(2) < scalar(1)"> next [#vx.size<"scalar(2) + 1">, #vx.size<"scalar(2) * scalar(3)">] {
    vx.choose first decides {
      vx.case "then" needs #vx.size<"scalar(3) < 9"> { vx.phase @k.a }
      vx.case "else" {}
    }
    vx.exchange 4, 5
  }
}
vx.kernel @k.a(%x: !vx.view<?xf32, global>, %n: index, %i: index, %j: index, %t: !vx.view<?xf32, global>, %u: !vx.view<?xf32, global>)
    grid [#vx.size<"scalar(3)">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %sum = arith.addi %i, %j : index
  vx.return
}
