// RUN: %vx-opt %s -vx-unroll-loops -vx-simplify | FileCheck %s

// Outer counters bound inner loops, one of which runs no time; what is carried goes from iteration to iteration.
// CHECK-LABEL: vx.kernel @triangle
// CHECK-NOT: scf.for
// CHECK: %[[THREE:.*]] = arith.constant 3 : index
// CHECK: vx.store %{{.*}}, %{{.*}}[%[[THREE]]]
vx.kernel @triangle(%a: !vx.view<?xindex, global>) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  vx.threads(%c1, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %linear: index):
    %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%outer = %c0) -> (index) {
      %next = scf.for %j = %c0 to %i step %c1 iter_args(%inner = %outer) -> (index) {
        %more = arith.addi %inner, %c1 : index
        scf.yield %more : index
      } {vx.unroll}
      scf.yield %next : index
    } {vx.unroll}
    %v = vx.load %a[%sum] guarded : !vx.view<?xindex, global> -> index
    vx.store %v, %a[%sum] guarded : index, !vx.view<?xindex, global>
  }
  vx.return
}

// Arrays of a thread are indexed by numbers without being asked; other loops stay.
// CHECK-LABEL: vx.kernel @array
// CHECK-COUNT-4: vx.store %{{.*}}, %{{.*}}[%{{.*}}] : f32, <4xf32, local>
// CHECK: scf.for
vx.kernel @array(%a: !vx.view<?xf32, global>) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %array = vx.alloc "array" : !vx.view<4xf32, local>
  vx.threads(%c1, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %linear: index):
    scf.for %i = %c0 to %c4 step %c1 {
      vx.store %zero, %array[%i] : f32, !vx.view<4xf32, local>
    }
    scf.for %i = %c0 to %c4 step %c1 {
      vx.store %zero, %a[%i] guarded : f32, !vx.view<?xf32, global>
    }
  }
  vx.return
}
