// RUN: %vx-opt %s -verify-diagnostics -split-input-file

// expected-error@+1 {{memory space is one of global, shared, local, constant; got register}}
func.func private @f(!vx.view<4xf32, register>)

// -----

// expected-error@+1 {{elements of a view are signless integers, floats or index, not 'tensor<2xf32>'}}
func.func private @f(!vx.view<4xtensor<2xf32>, shared>)

// -----

// expected-error@+1 {{elements of a view are signless integers, floats or index, not 'si8'}}
func.func private @f(!vx.view<4xsi8, shared>)

// -----

// expected-error@+1 {{only shared and local views have a layout, not global ones}}
func.func private @f(!vx.view<4xf32, global, col_major>)

// -----

// expected-error@+1 {{swizzle reads and writes the same offset bits (shift 1, mask 3, base 0)}}
func.func private @f(!vx.view<4xf32, shared, swizzle<1, 3, 0>>)

// -----

// expected-error@+1 {{swizzle needs shift and base in 0..62}}
func.func private @f(!vx.view<4xf32, shared, swizzle<63, 3, 0>>)

// -----

// expected-error@+1 {{expected a number, an argument or a function at character 5 of the size expression "1 + frob(2)"}}
module attributes {vx.s = #vx.size<"1 + frob(2)">} {}

// -----

// expected-error@+1 {{expected a number, an argument or a function at character 4 of the size expression "1 +"}}
module attributes {vx.s = #vx.size<"1 +">} {}

// -----

// expected-error@+1 {{expected an operator or the end at character 3 of the size expression "1 2"}}
module attributes {vx.s = #vx.size<"1 2">} {}

// -----

// expected-error@+1 {{expected `(argument,dimension)` at character 6 of the size expression "dim(0)"}}
module attributes {vx.s = #vx.size<"dim(0)">} {}

