// RUN: %vx-opt %s -verify-diagnostics -split-input-file

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  // expected-error@+1 {{'vx.phase' op runs @b, which is no kernel of the module}}
  vx.phase @b
}
vx.kernel @a(%x: !vx.view<?xf32, global>, %l: index, %m: index, %t: !vx.view<?xf32, global>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] { vx.return }

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  vx.phase @a
  // expected-error@+1 {{'vx.phase' op runs @a, as another step does}}
  vx.phase @a
}
vx.kernel @a(%x: !vx.view<?xf32, global>, %l: index, %m: index, %t: !vx.view<?xf32, global>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] { vx.return }

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
// expected-error@+1 {{'vx.launch' op does not run @a}}
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
}
vx.kernel @a(%x: !vx.view<?xf32, global>, %l: index, %m: index, %t: !vx.view<?xf32, global>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] { vx.return }

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
// expected-error@+1 {{'vx.launch' op is of @none, which is no entry of the module}}
vx.launch @none {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
}
// expected-error@+1 {{'vx.launch' op is not the only one of its module}}
vx.launch @k {
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.let' op reads argument 2, which is not set there}}
  vx.let arg 1 = #vx.size<"scalar(2)">
  vx.let arg 2 = #vx.size<"1">
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.let' op reads argument 1, which is not set there}}
  vx.let arg 1 = #vx.size<"scalar(1) + 1">
  vx.let arg 2 = #vx.size<"1">
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  // expected-error@+1 {{'vx.let' op sets argument 1 after argument 1; lets are set once, in their order}}
  vx.let arg 1 = #vx.size<"2">
  vx.let arg 2 = #vx.size<"2">
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 2 = #vx.size<"1">
  // expected-error@+1 {{'vx.let' op sets argument 1 after argument 2}}
  vx.let arg 1 = #vx.size<"2">
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.let' op sets argument 0, which is no let}}
  vx.let arg 0 = #vx.size<"1">
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  // expected-error@+1 {{'vx.let' op sets argument 9, which is no let}}
  vx.let arg 9 = #vx.size<"1">
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
// expected-error@+1 {{'vx.launch' op does not set argument 2, a let}}
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  vx.choose first {
    // expected-error@+1 {{'vx.case' op reads argument 3, a temporary}}
    vx.case "c" when #vx.size<"dim(3,0)"> {}
    vx.case "d" {}
  }
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  vx.choose first {
    // expected-error@+1 {{'vx.case' op size expression "dim(7,0)" names argument 7 of 4}}
    vx.case "c" needs #vx.size<"dim(7,0)"> {}
    vx.case "d" {}
  }
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.choose first {
    vx.case "c" when #vx.size<"scalar(1)"> {
      vx.let arg 2 = #vx.size<"1">
    }
    vx.case "d" {}
  }
  // expected-error@+1 {{'vx.phase' op reads argument 2, which is not set there}}
  vx.phase @a
}
vx.kernel @a(%x: !vx.view<?xf32, global>, %l: index, %m: index, %t: !vx.view<?xf32, global>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] { %s = arith.addi %l, %m : index vx.return }

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.choose first {
    vx.case "c" when #vx.size<"scalar(1)"> {
      vx.let arg 2 = #vx.size<"1">
    }
    vx.case "d" {
      // expected-error@+1 {{'vx.phase' op reads argument 2, which is not set there}}
      vx.phase @a
    }
  }
}
vx.kernel @a(%x: !vx.view<?xf32, global>, %l: index, %m: index, %t: !vx.view<?xf32, global>)
    grid [#vx.size<"scalar(2)">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] { vx.return }

// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"scalar(2)">]}]
// expected-error@+1 {{'vx.launch' op reads argument 2, which is not set there}}
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.choose first {
    vx.case "c" when #vx.size<"scalar(1)"> {
      vx.let arg 2 = #vx.size<"1">
    }
    vx.case "d" {}
  }
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  vx.choose first {
    // expected-error@+1 {{'vx.case' op is the last one and depends on the launch}}
    vx.case "c" needs #vx.size<"dim(0,0)"> {}
  }
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  vx.choose first {
    // expected-error@+1 {{'vx.case' op always runs; those after it never do}}
    vx.case "c" {}
    vx.case "d" {}
  }
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  // expected-error@+1 {{'vx.choose' op has no cases}}
  vx.choose first {}
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  // expected-error@+1 {{'vx.choose' op holds arith.constant; it holds cases}}
  vx.choose first {
    %c = arith.constant 1 : index
  }
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  // expected-error@+1 {{'arith.constant' op is no step of a launch}}
  %c = arith.constant 1 : index
}


// -----

vx.entry @k : (!vx.view<?xf32, global>, index, index, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "l", role = #vx.role<let>},
          {name = "m", role = #vx.role<let>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.let arg 1 = #vx.size<"1">
  vx.let arg 2 = #vx.size<"1">
  // expected-error@+1 {{'vx.case' op expects parent op 'vx.choose'}}
  vx.case "c" {}
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.choose first {
    // expected-error@+1 {{'vx.case' op has a cost; the first is taken}}
    vx.case "c" cost #vx.size<"dim(0,0)"> {}
    vx.case "d" {}
  }
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.choose least {
    vx.case "c" cost #vx.size<"dim(0,0)"> {}
    // expected-error@+1 {{'vx.case' op has no cost; the least is taken}}
    vx.case "d" {}
  }
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.choose least {
    // expected-error@+1 {{'vx.case' op is preferred by its cost and by a condition}}
    vx.case "c" when #vx.size<"dim(0,0)"> cost #vx.size<"2"> {}
    vx.case "d" cost #vx.size<"1"> {}
  }
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.choose least {
    vx.case "c" cost #vx.size<"2"> {}
    // expected-error@+1 {{'vx.case' op is the last one and depends on the launch}}
    vx.case "d" needs #vx.size<"dim(0,0)"> cost #vx.size<"1"> {}
  }
}

// -----

vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<temp>, access = #vx.access<readwrite>, extents = [#vx.size<"1">]}]
vx.launch @k {
  vx.choose least {
    // expected-error@+1 {{'vx.case' op reads argument 1, a temporary}}
    vx.case "c" cost #vx.size<"dim(1,0)"> {}
    vx.case "d" cost #vx.size<"1"> {}
  }
}
