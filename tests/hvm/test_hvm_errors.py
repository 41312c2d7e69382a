"""Of several errors in a program the first in the order of reduction is reported, whatever the engine and the number of threads."""
import generator
import hvm_cases
import pytest

TREE = "@late = λ{0: FIRST; λn. @late(n - 1)}\n@tree = λ{0: SECOND; λ&d. #N{@tree(d - 1), @tree(d - 1)}}\n"
PROGRAMS = [
    """@tr = λ{0: 1; (λn. (!n2&N = n; (!n3&O = n2₁; #B{λ{0: 7; (λq. 9)}((n2₀ < 3)), (n3₀ - n3₁)})))}
@main = (!x1&b = 4(1); &((#C3{(!x39&(1) = @tr; λ{2: 1; 1}(x39₀)), 4, 0} == x1₁)){1, #C3{1, 0, 1}(1)})
""",
    *(TREE.replace("FIRST", a).replace("SECOND", b) + f"@main = {main}\n" for a, b in (("1(2)", "#A{}(1)"), ("#A{}(1)", "1(2)"))
      for main in ("[@late(3000), @tree(4)]", "[@tree(4), @late(3000)]", "@late(3000) + @tree(2)", "@late(300) === @tree(2)", "#P{@tree(6), @tree(5), @late(100)}")),
]


@pytest.mark.parametrize("flags", [[], ["-C"]], ids=["normal form", "collapse"])
@pytest.mark.parametrize("text", PROGRAMS)
def test_every_number_of_threads_reports_the_error_of_one(text, flags, write, hvm):
    path = write(text)
    wanted = hvm(path, *flags)
    assert wanted[0] == 1 and wanted[2].startswith("RUNTIME_ERROR: ")
    for threads in (2, 3, 4, 8):
        for _ in range(3):
            assert hvm(path, *flags, "-T", threads) == wanted


def test_the_fuel_ends_alike_for_every_number_of_threads(write, hvm):
    path = write(TREE.replace("FIRST", "1(2)").replace("SECOND", "0") + "@main = [@tree(10), @late(100), @tree(10)]\n")
    for fuel in (50, 500, 1500, 100000):
        assert len({hvm(path, "--fuel", fuel, "-T", threads) for threads in (1, 2, 4)}) == 1


@pytest.mark.parametrize("form", ["--owner", "--one-launch", "--atomics"])
def test_the_frontier_engine_reports_the_error_of_the_evaluator(form, write, hvm):
    for text in ("(#A{}(1) == 1(1))", "(1(1) == #A{}(1))", "#P{#A{}(1), 1(2)}", "#P{1(2), #A{}(1)}", "(λx. x)(1)(2) + #A{}(1)"):
        path = write(f"@main = {text}\n")
        assert hvm(path, form) == hvm(path), text
    compared = 0
    for seed in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS):
        path = write(generator.LIBRARY + f"@main = {generator.Generator(seed).main()}\n")
        wanted = hvm(path, "--fuel", 3000, "--memory", "64M")
        if not wanted[2].startswith("RUNTIME_ERROR"):
            continue
        found = hvm(path, form, "--fuel", 100000)
        assert found == wanted or "has no rules for" in found[2], path.read_text(encoding="utf-8")
        compared += 1
    assert compared > 0
