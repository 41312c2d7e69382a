// RUN: %vx-opt %s -split-input-file -verify-diagnostics

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{has slots that do not start at multiples of 1024 bytes}}
  %ring = vxnv.ring stages 2 bytes 8000 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{has barriers at 8192 inside its slots, which end at 16384}}
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 8192
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{ends at 65568, the block has 65536 bytes of shared memory}}
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 65536
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"256">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  // expected-error @+1 {{needs blocks of 384 threads}}
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  // expected-error @+1 {{has 44 registers per thread; multiples of 8 from 24 to 240 exist}}
  vxnv.roles registers [44, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  // expected-error @+1 {{needs 66560 registers, a core has 65536}}
  vxnv.roles registers [40, 240] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      // expected-error @+1 {{has 1 coordinates in a map of 2}}
      vxnv.copy 0[%i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 128] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      // expected-error @+1 {{ends at byte 16384 of a slot of 8192}}
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    // expected-error @+1 {{holds 1 slots at the end of its body and 0 at the start}}
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    // expected-error @+1 {{holds 1 slots at the end of its body and 0 at the start}}
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 1 : <64>
      // expected-error @+1 {{gives back a slot that a running product reads}}
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      // expected-error @+1 {{gives back a slot that was not taken}}
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  // expected-error @+1 {{has a producer that fills another number of slots than consumers empty}}
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %c1 step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      // expected-error @+1 {{multiplies no 'f32'}}
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f32 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
    // expected-error @+1 {{reads number 32 of 32}}
    %sum = vxnv.sum %done[32] : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
    // expected-error @+1 {{stands in the other role}}
    vxnv.publish %ring
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  // expected-error @+1 {{holds an assert or a barrier of the block, for which the other roles would wait}}
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %none) -> (!vxnv.sums<64>) {
      %slot = vxnv.await %ring
      %next = vxnv.dot_start %carried a %slot + %c0 b %slot + %c0 of f16 : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
      scf.yield %waited : !vxnv.sums<64>
    }
    %done = vxnv.dot_wait %sums pending 0 : <64>
    vxt.barrier
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      vxnv.release %ring
    }
    // expected-error @+1 {{ends a turn that has not begun}}
    vxnv.turn_end
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      vxnv.release %ring
    }
    vxnv.turn_begin
    // expected-error @+1 {{begins a turn inside a turn}}
    vxnv.turn_begin
    vxnv.turn_end
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  // expected-error @+1 {{has consumers that do not end a turn}}
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      vxnv.release %ring
    }
    vxnv.turn_begin
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    // expected-error @+1 {{begins a turn that it does not end}}
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      vxnv.turn_begin
      vxnv.release %ring
    }
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %word = arith.constant 0 : i32
    %none = vxnv.sums : <64>
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      // expected-error @+1 {{has 15 words of A; a step takes 16}}
      %next = vxnv.dot_start_registers %none a (%word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word) b %slot + %c0 of f16 first : <64>
      %waited = vxnv.dot_wait %next pending 0 : <64>
      vxnv.release %ring
    }
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %word = arith.constant 0 : i32
    %none = vxnv.sums : <64>
    %slot0 = vxnv.await %ring
    vxnv.release %ring
    // expected-error @+1 {{reads a slot that is not held}}
    %next = vxnv.dot_start_registers %none a (%word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word) b %slot0 + %c0 of f16 first : <64>
    %waited = vxnv.dot_wait %next pending 0 : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %word = arith.constant 0 : i32
    %none = vxnv.sums : <64>
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      %a = vxnv.dot_start %none a %slot + %c0 b %slot + %c0 of f16 first : <64>
      %b = vxnv.dot_start_registers %none a (%word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word) b %slot + %c0 of f16 first : <64>
      %early = vxnv.dot_wait %b pending 1 : <64>
      // expected-error @+1 {{reads sums of a product that may run}}
      %sum = vxnv.sum %early[0] : <64>
      %waited = vxnv.dot_wait %a pending 0 : <64>
      vxnv.release %ring
    }
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %word = arith.constant 0 : i32
    %none = vxnv.sums : <64>
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      %a = vxnv.dot_start %none a %slot + %c0 b %slot + %c0 of f16 first : <64>
      %b = vxnv.dot_start_registers %none a (%word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word, %word) b %slot + %c0 of f16 first : <64>
      %early = vxnv.dot_wait %a pending 1 : <64>
      %sum = vxnv.sum %early[0] : <64>
      // expected-error @+1 {{gives back a slot that a running product reads}}
      vxnv.release %ring
    }
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %word = arith.constant 0 : i32
    %none = vxnv.sums : <64>
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      vxnv.release %ring
    }
    %value = arith.constant 0.0 : f32
    // expected-error @+1 {{has 2 values, a thread holds 4}}
    %made = vxnv.sums_of (%value, %value) : <8>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %word = arith.constant 0 : i32
    %none = vxnv.sums : <64>
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      vxnv.release %ring
    }
    // expected-error @+1 {{opens for 40 threads, which are no whole warps}}
    vxnv.named_barrier %word threads 40
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64,
    vxnv.maps = [#vxnv.map<f16 at <"scalar(0)"> extents [#vx.size<"scalar(0)">, #vx.size<"scalar(0)">] strides [#vx.size<"scalar(0)">] box [64, 64] swizzle 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.acquire %ring
      vxnv.copy 0[%i, %i] to %slot + 0
      vxnv.publish %ring
    }
  } consumers 2 {
  ^bb0(%group: index):
    %word = arith.constant 0 : i32
    %none = vxnv.sums : <64>
    scf.for %i = %c0 to %n step %c1 {
      %slot = vxnv.await %ring
      vxnv.release %ring
    }
    // expected-error @+1 {{reads sums that are not those of a `dot_wait`}}
    %sum = vxnv.sum %none[0] : <64>
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64} {
  %c0 = arith.constant 0 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    %slot = vxnv.acquire %ring
    vxnv.publish %ring
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %slot = vxnv.await %ring
    // expected-error @+1 {{adds products of 'si8' to sums of 'f32'}}
    %next = vxnv.dot_start %none a %slot + %c0 b %slot + %c0 of si8 first : <64>
    %done = vxnv.dot_wait %next pending 0 : <64>
    vxnv.release %ring
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64} {
  %c0 = arith.constant 0 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    %slot = vxnv.acquire %ring
    vxnv.publish %ring
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64, i32>
    %slot = vxnv.await %ring
    // expected-error @+1 {{adds products of 'bf16' to sums of 'i32'}}
    %next = vxnv.dot_start %none a %slot + %c0 b %slot + %c0 of bf16 first : <64, i32>
    %done = vxnv.dot_wait %next pending 0 : <64, i32>
    vxnv.release %ring
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64} {
  %c0 = arith.constant 0 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    %slot = vxnv.acquire %ring
    vxnv.publish %ring
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <40, i32>
    %slot = vxnv.await %ring
    // expected-error @+1 {{has 40 columns of integers; above 32 multiples of 16 exist}}
    %next = vxnv.dot_start %none a %slot + %c0 b %slot + %c0 of ui8 first : <40, i32>
    %done = vxnv.dot_wait %next pending 0 : <40, i32>
    vxnv.release %ring
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64} {
  %c0 = arith.constant 0 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    %slot = vxnv.acquire %ring
    vxnv.publish %ring
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %slot = vxnv.await %ring
    // expected-error @+1 {{reads 'f8E4M3FN' across; only 16-bit elements can lie so}}
    %next = vxnv.dot_start %none a %slot + %c0 b %slot across + %c0 of f8E4M3FN first : <64>
    %done = vxnv.dot_wait %next pending 0 : <64>
    vxnv.release %ring
  }
  vxt.return
}

// -----

vxt.kernel @k(%n: index) attributes {threads = #vx.size<"384">, shared_bytes = 65536 : i64} {
  %c0 = arith.constant 0 : index
  %ring = vxnv.ring stages 2 bytes 8192 at 0 barriers at 16384
  vxnv.roles registers [40, 232] producer {
    %slot = vxnv.acquire %ring
    vxnv.publish %ring
  } consumers 2 {
  ^bb0(%group: index):
    %none = vxnv.sums : <64>
    %slot = vxnv.await %ring
    // expected-error @+1 {{reads 'tf32' across; only 16-bit elements can lie so}}
    %next = vxnv.dot_start %none a %slot across + %c0 b %slot + %c0 of tf32 first : <64>
    %done = vxnv.dot_wait %next pending 0 : <64>
    vxnv.release %ring
  }
  vxt.return
}

// -----

// expected-error @+1 {{sums are f32 or i32, not 'i64'}}
func.func private @sums(!vxnv.sums<64, i64>)
