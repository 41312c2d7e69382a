// RUN: %vx-opt %s -vx-simplify | FileCheck %s

// A tile with run-time extents must not become a constant: nothing would know its extents any more.
// CHECK-LABEL: func.func @dynamic
func.func @dynamic(%t: tensor<?xi32>) -> tensor<?xi32> {
  // CHECK-NEXT: %[[D:.*]] = arith.subi
  // CHECK-NEXT: return %[[D]]
  %d = arith.subi %t, %t : tensor<?xi32>
  return %d : tensor<?xi32>
}

// CHECK-LABEL: func.func @static
func.func @static(%t: tensor<4xi32>, %n: i32) -> (tensor<4xi32>, i32) {
  // CHECK-DAG: arith.constant dense<0> : tensor<4xi32>
  // CHECK-DAG: arith.constant 0 : i32
  // CHECK-NOT: arith.subi
  %d = arith.subi %t, %t : tensor<4xi32>
  %e = arith.subi %n, %n : i32
  return %d, %e : tensor<4xi32>, i32
}

// CHECK-LABEL: func.func @dead
func.func @dead(%t: tensor<?xi32>) {
  // CHECK-NEXT: return
  %d = arith.addi %t, %t : tensor<?xi32>
  %e = arith.muli %d, %d : tensor<?xi32>
  return
}

// Nor where the branches and loops around it are merged, or are none.
// CHECK-LABEL: func.func @moved
func.func @moved(%t: tensor<?xi32>, %p: i1, %q: i1, %out: !vx.view<?xi32, global>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK-NOT: dense
  // CHECK: scf.if
  // CHECK-NOT: scf.if
  scf.if %p {
    scf.if %q {
      // CHECK: arith.subi
      %d = arith.subi %t, %t : tensor<?xi32>
      vx.tile_store %d, %out[%zero] inbounds : tensor<?xi32>, !vx.view<?xi32, global>
    }
  }
  // CHECK-NOT: scf.for
  scf.for %i = %zero to %one step %one {
    // CHECK: arith.xori
    %e = arith.xori %t, %t : tensor<?xi32>
    vx.tile_store %e, %out[%i] inbounds : tensor<?xi32>, !vx.view<?xi32, global>
  }
  %true = arith.constant true
  // CHECK-NOT: scf.if
  scf.if %true {
    // CHECK: arith.cmpi
    // CHECK: arith.extui
    %c = arith.cmpi ne, %t, %t : tensor<?xi32>
    %f = arith.extui %c : tensor<?xi1> to tensor<?xi32>
    vx.tile_store %f, %out[%one] inbounds : tensor<?xi32>, !vx.view<?xi32, global>
  }
  // CHECK: return
  return
}
