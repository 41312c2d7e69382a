// RUN: %vx-opt %s -vx-simplify -cse | FileCheck %s

// What programs under `--check` compute is neither folded nor left out, and loops that may never end stay.
// CHECK-LABEL: func.func @checked
func.func @checked(%x: i32, %n: i32) -> i32 {
  // CHECK: vx.checked_mul
  %unused = vx.checked_mul unsigned %x, %n : i32
  // CHECK-NEXT: vx.checked_sub
  // CHECK-NEXT: %[[X:.*]] = vx.checked_add
  %less = vx.checked_sub unsigned %x, %n : i32
  %again = vx.checked_add unsigned %less, %n : i32
  // CHECK-NEXT: scf.while
  %last = scf.while (%i = %n) : (i32) -> i32 {
    vx.round
    %differs = arith.cmpi ne, %i, %x : i32
    scf.condition(%differs) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.xori %i, %x : i32
    scf.yield %next : i32
  }
  // CHECK: return %[[X]]
  return %again : i32
}
