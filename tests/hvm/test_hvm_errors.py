"""Of several errors in a program the first in the order of reduction is reported, whatever the engine."""
import generator
import hvm_cases
import pytest


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
