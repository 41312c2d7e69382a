// RUN: %vx-opt %s -verify-diagnostics -split-input-file

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<1xi64, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>},
          {name = "a", role = #vx.role<let>}, {name = "b", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.read' op sets argument 3, which is no let}}
  vx.read arg 3 from 3
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<1xi64, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>},
          {name = "a", role = #vx.role<let>}, {name = "b", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.read' op reads argument 0, which is no temporary}}
  vx.read arg 1 from 0
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<1xi64, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>},
          {name = "a", role = #vx.role<let>}, {name = "b", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.read' op reads argument 4, which is not one i64}}
  vx.read arg 1 from 4
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<1xi64, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>},
          {name = "a", role = #vx.role<let>}, {name = "b", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  vx.let arg 2 = #vx.size<"0">
  // expected-error@+1 {{'vx.read' op sets argument 1 after argument 2; lets are set once, in their order}}
  vx.read arg 1 from 3
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<1xi64, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>},
          {name = "a", role = #vx.role<let>}, {name = "b", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"dim(0,0)">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"0">
  vx.choose first {
    vx.case "one" when #vx.size<"dim(0,0)"> { vx.read arg 2 from 3 }
    vx.case "none" {}
  }
  // expected-error@+1 {{'vx.loop' op reads argument 2, which is not set there}}
  vx.loop [] = [] while #vx.size<"scalar(2)"> next [] {}
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<1xi64, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>},
          {name = "a", role = #vx.role<let>}, {name = "b", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"scalar(2) + 1">]}]
// expected-error@+1 {{'vx.launch' op allocates argument 4 before argument 2, which is read from memory}}
vx.launch @k {
  vx.read arg 1 from 3
  vx.let arg 2 = #vx.size<"scalar(1) * 2">
}
