// RUN: %vx-opt %s -verify-diagnostics -split-input-file

func.func @f() {
  // expected-error@+1 {{'vx.alloc' op allocates shared or local memory, not global}}
  %0 = vx.alloc : !vx.view<4xf32, global>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{'vx.alloc' op dimension 1 is not static}}
  %0 = vx.alloc : !vx.view<4x?xf32, shared>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{'vx.alloc' op swizzle permutes chunks of 8 elements but the view has 12}}
  %0 = vx.alloc : !vx.view<12xf32, shared, swizzle<3, 7, 0>>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.dim' op dimension 2 of a view of rank 2}}
  %0 = vx.dim %a, 2 : !vx.view<8x?xf32, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.subview' op changes the element type from 'f32' to 'f16'}}
  %0 = vx.subview %a[%n, %n] : !vx.view<8x?xf32, global> to !vx.view<4x4xf16, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.subview' op changes the space from global to shared}}
  %0 = vx.subview %a[%n, %n] : !vx.view<8x?xf32, global> to !vx.view<4x4xf32, shared>
  return
}

// -----

func.func @f(%a: !vx.view<8xf32, shared, col_major>, %n: index) {
  // expected-error@+1 {{'vx.subview' op changes the layout; a subview keeps its source's}}
  %0 = vx.subview %a[%n] : !vx.view<8xf32, shared, col_major> to !vx.view<4xf32, shared>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.subview' op has 1 offsets for a view of rank 2}}
  %0 = vx.subview %a[%n] : !vx.view<8x?xf32, global> to !vx.view<4x4xf32, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.subview' op drops dimension 2 of a view of rank 2}}
  %0 = vx.subview %a[%n, %n] dropped [2] : !vx.view<8x?xf32, global> to !vx.view<4xf32, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.subview' op lists dropped dimensions out of order: 1 before 0}}
  %0 = vx.subview %a[%n, %n] dropped [1, 0] : !vx.view<8x?xf32, global> to !vx.view<f32, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.subview' op drops 1 of 2 dimensions but yields rank 2}}
  %0 = vx.subview %a[%n, %n] dropped [0] : !vx.view<8x?xf32, global> to !vx.view<4x4xf32, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.subview' op has 0 sizes for 1 dynamic result dimensions}}
  %0 = vx.subview %a[%n, %n] : !vx.view<8x?xf32, global> to !vx.view<4x?xf32, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.subview' op takes 9 elements of dimension 0 of extent 8}}
  %0 = vx.subview %a[%n, %n] : !vx.view<8x?xf32, global> to !vx.view<9x4xf32, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.load' op has 1 indices for a view of rank 2}}
  %0 = vx.load %a[%n] : !vx.view<8x?xf32, global> -> f32
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.load' op accesses 'f16' in a view of 'f32'}}
  %0 = vx.load %a[%n, %n] : !vx.view<8x?xf32, global> -> f16
  return
}

// -----

func.func @f(%k: !vx.view<f32, constant>, %v: f32) {
  // expected-error@+1 {{'vx.store' op writes constant memory}}
  vx.store %v, %k[] : f32, !vx.view<f32, constant>
  return
}

// -----

func.func @f(%k: !vx.view<f32, local>, %v: f32) {
  // expected-error@+1 {{'vx.store' op accesses a local view outside vx.threads; local memory is per thread}}
  vx.store %v, %k[] : f32, !vx.view<f32, local>
  return
}

// -----

func.func @f(%k: !vx.view<i32, constant>, %v: i32) {
  // expected-error@+1 {{'vx.atomic_load' op is atomic on constant memory; only global and shared are}}
  %0 = vx.atomic_load relaxed device %k[] : !vx.view<i32, constant> -> i32
  return
}

// -----

func.func @f(%k: !vx.view<i1, shared>, %v: i1) {
  // expected-error@+1 {{'vx.atomic_store' op is atomic on i1 elements}}
  vx.atomic_store relaxed block %v, %k[] : i1, !vx.view<i1, shared>
  return
}

// -----

func.func @f(%k: !vx.view<i32, shared>, %v: i32) {
  // expected-error@+1 {{'vx.atomic_rmw' op cannot combine 'i32' with muli}}
  %0 = vx.atomic_rmw muli relaxed block %v, %k[] : !vx.view<i32, shared> -> i32
  return
}

// -----

func.func @f(%k: !vx.view<i32, shared>, %v: i32) {
  // expected-error@+1 {{'vx.atomic_rmw' op cannot combine 'i32' with addf}}
  %0 = vx.atomic_rmw addf relaxed block %v, %k[] : !vx.view<i32, shared> -> i32
  return
}

// -----

func.func @f(%k: !vx.view<i32, shared>, %v: i32) {
  // expected-error@+1 {{'vx.atomic_load' op is a load with order release}}
  %0 = vx.atomic_load release block %k[] : !vx.view<i32, shared> -> i32
  return
}

// -----

func.func @f(%k: !vx.view<i32, shared>, %v: i32) {
  // expected-error@+1 {{'vx.atomic_store' op is a store with order acquire}}
  vx.atomic_store acquire block %v, %k[] : i32, !vx.view<i32, shared>
  return
}

// -----

func.func @f(%k: !vx.view<i64, shared>, %v: i32) {
  // expected-error@+1 {{'vx.atomic_cas' op accesses 'i32' in a view of 'i64'}}
  %0 = vx.atomic_cas relaxed block %v, %v, %k[] : !vx.view<i64, shared> -> i32
  return
}

// -----

func.func @f(%k: !vx.view<4xf32, local>, %n: index) {
  // expected-error@+1 {{'vx.tile_load' op moves a tile through local memory, which is per thread}}
  %0 = vx.tile_load %k[%n] : !vx.view<4xf32, local> -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.tile_load' op moves a tile of rank 1 through a view of rank 2}}
  %0 = vx.tile_load %a[%n, %n] : !vx.view<8x?xf32, global> -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.tile_load' op has 1 indices for a view of rank 2}}
  %0 = vx.tile_load %a[%n] : !vx.view<8x?xf32, global> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.tile_load' op has 0 sizes for 1 dynamic result dimensions}}
  %0 = vx.tile_load %a[%n, %n] : !vx.view<8x?xf32, global> -> tensor<4x?xf32>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1) {
  // expected-error@+1 {{'vx.tile_load' op fills with 'i1' a tile of 'f32'}}
  %0 = vx.tile_load %a[%n, %n] other %p : i1 : !vx.view<8x?xf32, global> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %n: index, %v: f32, %p: i1, %t: tensor<4x4xf16>) {
  // expected-error@+1 {{'vx.tile_store' op accesses 'f16' in a view of 'f32'}}
  vx.tile_store %t, %a[%n, %n] : tensor<4x4xf16>, !vx.view<8x?xf32, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %b: !vx.view<4x4xf32, global>, %n: index) {
  // expected-error@+1 {{'vx.stage_copy' op copies into global memory, not shared}}
  vx.stage_copy %a[%n, %n] to %b : !vx.view<8x?xf32, global> to !vx.view<4x4xf32, global>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %b: !vx.view<4x4xf16, shared>, %n: index) {
  // expected-error@+1 {{'vx.stage_copy' op changes the element type from 'f32' to 'f16'}}
  vx.stage_copy %a[%n, %n] to %b : !vx.view<8x?xf32, global> to !vx.view<4x4xf16, shared>
  return
}

// -----

func.func @f(%a: !vx.view<8x?xf32, global>, %b: !vx.view<4xf32, shared>, %n: index) {
  // expected-error@+1 {{'vx.stage_copy' op drops 0 of 2 dimensions but yields rank 1}}
  vx.stage_copy %a[%n, %n] to %b : !vx.view<8x?xf32, global> to !vx.view<4xf32, shared>
  return
}

// -----

func.func @f(%a: !vx.view<8xf32, local>, %n: index) {
  // expected-error@+1 {{'vx.load' op is race_free on local memory; only accesses of global and shared memory are}}
  %0 = vx.load %a[%n] race_free : !vx.view<8xf32, local> -> f32
  return
}

// -----

func.func @f(%a: !vx.view<8xf32, local>, %n: index, %v: f32) {
  // expected-error@+1 {{'vx.store' op is race_free on local memory; only accesses of global and shared memory are}}
  vx.store %v, %a[%n] race_free : f32, !vx.view<8xf32, local>
  return
}

// -----

func.func @f(%v: i32, %k: !vx.view<i32, shared>) {
  // expected-error@+1 {{'vx.atomic_rmw' op is an atomic with order seq_cst; only fences have it}}
  %0 = vx.atomic_rmw addi seq_cst block %v, %k[] : !vx.view<i32, shared> -> i32
  return
}

// -----

func.func @f(%v: i32, %k: !vx.view<i32, shared>) {
  // expected-error@+1 {{'vx.atomic_cas' op is an atomic with order seq_cst; only fences have it}}
  %0 = vx.atomic_cas seq_cst block %v, %v, %k[] : !vx.view<i32, shared> -> i32
  return
}
