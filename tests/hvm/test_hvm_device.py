"""%gnf on a device: results and counts are those of the evaluator, whatever part of the work the device does."""
import os
import pathlib
import re
import shutil
import subprocess

import generator
import hvm_cases
import pytest
import rows

import evaluator

DEVICE = os.environ.get("VORTEX_TEST_DEVICE", "cpu")
# Without a limit each process takes 16 GiB of a GPU for its heap, and several run at once. So it is 1 GiB.
ON_DEVICE = ["--device", DEVICE, *([] if DEVICE == "cpu" else ["--memory", "2G"])]
FIB = "@fib = λ{0: 0; 1: 1; λ&n. @fib(n - 1) + @fib(n - 2)}\n"
TREE = "@tree = λ{0: 1; λ&d. #N{@tree(d - 1), @tree(d - 1)}}\n@sum = λ{#N: λa.λb. @sum(a) + @sum(b); λn. n}\n"
SPIN = "@spin = λ{0: 0; λ&n. @spin(n - 1)}\n@spread = λ{0: @spin(DEPTH); λ&d. @spread(d - 1) + @spread(d - 1)}\n"
BLOCKS = (1, 2, 13)
# Left to the evaluator: comparisons of functions and stuck calls, duplications of what is stuck, unscoped pairs.
LEFT = {"EQL-LAM", "EQL-MAT", "EQL-USE", "EQL-DRY", "DUP-NOD OP2", "DUP-NOD DSU", "DUP-NOD DDU", "WNF-UNS"}
CASES = [case for case in hvm_cases.load_all() if not case.path.name.startswith(("large_", "deep_", "enum_")) and not case.flags]


def offloaded(output):
    found = re.search(rf"^- Itrs\[{re.escape(DEVICE)}\]: (\d+) interactions$", output, re.MULTILINE)
    return int(found[1]) if found else 0


def same(hvm, path, *flags):
    """The interactions of the device, if output and count are those without one."""
    mode = flags[: flags.index("--blocks")] if "--blocks" in flags else flags  # those of the device come last
    alone, together = hvm(path, "-s", *mode), hvm(path, "-s", *ON_DEVICE, *flags)
    assert together[0] == alone[0], together[2]
    assert hvm_cases.interactions(together[1]) == hvm_cases.interactions(alone[1])
    assert together[2] == alone[2]
    return offloaded(together[1])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.stem)
def test_programs_whose_result_a_device_computes(case, hvm, tmp_path):
    text, found = re.subn(r"^@main\b", "@original", case.path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not found or "PARSE_ERROR" in case.expected:
        pytest.skip("no program")
    for library in case.path.parent.glob("_*.hvm4"):  # what it may include
        shutil.copy(library, tmp_path)
    path = tmp_path / case.path.name
    path.write_text("@main = %gnf(@original)\n" + text, encoding="utf-8")
    same(hvm, path, *case.mode, "--fuel", 100000)


@pytest.mark.parametrize("main", ["λx.λy. %gnf(#P{@fib(7), x(y)})", "!&x = @fib(9); [%gnf(x + 1), x]", "!&x = @fib(9); [x, %gnf(x + 1)]", "!x&A = λy. @fib(5) + y; #P{%gnf(x₀(1)), x₁(2)}",
                                  "!x&A = #Q{@fib(6), @fib(7)}; #P{x₀, %gnf(#R{x₁, @fib(8)})}", "%gnf([1 === 1, @fib(5), 2 .&. 3, @fib(6)])", "%gnf(%gnf(%nf(@fib(6)))) + %gnf(@fib(5))",
                                  "λf. !&g = λx. f(x); %gnf(#P{g(1), g(@fib(4))})", "%gnf(@undefined(@fib(4)))", "%gnf([&A{1,@fib(3)}, !x&B=&A{1,2}; x₀ + x₁])", "%gnf(&{})", "%gnf(λx. x + 1)(5)",
                                  "λ{#A: λx. %gnf(x); λx. x}(#A{@fib(6)})", "λ{0: 1; λ&n. %gnf(@fib(n) + n)}(6)", "%gnf(λx. λ{0: 1; λn. n}(x))", "%gnf(^a) + 1", "%gnf(1(2))", "[1, %gnf(#A{}(2))]", "%gnf(@endless)",
                                  "! f = λ v; #P{%gnf(f(1, @fib(3))), v}", "! f = λ v; #P{%gnf(v), f(1, @fib(3))}", "%gnf([%log(\"a\"), @fib(3), %log(\"b\")])",
                                  "!x&A = (λ{0: 1; λ&n. λm. n * m}(&A{@fib(4), 0} + 1)(@fib(3)) * @fib(5)); #P{x₀, %gnf(#Q{x₁})}", "!x&A = ((7 - &A{@fib(4),@fib(5)}) .&. (&B{1,2} === 1)); #P{%gnf(#Q{x₁, @fib(3)}), x₀}",
                                  "!f&A = (λx. &A{x + 1, 3}); #P{f₀, %gnf(f₁(5))}", "!f&A = (λx. &A{x + 1, 3}); #P{%gnf(f₁(5)), f₀}", "λx. !y&A = x; #P{y₀, %gnf(#Q{y₁, @fib(4)})}"])
@pytest.mark.parametrize("flags", [[], ["-C"], ["-T", "3"]], ids=["normal form", "collapse", "threads"])
def test_terms_that_share_with_what_stays(main, flags, write, hvm):
    same(hvm, write(FIB + f"@endless = @endless\n@main = {main}\n"), *flags)


@pytest.mark.parametrize("main", ["%gnf(!!v = (@late(3) + @fib(6)); 3)", "%gnf([!!v = ((@late(2) + @fib(5)) === 2); v, @fib(4)])", "%gnf([&A{(!!v = (@late(1) + @fib(5)); @fib(4)), 2}, @fib(3)])",
                                  "%gnf([&A{(!!v = ((λ{#B: λx. x})(^q) + @fib(5)); @fib(4)), 2}, @fib(3)])", "%gnf(λx. #P{!!v = (@late(2) - (x * @fib(5))); @fib(4), @fib(6)})",
                                  "[%gnf(!!v = (@fib(3) + (@late(2) * @fib(5))); 3), %gnf(@fib(7))]", "%gnf(!!v = (@late(3) === @fib(6)); !!w = (@late(1) ^ @fib(5)); v)",
                                  "%gnf(λx. #P{!!v = (@wait(3, x) * @fib(5)); @fib(4), @fib(6)})", "λx. %gnf(#P{!!v = (@wait(3, x) + @fib(5)); 4, @fib(6)})"])
@pytest.mark.parametrize("flags", [[], ["-C"]], ids=["normal form", "collapse"])
def test_operands_that_turn_out_not_to_be_needed_are_not_counted(main, flags, write, hvm):
    """An operator whose left side is no number is stuck. Nobody asks for its right side if the operator is dropped then."""
    late = "@late = λ{0: #A{}; λn. @late(n - 1)}\n@wait = λ{0: λx. x; λn.λx. @wait(n - 1, x)}\n"
    same(hvm, write(f"{FIB}{late}@main = {main}\n"), *flags)


def test_lines_before_such_an_operand_are_printed_once(write, hvm):
    path = write(FIB + "@late = λ{0: #A{}; λn. @late(n - 1)}\n@main = &A{1, &B{%gnf(@fib(4)), &C{%gnf(!!v = (@late(2) + @fib(6)); 4), 5}}}\n")
    same(hvm, path, "-C")  # a GPU may find it too small
    assert same(hvm, path, "-C", "--blocks", 2) and hvm(path, "-C", *ON_DEVICE, "--blocks", 2)[1].split() == ["1", "3", "4", "5"]


def test_every_interaction_on_a_device(write, hvm):
    wrong, done = [], {}
    for blocks, (row, text, expected) in enumerate(rows.programs(hvm_cases.SEED)):
        result = evaluator.run(write(f"@main = {text}\n"), False, None, fuel=20000)
        status, out, err = hvm(write(f"@main = %gnf({text})\n"), "-s", *ON_DEVICE, "--blocks", BLOCKS[blocks % len(BLOCKS)])
        if (status, *hvm_cases.interactions(out)) != (0, expected + "\n", result.interactions):
            wrong.append(f"{row}: {text}\n  expected {expected} after {result.interactions}, found {status} {out} {err}")
        done[row] = done.get(row, False) or offloaded(out) == result.interactions
    assert not wrong, "\n".join(wrong)
    assert {row for row, is_done in done.items() if row and not is_done} <= LEFT


def test_random_terms_on_a_device(write, hvm):
    compared = 0
    for seed in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS // 2):
        path = write(generator.LIBRARY + f"@main = %gnf({generator.Generator(seed).main()})\n")
        if hvm(path, "--fuel", 3000, "--memory", "64M")[0] == 0:
            same(hvm, path, *([] if seed % 4 == 0 else ["--blocks", BLOCKS[seed % 3], "--seed", seed]))
            compared += 1
    assert compared > hvm_cases.TERMS // 8


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("main", ["@sum(@tree(14))", "@spread(9)", "@fib(18)", "[@fib(12), #P{&A{@fib(10), 2} * @spread(4)}, @fib(11) === @fib(10)]", "@tree(10)", "@tree(15)"])
def test_work_is_shared_by_blocks(main, blocks, write, hvm):
    path = write(TREE + FIB + SPIN.replace("DEPTH", "100") + f"@main = %gnf({main})\n")
    assert same(hvm, path, "--blocks", blocks, "--seed", blocks * 7) == hvm_cases.interactions(hvm(path, "-s")[1])[1]


@pytest.mark.parametrize("deeper", ["@f(n - 1) + n", "n - @f(n - 1)", "λ{1: 1; λm. m}(@f(n - 1))", "λ{λm. m + 1}(@f(n - 1))", "!x&(@f(n - 1)) = n; (x₀ - x₁) + 1", "!x&a = &(@f(n - 1)){1, n}; x₀",
                                    "λ{#P: λa.λb. a}(#P{@f(n - 1), n}) * 1", "@f(n - 1) === 1", "1 === @f(n - 1)", "@f(n - 1) .&. 1", "(@f(n - 1) - 1) .|. 1", "(λ{λm.λk. m + k}(@f(n - 1)))(n)",
                                    "!x&A = @f(n - 1); x₀", "(@f(n - 1) + !x&(@f(0)) = n; x₀) * 1"])
def test_frames_of_every_kind_on_a_stack_that_is_deeper_than_a_lane_has(deeper, write, hvm):
    path = write(f"@f = λ{{0: 1; λ&n. {deeper}}}\n@main = %gnf(@f(700) + @f(701))\n")
    same(hvm, path)  # a GPU may find it too small
    assert same(hvm, path, "--blocks", 2) > 700


def test_more_words_than_the_heap_has(write, hvm):
    """The heap of a device is collected: it holds about 2 million words here."""
    for main in ("@spread(5)", "[@spread(4), @spread(4)]", "!&f = λx. @spread(x); [f(3), f(4), @spread(4)]"):
        path = write(SPIN.replace("DEPTH", "30000") + f"@main = %gnf({main})\n")
        assert same(hvm, path, "--blocks", 2) == hvm_cases.interactions(hvm(path, "-s")[1])[1] > 2_000_000


@pytest.mark.parametrize("blocks", BLOCKS)
def test_a_collection_without_room_leaves_one_heap(blocks, write, hvm):
    """What a lane keeps alive outgrows its part: the evaluator goes on with cells of which some have moved."""
    text = (hvm_cases.FOLDER / "queens_superposed.hvm4").read_text(encoding="utf-8").replace("@main = @place(5)", "@main = %gnf(@place(5))")
    path = write(text)
    done, all_of_it = same(hvm, path, "--blocks", blocks), hvm_cases.interactions(hvm(path, "-s")[1])[1]
    # A GPU has parts for so many lanes that none is outgrown here.
    assert 0 < done < all_of_it if DEVICE == "cpu" else 0 < done <= all_of_it


def test_wide_terms_stay_on_the_device_and_narrow_ones_return(write, hvm):
    path = write(TREE + "@main = %gnf(@sum(@tree(10)))\n")
    assert same(hvm, path) == hvm_cases.interactions(hvm(path, "-s")[1])[1]
    path = write("@count = λ{0: 0; λn. 1 + @count(n - 1)}\n@main = %gnf(@count(100000))\n")
    assert same(hvm, path) < 1000
    assert same(hvm, write(FIB + "@main = @fib(10)\n")) == 0


def test_fuel_and_memory_end_a_run_with_a_device_as_they_do_without(write, hvm):
    path = write(TREE + "@main = %gnf(@sum(@tree(8)))\n")
    needed = hvm_cases.interactions(hvm(path, "-s")[1])[1]
    for fuel in (0, 10, needed - 1, needed):
        assert hvm(path, *ON_DEVICE, "--fuel", fuel) == hvm(path, "--fuel", fuel)
    path = write("@f = λ&n. n <> @f(n + 1)\n@main = %gnf(@f(0))\n")
    status, out, err = hvm(path, *ON_DEVICE, "--memory", "64M")
    assert (status, out) == (1, "") and "out of memory" in err


def test_devices_that_do_not_exist_are_named(write, hvm):
    status, out, err = hvm(write("@main = 1\n"), "--device", "gpu:7")
    assert (status, out) == (1, "") and err.startswith("Error: ") and "gpu:7" in err


def test_kernels_in_the_interpreter(program, write, hvm, tmp_path):
    """slices.vx runs what the engine starts from; the interpreter finds no race, no wrapped index and no unwritten word."""
    folder = pathlib.Path(os.environ["VORTEX_BUILD"]) / "src/hvm/slices"
    if not (folder / "slices.vx").exists():
        pytest.skip("the kernels' sources are written by a build with the compiler")
    start = tmp_path / "start.npy"
    for main in ("[@sum(@tree(3)), &A{1,2} + 3]", "!&f = λx. #P{x, @fib(4)}; [f(1), f(2)]"):
        path = write(TREE + FIB + f"@main = %gnf({main})\n")
        count = same(hvm, path, "--memory", "1M", "--blocks", 2, "--write-slices", start)
        done = subprocess.run([program, "run", "--check", "--allow", "races", folder / "slices.vx", "--", start], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"fired {count}\n")
