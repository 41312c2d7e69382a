"""Single violations of the rules of kernels, put at random places of random programs. `statements|E0301` allows further ids."""
import re

import threads
from cases import program
from tree import indent


class Kernel(threads.Kernel):
    """What statements are put into."""

    mayInfer = False


# Per-thread code, (id, statements, items beside the kernel): `l` is the thread's number in the block, `i` in the grid, `count` differs
# between blocks, `wide`, `counts` and `parts` are lent for reading, `table` is in constant memory, `bins` may be written.
SHARED = "let z: Tensor<i32, [32]> @shared\nif l < 32 {\n    z[l] = 1\n}\nsync_block()\n"
LOCAL = "let z: Tensor<i32, [4]> @local\nz[0] = 1\nz[1] = 1\nz[2] = 1\nz[3] = 1\n"
FUNCTIONS = """fn v_global(t: &Tensor<i32, [N], Global>) -> i32 { return t[0] }
fn v_shared(t: &Tensor<i32, [32], Shared>) -> i32 { return t[0] }
fn v_local(t: &Tensor<i32, [4], Local>) -> i32 { return t[0] }
fn v_put(t: &mut Tensor<i32, [32], Shared>, at: usize, value: i32) { t[at] = value }
fn v_set(t: &mut i32, value: i32) { t = value }
fn v_both(a: &mut i32, b: &i32) { a = b + 1 }
fn v_first<M: MemorySpace + Readable>(t: &Tensor<i32, [N], M>) -> i32 { return t[0] }
fn v_write<M: MemorySpace + Writable, T: Numeric>(t: &mut Tensor<T, [N], M>) { t[0] = 1 }
"""
THREADS = [
    # Writing through what is lent for reading.
    ("E0317", "counts[0] = 1", ""),
    ("E0317", "counts[0] += 1", ""),
    ("E0317", "atomic_add(&mut counts[0], l as u32)", ""),
    ("E0317", "table[0] = table[0]", ""),
    ("E0317", "parts[0][0] = parts[1][0]", ""),
    ("E0317", SHARED + "let z1 = &z\nz1[0] = 1", ""),
    ("E0521", "let z = counts[0..1]\nz[0] = 1", ""),
    # Divergent barriers, warp operations and declarations.
    ("E0450", "if l < 5 {\n    sync_block()\n}", ""),
    ("E0450", "for z in 0..l {\n    sync_block()\n}", ""),
    ("E0450", "var z: usize = 0\nwhile z < l {\n    z += 1\n    sync_block()\n}", ""),
    ("E0450", "for z in 0..3 {\n    if z + l > 4 {\n        break\n    }\n    sync_block()\n}", ""),
    ("E0450", "for z in 0..3 {\n    if z + l > 4 {\n        continue\n    }\n    sync_block()\n}", ""),
    ("E0450", "match l {\n    0 => { sync_block() },\n    _ => {},\n}", ""),
    ("E0450", "if l == 3 {\n    return\n}\nsync_block()|E0451|E0452", ""),
    ("E0450", "if i > 3 {\n    v_wait()\n}", "fn v_wait() { sync_block() }\n"),
    ("E0450", "if count > 1 {\n    if l > 1 {\n        sync_block()\n    }\n}", ""),
    ("E0451", "if l == 3 {\n    let z = warp.sum(1i32)\n}", ""),
    ("E0451", "if i % 2 == 0 {\n    let z = warp.shuffle_xor(l as i32, 1)\n}", ""),
    ("E0451", "for z in 0..l {\n    let z1 = warp.any(z > 3)\n}", ""),
    ("E0451", "if l == 7 {\n    return\n}\nlet z = warp.broadcast(l as u32, 0)|E0450|E0452", ""),
    ("E0452", "if l > 3 {\n    let z: Tensor<i32, [64]> @shared\n    z[l % 64] = 1\n}", ""),
    ("E0453", SHARED + "atomic_add(&mut z[0], 1)", ""),
    ("E0453", SHARED + "atomic_max(&mut z[count % 32], 5)", ""),
    # Memory before it is written.
    ("E0525", "let z: Tensor<i32, [64]> @shared\nlet z1 = z[l % 64]", ""),
    ("E0525", "let z: Tensor<i32, [4]> @local\nz[1] += 1", ""),
    ("E0525", "let z: Tensor<i32, [4]> @local\nfor z1 in 0..3 {\n    let z2 = z[z1]\n}", ""),
    ("E0525", "let z: Tensor<u32, [4]> @shared\natomic_add(&mut z[0], l as u32)", ""),
    ("E0525", "let z: Tensor<i32, [32]> @shared\nlet z1 = v_first(&z)", FUNCTIONS),
    ("E0526", "let z: i32\nif l > 3 {\n    z = 1\n}\nlet z1 = z + 1", ""),
    ("E0526", "var z: i32\nfor z1 in 0..l {\n    z = 1\n}\nlet z2 = z + 1", ""),
    # Spaces.
    ("E0338", SHARED + "let z1 = v_global(&z)", FUNCTIONS),
    ("E0338", LOCAL + "let z1 = v_global(&z)", FUNCTIONS),
    ("E0338", SHARED + "let z1: &Tensor<i32, [32], Global> = &z", ""),
    ("E0338", LOCAL + "let z1: &Tensor<i32, [4], Shared> = &z", ""),
    ("E0307", "v_write(&mut table)|E0317", FUNCTIONS),
    ("E0339", "let z: Tensor<i32, [4]> @global\nlet z1 = z[0]", ""),
    ("E0339", "let z: Tensor<i32, [4], Global>", ""),
    ("E0337", "let z: Tensor<i32, [4], i32>", ""),
    # What leaves its scope.
    ("E0519", "let z1 = {\n    let z: Tensor<i32, [64]> @shared\n    z[l % 64] = 1\n    &z\n}\nlet z2 = z1[0]", ""),
    ("E0519", "let z1 = {\n    let z: Tensor<i32, [4]> @local\n    z[0] = 1\n    &z[0]\n}\nlet z2 = z1 + 0", ""),
    ("E0551", "let z1 = v_tile()", "fn v_tile() -> Tensor<i32, [32]> @shared {\n    let z: Tensor<i32, [32]> @shared\n    z[thread.local_id % 32] = 1\n    return z\n}\n"),
    ("E0551", "", "struct VTile {\n    tile: Tensor<i32, [32], Shared>,\n}\n"),
    ("E0524", "", "struct VTile {\n    tile: &Tensor<i32, [32]>,\n}\n"),
    ("E0551", "let z = v_own()", "fn v_own() -> &Tensor<i32, [4], Local> {\n    let z: Tensor<i32, [4]> @local\n    z[0] = 1\n    return &z\n}\n"),
    # Borrows.
    ("E0516", SHARED + "let z1 = &mut z\nv_put(&mut z, l % 32, 1)\nv_put(z1, l % 32, 2)", FUNCTIONS),
    ("E0516", LOCAL + "v_both(&mut z[1], &z[1])", FUNCTIONS),
    ("E0516", LOCAL + "let z1 = z[0..3]\nlet z2 = z[2..4]\nz1[0] = 1\nz2[0] = 2\nz1[1] = 3", ""),
    ("E0517", SHARED + "let z1 = z[0..16]\nif l < 32 {\n    z[l] = 2\n}\nsync_block()\nlet z2 = z1[l % 16]", ""),
    ("E0517", LOCAL + "let z1 = &z\nz[1] = 3\nlet z2 = z1[1]", ""),
    ("E0517", LOCAL + "let z1 = &z[1]\nz[l % 4] = 3\nlet z2 = z1 + 1", ""),
    ("E0518", LOCAL + "let z1 = &mut z\nlet z2 = z[0]\nz1[0] = 3", ""),
    ("E0518", "var z = 3\nlet z1 = &mut z\nlet z2 = z + 1\nv_set(z1, 4)", FUNCTIONS),
    # Host and device.
    ("E0407", "let z = vec![1, 2]", ""),
    ("E0407", "print(args().len())", ""),
    ("E0407", "let z = wide.to_host()", ""),
    ("E0408", "v_kernel(counts)", "kernel v_kernel(x: &Tensor<u32, [N]>, y: &mut Tensor<u32, [N]>) { y[thread.global_id] = x[thread.global_id] }\n|E0308"),
    ("E0454", "let z = v_down(l)", "fn v_down(n: usize) -> usize {\n    if n == 0 { return 0 }\n    return v_down(n - 1)\n}\n"),
    # Staging.
    ("E0474", "let z: Tensor<u32, [4]> @shared\nz = stage(counts[0..+4])\nlet z1 = z[l % 4]\nsync_block()", ""),
    ("E0474", "let z: Tensor<u32, [4]> @shared\nasync_stage(&counts[0..+4], &mut z)\nlet z1 = z[l % 4]\nsync_block()", ""),
    ("E0475", "let z: [Tensor<u32, [4]> @shared; 2]\nz[0] = stage(counts[0..+4])\nsync_block()\nlet z1 = z[1][l % 4]|E0525", ""),
    ("E0476", "let z: Tensor<u32, [4]> @shared\nasync_stage(&counts[0..+4], &mut z)\nif l < 4 {\n    z[l] = 1\n}\nsync_block()", ""),
    ("E0476", "let z: Tensor<u32, [4]> @shared\nasync_stage(&counts[0..+4], &mut z)\nasync_stage(&counts[1..+4], &mut z)\nsync_block()", ""),
    ("E0470", "let z: Tensor<u32, [4]> @local\nz = stage(counts[0..+4])", ""),
    ("E0471", "let z: Tensor<i64, [4]> @shared\nz = stage(counts[0..+4])", ""),
    ("E0472", "let z: Tensor<u32, [4]> @shared\nz = stage(counts[0..count])", ""),
    ("E0473", SHARED + "let z1: Tensor<i32, [4]> @shared\nz1 = stage(z[0..+4])", ""),
    ("E0467", "if l < 5 {\n    let z: Tensor<u32, [4]> @shared = stage(counts[0..+4])\n}|E0452", ""),
    ("E0467", "let z: Tensor<u32, [4]> @shared\nif l < 5 {\n    z = stage(counts[0..+4])\n}", ""),
    # Numbers and types.
    ("E0301", "let z: i8 = l", ""),
    ("E0301", "var z = 1i32\nz = 1i64", ""),
    ("E0302", "let z: i8 = 300", ""),
    ("E0302", "let z = 5u8\nlet z1 = z + 256", ""),
    ("E0302", "let z: u32 = -1", ""),
    ("E0303", "let z = 1i8 + 1i16", ""),
    ("E0303", "let z = 1.5f32 * 2i32", ""),
    ("E0303", "let z = 1.5 & 2.5", ""),
    ("E0303", "let z = 1i32 < 1u32", ""),
    ("E0303", "let z = 1.0f32 + 1.0f64", ""),
    ("E0311", "", "const V: u8 = 200 + 100\n"),
    ("E0311", "", "const V: i32 = 5 / 0\n"),
    ("E0312", "for z in [2, 4, ..., 8] {\n    let z1 = z\n}", ""),
    ("E0313", "let z = counts[0, 0]", ""),
    ("E0313", "let z = counts[1.5]", ""),
    ("E0314", LOCAL + "z[4] = 1", ""),
    ("E0315", "let z = 3\nz = 4", ""),
    ("E0315", "l = 3", ""),
    ("E0315", "for z in 0..3 {\n    z += 1\n}", ""),
    ("E0316", "v_set(&mut (l as i32 + 1), 3)", FUNCTIONS),
    ("E0318", "let z = parts as i32", ""),
    ("E0319", "if l {\n    let z = 1\n}", ""),
    ("E0319", "while count {\n    break\n}", ""),
    ("E0320", "match l {\n    0 => {},\n    1 => {},\n}", ""),
    ("E0321", "let z = thread.number", ""),
    ("E0323", "break", ""),
    ("E0324", "let z = v_none(3)", "fn v_none(a: i32) -> i32 {\n    if a > 3 {\n        return a\n    }\n}\n"),
    ("E0201", "let z = nothing + 1", ""),
    ("E0307", "let z = {name}_mix0(1.5f32, 2.5f32)", ""),
    ("E0350", "", "fn v_half<T: Numeric>(x: T) -> T {\n    return x * 0.5\n}\n"),
    ("E0350", "", "fn v_bits<T: Float>(x: T) -> T {\n    return x & x\n}\n"),
    ("E0308", "let z = {name}_mix0(1i32)", ""),
    ("E0309", "let z = {name}_mix0(a = 1i32, q = 2i32)", ""),
    ("E0322", "", "struct VPoint { x: f32, y: f32 }\nfn v_make() -> VPoint { return VPoint { x: 1.0 } }\n"),
    ("E0325", "let z = v_grow(l)", "fn v_grow<T: Copy>(x: T) -> usize { return v_grow((x, x)) }\n|E0335|E0454"),
    ("E0328", "let z = 3\nz(1)", ""),
    ("E0330", "for z in 10 {\n    let z1 = z\n}", ""),
    ("E0331", "let (z, z1) = (1, 2, 3)", ""),
    ("E0335", "", "const V: i32 = V + 1\n"),
    ("E0340", "let z: &i32", ""),
    ("E0351", "", "struct VA {}\nimpl VA for i32 {}\n"),
    ("E0352", "", "trait VT {\n    fn f(&self) -> i32\n}\nimpl VT for i32 {}\n"),
    ("E0353", "", "trait VT {\n    const C: i32\n}\nimpl VT for i32 {\n    const C: i32 = 1\n    fn g() -> i32 { return 1 }\n}\n"),
    ("E0354", "", "trait VT {\n    fn f(&self) -> i32\n}\nimpl VT for i32 {\n    fn f(&self) -> i64 { return 1 }\n}\n"),
    ("E0355", "", "trait VT {\n    const C: i32\n}\nimpl VT for i32 {\n    const C: i32 = 1\n}\nimpl VT for i32 {\n    const C: i32 = 2\n}\n"),
    ("E0358", "", "trait VT : VT {\n    const C: i32\n}\n"),
    ("E0520", "", "fn v_list() -> &Vec<i32> {\n    let v = vec![1]\n    return &v\n}\n"),
    ("E0621", SHARED + "@verify_no_bank_conflicts\nz[(counts[l % 2] % 32) as usize] = 1", ""),
    ("E0622", "@verify_no_bank_conflicts\nlet z = l + 1", ""),
    ("E0310", "let z: Tensor<i32, [count]> @shared", ""),
    ("E0620", "let z: Tensor<f32, [1024]> @shared\n@verify_no_bank_conflicts\nz[(l % 32) * 32] = 1.0", ""),
]
HOST = [
    ("E0404", "print(x0{at})"),
    ("E0405", "let z = counts + counts"),
    ("E0406", "sync_block()"),
    ("E0406", "let z = thread.local_id"),
    ("E0550", "let z: Tensor<i32, [4]> @shared = zeros()"),
    ("E0550", "let z: Tensor<i32, [4]> @local = zeros()"),
    ("E0317", "table[0] = 1|E0404"),
    ("E0512", "let z = counts\nlet z1 = counts.to_host()"),
    ("E0512", "for z in 0..2 {\n    let z1 = counts\n}"),
    ("E0512", "let z = (1, part0)\nlet z1 = part0.to_host()"),
    ("E0515", "let z = &counts\nlet z1 = counts\nprint(z.to_host())"),
    ("E0516", "let z = &mut bins\nlet z1 = &bins\nprint(z1.to_host())\nprint(z.to_host())"),
    ("E0519", "let z1 = {\n    let z = counts.copy()\n    &z\n}\nprint(z1.shape[0])"),
    ("E0308", "{name}_k(&counts)"),
]


# Found by `--check` while the kernel runs; {threads} are in a block.
RACES = [
    ("E0603", "let z: Tensor<i32, [{threads}]> @shared\nz[l] = 1\nlet z1 = z[(l + 1) % {threads}]\nif z1 == 7 {\n    bins[0] = bins[0]\n}"),
    ("E0603", "let z: Tensor<i32, [{threads}]> @shared\nz[l / 2] = l as i32"),
    ("E0603", "let z: Tensor<usize, [1]> @shared\nz[0] = l"),
    ("E0603", "let z: Tensor<i32, [{threads}]> @shared\nfor z1 in 0..2 {\n    z[l] = l as i32\n    sync_block()\n    if z[(l + 1) % {threads}] == -1 {\n        break\n    }\n}|E0450"),
    ("E0603", "let z: Tensor<u32, [1]> @shared\nif l == 1 {\n    z[0] = 0\n}\natomic_add(&mut z[0], l as u32)"),
    ("E0603", "let z: Tensor<u32, [4]> @shared\nz[l % 4] = 1\nsync_warp()\nz[(l + 1) % 4] = 2"),
    ("E0602", "let z: Tensor<i32, [{threads}]> @shared\nif l < 5 {\n    z[l] = 1\n}\nsync_block()\nif z[l] == 1 {\n    bins[0] = bins[0]\n}"),
    ("E0602", "let z: Tensor<i32, [{threads}]> @shared\nz[l ^ (l & 1)] = 1\nsync_block()\nif z[l] == 1 {\n    bins[0] = bins[0]\n}|E0603"),
    ("E0601", "let z: Tensor<i32, [4]> @local\nz[0] = 1\nz[l] = 2"),
    ("E0601", "if wide[W + l] == wide[0] {\n    bins[0] = bins[0]\n}"),
    ("E0601", "if l > 3 {\n    y0[i + N] = y0[0]\n}"),
]


def race(rng, kernel):
    id_, statements = rng.choice(RACES)
    statements = statements.replace("{threads}", str(kernel.threads))
    return place(rng, kernel, id_, statements, "")


# Whole-tensor code over x0, x1: [M, N], x2: [N], x3: [N, M], the latter two of floats.
WHOLE = [
    ("E0305", "let z = x3 @ x3"),
    ("E0305", "let z = x3.transpose() @ x3.transpose()"),
    ("E0304", "let z = x3 + x3.transpose()"),
    ("E0304", "let z = x2 * x2.reshape([N, 1]).sum(dim = 1).reshape([N]).broadcast([M, N]).transpose() + x3.transpose()"),
    ("E0304", "let z: Tensor<f32, [M]> = full(0.0f32, [N])|E0301"),
    ("E0313", "let z = x3.sum(dim = 2)"),
    ("E0313", "let z = x3[0, 0, 0]"),
    ("E0332", "let z = x2.broadcast([N, M])|E0304"),
    ("E0303", "let z = x3 & x3"),
    ("E0412", "let z = x3 * 2.0\nz[0, 0] = 1.0"),
    ("E0317", "x3[0, 0] = x3[0, 0]"),
    ("E0317", "x3[0..1, :] = x3[0..1, :]|E0521"),
    ("E0315", "x3 = x3|E0317"),
    ("E0407", "let z = x3.to_host()"),
    ("E0407", "let z = x3.to_host()"),
    ("E0339", "let z: Tensor<f32, [M]> @global"),
    ("E0319", "if x3 {\n    let z = 1\n}"),
    ("E0327", "let z: Tensor<f32, [Q]> = zeros()"),
    ("E0327", "let z = zeros()|E0306"),
    ("E0303", "let z = x3 + true"),
]
WHOLE_EDITS = [
    ("E0326", "result of an unknown extent", r"\) -> (\(?)Tensor<(\w+), \[\w+", r") -> \1Tensor<\2, [Q", "E0210"),
    ("E0464", "each block returns all of it", r"kernel (\w+)\(", r"@launch(grid = [2], block = 64)\nkernel \1(", "E0467"),
    ("E0308", "an argument less", r"_k\(&x0[^&]*", "_k(", "E0334"),
    ("E0401", "a reference as the result", r"\) -> (\(?)Tensor", r") -> \1&Tensor", "E0524"),
    ("E0403", "a list as a parameter", r"x0: &Tensor<(\w+), \[M, N\]>", r"x0: &Vec<\1>", "E0301"),
    ("E0550", "a shared parameter", r"x0: &Tensor<(\w+), \[M, N\]>", r"x0: &Tensor<\1, [M, N], Shared>", "E0338"),
]


def wholeViolation(rng, kernel):
    case = kernel.case
    if rng.random() < 0.3:
        id_, what, pattern, by, other = rng.choice(WHOLE_EDITS)
        text = program([case])
        changed = re.sub(pattern, by, text, count=1)
        return (f"whole: {what}", changed, {id_, other}) if changed != text else wholeViolation(rng, kernel)
    id_, statements = rng.choice(WHOLE)
    statements, *others = statements.split("|")
    lines = case.items.split("\n")
    end = next(n for n, line in enumerate(lines) if line.startswith("    return "))
    start = next(n for n, line in enumerate(lines) if line.startswith(") -> "))
    places = [n for n in range(start + 1, end + 1) if re.match(r"    [a-z]", lines[n])]
    lines.insert(rng.choice(places), indent(statements))
    case.items = "\n".join(lines)
    return f"whole: {statements!r}", program([case]), {id_, *others}


def without(line):
    """Drops the first line that contains the text."""
    return lambda text: re.sub(rf"\n[^\n]*{re.escape(line)}[^\n]*", "", text, count=1)


def replaced(pattern, by):
    return lambda text: re.sub(pattern, by, text, count=1)


# Tile code: what is broken, the styles it applies to, the change, ids.
TILES = {
    "a staged tile is read at once": (("stage", "function"), without("sync_block()"), "E0474"),
    "the prologue is missing": (("async", "ring"), without("&mut ta[0]"), "E0475"),
    "only some threads multiply": (("direct", "assign", "stage", "async"), replaced(r"(acc \+= [^\n]* @ [^\n]*)", r"if thread.local_id < 1 { \1 }"), "E0467"),
    "the staged tile is not shared": (("stage",), replaced(r"(let ta: .*)@shared", r"\1@local"), "E0470"),
    "staging would convert": (("stage",), replaced(r"let ta: Tensor<f32", "let ta: Tensor<f16"), "E0471"),
    "a staged extent is unknown": (("stage",), replaced(r"(stage\(a\[block_m..\+\d+, k)..\+\d+", r"\1..K"), "E0472"),
    "a value is staged": (("stage",), replaced(r"stage\((a\[[^\n]*\])\)", r"stage(\1 * 2.0)"), "E0473"),
    "there are two grids": (("direct", "stage"), replaced(r"@tile", "@launch(grid = [1])\n@tile"), "E0462"),
    "the inner extents differ": (("stage",), replaced(r"let tb: Tensor<f32, \[\d+", "let tb: Tensor<f32, [3"), "E0304|E0305"),
    "the buffer is written in flight": (("async",), replaced(r"(async_stage\([^\n]*&mut ta\[0\]\))", r"\1\n    ta[0] = zeros()"), "E0476"),
    "the tile is not the block's": (("direct", "stage"), replaced(r"@tile\(m = \d+", "@tile(m = 7"), "E0463|E0304"),
    "one thread writes the accumulator": (("direct",), replaced(r"\n    (return acc|out\[[^\n]* = acc)", r"\n    acc[thread.local_id % 2, 0] = 1.0\n    \1"), "E0468|E0466"),
    "the extents of the tile are not constant": (("direct",), replaced(r"@tile\(m = \d+", "@tile(m = M"), "E0310|E0463|E0461"),
    "the wrong slot is read": (("async",), replaced(r"acc \+= ta\[s % 2\]", "acc += ta[(s + 1) % 2]"), "E0475|E0474"),
    "the accumulator is no part of it": (("direct",), replaced(r"var acc: (Tensor<\w+), \[\d+, \d+\]", r"var acc: \1, [3, 5]"), "E0465|E0304"),
    "the accumulator is shared with the function as global": (("function",), replaced(r"\], Local>", "], Global>"), "E0338"),
    "the accumulator is lent for reading": (("function",), replaced(r"multiply::<([^>]*)>\(&mut acc", r"multiply::<\1>(&acc"), "E0301|E0317"),
    "the result refers to shared memory": (("stage",), replaced(r"-> Tensor<(\w+), \[M, N\]>", r"-> Tensor<\1, [M, N], Shared>"), "E0551|E0550"),
}


def tileViolation(rng, make):
    """`make(styles)` gives a kernel."""
    while True:
        what = rng.choice(sorted(TILES))
        styles, change, wanted = TILES[what]
        text = program([make(styles).case])
        changed = change(text)
        # A result written by slices may have tiles of any extents.
        if changed != text and ("return acc" in text or "tile" not in what):
            return what, changed, set(wanted.split("|"))


def threadViolation(rng, kernel):
    """(what, text of the program, ids that are right)."""
    if rng.random() < 0.2:
        return hostViolation(rng, kernel)
    id_, statements, items = rng.choice(THREADS)
    return place(rng, kernel, id_, statements, items)


def place(rng, kernel, id_, statements, items):
    """At a random place that all threads of the block reach."""
    statements, *others = statements.split("|")
    items, *more = items.split("|")
    statements = statements.replace("{name}", kernel.case.name)
    head, body = kernel.case.items.split(") {\n    let l = thread.local_id\n")
    lines = body.split("\n")
    first = next(n for n, line in enumerate(lines) if line.startswith("    var u0"))
    last = next(n for n, line in enumerate(lines) if re.match(r"    +y0\[(i|thread.global_id)\] = ", line)) - kernel.ragged
    places = [n for n in range(first + 1, last + 1) if re.match(r"    [a-z@{]", lines[n])]
    at = rng.choice(places)
    if statements:
        lines.insert(at, indent(statements))
    case = kernel.case
    case.items = items + head + ") {\n    let l = thread.local_id\n" + "\n".join(lines)
    return f"{statements!r} {items!r}", program([case]), {id_, *others, *more}


def hostViolation(rng, kernel):
    id_, statements = rng.choice(HOST)
    statements, *others = statements.split("|")
    case = kernel.case
    rank = case.inputs["x0"].ndim
    statements = statements.replace("{at}", "[0]" if rank == 1 else "[0, 0]").replace("{name}", case.name)
    # Before the arguments of the launch move: borrowed and moved things are used again by it.
    lines = case.body.split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith(f"{case.name}_k("))
    if "let z1 = counts" in statements or "let z = counts\n" in statements or "part0" in statements:
        at += 1
    lines.insert(at, statements)
    case.body = "\n".join(lines)
    return f"host: {statements!r}", program([case]), {id_, *others}
