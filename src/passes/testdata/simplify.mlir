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
