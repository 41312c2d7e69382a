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
