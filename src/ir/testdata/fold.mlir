// RUN: %vx-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @dims
// CHECK-SAME: (%[[A:.*]]: !vx.view<8x?xf32, global>, %[[N:.*]]: index)
func.func @dims(%a: !vx.view<8x?xf32, global>, %n: index) -> (index, index, index) {
  // CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
  // CHECK-DAG: %[[D:.*]] = vx.dim %[[A]], 1
  %0 = vx.dim %a, 0 : !vx.view<8x?xf32, global>
  %1 = vx.dim %a, 1 : !vx.view<8x?xf32, global>
  %s = vx.subview %a[%n, %n] sizes(%n) dropped [0] : !vx.view<8x?xf32, global> to !vx.view<?xf32, global>
  %2 = vx.dim %s, 0 : !vx.view<?xf32, global>
  // CHECK: return %[[C8]], %[[D]], %[[N]]
  return %0, %1, %2 : index, index, index
}

// CHECK-LABEL: func.func @integers
func.func @integers(%x: i32) -> (i32, i32, i32, i32, i32, i32, i32, i8, tensor<2xi32>, index) {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %7 = arith.constant 7 : i32
  %m2 = arith.constant -2 : i32
  %m1 = arith.constant -1 : i32
  %min = arith.constant -2147483648 : i32
  %33 = arith.constant 33 : i32
  %min8 = arith.constant -128 : i8
  %m8 = arith.constant -1 : i8
  %t = arith.constant dense<[7, -7]> : tensor<2xi32>
  %two = arith.constant dense<2> : tensor<2xi32>
  %i7 = arith.constant 7 : index
  %i2 = arith.constant 2 : index
  // CHECK-DAG: %[[Z:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[M3:.*]] = arith.constant -3 : i32
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[MIN:.*]] = arith.constant -2147483648 : i32
  // CHECK-DAG: %[[C14:.*]] = arith.constant 14 : i32
  // CHECK-DAG: %[[MIN8:.*]] = arith.constant -128 : i8
  // CHECK-DAG: %[[T:.*]] = arith.constant dense<[3, -3]> : tensor<2xi32>
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  %a = vx.int divs %7, %0 : i32
  %b = vx.int divs %7, %m2 : i32
  %c = vx.int rems %7, %m2 : i32
  %d = vx.int divs %min, %m1 : i32
  %e = vx.int shl %7, %33 : i32
  %f = vx.int remu %7, %0 : i32
  %g = vx.int divu %x, %1 : i32
  %h = vx.int divs %min8, %m8 : i8
  %k = vx.int divs %t, %two : tensor<2xi32>
  %l = vx.int ceildivu %i7, %i2 : index
  // CHECK: return %[[Z]], %[[M3]], %[[C1]], %[[MIN]], %[[C14]], %[[Z]], %{{.*}}, %[[MIN8]], %[[T]], %[[C4]]
  return %a, %b, %c, %d, %e, %f, %g, %h, %k, %l : i32, i32, i32, i32, i32, i32, i32, i8, tensor<2xi32>, index
}

// CHECK-LABEL: func.func @float_to_int
func.func @float_to_int() -> (i8, i8, i32, i32) {
  %big = arith.constant 300.0 : f32
  %minus = arith.constant -1.5 : f32
  %nan = arith.constant 0x7FC00000 : f32
  // CHECK-DAG: %[[A:.*]] = arith.constant 127 : i8
  // CHECK-DAG: %[[B:.*]] = arith.constant -1 : i8
  // CHECK-DAG: %[[C:.*]] = arith.constant 0 : i32
  %a = vx.float_to_int %big : f32 -> i8
  %b = vx.float_to_int %big unsigned : f32 -> i8
  %c = vx.float_to_int %minus unsigned : f32 -> i32
  %d = vx.float_to_int %nan : f32 -> i32
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[C]]
  return %a, %b, %c, %d : i8, i8, i32, i32
}

// CHECK-LABEL: func.func @tiles
// CHECK-SAME: (%[[T:.*]]: tensor<4x8x2xf32>)
func.func @tiles(%t: tensor<4x8x2xf32>) -> (tensor<4x8x2xf32>, tensor<8x2x4xf32>, tensor<64xf32>, tensor<4x4xf32>) {
  // CHECK-DAG: %[[SPLAT:.*]] = arith.constant dense<2.000000e+00> : tensor<4x4xf32>
  // CHECK-DAG: %[[P:.*]] = vx.transpose %[[T]] [1, 2, 0]
  // CHECK-DAG: %[[R:.*]] = vx.reshape %[[T]] : tensor<4x8x2xf32> -> tensor<64xf32>
  %0 = vx.transpose %t [0, 1, 2] : tensor<4x8x2xf32> -> tensor<4x8x2xf32>
  %1 = vx.transpose %t [2, 1, 0] : tensor<4x8x2xf32> -> tensor<2x8x4xf32>
  %2 = vx.transpose %1 [1, 0, 2] : tensor<2x8x4xf32> -> tensor<8x2x4xf32>
  %3 = vx.reshape %t : tensor<4x8x2xf32> -> tensor<32x2xf32>
  %4 = vx.reshape %3 : tensor<32x2xf32> -> tensor<64xf32>
  %two = arith.constant 2.0 : f32
  %5 = vx.broadcast %two dims [] : f32 -> tensor<4x4xf32>
  // CHECK: return %[[T]], %[[P]], %[[R]], %[[SPLAT]]
  return %0, %2, %4, %5 : tensor<4x8x2xf32>, tensor<8x2x4xf32>, tensor<64xf32>, tensor<4x4xf32>
}

// Loads of one address merge only without a store between them; an unused load goes away, a store stays.
// CHECK-LABEL: func.func @effects
func.func @effects(%a: !vx.view<?xf32, global>, %i: index, %v: f32) {
  // CHECK-NEXT: vx.store
  // CHECK-NEXT: vx.barrier
  // CHECK-NEXT: return
  %0 = vx.load %a[%i] : !vx.view<?xf32, global> -> f32
  vx.store %v, %a[%i] : f32, !vx.view<?xf32, global>
  vx.barrier
  return
}
