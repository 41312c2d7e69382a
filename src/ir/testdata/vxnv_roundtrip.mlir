// RUN: %vx-opt %s | %vx-opt | FileCheck %s

#x = #vxnv.map<bf16 at <"address(0)"> extents [#vx.size<"dim(0,1)">, #vx.size<"dim(0,0)">] strides [#vx.size<"stride(0,0) * 2">] box [64, 128] swizzle 128>
#w = #vxnv.map<bf16 at <"address(1)"> extents [#vx.size<"dim(1,1)">, #vx.size<"dim(1,0)">] strides [#vx.size<"stride(1,0) * 2">] box [64, 64] swizzle 128>

// CHECK: vxt.kernel @product
// CHECK: vxnv.ring stages 4 bytes 24576 at 0 barriers at 98304
// CHECK: vxnv.roles registers [40, 232] producer
// CHECK: vxnv.copy 0
// CHECK: consumers 2
// CHECK: vxnv.dot_start {{.*}} a {{.*}} + {{.*}} b {{.*}} across + {{.*}} of bf16 first : <64>
// CHECK: vxnv.store_wait pending 0 written
vxt.kernel @product(%x: !vxt.ptr<global>, %m: index, %k: index, %n: index, %a: index, %b: index)
    attributes {threads = #vx.size<"384">, shared_bytes = 131072 : i64, vxnv.maps = [#x, #w]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 4 bytes 24576 at 0 barriers at 98304
  vxnv.roles registers [40, 232] producer {
    vxnv.tiles %m {
    ^bb0(%tile: index):
      scf.for %i = %c0 to %k step %c1 {
        %slot = vxnv.acquire %ring
        vxnv.copy 0[%i, %tile] to %slot + 0
        vxnv.copy 1[%tile, %i] to %slot + 16384
        vxnv.publish %ring
      }
    }
  } consumers 2 {
  ^bb0(%group: index):
    vxnv.tiles %m {
    ^bb0(%tile: index):
      %none = vxnv.sums : <64>
      %first = vxnv.await %ring
      %start = vxnv.dot_start %none a %first + %c0 b %first across + %c0 of bf16 first : <64>
      %started = vxnv.dot_wait %start pending 1 : <64>
      %sums = scf.for %i = %c1 to %k step %c1 iter_args(%carried = %started) -> (!vxnv.sums<64>) {
        %slot = vxnv.await %ring
        %next = vxnv.dot_start %carried a %slot + %c0 b %slot across + %c0 of bf16 : <64>
        %waited = vxnv.dot_wait %next pending 1 : <64>
        vxnv.release %ring
        scf.yield %waited : !vxnv.sums<64>
      }
      %done = vxnv.dot_wait %sums pending 0 : <64>
      vxnv.release %ring
      %sum = vxnv.sum %done[31] : <64>
      %staging = vxt.shared 100352 : !vxt.ptr<shared>
      vxnv.store_wait pending 1
      vxnv.store 0[%c0, %tile] from %staging : !vxt.ptr<shared>
    }
    vxnv.store_wait pending 0 written
  }
  vxt.return
}

// CHECK: vxt.kernel @chained
// CHECK: vxnv.turn_begin
// CHECK: vxnv.dot_start {{.*}} of bf16 first {a_step = 8192 : i64, b_step = 16384 : i64, steps = 2 : i64} : <128>
// CHECK: vxnv.dot_start_registers {{.*}} a({{.*}}) b {{.*}} across + {{.*}} of bf16 : <64>
// CHECK: vxnv.turn_end
// CHECK: vxnv.sums_of({{.*}}) : <8>
vxt.kernel @chained(%n: index, %word: i32, %value: f32) attributes {threads = #vx.size<"384">, shared_bytes = 131072 : i64, vxnv.maps = []} {
  %c0 = arith.constant 0 : index
  %left = vxnv.ring stages 1 bytes 16384 at 0 barriers at 98304
  %right = vxnv.ring stages 1 bytes 40960 at 16384 barriers at 98320
  vxnv.roles registers [40, 232] producer {
    %a = vxnv.acquire %left
    vxnv.publish %left
    %b = vxnv.acquire %right
    vxnv.publish %right
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <128>
    %held = vxnv.await %left
    %slot = vxnv.await %right
    vxnv.turn_begin
    %scores = vxnv.dot_start %none a %held + %c0 b %slot + %c0 of bf16 first {steps = 2 : i64, a_step = 8192 : i64, b_step = 16384 : i64} : <128>
    %none2 = vxnv.sums : <64>
    %out = vxnv.dot_start_registers %none2 a (%word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word) b %slot across + %c0 of bf16 : <64>
    vxnv.turn_end
    %score = vxnv.dot_wait %scores pending 1 : <128>
    %one = vxnv.sum %score[5] : <128>
    %done = vxnv.dot_wait %out pending 0 : <64>
    vxnv.release %right
    vxnv.release %left
    %made = vxnv.sums_of (%one, %one, %value, %value) : <8>
  }
  vxt.return
}

// CHECK: vxt.kernel @integers
// CHECK: vxnv.sums : <64, i32>
// CHECK: vxnv.dot_start {{.*}} of ui8 first : <64, i32>
// CHECK: vxnv.sum {{.*}}[31] : <64, i32>
vxt.kernel @integers(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64} {
  %c0 = arith.constant 0 : index
  %ring = vxnv.ring stages 2 bytes 24576 at 0 barriers at 49152
  vxnv.roles registers [40, 232] producer {
    %slot = vxnv.acquire %ring
    vxnv.publish %ring
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64, i32>
    %slot = vxnv.await %ring
    %next = vxnv.dot_start %none a %slot + %c0 b %slot + %c0 of ui8 first : <64, i32>
    %done = vxnv.dot_wait %next pending 0 : <64, i32>
    vxnv.release %ring
    %sum = vxnv.sum %done[31] : <64, i32>
  }
  vxt.return
}

// CHECK: vxt.kernel @instructions
// CHECK: vxnv.named_barrier {{.*}} threads 256 arrives
// CHECK: vxnv.named_barrier {{.*}} threads 256{{$}}
// CHECK: vxnv.wgmma({{.*}}) a {{.*}} b {{.*}} of si8 : i32, i32, i32, i32
// CHECK: vxnv.wgmma_wait 0({{.*}}) : i32, i32, i32, i32
// CHECK: vxnv.wgmma_registers({{.*}}) a({{.*}}) b across {{.*}} of f16 first : f32, f32, f32, f32
vxt.kernel @instructions(%number: i32, %word: i32, %b: i64, %value: f32) attributes {threads = #vx.size<"256">} {
  vxnv.named_barrier %number threads 256 arrives
  vxnv.named_barrier %number threads 256
  %i:4 = vxnv.wgmma (%word, %word, %word, %word) a %b b %b of si8 : i32, i32, i32, i32
  %w:4 = vxnv.wgmma_wait 0 (%i#0, %i#1, %i#2, %i#3) : i32, i32, i32, i32
  %r:4 = vxnv.wgmma_registers (%value, %value, %value, %value) a (%word, %word, %word, %word) b across %b of f16 first : f32, f32, f32, f32
  vxt.return
}
