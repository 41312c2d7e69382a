// RUN: %vx-opt %s -vx-narrow-operands -split-input-file | FileCheck %s

// The product extends the sign itself, wherever the program did.
// CHECK-LABEL: func.func @signed
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xi8>, %[[W:.*]]: tensor<4x8xi8>
func.func @signed(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>, %acc: tensor<?x4xi32>) -> tensor<?x4xi32> {
  // CHECK: %[[T:.*]] = vx.transpose %[[W]] {{.*}} tensor<4x8xi8> -> tensor<8x4xi8>
  // CHECK: vx.dot %[[X]], %[[T]], %{{.*}} : tensor<?x8xi8>, tensor<8x4xi8> -> tensor<?x4xi32>
  %a = arith.extsi %x : tensor<?x8xi8> to tensor<?x8xi32>
  %half = arith.extsi %w : tensor<4x8xi8> to tensor<4x8xi16>
  %turned = vx.transpose %half [1, 0] : tensor<4x8xi16> -> tensor<8x4xi16>
  %b = arith.extsi %turned : tensor<8x4xi16> to tensor<8x4xi32>
  %sum = vx.dot %a, %b, %acc : tensor<?x8xi32>, tensor<8x4xi32> -> tensor<?x4xi32>
  return %sum : tensor<?x4xi32>
}

// -----

// Zeros in front stay, right before the product; a sign that is extended behind them is none.
// CHECK-LABEL: func.func @mixed
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xi8>, %[[W:.*]]: tensor<4x8xi8>
func.func @mixed(%x: tensor<2x8xi8>, %w: tensor<4x8xi8>, %acc: tensor<2x4xi32>) -> tensor<2x4xi32> {
  // CHECK-DAG: %[[A:.*]] = arith.extui %[[X]] : tensor<2x8xi8> to tensor<2x8xi32>
  // CHECK-DAG: %[[T:.*]] = vx.transpose %[[W]] {{.*}} tensor<4x8xi8> -> tensor<8x4xi8>
  // CHECK-DAG: %[[B:.*]] = arith.extsi %[[T]] : tensor<8x4xi8> to tensor<8x4xi32>
  // CHECK: vx.dot %[[A]], %[[B]], %{{.*}} : tensor<2x8xi32>, tensor<8x4xi32> -> tensor<2x4xi32>
  %half = arith.extui %x : tensor<2x8xi8> to tensor<2x8xi16>
  %a = arith.extsi %half : tensor<2x8xi16> to tensor<2x8xi32>
  %wide = arith.extsi %w : tensor<4x8xi8> to tensor<4x8xi32>
  %b = vx.transpose %wide [1, 0] : tensor<4x8xi32> -> tensor<8x4xi32>
  %sum = vx.dot %a, %b, %acc : tensor<2x8xi32>, tensor<8x4xi32> -> tensor<2x4xi32>
  return %sum : tensor<2x4xi32>
}

// -----

// Zeros in front of a sign: the numbers are those of 16 bits.
// CHECK-LABEL: func.func @sign_in_the_middle
func.func @sign_in_the_middle(%x: tensor<2x8xi8>, %w: tensor<8x4xi8>, %acc: tensor<2x4xi32>) -> tensor<2x4xi32> {
  // CHECK: vx.dot %{{.*}} : tensor<2x8xi32>, tensor<8x4xi32>
  %half = arith.extsi %x : tensor<2x8xi8> to tensor<2x8xi16>
  %a = arith.extui %half : tensor<2x8xi16> to tensor<2x8xi32>
  %b = arith.extsi %w : tensor<8x4xi8> to tensor<8x4xi32>
  %sum = vx.dot %a, %b, %acc : tensor<2x8xi32>, tensor<8x4xi32> -> tensor<2x4xi32>
  return %sum : tensor<2x4xi32>
}

// -----

// Products of narrow floats are exact in f32; tf32 is no question then. f8 beside f16 is multiplied as f16.
// CHECK-LABEL: func.func @floats
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf16>, %[[W:.*]]: tensor<8x4xf16>, %[[Q:.*]]: tensor<8x4xf8E4M3FN>
func.func @floats(%x: tensor<2x8xf16>, %w: tensor<8x4xf16>, %q: tensor<8x4xf8E4M3FN>, %acc: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK: vx.dot %[[X]], %[[W]], %{{.*}} : tensor<2x8xf16>, tensor<8x4xf16> -> tensor<2x4xf32>
  // CHECK: %[[H:.*]] = arith.extf %[[Q]] : tensor<8x4xf8E4M3FN> to tensor<8x4xf16>
  // CHECK: vx.dot %[[X]], %[[H]], %{{.*}} : tensor<2x8xf16>, tensor<8x4xf16> -> tensor<2x4xf32>
  %a = arith.extf %x : tensor<2x8xf16> to tensor<2x8xf32>
  %b = arith.extf %w : tensor<8x4xf16> to tensor<8x4xf32>
  %c = arith.extf %q : tensor<8x4xf8E4M3FN> to tensor<8x4xf32>
  %first = vx.dot %a, %b, %acc {vx.tf32} : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %second = vx.dot %a, %c, %acc : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  return %first, %second : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// Not what is written so on purpose, f16 beside bf16, of which neither holds the other, sums of f64, nor where one operand is computed wide.
// CHECK-LABEL: func.func @wide
func.func @wide(%x: tensor<4x4xf16>, %w: tensor<4x4xbf16>, %y: tensor<4x4xf32>, %acc: tensor<4x4xf32>, %sums: tensor<4x4xf64>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf64>) {
  // CHECK-COUNT-3: vx.dot %{{.*}} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  // CHECK: vx.dot %{{.*}} : tensor<4x4xf64>, tensor<4x4xf64> -> tensor<4x4xf64>
  %a = arith.extf %x : tensor<4x4xf16> to tensor<4x4xf32>
  %b = arith.extf %w : tensor<4x4xbf16> to tensor<4x4xf32>
  %d = arith.extf %y : tensor<4x4xf32> to tensor<4x4xf64>
  %first = vx.dot %a, %a, %acc {vx.as_written} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %second = vx.dot %a, %b, %acc : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %third = vx.dot %a, %y, %acc : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %fourth = vx.dot %d, %d, %sums : tensor<4x4xf64>, tensor<4x4xf64> -> tensor<4x4xf64>
  return %first, %second, %third, %fourth : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf64>
}
