// RUN: %vx-opt %s | %vx-opt | FileCheck %s
// RUN: %vx-opt %s -mlir-print-op-generic | %vx-opt | FileCheck %s

// CHECK: {name = "few", role = #vx.role<let>}
vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>},
          {name = "few", role = #vx.role<let>}, {name = "each", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"scalar(1)">]}]

// CHECK-LABEL: vx.launch @k {
// CHECK-NEXT:  vx.let arg 1 = #vx.size<"ceildiv(dim(0,0), device(workers))">
// CHECK-NEXT:  vx.phase @k.a
// CHECK-NEXT:  vx.choose first {
// CHECK-NEXT:    vx.case "split" needs #vx.size<"pow2(dim(0,0))"> when #vx.size<"scalar(1) < 4"> {
// CHECK-NEXT:      vx.let arg 2 = #vx.size<"scalar(1) + 1">
// CHECK-NEXT:      vx.phase @k.b
// CHECK-NEXT:      vx.choose first {
// CHECK-NEXT:        vx.case "always" {
// CHECK-NEXT:          vx.phase @k.c
// CHECK-NEXT:        }
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    vx.case "small" when #vx.size<"dim(0,0) < 9"> {
// CHECK-NEXT:    }
// CHECK-NEXT:    vx.case "usual" {
// CHECK-NEXT:      vx.choose least {
// CHECK-NEXT:        vx.case "dear" needs #vx.size<"pow2(dim(0,0))"> cost #vx.size<"dim(0,0) * 3"> {
// CHECK-NEXT:        }
// CHECK-NEXT:        vx.case "cheap" cost #vx.size<"dim(0,0)"> {
// CHECK-NEXT:          vx.phase @k.d
vx.launch @k {
  vx.let arg 1 = #vx.size<"ceildiv(dim(0,0), device(workers))">
  vx.phase @k.a
  vx.choose first {
    vx.case "split" needs #vx.size<"pow2(dim(0,0))"> when #vx.size<"scalar(1) < 4"> {
      vx.let arg 2 = #vx.size<"scalar(1) + 1">
      vx.phase @k.b
      vx.choose first { vx.case "always" { vx.phase @k.c } }
    }
    vx.case "small" when #vx.size<"dim(0,0) < 9"> {}
    vx.case "usual" {
      vx.choose least {
        vx.case "dear" needs #vx.size<"pow2(dim(0,0))"> cost #vx.size<"dim(0,0) * 3"> {}
        vx.case "cheap" cost #vx.size<"dim(0,0)"> { vx.phase @k.d }
      }
    }
  }
}
vx.kernel @k.a(%x: !vx.view<?xf32, global>, %few: index, %each: index, %t: !vx.view<?xf32, global>)
    grid [#vx.size<"scalar(1)">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] { vx.return }
vx.kernel @k.b(%x: !vx.view<?xf32, global>, %few: index, %each: index, %t: !vx.view<?xf32, global>)
    grid [#vx.size<"scalar(2)">, #vx.size<"dim(3,0)">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %sum = arith.addi %few, %each : index
  vx.return
}
vx.kernel @k.c(%x: !vx.view<?xf32, global>, %few: index, %each: index, %t: !vx.view<?xf32, global>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] { vx.return }
vx.kernel @k.d(%x: !vx.view<?xf32, global>, %few: index, %each: index, %t: !vx.view<?xf32, global>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] { vx.return }
