// RUN: %vx-opt %s -vx-narrow-math | FileCheck %s

// CHECK-LABEL: func.func @logistic
// CHECK: %[[S:.*]] = vx.sigmoid %{{.*}} fastmath <contract> {vx.narrow = 8 : i64}
// CHECK: arith.mulf %{{.*}}, %[[S]]
func.func @logistic(%t: tensor<8xbf16>) -> tensor<8xbf16> {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %x = arith.extf %t : tensor<8xbf16> to tensor<8xf32>
  %n = arith.negf %x fastmath<contract> : tensor<8xf32>
  %e = math.exp %n fastmath<contract> : tensor<8xf32>
  %s = arith.addf %one, %e fastmath<contract> : tensor<8xf32>
  %d = arith.divf %x, %s fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %d : tensor<8xf32> to tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// The f32 form where the same value is also seen unrounded.
// CHECK-LABEL: func.func @stored
// CHECK: math.exp %{{.*}} fastmath<contract> :
func.func @stored(%t: tensor<8xf16>) -> (tensor<8xf16>, tensor<8xf32>) {
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %e = math.exp %x fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %e : tensor<8xf32> to tensor<8xf16>
  return %r, %e : tensor<8xf16>, tensor<8xf32>
}

// A residual may cancel what the function gives.
// CHECK-LABEL: func.func @residual
// CHECK: math.exp %{{.*}} fastmath<contract> :
func.func @residual(%t: tensor<8xf16>) -> tensor<8xf16> {
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %e = math.exp %x fastmath<contract> : tensor<8xf32>
  %a = arith.addf %e, %x fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %a : tensor<8xf32> to tensor<8xf16>
  return %r : tensor<8xf16>
}

// CHECK-LABEL: func.func @difference
// CHECK: math.exp %{{.*}} fastmath<contract> :
// CHECK: math.exp %{{.*}} fastmath<contract> :
func.func @difference(%t: tensor<8xf16>, %u: tensor<8xf16>) -> tensor<8xf16> {
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %y = arith.extf %u : tensor<8xf16> to tensor<8xf32>
  %e = math.exp %x fastmath<contract> : tensor<8xf32>
  %f = math.exp %y fastmath<contract> : tensor<8xf32>
  %d = arith.subf %e, %f fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %d : tensor<8xf32> to tensor<8xf16>
  return %r : tensor<8xf16>
}

// Sums of one sign keep a relative error.
// CHECK-LABEL: func.func @sum
// CHECK: math.exp %{{.*}} {vx.may_flush, vx.narrow = 11 : i64}
// CHECK: math.exp %{{.*}} {vx.may_flush, vx.narrow = 11 : i64}
func.func @sum(%t: tensor<8xf16>, %u: tensor<8xf16>) -> tensor<8xf16> {
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %y = arith.extf %u : tensor<8xf16> to tensor<8xf32>
  %e = math.exp %x fastmath<contract> : tensor<8xf32>
  %f = math.exp %y fastmath<contract> : tensor<8xf32>
  %d = arith.addf %e, %f fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %d : tensor<8xf32> to tensor<8xf16>
  return %r : tensor<8xf16>
}

// Only the outer one: what a function is of has to be exact.
// CHECK-LABEL: func.func @nested
// CHECK: math.exp %{{.*}} fastmath<contract> :
// CHECK: math.exp %{{.*}} {vx.may_flush, vx.narrow = 11 : i64}
func.func @nested(%t: tensor<8xf16>) -> tensor<8xf16> {
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %e = math.exp %x fastmath<contract> : tensor<8xf32>
  %f = math.exp %e fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %f : tensor<8xf32> to tensor<8xf16>
  return %r : tensor<8xf16>
}

// CHECK-LABEL: func.func @compared
// CHECK: math.exp %{{.*}} fastmath<contract> :
func.func @compared(%t: tensor<8xf16>) -> (tensor<8xf16>, tensor<8xi1>) {
  %c = arith.constant dense<0.5> : tensor<8xf32>
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %e = math.exp %x fastmath<contract> : tensor<8xf32>
  %m = arith.cmpf ogt, %e, %c : tensor<8xf32>
  %r = arith.truncf %e : tensor<8xf32> to tensor<8xf16>
  return %r, %m : tensor<8xf16>, tensor<8xi1>
}

// CHECK-LABEL: func.func @strict
// CHECK-NOT: vx.narrow
// CHECK: return
func.func @strict(%t: tensor<8xf16>) -> tensor<8xf16> {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %h = math.tanh %x : tensor<8xf32>
  %e = arith.addf %one, %h : tensor<8xf32>
  %r = arith.truncf %e : tensor<8xf32> to tensor<8xf16>
  return %r : tensor<8xf16>
}

// CHECK-LABEL: func.func @carried
// CHECK: math.exp %{{.*}} fastmath<contract> :
func.func @carried(%t: f16, %n: index) -> f16 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.extf %t : f16 to f32
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (f32) {
    %e = math.exp %x fastmath<contract> : f32
    scf.yield %e : f32
  }
  %r = arith.truncf %s : f32 to f16
  return %r : f16
}

// A cast in the middle is where the error ends.
// CHECK-LABEL: func.func @rounded
// CHECK: math.exp %{{.*}} {vx.may_flush, vx.narrow = 11 : i64}
func.func @rounded(%t: tensor<8xf16>, %u: tensor<8xf32>) -> tensor<8xf32> {
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %e = math.exp %x fastmath<contract> : tensor<8xf32>
  %h = arith.truncf %e : tensor<8xf32> to tensor<8xf16>
  %w = arith.extf %h : tensor<8xf16> to tensor<8xf32>
  %d = arith.subf %w, %u fastmath<contract> : tensor<8xf32>
  return %d : tensor<8xf32>
}

// Flushed, the product would be 0 where it is 1.
// CHECK-LABEL: func.func @product
// CHECK: math.exp %{{.*}} {vx.narrow = 11 : i64}
// CHECK: math.exp %{{.*}} {vx.narrow = 11 : i64}
func.func @product(%t: tensor<8xf16>) -> tensor<8xf16> {
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %n = arith.negf %x fastmath<contract> : tensor<8xf32>
  %e = math.exp %x fastmath<contract> : tensor<8xf32>
  %f = math.exp %n fastmath<contract> : tensor<8xf32>
  %d = arith.mulf %e, %f fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %d : tensor<8xf32> to tensor<8xf16>
  return %r : tensor<8xf16>
}

// A quotient of exponentials squared three times is off by 16 times the promise: the errors are counted eightfold.
// CHECK-LABEL: func.func @errors
// CHECK-NOT: vx.narrow
// CHECK: return
func.func @errors(%t: tensor<8xf16>, %u: tensor<8xf16>) -> tensor<8xf16> {
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %y = arith.extf %u : tensor<8xf16> to tensor<8xf32>
  %e = math.exp %x fastmath<contract> : tensor<8xf32>
  %f = math.exp %y fastmath<contract> : tensor<8xf32>
  %q = arith.divf %e, %f fastmath<contract> : tensor<8xf32>
  %a = arith.mulf %q, %q fastmath<contract> : tensor<8xf32>
  %b = arith.mulf %a, %a fastmath<contract> : tensor<8xf32>
  %c = arith.mulf %b, %b fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %c : tensor<8xf32> to tensor<8xf16>
  return %r : tensor<8xf16>
}

// 0.5 · (1 + tanh u) is a sigmoid; the constants meet.
// CHECK-LABEL: func.func @gelu
// CHECK: %[[C:.*]] = arith.constant dense<1.600000e+00>
// CHECK: %[[U:.*]] = arith.mulf %[[C]], %{{.*}} fastmath<contract>
// CHECK: %[[S:.*]] = vx.sigmoid %[[U]] fastmath <contract> {vx.narrow = 11 : i64}
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %[[S]]
// CHECK: arith.truncf %[[P]]
func.func @gelu(%t: tensor<8xf16>) -> tensor<8xf16> {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %half = arith.constant dense<0.5> : tensor<8xf32>
  %c = arith.constant dense<0.8> : tensor<8xf32>
  %x = arith.extf %t : tensor<8xf16> to tensor<8xf32>
  %u = arith.mulf %c, %x fastmath<contract> : tensor<8xf32>
  %h = math.tanh %u fastmath<contract> : tensor<8xf32>
  %s = arith.addf %one, %h fastmath<contract> : tensor<8xf32>
  %y = arith.mulf %half, %x fastmath<contract> : tensor<8xf32>
  %p = arith.mulf %y, %s fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %p : tensor<8xf32> to tensor<8xf16>
  return %r : tensor<8xf16>
}

// CHECK-LABEL: func.func @gelu_by_erf
// CHECK: vx.erfc %{{.*}} fastmath <contract> {vx.narrow = 8 : i64}
// CHECK-NOT: math.erf
// CHECK: return
func.func @gelu_by_erf(%t: tensor<8xbf16>) -> tensor<8xbf16> {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %x = arith.extf %t : tensor<8xbf16> to tensor<8xf32>
  %h = math.erf %x fastmath<contract> : tensor<8xf32>
  %s = arith.addf %h, %one fastmath<contract> : tensor<8xf32>
  %p = arith.mulf %x, %s fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %p : tensor<8xf32> to tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// A bf16 divisor may be subnormal in f32, or its reciprocal; an f16 one may not.
// CHECK-LABEL: func.func @quotients
// CHECK: arith.divf %{{.*}} {vx.narrow = 8 : i64}
// CHECK: arith.divf %{{.*}} {vx.may_flush, vx.narrow = 11 : i64, vx.normal}
func.func @quotients(%t: tensor<8xbf16>, %u: tensor<8xbf16>, %v: tensor<8xf16>, %w: tensor<8xf16>) -> (tensor<8xbf16>, tensor<8xf16>) {
  %a = arith.extf %t : tensor<8xbf16> to tensor<8xf32>
  %b = arith.extf %u : tensor<8xbf16> to tensor<8xf32>
  %c = arith.extf %v : tensor<8xf16> to tensor<8xf32>
  %d = arith.extf %w : tensor<8xf16> to tensor<8xf32>
  %p = arith.divf %a, %b fastmath<contract> : tensor<8xf32>
  %q = arith.divf %c, %d fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %p : tensor<8xf32> to tensor<8xbf16>
  %s = arith.truncf %q : tensor<8xf32> to tensor<8xf16>
  return %r, %s : tensor<8xbf16>, tensor<8xf16>
}

// The weights of a softmax and their sum; the sum is at least 1.
// CHECK-LABEL: func.func @softmax
// CHECK: math.exp %{{.*}} {vx.narrow = 8 : i64}
// CHECK: arith.divf %{{.*}} {vx.narrow = 8 : i64, vx.normal} : tensor<4xf32>
// CHECK: arith.mulf
func.func @softmax(%t: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %x = arith.extf %t : tensor<4x8xbf16> to tensor<4x8xf32>
  %m = vx.reduce maxf %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %mb = vx.broadcast %m dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %d = arith.subf %x, %mb fastmath<contract> : tensor<4x8xf32>
  %e = math.exp %d fastmath<contract> : tensor<4x8xf32>
  %s = vx.reduce addf %e dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %sb = vx.broadcast %s dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %q = arith.divf %e, %sb fastmath<contract> : tensor<4x8xf32>
  %r = arith.truncf %q : tensor<4x8xf32> to tensor<4x8xbf16>
  return %r : tensor<4x8xbf16>
}

// Widened bf16 are far enough from 1 for bf16, widened f16 are not.
// CHECK-LABEL: func.func @logarithms
// CHECK: math.log %{{.*}} {vx.far_from_one, vx.narrow = 8 : i64}
// CHECK: math.log %{{.*}} fastmath<contract> :
func.func @logarithms(%t: tensor<8xbf16>, %u: tensor<8xf16>) -> (tensor<8xbf16>, tensor<8xf16>) {
  %a = arith.extf %t : tensor<8xbf16> to tensor<8xf32>
  %b = arith.extf %u : tensor<8xf16> to tensor<8xf32>
  %p = math.log %a fastmath<contract> : tensor<8xf32>
  %q = math.log %b fastmath<contract> : tensor<8xf32>
  %r = arith.truncf %p : tensor<8xf32> to tensor<8xbf16>
  %s = arith.truncf %q : tensor<8xf32> to tensor<8xf16>
  return %r, %s : tensor<8xbf16>, tensor<8xf16>
}
