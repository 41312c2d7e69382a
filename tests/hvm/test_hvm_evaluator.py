"""The Python evaluator gives what the programs expect, and every interaction fires where the table of rows says."""
import itertools
import random
import re

import generator
import hvm_cases
import pytest
import rows
import searches
import wrong_sources

import evaluator
from evaluator.reduce import Machine

SLOW = "large_"  # too much work for the Python evaluator; expected by reasoning


@pytest.mark.parametrize("case", [c for c in hvm_cases.load_all() if not c.path.name.startswith(SLOW) and not c.flags], ids=lambda c: c.path.stem)
def test_programs_have_their_expected_output(case):
    result = evaluator.run(case.path, case.collapsed, case.limit, fuel=500_000)
    assert case.accepts("\n".join([*result.lines, *([result.error] if result.error else [])]))


def test_every_interaction_fires_with_its_result(tmp_path):
    path, fired = tmp_path / "row.hvm4", set()
    for seed in range(4):
        for row, text, expected in rows.programs(seed):
            path.write_text(f"@main = {text}\n")
            result = evaluator.run(path, fuel=1000)
            assert (result.lines, result.error) == ([expected], None), text
            assert row is None or row in result.rows, text
            fired |= set(result.rows)
    assert fired == {row for row, _, _ in rows.programs(0) if row}


def test_interactions_of_small_programs(tmp_path):
    path = tmp_path / "count.hvm4"
    for text, count in [("(λx.x)(1)", 1), ("1+2*3", 2), ("! f = λ v ; #P{f(1,2),v}", 5), ("(&a{λx.x+1,λx.x*2})(3)", 6), ("[λx.x,2]", 0),
                        ("!x&A=[1];#P{x₀,x₁}", 3), ("!x&A=λy.y;x₀(x₁)", 3)]:
        path.write_text(f"@main = {text}\n")
        assert evaluator.run(path, fuel=1000).interactions == count, text


def test_wrong_sources_are_refused_at_their_place(tmp_path):
    path = tmp_path / "wrong.hvm4"
    for name, text, line, column in wrong_sources.WRONG:
        path.write_text(text, encoding="utf-8")
        found = re.match(r"PARSE_ERROR \(.*:(\d+):(\d+)\)", evaluator.run(path).error or "")
        assert found and line in (None, int(found[1])) and column in (None, int(found[2])), name


def test_failing_programs_fail(tmp_path):
    path = tmp_path / "failing.hvm4"
    for text, message in wrong_sources.FAILING:
        path.write_text(text, encoding="utf-8")
        for collapsed in (False, True):
            result = evaluator.run(path, collapsed, fuel=1000)
            assert not result.lines and result.error.startswith(message), text


class Choosing(generator.Generator):
    """Each superposition has a label of its own; with `sides` one side stands in its place. Functions are not duplicated, so that no
    superposition ends up inside itself."""

    def __init__(self, seed, sides=None):
        super().__init__(seed, collapse=True)
        self.sides, self.labels, self.dups = sides, [], 0

    def label(self):
        self.dups += 1
        return "d" + "abcdefghijklmnopqrstuvwxyz"[self.dups // 26 % 26] + "abcdefghijklmnopqrstuvwxyz"[self.dups % 26]

    def superposed(self, kind):
        if len(self.labels) == 4:
            return self.leaf(kind)
        label = "ABCD"[len(self.labels)]
        self.labels.append(label)
        parts = [self.term(kind), self.term(kind)]
        return f"({parts[self.sides[label]]})" if self.sides else f"&{label}{{{parts[0]},{parts[1]}}}"

    def applied(self, kind):
        return self.let(kind)

    def duplicated(self, kind):
        name, value = self.fresh(), self.term("num")
        return f"(!{name}&{self.label()}=({value});{self.within([(name + '₀', 'num'), (name + '₁', 'num')], kind)})"

    def main(self):
        return self.attempt()


def test_collapse_prints_what_each_choice_of_sides_computes(tmp_path):
    path, compared = tmp_path / "choice.hvm4", 0
    for seed in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS // 6):
        made = []
        for sides in [None, *itertools.product((0, 1), repeat=4)]:
            path.write_text(Choosing(seed, sides and dict(zip("ABCD", sides))).program(), encoding="utf-8")
            try:
                result = evaluator.run(path, collapsed=True, fuel=2000)
            except evaluator.OutOfFuel:
                break
            if result.error or not result.defined:
                break
            made.append(set(result.lines))
        else:
            assert made[0] == set().union(*made[1:]), f"seed {seed}"
            compared += 1
    assert compared > hvm_cases.TERMS // 12


def test_the_order_of_positions_changes_nothing(tmp_path, monkeypatch):
    """Also where variables leave their functions: by copies of functions whose labels occur inside, and by unscoped pairs."""
    path, compared, postponed = tmp_path / "order.hvm4", 0, 0
    is_open = Machine.is_open

    def counted(machine, term):
        nonlocal postponed
        found = is_open(machine, term)
        postponed += found
        return found

    monkeypatch.setattr(Machine, "is_open", counted)
    for seed in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS // 2):
        for made in (searches.Search(seed, normalizes=seed % 2), generator.Generator(seed, normalizes=seed % 2)):
            path.write_text(made.program(), encoding="utf-8")
            results, chance = [], random.Random(seed)
            for pick in (Machine.pick, chance.randrange, chance.randrange):
                with monkeypatch.context() as patch:
                    patch.setattr(Machine, "pick", staticmethod(pick))
                    try:
                        result = evaluator.run(path, fuel=2000)
                    except evaluator.OutOfFuel:
                        break
                results.append((result.lines, result.interactions, result.error))
            if results and not results[0][2]:
                assert len(results) == 3 and results[1:] == results[:1] * 2, f"seed {seed}"
                compared += 1
    assert compared > hvm_cases.TERMS // 2 and postponed
