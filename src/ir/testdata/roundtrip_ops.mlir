// Every operation once, in the custom and the generic form.
// RUN: %vx-opt %s > %t.custom && %vx-opt %t.custom | diff %t.custom -
// RUN: %vx-opt %s -mlir-print-op-generic | %vx-opt | diff %t.custom -
// RUN: FileCheck %s < %t.custom

// CHECK-LABEL: vx.kernel @memory
vx.kernel @memory(%a: !vx.view<?x?xf32, global>, %b: !vx.view<?xi32, global>, %k: !vx.view<4xf32, constant>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"64">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  // CHECK: vx.alloc "tile" : <64x64xf16, shared, col_major, swizzle<3, 7, 0>>
  %s = vx.alloc "tile" : !vx.view<64x64xf16, shared, col_major, swizzle<3, 7, 0>>
  // CHECK: vx.alloc : <16xi1, shared>
  %t = vx.alloc : !vx.view<16xi1, shared>
  // CHECK: vx.alloc : <f32, local>
  %l = vx.alloc : !vx.view<f32, local>
  // CHECK: vx.dim %{{.*}}, 1 : <?x?xf32, global>
  %n = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  // CHECK: vx.subview %{{.*}}[%{{.*}}, %{{.*}}] sizes(%{{.*}}) dropped [0] : <?x?xf32, global> to <?xf32, global>
  %row = vx.subview %a[%c0, %c1] sizes(%n) dropped [0] : !vx.view<?x?xf32, global> to !vx.view<?xf32, global>
  // CHECK: vx.load %{{.*}}[%{{.*}}] mask %{{.*}} guarded : <?xf32, global> -> f32
  %v = vx.load %row[%c0] mask %true guarded : !vx.view<?xf32, global> -> f32
  // CHECK: vx.load %{{.*}}[%{{.*}}] : <4xf32, constant> -> f32
  %w = vx.load %k[%c0] : !vx.view<4xf32, constant> -> f32
  // CHECK: vx.load %{{.*}}[%{{.*}}] guarded race_free : <?xf32, global> -> f32
  %proven = vx.load %row[%c0] guarded race_free : !vx.view<?xf32, global> -> f32
  // CHECK: vx.store %{{.*}}, %{{.*}}[%{{.*}}] race_free : f32, <?xf32, global>
  vx.store %proven, %row[%c0] race_free : f32, !vx.view<?xf32, global>
  // CHECK: vx.assert %{{.*}}, "{} is wrong" id "E0704", %{{.*}} : f32
  vx.assert %true, "{} is wrong" id "E0704", %proven : f32
  // CHECK: vx.store %{{.*}}, %{{.*}}[%{{.*}}] mask %{{.*}} : f32, <?xf32, global>
  vx.store %v, %row[%c0] mask %true : f32, !vx.view<?xf32, global>
  // CHECK: vx.barrier
  vx.barrier
  %staged = vx.alloc "staged" : !vx.view<8xf32, shared>
  // CHECK: vx.stage_copy %{{.*}}[%{{.*}}] to %{{.*}} : <?xf32, global> to <8xf32, shared>
  vx.stage_copy %row[%c0] to %staged : !vx.view<?xf32, global> to !vx.view<8xf32, shared>
  // CHECK: vx.stage_commit
  vx.stage_commit
  // CHECK: vx.stage_wait 1
  vx.stage_wait 1
  %one = arith.constant 1 : i32
  // CHECK: vx.atomic_rmw addi relaxed device %{{.*}}, %{{.*}}[%{{.*}}] guarded : <?xi32, global> -> i32
  %old = vx.atomic_rmw addi relaxed device %one, %b[%c0] guarded : !vx.view<?xi32, global> -> i32
  // CHECK: vx.atomic_cas acq_rel block %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}}] mask %{{.*}} : <?xi32, global> -> i32
  %cas = vx.atomic_cas acq_rel block %one, %old, %b[%c0] mask %true : !vx.view<?xi32, global> -> i32
  // CHECK: vx.atomic_load acquire system %{{.*}}[%{{.*}}] : <?xi32, global> -> i32
  %al = vx.atomic_load acquire system %b[%c0] : !vx.view<?xi32, global> -> i32
  // CHECK: vx.atomic_store release device %{{.*}}, %{{.*}}[%{{.*}}] : i32, <?xi32, global>
  vx.atomic_store release device %al, %b[%c0] : i32, !vx.view<?xi32, global>
  // CHECK: vx.assert %{{.*}}, "must hold" id "E0701"
  vx.assert %true, "must hold" id "E0701"
  // CHECK: vx.checked_add unsigned %{{.*}}, %{{.*}} : i32
  %sum = vx.checked_add unsigned %one, %old : i32
  // CHECK: vx.checked_sub %{{.*}}, %{{.*}} : index
  %difference = vx.checked_sub %c0, %c1 : index
  // CHECK: vx.checked_mul %{{.*}}, %{{.*}} : i32
  %product = vx.checked_mul %one, %sum : i32
  // CHECK: vx.round
  vx.round
  // CHECK: vx.print "{} {}", %{{.*}}, %{{.*}} : i32, f32 {is_unsigned = array<i1: true, false>}
  vx.print "{} {}", %old, %w : i32, f32 {is_unsigned = array<i1: true, false>}
  vx.return
}

// CHECK-LABEL: vx.kernel @threads
vx.kernel @threads(%a: !vx.view<?xf32, global>, %m: i32) grid [#vx.size<"ceildiv(dim(0,0), 64)">, #vx.size<"1">, #vx.size<"1">]
    block [#vx.size<"scalar(1)">, #vx.size<"1">, #vx.size<"1">] {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  // CHECK: %[[R:.*]]:2 = vx.threads(%[[N:.*]], %[[ONE:.*]], %[[ONE]]) {
  %r:2 = vx.threads (%c64, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %linear: index):
    %iWide = arith.index_cast %linear : index to i64
    %i = arith.trunci %iWide : i64 to i32
    %p = arith.cmpi eq, %i, %m : i32
    %zero = arith.constant 0.0 : f32
    vx.warp_barrier
    // CHECK: vx.fence seq_cst system
    vx.fence seq_cst system
    // CHECK: vx.warp_shuffle xor %{{.*}}, %{{.*}} : f32
    %0 = vx.warp_shuffle xor %zero, %i : f32
    // CHECK: vx.warp_reduce maxf %{{.*}} : f32
    %1 = vx.warp_reduce maxf %0 : f32
    // CHECK: vx.warp_vote any %{{.*}} -> i1
    %2 = vx.warp_vote any %p -> i1
    // CHECK: vx.warp_vote ballot %{{.*}} -> i32
    %3 = vx.warp_vote ballot %p -> i32
    // CHECK: vx.yield %{{.*}}, %{{.*}} : f32, i32
    vx.yield %1, %3 : f32, i32
  // CHECK: } : tensor<?xf32>, tensor<64xi32>
  } : tensor<?xf32>, tensor<64xi32>
  // CHECK: vx.threads(%{{.*}}, %{{.*}}, %{{.*}}) ins(%[[R]]#0, %[[R]]#1 : tensor<?xf32>, tensor<64xi32>) {
  // CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: f32, %{{.*}}: i32):
  vx.threads (%c64, %c1, %c1) ins(%r#0, %r#1 : tensor<?xf32>, tensor<64xi32>) {
  ^bb0(%x: index, %y: index, %z: index, %linear: index, %f: f32, %i: i32):
    vx.store %f, %a[%x] guarded : f32, !vx.view<?xf32, global>
  }
  vx.return
}

// CHECK-LABEL: vx.kernel @tiles({{.*}}) whole_tensor {
vx.kernel @tiles(%a: !vx.view<?x?xf32, global>, %n: index, %state: !vx.view<?xi64, global>) whole_tensor {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: vx.tile_load %{{.*}}[%{{.*}}, %{{.*}}] sizes(%{{.*}}) other %{{.*}} : f32 : <?x?xf32, global> -> tensor<?x32xf32>
  %t = vx.tile_load %a[%c0, %c0] sizes(%n) other %zero : f32 : !vx.view<?x?xf32, global> -> tensor<?x32xf32>
  // CHECK: vx.tile_load %{{.*}}[%{{.*}}, %{{.*}}] inbounds : <?x?xf32, global> -> tensor<16x32xf32>
  %u = vx.tile_load %a[%c0, %c0] inbounds : !vx.view<?x?xf32, global> -> tensor<16x32xf32>
  // CHECK: vx.tile_store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] inbounds : tensor<16x32xf32>, <?x?xf32, global>
  vx.tile_store %u, %a[%c0, %c0] inbounds : tensor<16x32xf32>, !vx.view<?x?xf32, global>
  // CHECK: vx.broadcast %{{.*}} dims [] sizes(%{{.*}}) : f32 -> tensor<?x4xf32>
  %b = vx.broadcast %zero dims [] sizes(%n) : f32 -> tensor<?x4xf32>
  // CHECK: vx.iota 1 sizes(%{{.*}}) -> tensor<4x?xindex>
  %i = vx.iota 1 sizes(%n) -> tensor<4x?xindex>
  // CHECK: vx.transpose %{{.*}} [1, 0] : tensor<?x32xf32> -> tensor<32x?xf32>
  %tt = vx.transpose %t [1, 0] : tensor<?x32xf32> -> tensor<32x?xf32>
  // CHECK: vx.reshape %{{.*}} : tensor<16x32xf32> -> tensor<512xf32>
  %rs = vx.reshape %u : tensor<16x32xf32> -> tensor<512xf32>
  // CHECK: vx.slice %{{.*}}[%{{.*}}, %{{.*}}] sizes(%{{.*}}) dropped [0] : tensor<16x32xf32> -> tensor<?xf32>
  %sl = vx.slice %u[%c0, %c0] sizes(%n) dropped [0] : tensor<16x32xf32> -> tensor<?xf32>
  // CHECK: vx.slice %{{.*}}[%{{.*}}, %{{.*}}] {vx.guarded_dims = array<i64: 0, 1>} : tensor<16x32xf32> -> tensor<20x32xf32>
  %over = vx.slice %u[%c0, %n] {vx.guarded_dims = array<i64: 0, 1>} : tensor<16x32xf32> -> tensor<20x32xf32>
  // CHECK: vx.element %{{.*}}[%{{.*}}] : tensor<512xf32> -> f32
  %e = vx.element %rs[%c0] : tensor<512xf32> -> f32
  // CHECK: vx.reduce addf %{{.*}} dims [1] : tensor<?x32xf32> -> tensor<?xf32>
  %rd = vx.reduce addf %t dims [1] : tensor<?x32xf32> -> tensor<?xf32>
  // CHECK: vx.reduce maxf %{{.*}} dims [0, 1] : tensor<?x32xf32> -> f32
  %rm = vx.reduce maxf %t dims [0, 1] : tensor<?x32xf32> -> f32
  // CHECK: vx.scan addf %{{.*}} dim 0 exclusive : tensor<512xf32>
  %sc = vx.scan addf %rs dim 0 exclusive : tensor<512xf32>
  // CHECK: vx.scan addf %{{.*}} dim 0 after %{{.*}} in %{{.*}} : !vx.view<?xi64, global> : tensor<512xf32>
  %sa = vx.scan addf %rs dim 0 after %c0 in %state : !vx.view<?xi64, global> : tensor<512xf32>
  %acc = arith.constant dense<0.0> : tensor<16x16xf32>
  %bt = vx.transpose %u [1, 0] : tensor<16x32xf32> -> tensor<32x16xf32>
  // CHECK: vx.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
  %d = vx.dot %u, %bt, %acc : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
  // CHECK: vx.int ceildivu %{{.*}}, %{{.*}} : index
  %q = vx.int ceildivu %n, %n : index
  // CHECK: vx.int shl %{{.*}}, %{{.*}} : tensor<4x?xindex>
  %sh = vx.int shl %i, %i : tensor<4x?xindex>
  // CHECK: vx.float_to_int %{{.*}} unsigned : f32 -> i8
  %fi = vx.float_to_int %e unsigned : f32 -> i8
  // CHECK: vx.float_to_int %{{.*}} : tensor<?x32xf32> -> tensor<?x32xi32>
  %ft = vx.float_to_int %t : tensor<?x32xf32> -> tensor<?x32xi32>
  // CHECK: vx.sigmoid %{{.*}} : tensor<?x32xf32>
  %sg = vx.sigmoid %t : tensor<?x32xf32>
  // CHECK: vx.erfc %{{.*}} fastmath <contract> : f32
  %ec = vx.erfc %e fastmath <contract> : f32
  vx.return
}
