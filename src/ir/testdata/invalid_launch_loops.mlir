// RUN: %vx-opt %s -verify-diagnostics -split-input-file

vx.entry @k : (!vx.view<?xf32, global>, index, !vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "i", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.loop' op sets 1 arguments to 1 values first and 0 next}}
  vx.loop [1] = [#vx.size<"0">] while #vx.size<"0"> next [] {}
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, !vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "i", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.loop' op sets argument 2, which is no let}}
  vx.loop [2] = [#vx.size<"0">] while #vx.size<"0"> next [#vx.size<"0">] {}
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, !vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "i", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.loop' op reads argument 1, which is not set there}}
  vx.loop [1] = [#vx.size<"scalar(1)">] while #vx.size<"0"> next [#vx.size<"0">] {}
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, !vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "i", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.loop' op reads argument 2, a temporary}}
  vx.loop [1] = [#vx.size<"0">] while #vx.size<"dim(2,0)"> next [#vx.size<"0">] {}
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, !vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "i", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"0">
  // expected-error@+1 {{'vx.exchange' op exchanges argument 0, which is no temporary}}
  vx.exchange 0, 2
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, !vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "i", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"0">
  // expected-error@+1 {{'vx.exchange' op exchanges arguments 2 and 2, which are not two of one type and equal extents}}
  vx.exchange 2, 2
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, !vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "i", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0) + 1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"0">
  // expected-error@+1 {{'vx.exchange' op exchanges arguments 2 and 3, which are not two of one type and equal extents}}
  vx.exchange 2, 3
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">], stands_for = 0}]
// expected-error@+1 {{'vx.launch' op has argument 1 stand for argument 0; temporaries stand for parameters that are only read}}
vx.launch @k {}

// -----

vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">], stands_for = 1}]
// expected-error@+1 {{'vx.launch' op has argument 1 stand for argument 1; temporaries stand for parameters that are only read}}
vx.launch @k {}

// -----

vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">], stands_for = 7}]
// expected-error@+1 {{'vx.launch' op has argument 1 stand for argument 7; temporaries stand for parameters that are only read}}
vx.launch @k {}

// -----

vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">], stands_for = -1}]
// expected-error@+1 {{'vx.launch' op has argument 1 stand for argument -1; temporaries stand for parameters that are only read}}
vx.launch @k {}

// -----

vx.entry @k : (!vx.view<?x?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">], stands_for = 0}]
// expected-error@+1 {{'vx.launch' op has argument 1 stand for argument 0 of another type}}
vx.launch @k {}

// -----

vx.entry @k : (!vx.view<?xi8, global>, !vx.view<?xi8, global>) -> ()
    args [{name = "x", type = "u8", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", type = "i8", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">], stands_for = 0}]
// expected-error@+1 {{'vx.launch' op has argument 1 stand for argument 0 of another type}}
vx.launch @k {}

// -----

vx.entry @k : (!vx.view<?xi8, global>, !vx.view<?xi8, global>) -> ()
    args [{name = "x", type = "u8", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">], stands_for = 0}]
// expected-error@+1 {{'vx.launch' op has argument 1 stand for argument 0 of another type}}
vx.launch @k {}
