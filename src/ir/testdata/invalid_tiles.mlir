// RUN: %vx-opt %s -verify-diagnostics -split-input-file

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.broadcast' op changes the element type from 'f32' to 'i32'}}
  %0 = vx.broadcast %v dims [] : f32 -> tensor<4xi32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.broadcast' op has 0 sizes for 1 dynamic result dimensions}}
  %0 = vx.broadcast %v dims [] : f32 -> tensor<?xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.broadcast' op maps 1 dimensions of an operand of rank 2}}
  %0 = vx.broadcast %t dims [0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.broadcast' op names dimension 3 of a tile of rank 3}}
  %0 = vx.broadcast %t dims [0, 3] : tensor<4x8xf32> -> tensor<4x8x2xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.broadcast' op maps operand dimensions 0 and 1 out of order, to 1 and 0}}
  %0 = vx.broadcast %t dims [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.broadcast' op stretches operand dimension 0 of extent 4 to 5}}
  %0 = vx.broadcast %t dims [0, 1] : tensor<4x8xf32> -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.iota' op yields integer or index elements, not 'f32'}}
  %0 = vx.iota 0 -> tensor<4xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.iota' op has 1 sizes for 0 dynamic result dimensions}}
  %0 = vx.iota 0 sizes(%n) -> tensor<4xi32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.iota' op names dimension 1 of a tile of rank 1}}
  %0 = vx.iota 1 -> tensor<4xi32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.transpose' op permutes 1 dimensions of a tile of rank 2 into rank 2}}
  %0 = vx.transpose %t [0] : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.transpose' op uses dimension 1 twice}}
  %0 = vx.transpose %i [1, 1] : tensor<4x8xi32> -> tensor<8x8xi32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.transpose' op result dimension 0 differs from operand dimension 1}}
  %0 = vx.transpose %t [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.transpose' op changes the element type from 'f32' to 'f16'}}
  %0 = vx.transpose %t [1, 0] : tensor<4x8xf32> -> tensor<8x4xf16>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.transpose' op names dimension 2 of a tile of rank 2}}
  %0 = vx.transpose %t [2, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.reshape' op turns 32 elements into 31}}
  %0 = vx.reshape %t : tensor<4x8xf32> -> tensor<31xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.reshape' op has 0 sizes for 1 dynamic result dimensions}}
  %0 = vx.reshape %t : tensor<4x8xf32> -> tensor<?xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.slice' op has 1 offsets for a tile of rank 2}}
  %0 = vx.slice %t[%n] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.slice' op takes 9 elements of dimension 1 of extent 8}}
  %0 = vx.slice %t[%n, %n] dropped [0] : tensor<4x8xf32> -> tensor<9xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %n: index) {
  // expected-error@+1 {{'vx.slice' op takes 9 elements of dimension 1 of extent 8}}
  %0 = vx.slice %t[%n, %n] {vx.guarded_dims = array<i64: 0>} : tensor<4x8xf32> -> tensor<9x9xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %n: index) {
  // expected-error@+1 {{'vx.slice' op names dimension 2 of a tile of rank 2}}
  %0 = vx.slice %t[%n, %n] {vx.guarded_dims = array<i64: 2>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.element' op has 1 indices for a tile of rank 2}}
  %0 = vx.element %t[%n] : tensor<4x8xf32> -> f32
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.element' op changes the element type from 'f32' to 'f64'}}
  %0 = vx.element %t[%n, %n] : tensor<4x8xf32> -> f64
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.reduce' op cannot combine 'f32' with addi}}
  %0 = vx.reduce addi %t dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.reduce' op cannot combine 'f32' with exchange}}
  %0 = vx.reduce exchange %t dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.reduce' op names dimension 2 of a tile of rank 2}}
  %0 = vx.reduce addf %t dims [2] : tensor<4x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.reduce' op lists dimensions out of order: 1 before 0}}
  %0 = vx.reduce addf %t dims [1, 0] : tensor<4x8xf32> -> f32
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.reduce' op keeps 1 dimensions and yields a scalar}}
  %0 = vx.reduce addf %t dims [1] : tensor<4x8xf32> -> f32
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.reduce' op keeps 0 dimensions and yields a tile}}
  %0 = vx.reduce addf %t dims [0, 1] : tensor<4x8xf32> -> tensor<1xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.reduce' op result extents differ from the kept dimensions of 'tensor<4x8xf32>'}}
  %0 = vx.reduce addf %t dims [1] : tensor<4x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.scan' op names dimension 2 of a tile of rank 2}}
  %0 = vx.scan addf %t dim 2 : tensor<4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.scan' op cannot combine 'f32' with xor}}
  %0 = vx.scan xor %t dim 0 : tensor<4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %n: index, %s: !vx.view<?xi64, global>) {
  // expected-error@+1 {{'vx.scan' op continues other pieces of vectors only, by a number and a vector of i64}}
  %0 = vx.scan addf %t dim 1 after %n in %s : !vx.view<?xi64, global> : tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>, %h: tensor<4x6xf16>, %i: tensor<4x6xi32>, %v: tensor<4xf32>, %p: tensor<2x4x8xf32>, %q: tensor<3x8x6xf32>, %r: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'vx.dot' op needs operands of one rank of at least 2, got 1, 2 and 2}}
  %0 = vx.dot %v, %b, %c : tensor<4xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>, %h: tensor<4x6xf16>, %i: tensor<4x6xi32>, %v: tensor<4xf32>, %p: tensor<2x4x8xf32>, %q: tensor<3x8x6xf32>, %r: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'vx.dot' op multiplies 'f32' by 'i32'}}
  %0 = vx.dot %a, %i, %c : tensor<4x8xf32>, tensor<4x6xi32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>, %h: tensor<4x6xf16>, %i: tensor<4x6xi32>, %v: tensor<4xf32>, %p: tensor<2x4x8xf32>, %q: tensor<3x8x6xf32>, %r: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'vx.dot' op accumulates 'f32' in 'i32'}}
  %0 = vx.dot %a, %b, %i : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xi32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>, %h: tensor<4x6xf16>, %i: tensor<4x6xi32>, %v: tensor<4xf32>, %p: tensor<2x4x8xf32>, %q: tensor<3x8x6xf32>, %r: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'vx.dot' op accumulates 'f32' in the narrower 'f16'}}
  %0 = vx.dot %a, %b, %h : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf16>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>, %h: tensor<4x6xf16>, %i: tensor<4x6xi32>, %v: tensor<4xf32>, %p: tensor<2x4x8xf32>, %q: tensor<3x8x6xf32>, %r: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'vx.dot' op batch dimension 0 differs}}
  %0 = vx.dot %p, %q, %r : tensor<2x4x8xf32>, tensor<3x8x6xf32> -> tensor<2x4x6xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>, %h: tensor<4x6xf16>, %i: tensor<4x6xi32>, %v: tensor<4xf32>, %p: tensor<2x4x8xf32>, %q: tensor<3x8x6xf32>, %r: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'vx.dot' op dimension 1 of a has extent 8, dimension 0 of b 4}}
  %0 = vx.dot %a, %c, %c : tensor<4x8xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>, %h: tensor<4x6xf16>, %i: tensor<4x6xi32>, %v: tensor<4xf32>, %p: tensor<2x4x8xf32>, %q: tensor<3x8x6xf32>, %r: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'vx.dot' op dimension 0 of a and the accumulator differ}}
  %0 = vx.dot %a, %b, %b : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<8x6xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>, %h: tensor<4x6xf16>, %i: tensor<4x6xi32>, %v: tensor<4xf32>, %p: tensor<2x4x8xf32>, %q: tensor<3x8x6xf32>, %r: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'vx.dot' op dimension 1 of b and the accumulator differ}}
  %0 = vx.dot %a, %b, %a : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.int' op works on integers, not 'f32'}}
  %0 = vx.int divs %v, %v : f32
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %d: tensor<?x8xf32>, %i: tensor<4x8xi32>, %n: index, %v: f32, %j: i32) {
  // expected-error@+1 {{'vx.float_to_int' op converts floats to integers, not 'i32' to 'i32'}}
  %0 = vx.float_to_int %j : i32 -> i32
  return
}


// -----

func.func @f(%v: f32) {
  // expected-error@+1 {{'vx.checked_add' op operand #0 must be signless-integer-like, but got 'f32'}}
  %0 = vx.checked_add %v, %v : f32
  return
}
