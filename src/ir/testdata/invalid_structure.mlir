// RUN: %vx-opt %s -verify-diagnostics -split-input-file

// expected-error@+1 {{'vx.entry' op has results; they are arguments with role result}}
vx.entry @k : (!vx.view<?xf32, global>) -> f32 args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}]

// -----

// expected-error@+1 {{'vx.entry' op describes 2 arguments but takes 1}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}, {name = "a", role = #vx.role<param>, access = #vx.access<read>}]

// -----

// expected-error@+1 {{'vx.entry' op argument 0 is described by 1 : i64, not by a dictionary}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [1]

// -----

// expected-error@+1 {{'vx.entry' op argument 0 is a shared view; arguments are global or constant}}
vx.entry @k : (!vx.view<4xf32, shared>) -> () args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}]

// -----

// expected-error@+1 {{'vx.entry' op argument 0 is neither a view nor a scalar: 'tensor<4xf32>'}}
vx.entry @k : (tensor<4xf32>) -> () args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}]

// -----

// expected-error@+1 {{'vx.entry' op argument 0 lacks a 'name'}}
vx.entry @k : (f32) -> () args [{}]

// -----

// expected-error@+1 {{'vx.entry' op argument 0 lacks a 'role'}}
vx.entry @k : (f32) -> () args [{name = "x"}]

// -----

// expected-error@+1 {{'vx.entry' op argument 0 lacks an 'access'}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "x", role = #vx.role<param>}]

// -----

// expected-error@+1 {{'vx.entry' op argument 0 is a result and must be a view}}
vx.entry @k : (f32) -> () args [{name = "x", role = #vx.role<result>}]

// -----

// expected-error@+1 {{'vx.entry' op argument 0 is a result and needs 'extents' with one #vx.size for each of its 1 dimensions}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "r", role = #vx.role<result>, access = #vx.access<write>, extents = []}]

// -----

// expected-error@+1 {{'vx.entry' op size expression "dim(1,0)" names argument 1 of 1}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "r", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(1,0)">]}]

// -----

// expected-error@+1 {{'vx.entry' op size expression "dim(0,1)" names dimension 1 of argument 0 of rank 1}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "r", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,1)">]}]

// -----

// expected-error@+1 {{'vx.entry' op size expression "scalar(0)": argument 0 is a view, not a scalar}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "r", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"scalar(0)">]}]

// -----

// expected-error@+1 {{'vx.entry' op size expression "dim(0,0)": argument 0 is a scalar, not a view}}
vx.entry @k : (f32, !vx.view<?xf32, global>) -> () args [{name = "x", role = #vx.role<param>}, {name = "r", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">]}]

// -----

// expected-error@+1 {{'vx.entry' op argument 1 is a param after a result; the order is params, results, lets, temps}}
vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> () args [{name = "r", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"1">]}, {name = "a", role = #vx.role<param>, access = #vx.access<read>}]

// -----

// expected-error@+1 {{'vx.entry' op constraint 1 : i64 is no #vx.constraint}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}] constraints [1]

// -----

// expected-error@+1 {{'vx.entry' op size expression "scalar(7)" names argument 7 of 1}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}] constraints [#vx.constraint<#vx.size<"scalar(7)">, "m">]

// -----

// expected-error@+1 {{'vx.entry' op scalar result 0 is no argument with role result}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}] {scalar_results = array<i64: 0>}

// -----

// expected-error@+1 {{'vx.entry' op takes '(!vx.view<?xf32, global>) -> ()' but kernel @p takes '(f32) -> ()'}}
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "a", role = #vx.role<param>, access = #vx.access<read>}]
vx.kernel @p(%x: f32) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  vx.return
}

// -----

// expected-error@+1 {{'vx.entry' op is not the only vx.entry of its module}}
vx.entry @j : () -> () args []
vx.entry @k : () -> () args []

// -----

// expected-error@+1 {{'vx.kernel' op has results; a kernel writes through its arguments}}
vx.kernel @k() -> f32 grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  vx.return
}

// -----

// expected-error@+1 {{'vx.kernel' op argument 0 is '!vx.view<4xf32, shared>'; arguments are global or constant views and scalars}}
vx.kernel @k(%a: !vx.view<4xf32, shared>) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  vx.return
}

// -----

// expected-error@+1 {{'vx.kernel' op lacks grid}}
vx.kernel @k() block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  vx.return
}

// -----

// expected-error@+1 {{'vx.kernel' op lacks block}}
vx.kernel @k() grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  vx.return
}

// -----

// expected-error@+1 {{'vx.kernel' op is whole_tensor and has no grid}}
vx.kernel @k() grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] whole_tensor {
  vx.return
}

// -----

// expected-error@+1 {{'vx.kernel' op block is not three #vx.size}}
vx.kernel @k() grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">] {
  vx.return
}

// -----

// expected-error@+1 {{'vx.kernel' op size expression "dim(0,0)" names argument 0 of 0}}
vx.kernel @k() grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"dim(0,0)">] {
  vx.return
}

// -----

// expected-error@+1 {{'vx.kernel' op does not end with vx.return}}
vx.kernel @k() grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c = arith.constant 1 : i32
}

// -----

vx.kernel @k() whole_tensor {
  // expected-error@+1 {{'vx.block_id' op has no meaning in a whole_tensor kernel, which has no blocks and threads}}
  %0 = vx.block_id x
  vx.return
}

// -----

vx.kernel @k() whole_tensor {
  // expected-error@+1 {{'vx.grid_dim' op has no meaning in a whole_tensor kernel, which has no blocks and threads}}
  %0 = vx.grid_dim y
  vx.return
}

// -----

vx.kernel @k() whole_tensor {
  // expected-error@+1 {{'vx.block_dim' op has no meaning in a whole_tensor kernel, which has no blocks and threads}}
  %0 = vx.block_dim z
  vx.return
}

// -----

vx.kernel @k() whole_tensor {
  // expected-error@+1 {{'vx.barrier' op has no meaning in a whole_tensor kernel}}
  vx.barrier
  vx.return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{'vx.threads' op body takes 3 arguments; it needs x, y, z, linear id and 0 inputs}}
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index):
  }
  return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{'vx.threads' op body argument 1 has type 'i32' instead of 'index'}}
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: i32, %z: index, %l: index):
  }
  return
}

// -----

func.func @f(%n: index, %a: tensor<?xf32>) {
  // expected-error@+1 {{'vx.threads' op body argument 4 has type 'f16' instead of 'f32'}}
  vx.threads (%n, %n, %n) ins(%a : tensor<?xf32>) {
  ^bb0(%x: index, %y: index, %z: index, %l: index, %v: f16):
  }
  return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{'vx.threads' op yields 0 values for 1 results}}
  %r = vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
  } : tensor<?xf32>
  return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{'vx.threads' op yields 'index' for result 0 with elements 'f32'}}
  %r = vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    vx.yield %x : index
  } : tensor<?xf32>
  return
}

// -----

func.func @f(%n: index) {
  
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    // expected-error@+1 {{'vx.threads' op is nested in another vx.threads}}
    vx.threads (%n, %n, %n) {
    ^bb1(%a: index, %b: index, %c: index, %d: index):
    }
  }
  return
}

// -----

func.func @f(%n: index) {
  
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    // expected-error@+1 {{'vx.iota' op works on a tile inside vx.threads, where code is per thread}}
    %t = vx.iota 0 -> tensor<4xi32>
  }
  return
}

// -----

func.func @f(%n: index) {
  
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    // expected-error@+1 {{'vx.alloc' op allocates shared memory inside vx.threads}}
    %s = vx.alloc : !vx.view<4xf32, shared>
  }
  return
}

// -----

func.func @f(%n: index) {
  
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    // expected-error@+1 {{'vx.barrier' op stands inside vx.threads; barriers cut thread regions}}
    vx.barrier
  }
  return
}

// -----

func.func @f(%n: index) {
  
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    // expected-error@+1 {{'vx.warp_reduce' op cannot combine 'index' with addf}}
    %s = vx.warp_reduce addf %x : index
  }
  return
}

// -----

func.func @f(%n: index) {
  
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    // expected-error@+1 {{'vx.warp_reduce' op cannot combine 'index' with exchange}}
    %s = vx.warp_reduce exchange %x : index
  }
  return
}

// -----

func.func @f(%n: index, %p: i1) {
  
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    // expected-error@+1 {{'vx.warp_vote' op ballot yields i32, not 'i1'}}
    %s = vx.warp_vote ballot %p -> i1
  }
  return
}

// -----

func.func @f(%n: index, %p: i1) {
  
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    // expected-error@+1 {{'vx.warp_vote' op any yields i1, not 'i32'}}
    %s = vx.warp_vote any %p -> i32
  }
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{'vx.fence' op stands outside vx.threads}}
  vx.fence release device
  return
}

// -----

func.func @f(%n: index) {
  vx.threads (%n, %n, %n) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    // expected-error@+1 {{'vx.fence' op orders nothing with relaxed}}
    vx.fence relaxed device
  }
  return
}

// -----

func.func @f(%v: i32, %p: i1) {
  // expected-error@+1 {{'vx.warp_barrier' op stands outside vx.threads}}
  vx.warp_barrier
  return
}

// -----

func.func @f(%v: i32, %p: i1) {
  // expected-error@+1 {{'vx.warp_shuffle' op stands outside vx.threads}}
  %s = vx.warp_shuffle up %v, %v : i32
  return
}

// -----

func.func @f(%v: i32, %p: i1) {
  // expected-error@+1 {{'vx.warp_reduce' op stands outside vx.threads}}
  %s = vx.warp_reduce addi %v : i32
  return
}

// -----

func.func @f(%v: i32, %p: i1) {
  // expected-error@+1 {{'vx.warp_vote' op stands outside vx.threads}}
  %s = vx.warp_vote all %p -> i1
  return
}


// -----

vx.kernel @narrowed(%i: index) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"32">, #vx.size<"1">, #vx.size<"1">] {
  // expected-error@+1 {{narrows an index to 'i8', which folds lose: cast to i64, then truncate}}
  %narrow = arith.index_castui %i : index to i8
  vx.return
}

// -----

vx.kernel @narrowed_tile(%t: !vx.view<4xindex, global>) whole_tensor {
  %c0 = arith.constant 0 : index
  %x = vx.tile_load %t[%c0] inbounds : !vx.view<4xindex, global> -> tensor<4xindex>
  // expected-error@+1 {{narrows an index to 'i1'}}
  %narrow = arith.index_cast %x : tensor<4xindex> to tensor<4xi1>
  vx.return
}
