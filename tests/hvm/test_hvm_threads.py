"""What threads do to each other's terms at the wrong moment changes neither the result nor its count."""
import hvm_cases

import evaluator

LIBRARY = "@wait = λ{0: λx. x; λn.λx. @wait(n - 1, x)}\n@deep = λ{0: λx. x; λn.λx. 1 + @deep(n - 1, x)}\n"


def strict(waits, depth):
    """The variable that a strict function waits for becomes final while a deep stack of operators becomes nodes around that application."""
    return LIBRARY + f"@main = !f = λv; #T{{@wait({waits}, f),{'0,' * 14}@deep({depth}, (λ{{λy. y}})(v)) === 3}}\n"


def test_a_strict_application_is_not_final_because_its_variable_is_meanwhile(write, hvm):
    small = write(strict(5, 3))
    result = evaluator.run(small)
    fixed = result.interactions - 4 * (5 + 3)  # four interactions for each step of either function
    for waits in range(200_000, 1_200_001, 40_000):
        status, out, err = hvm(write(strict(waits, 500_000)), "-s", "-T", 2)
        assert status == 0, err
        assert hvm_cases.interactions(out) == (result.lines[0] + "\n", fixed + 4 * (waits + 500_000)), waits
