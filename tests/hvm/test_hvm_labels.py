"""Labels of automatic copies are none that a program writes or computes, whatever those are: with them a program means what it means with others."""
import pytest

import evaluator

PROGRAMS = ["(λ&x. [x, x])(&LABEL{1,2})", "!&x = &LABEL{1,2}; #P{x + 1, x, x}", "(λx&. [x₀, x₁])(&LABEL{#A{},2})", "!x& = &LABEL{3,4}; x₀ * x₁",
            "(λ&f. f(f(2)))(λ&n. n * n + &LABEL{1,n})", "!y&LABEL = 7; !&x = &LABEL{y₀,2}; [x, x, y₁]"]
COMPUTED = ["(λ&x. [x, x])(&(NUMBER){1,2})", "!y&(NUMBER) = 7; !&x = &(NUMBER){y₀,2}; [x, x, y₁]", "(λ&n. (λ&x. [x, x])(&(n){1,2}))(NUMBER)"]
FLAGS = [[], ["-C"], ["-T", "3"]]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("label", ["h__", "h_a", "h_b", "ia$", "o$9", "o$$", "g$$"])
def test_a_written_label_is_that_of_no_automatic_copy(label, flags, write, hvm):
    for main in PROGRAMS:
        wanted = hvm(write("@main = " + main.replace("LABEL", "zz") + "\n"), *flags)
        found = hvm(write("@main = " + main.replace("LABEL", label) + "\n"), *flags)
        assert wanted[0] == 0 and found == (0, wanted[1].replace("&zz{", f"&{label}{{"), ""), main
        assert found[1].split() == evaluator.run(write("@main = " + main.replace("LABEL", label) + "\n"), flags == ["-C"]).lines


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("number, label", [(0x8000, "h__"), (0x8001, "h_a"), (0xFFFF, "o$$"), (0x18000, "h__"), (0x18001, "h_a"), (0xFFFFFFFF, "o$$")])
def test_a_computed_label_is_that_of_no_automatic_copy(number, label, flags, write, hvm):
    """A label has the low 16 bits of its number."""
    for main in COMPUTED:
        wanted = hvm(write("@main = " + main.replace("NUMBER", "500") + "\n"), *flags)
        found = hvm(write("@main = " + main.replace("NUMBER", str(number)) + "\n"), *flags)
        assert wanted[0] == 0 and found == (0, wanted[1].replace("&gZ{", f"&{label}{{"), ""), main
