// RUN: %vx-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{has 2048 hardware threads per block, at most 1024 exist}}
vxt.kernel @large() attributes {threads = #vx.size<"2048">} {
  vxt.return
}

// -----

vxt.kernel @store(%x: !vxt.ptr<global>, %f: f32) attributes {threads = #vx.size<"32">} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{writes memory that is marked read-only}}
  vxt.store %f, %x[%c0] {cache = #vxt<cache read_only>} : f32, !vxt.ptr<global>, index
  vxt.return
}

// -----

vxt.kernel @atomic(%x: !vxt.ptr<global>, %f: f16) attributes {threads = #vx.size<"32">} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{works on 4 or 8 bytes, 'f16' has 2}}
  %old = vxt.atomic_rmw addf relaxed device %f, %x[%c0] : f16, !vxt.ptr<global>, index
  vxt.return
}

// -----

vxt.kernel @copy(%x: !vxt.ptr<global>) attributes {threads = #vx.size<"32">} {
  %c0 = arith.constant 0 : index
  %p = vxt.shared 0 : !vxt.ptr<shared>
  // expected-error @+1 {{copies 4, 8 or 16 bytes, not 12}}
  vxt.async_copy %p[%c0], %x[%c0], 12 of f32 : !vxt.ptr<shared>, index, !vxt.ptr<global>, index
  vxt.return
}

// -----

vxt.kernel @fragment(%a: !vxt.ptr<global>) attributes {threads = #vx.size<"32">} {
  %v = arith.constant dense<0.0> : vector<4xf16>
  %c = arith.constant dense<0.0> : vector<4xf32>
  // expected-error @+1 {{fragment a has 8 elements per thread, not 4}}
  %d = vxt.mma %v, %v, %c [16, 8, 16] : vector<4xf16>, vector<4xf16>, vector<4xf32>
  vxt.return
}

// -----

vxt.kernel @narrowed(%x: !vxt.ptr<global>, %i: index) attributes {threads = #vx.size<"32">} {
  // expected-error @+1 {{narrows an index to 'i32', which folds lose: cast to i64, then truncate}}
  %narrow = arith.index_castui %i : index to i32
  vxt.return
}

// -----

// expected-error @+1 {{fragments have elements of f32, f16 or bf16, not 'f64'}}
func.func private @elements(!vxt.fragment<f64>)

// -----

// expected-error @+1 {{fragments have elements of f32, f16 or bf16, not 'i32'}}
func.func private @elements(!vxt.fragment<i32>)

// -----

vxt.kernel @fill(%f: f16) attributes {threads = #vx.size<"32">} {
  // expected-error @+1 {{fills '!vxt.fragment<f32>' with 'f16'}}
  %a = vxt.fragment_fill %f : f16 -> !vxt.fragment<f32>
  vxt.return
}

// -----

vxt.kernel @load(%x: !vxt.ptr<global>) attributes {threads = #vx.size<"32">} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{accesses shared memory}}
  %a = vxt.fragment_load %x[%c0] pitch 8 : !vxt.ptr<global>, index -> !vxt.fragment<f32>
  vxt.return
}

// -----

vxt.kernel @load_pitch() attributes {threads = #vx.size<"32">} {
  %c0 = arith.constant 0 : index
  %p = vxt.shared 0 : !vxt.ptr<shared>
  // expected-error @+1 {{rows of 8 elements do not fit a pitch of 7}}
  %a = vxt.fragment_load %p[%c0] pitch 7 : !vxt.ptr<shared>, index -> !vxt.fragment<f32>
  vxt.return
}

// -----

vxt.kernel @store(%x: !vxt.ptr<global>, %f: f32) attributes {threads = #vx.size<"32">} {
  %c0 = arith.constant 0 : index
  %a = vxt.fragment_fill %f : f32 -> !vxt.fragment<f32>
  // expected-error @+1 {{accesses shared memory}}
  vxt.fragment_store %a, %x[%c0] pitch 8 : !vxt.fragment<f32>, !vxt.ptr<global>, index
  vxt.return
}

// -----

vxt.kernel @store_pitch(%f: f32) attributes {threads = #vx.size<"32">} {
  %c0 = arith.constant 0 : index
  %p = vxt.shared 0 : !vxt.ptr<shared>
  %a = vxt.fragment_fill %f : f32 -> !vxt.fragment<f32>
  // expected-error @+1 {{rows of 8 elements do not fit a pitch of -8}}
  vxt.fragment_store %a, %p[%c0] pitch -8 : !vxt.fragment<f32>, !vxt.ptr<shared>, index
  vxt.return
}

// -----

vxt.kernel @factors(%f: f32, %h: f16) attributes {threads = #vx.size<"32">} {
  %a = vxt.fragment_fill %f : f32 -> !vxt.fragment<f32>
  %b = vxt.fragment_fill %h : f16 -> !vxt.fragment<f16>
  // expected-error @+1 {{multiplies 'f32' by 'f16'}}
  %d = vxt.fragment_multiply %a, %b, %a : !vxt.fragment<f32>, !vxt.fragment<f16>, !vxt.fragment<f32>
  vxt.return
}

// -----

vxt.kernel @sums(%f: f32, %h: f16) attributes {threads = #vx.size<"32">} {
  %a = vxt.fragment_fill %f : f32 -> !vxt.fragment<f32>
  %b = vxt.fragment_fill %h : f16 -> !vxt.fragment<f16>
  // expected-error @+1 {{adds products of 'f32' to 'f16'}}
  %d = vxt.fragment_multiply %a, %a, %b : !vxt.fragment<f32>, !vxt.fragment<f32>, !vxt.fragment<f16>
  vxt.return
}

// -----

vxt.kernel @rounds(%h: f16) attributes {threads = #vx.size<"32">} {
  %b = vxt.fragment_fill %h : f16 -> !vxt.fragment<f16>
  // expected-error @+1 {{rounds floats to shorter ones}}
  %d = vxt.fragment_round %b : !vxt.fragment<f16> -> !vxt.fragment<f32>
  vxt.return
}

// -----

vxt.kernel @rounds_alike(%h: f16) attributes {threads = #vx.size<"32">} {
  %b = vxt.fragment_fill %h : f16 -> !vxt.fragment<f16>
  // expected-error @+1 {{rounds floats to shorter ones}}
  %d = vxt.fragment_round %b : !vxt.fragment<f16> -> !vxt.fragment<bf16>
  vxt.return
}

// -----

vxt.kernel @fence() attributes {threads = #vx.size<"32">} {
  // expected-error @+1 {{orders nothing with relaxed}}
  vxt.fence relaxed device
  vxt.return
}

// -----

vxt.kernel @total(%x: !vxt.ptr<global>, %f: f32) attributes {threads = #vx.size<"32">} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{has order seq_cst, which only fences have}}
  %old = vxt.atomic_rmw addf seq_cst device %f, %x[%c0] : f32, !vxt.ptr<global>, index
  vxt.return
}
