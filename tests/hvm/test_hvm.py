"""`vortex hvm` prints what the programs expect and what the Python evaluator prints, and counts the same interactions, with 1, 2 and 4 threads.
VORTEX_HVM_TERMS=10000 runs that many random terms, VORTEX_HVM_SEED=7 starts at that seed."""
import itertools
import random
import re
import subprocess

import generator
import hvm_cases
import pytest
import rows
import searches
import wrong_sources

import evaluator

THREADS = (1, 2, 4)
FUEL = 3000
AS_ONE_THREAD = -1
CASES = hvm_cases.load_all()


def normal(hvm, path, threads=1):
    """(standard output, interactions) of the strong normal form."""
    status, out, err = hvm(path, "-s", "-T", threads)
    assert status == 0, err
    return hvm_cases.interactions(out)


class Exceeding:
    """Of a program that takes too long for the Python evaluator: whether that is known to hold for all engines, since it has more interactions."""

    def __init__(self, counted):
        self.counted = counted


def judged(path, text, collapsed=False):
    """What the Python evaluator says of a program."""
    path.write_text(text, encoding="utf-8")
    try:
        return evaluator.run(path, collapsed, fuel=FUEL)
    except evaluator.OutOfFuel as out:
        return Exceeding(out.counted)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.stem)
def test_programs_print_what_they_expect_and_need_the_counted_interactions(case, hvm):
    expected = counted(case)
    for threads, stats in ((1, True), (2, False), (4, True)):
        stats = stats and not case.fails and not case.flags
        status, out, err = hvm(case.path, *case.flags, *case.mode, "-T", threads, *["-s"] * stats)
        lines, found = hvm_cases.interactions(out) if stats else (out, None)
        assert case.accepts(lines + err), f"with {threads} threads\n{out[-2000:]}{err[-2000:]}"
        assert status == case.fails
        if stats and expected is not None:
            expected = found if expected == AS_ONE_THREAD else expected
            assert found == expected, f"with {threads} threads"


def counted(case):
    """Interactions by the Python evaluator; None if their number is not defined."""
    if case.path.name.startswith("large_"):
        return AS_ONE_THREAD  # too slow in Python
    result = evaluator.run(case.path, case.collapsed, case.limit, fuel=500_000)
    return result.interactions if result.exact else None


def test_every_interaction_has_its_result_and_count(hvm, tmp_path):
    path, wrong = tmp_path / "rows.hvm4", []
    for group in range(2):
        programs = rows.programs(hvm_cases.SEED + group)
        definitions = "".join(f"@t{i} = {text}\n" for i, (_, text, _) in enumerate(programs))
        whole = judged(path, definitions + f"@main = [{','.join(f'@t{i}' for i in range(len(programs)))}]\n")
        if normal(hvm, path) == ("".join(line + "\n" for line in whole.lines), whole.interactions):
            continue
        for row, text, expected in programs:
            result = judged(path, f"@main = {text}\n")
            found = normal(hvm, path)
            if found != (expected + "\n", result.interactions):
                wrong.append(f"{row}: {text}\n  expected {expected} after {result.interactions}, found {found}")
    assert not wrong, "\n".join(wrong)


def test_either_side_of_a_superposition_alone_has_its_result_and_count(hvm, tmp_path):
    """Where both sides are asked for, the second reader of a copy gets the other side, whichever projection it holds."""
    programs = [program for seed in range(4) for program in rows.programs(hvm_cases.SEED + seed)]
    sides = [(text, label[1], side) for row, text, expected in programs if row and (label := re.match(r"&([^{(}]+)\{", expected)) for side in "₀₁"]
    assert len(sides) > 120
    path = tmp_path / "sides.hvm4"
    text = "".join(f"@t{i} = !z&{label}=({text});#Side{{z{side}}}\n" for i, (text, label, side) in enumerate(sides))
    result = judged(path, text + f"@main = [{','.join(f'@t{i}' for i in range(len(sides)))}]\n")
    assert normal(hvm, path) == (result.lines[0] + "\n", result.interactions)


def differences(hvm, path, text, collapsed):
    """What `vortex hvm` does otherwise than the Python evaluator, '' for nothing."""
    result = judged(path, text, collapsed)
    if isinstance(result, Exceeding):
        return ended(hvm, path, *["-C"] * collapsed) if result.counted else ""
    if not result.defined or len(result.lines) > 2000:
        return ""
    lines = "".join(line + "\n" for line in result.lines)
    for threads in THREADS:
        try:
            status, out, err = hvm(path, "-s", "-T", threads, *["-C"] * collapsed)
        except subprocess.TimeoutExpired:
            return f"{threads} threads: no end"
        out, count = hvm_cases.interactions(out)
        if result.error:
            if status != 1 or not err.startswith(result.error) or not lines.startswith(out):
                return f"{threads} threads: status {status}, {out[-500:]!r} {err[-500:]!r}; expected {result.error}"
        elif (status, out) != (0, lines) or (result.exact and count != result.interactions):
            return f"{threads} threads: status {status}, {count} interactions, {out[-500:]!r} {err[-500:]!r}; expected {result.interactions}, {lines[-500:]!r}"
    return ""


def ended(hvm, path, *mode):
    """What ends with fewer interactions than the Python evaluator has found; '' for nothing."""
    for threads in THREADS:
        status, out, _ = hvm(path, "--fuel", FUEL, "--memory", "64M", "-T", threads, *mode)
        if status != 1:
            return f"{threads} threads: status {status}, {out[-500:]!r}; expected more than {FUEL} interactions"
    return ""


def test_random_terms_have_the_same_normal_form_and_count(hvm, tmp_path):
    """Sixty terms share a process; if their list differs, each runs alone."""
    path, wrong, compared = tmp_path / "terms.hvm4", [], 0
    for start in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS, 60):
        kept = {}
        for seed in range(start, start + 60):
            term = generator.Generator(seed).main()
            result = judged(path, generator.LIBRARY + f"@main = {term}\n")
            if isinstance(result, Exceeding) or result.error:
                difference = differences(hvm, path, generator.LIBRARY + f"@main = {term}\n", False)
                wrong += [f"seed {seed}: {difference}\n{term}"] * bool(difference)
                compared += not isinstance(result, Exceeding) or result.counted
            else:
                kept[seed] = term
        compared += len(kept)
        text = generator.LIBRARY + "".join(f"@t{seed} = {term}\n" for seed, term in kept.items())
        text += f"@main = [{','.join(f'@t{seed}' for seed in kept)}]\n"
        path.write_text(text, encoding="utf-8")
        whole = evaluator.run(path)
        expected = "".join(line + "\n" for line in whole.lines), whole.interactions
        try:
            if all(normal(hvm, path, threads) == expected for threads in THREADS):
                continue
        except (AssertionError, subprocess.TimeoutExpired):
            pass
        alone = [f"seed {seed}: {difference}\n{term}" for seed, term in kept.items()
                 if (difference := differences(hvm, path, generator.LIBRARY + f"@main = {term}\n", False))]
        wrong += alone or [f"seeds {start} to {start + 59} together only"]
    assert not wrong, f"{len(wrong)} of {compared} wrong\n" + "\n\n".join(wrong[:10])
    assert compared > 0.999 * hvm_cases.TERMS, compared


def test_random_searches_have_the_same_normal_form_and_count(hvm, tmp_path):
    """In some of them variables leave their functions, so that they are bound after they were found free."""
    wrong = []
    ordered = (2667, 4305, 4324, 5213, 7547, 9932, 10251, 10562)  # an operand that comes too late decides their count, or refers to what it lies in
    for seed in (*range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS // 2), *ordered):
        text = searches.Search(seed).program()
        if difference := differences(hvm, tmp_path / "search.hvm4", text, False):
            wrong.append(f"seed {seed}: {difference}\n{text.removeprefix(searches.LIBRARY)}")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:10])


def test_random_terms_with_calls_of_nf_have_the_same_normal_form_and_count(hvm, tmp_path):
    """A call whose argument waits for a variable that may be bound later waits, too."""
    wrong = []
    for seed in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS // 4):
        for made in (searches.Search(seed, normalizes=True), generator.Generator(seed, normalizes=True)):
            text = made.program()
            if difference := differences(hvm, tmp_path / "term.hvm4", text, seed % 3 == 0):
                wrong.append(f"seed {seed}: {difference}\n{text}")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:10])


def test_random_terms_collapse_to_the_same_lines(hvm, tmp_path):
    wrong = []
    for seed in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS // 5):
        text = generator.Generator(seed, True).program()
        if difference := differences(hvm, tmp_path / "term.hvm4", text, True):
            wrong.append(f"seed {seed}: {difference}\n{text.removeprefix(generator.LIBRARY)}")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:10])


def characters(rng, depth=0):
    """Source of a string with superpositions, marks and now and then an erasure in any of its parts."""
    def mixed(part):
        kind = rng.random()
        if kind < 0.25:
            return f"&{rng.choice('AB')}{{{part()},{part()}}}"
        return f"↑({part()})" if kind < 0.3 else "&{}" if kind < 0.31 else part()

    def one():
        return "#CHR{" + mixed(lambda: str(rng.choice([rng.randrange(97, 123), 10, 955, 0x1F600]))) + "}"

    if depth == rng.randrange(1, 6):
        return mixed(lambda: "[]")
    return mixed(lambda: f"({mixed(one)} <> {characters(rng, depth + 1) if depth < 6 else '[]'})")


def waiting(rng, term, depth, variables):
    """The term inside `depth` forms that wait for it, each with an operand that may be a superposition or a variable."""
    for _ in range(depth):
        operand = variables.pop() if variables and rng.random() < 0.1 else rng.choice([str(rng.randrange(4)), "(1 + 2)", "&B{1,0}", "&A{2,5}", "(&C{0,3} + 1)", "&{}"][: 6 if rng.random() < 0.2 else 5])
        function = rng.choice([f"(λx.λy.x + {rng.randrange(3)} * y)", "λ{1: λy. y; λ&x. λy. y + x}", "λ{0: λ&y. y * y; λ{2: λy. 7; λx.λy.x - y}}", "&A{λx.λy.x,λx.λy.y}"])
        term = rng.choice([f"({term} {rng.choice(generator.OPERATORS)} {operand})", f"({operand} {rng.choice('+-*')} {term})", f"({term} === {operand})", f"({term} .&. {operand})", f"({term} .|. {operand})",
                           f"({function})({term}, {operand})", f"(λ{{3: {operand}; λn. n + 1}})({term})", f"(λ{{λn. n + 1}})({term})", f"(λx.λy. y + x)({operand})({term})", f"&({term}){{1,{operand}}}"])
    return term


@pytest.mark.parametrize("collapsed", [False, True], ids=["normal form", "collapse"])
def test_superpositions_pass_what_waits_for_them(collapsed, hvm, tmp_path):
    """Of a row of frames all at once: the same as one after the other."""
    path, wrong = tmp_path / "waiting.hvm4", []
    for seed in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS // 2):
        rng = random.Random(seed)
        variables = ["v", "w"]
        term = waiting(rng, rng.choice(["&A{1,2}", "&A{&B{0,3},1}", "&B{1,&C{2,&{}}}", "&A{1,↑2}", "&A{λx.x,2}", "&A{v,1}"]), rng.randrange(1, 14), variables)
        term = rng.choice([term, f"!x&A=({term}); #P{{x₀, x₁}}", f"!x&B=({term}); [x₁, x₀ + 1]", f"[{term}]"])
        text = f"@main = λv.λw. {term}\n" if seed % 3 == 0 else f"@main = {re.sub(r'[vw]', '4', term)}\n"
        if difference := differences(hvm, path, text, collapsed):
            wrong.append(f"seed {seed}: {difference}\n{text}")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:5])


def test_random_texts_are_logged_once_for_each_superposition(hvm, tmp_path):
    wrong, logged = [], 0
    for seed in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS // 2):
        rng = random.Random(seed)
        texts = [characters(rng) for _ in range(2)]
        text = f"@main = #P{{%log({texts[0]}), !x&A={texts[1]}; #Q{{%log(x₀), %log(x₁)}}}}\n"
        for collapsed in (False, True):
            difference = differences(hvm, tmp_path / "text.hvm4", text, collapsed)
            wrong += [f"seed {seed}: {difference}\n{text}"] * bool(difference)
        logged += len(judged(tmp_path / "text.hvm4", text).lines) > 4
    assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:5])
    assert logged > hvm_cases.TERMS // 20


def test_names_have_as_many_letters_as_they_need(write, hvm):
    names = ["".join(letters) for length in (1, 2, 3) for letters in itertools.product("abcdefghijklmnopqrstuvwxyz", repeat=length)][:800]
    path = write(f"@main = {''.join(f'λx{i}.' for i in range(800))}[{','.join(f'x{i}' for i in range(800))}]\n")
    expected = "".join(f"λ{name}." for name in names) + f"[{','.join(names)}]\n"
    for flags in ([], ["-C"]):
        assert hvm(path, *flags) == (0, expected, "")
    copies = "".join(f"!x{i}&L=y{i};" for i in range(60))
    path = write(f"@main = {''.join(f'λy{i}.' for i in range(60))}{copies}[{','.join(f'x{i}₀' for i in range(60))}]\n")
    upper = [name.upper() for name in names[:60]]
    dups = "".join(f"!{name}&L={variable};" for name, variable in zip(upper, names))
    assert hvm(path)[1] == "".join(f"λ{name}." for name in names[:60]) + "[" + ",".join(name + "₀" for name in upper) + "];" + dups + "\n"


@pytest.mark.parametrize("name, text, line, column", wrong_sources.WRONG, ids=[entry[0] for entry in wrong_sources.WRONG])
def test_parse_errors_name_their_place(name, text, line, column, hvm, tmp_path):
    path = tmp_path / "wrong.hvm4"
    path.write_text(text, encoding="utf-8")
    status, out, err = hvm(path)
    assert (status, out) == (1, "")
    place = err.split("\n")[0].removeprefix("PARSE_ERROR (").removesuffix(")").rsplit(":", 2)
    assert err.startswith("PARSE_ERROR (") and (line is None or place[1] == str(line)) and (column is None or place[2] == str(column)), err
    assert "- expected: " in err and "- detected: " in err, err


@pytest.mark.parametrize("text, message", wrong_sources.FAILING)
@pytest.mark.parametrize("flags", [[], ["-C"], ["-T", "4"]], ids=["normal form", "collapse", "threads"])
def test_failing_programs_print_their_error_only(text, message, flags, hvm, tmp_path):
    path = tmp_path / "failing.hvm4"
    path.write_text(text + "\n", encoding="utf-8")
    status, out, err = hvm(path, *flags)
    assert (status, out) == (1, "") and err.startswith(message), (status, out, err)


def test_what_is_detected_in_an_error_is_readable(write, hvm):
    for byte, name in (("\0", "U+0000"), ("\x1b", "U+001B"), ("\x7f", "U+007F")):
        assert hvm(write(f"@main = 1{byte}"))[2].endswith(f"- detected: the character {name}\n")


def test_bytes_that_are_no_utf8_are_refused(hvm, tmp_path):
    path = tmp_path / "bytes.hvm4"
    for bad in (b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf"):
        path.write_bytes(b'@main = "a' + bad + b'"\n')
        status, out, err = hvm(path)
        assert (status, out) == (1, "") and err, bad


def test_a_byte_order_mark_at_the_start_is_skipped(hvm, tmp_path):
    path = tmp_path / "marked.hvm4"
    path.write_text("\ufeff@main = 1 + 2\n", encoding="utf-8")
    assert hvm(path) == (0, "3\n", "")
    path.write_text("\ufeff@main = ?\n", encoding="utf-8")
    assert hvm(path)[2].startswith(f"PARSE_ERROR ({path}:1:9)")
    path.write_text("@main = \ufeff1\n", encoding="utf-8")
    assert hvm(path)[0] == 1


@pytest.mark.parametrize("element", ["x", "λy.x+y", "#P{x,λy.y}"])
def test_time_and_memory_grow_with_the_uses_of_a_variable(element, write, hvm):
    """With their square, 20,000 uses would take millions of words."""
    path = write(f"@main = (λ&x.[{','.join([element] * 20000)}])(7)\n")
    status, out, _ = hvm(path, "-S", "-s")
    assert (status, hvm_cases.interactions(out)[1]) == (0, 20000) and int(re.search(r"Heap: (\d+)", out)[1]) < 500_000
    path = write(f"@main = (λ&x.[{','.join([element] * 300)}])(7)\n")
    result = evaluator.run(path)
    assert normal(hvm, path) == (result.lines[0] + "\n", result.interactions)


def test_automatic_labels_end_before_the_reserved_one(write, hvm):
    """0x8000 to 0xfffe are 32767; a variable with that many uses and one more takes all of them."""
    program = "@main = (λ&x.[{}])(7)\n".format
    assert hvm(write(program(",".join("x" * 32768))))[0] == 0
    for text in (program(",".join("x" * 32769)), program(f"!&y = 1; [y,y,{','.join('x' * 32768)}]")):
        status, out, err = hvm(write(text))
        assert (status, out) == (1, "") and err.startswith("PARSE_ERROR") and "at most 32767 automatic labels" in err


def test_missing_files_are_an_error(hvm, tmp_path):
    status, out, err = hvm(tmp_path / "nothing.hvm4")
    assert (status, out) == (1, "") and "nothing.hvm4" in err
    for path, text in (("/dev/zero", ""), (tmp_path / "endless.hvm4", '#include "/dev/zero"\n')):
        if text:
            path.write_text(text, encoding="utf-8")
        assert hvm(path)[:2] == (1, "") and "it has more than 67108864 bytes" in hvm(path)[2]


def test_collapse_limits(hvm, tmp_path):
    path = tmp_path / "limits.hvm4"
    path.write_text("@nat = λ&n.&N{n,@nat(n+1)}\n@three = &a{0,&b{1,2}}\n@main = @three\n", encoding="utf-8")
    for limit, lines in ((0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (1000, 3)):
        assert hvm(path, f"-C{limit}")[:2] == (0, "".join(f"{k}\n" for k in range(lines)))
    path.write_text(path.read_text(encoding="utf-8").replace("@main = @three", "@main = @nat(0)"), encoding="utf-8")
    for limit in (0, 1, 300):
        for threads in THREADS:
            assert hvm(path, f"-C{limit}", "-T", threads)[:2] == (0, "".join(f"{k}\n" for k in range(limit)))


def test_lines_before_a_failure_stay(hvm, tmp_path):
    path = tmp_path / "lines.hvm4"
    path.write_text("@main = &a{1,&b{2,&c{3(4),5}}}\n", encoding="utf-8")
    for threads in THREADS:
        status, out, err = hvm(path, "-C", "-T", threads)
        assert (status, out) == (1, "1\n2\n") and err.startswith("RUNTIME_ERROR: cannot apply a number")


@pytest.mark.parametrize("text", ["@f = λ&n.n<>@f(n+1)\n@main = @f(0)", "@f = λ&n.1+@f(n+1)\n@main = @f(0)", "@f = λ&n.&A{&{},@f(n+1)}\n@main = @f(0)",
                                  "@f = λn.1+@f(n)\n@main = @f(0)", "@main = @main(1)", "@f = λn.%nf(@f(n))\n@main = @f(0)", "@f = λ&n.n<>@f(n+1)\n@main = %nf(@f(0))", "@f = λ&n.n<>@f(n+1)\n@main = [1,%gnf(@f(0))]",
                                  "@f = λn.(@f(n) === 1) + 1\n@main = @f(0)"],
                         ids=["heap", "stack", "queue", "stack without heap", "arguments", "natives", "heap of %nf", "heap of %gnf", "equalities"])
def test_exhausted_memory_is_an_error_without_a_result(text, hvm, tmp_path):
    path = tmp_path / "endless.hvm4"
    path.write_text(text + "\n", encoding="utf-8")
    status, out, err = hvm(path, "--memory", "64M", *(["-C"] if "&A" in text else []))
    assert (status, out) == (1, "") and err.strip()


@pytest.mark.parametrize("threads", THREADS)
def test_fuel_is_the_number_of_interactions_that_a_run_may_need(threads, hvm, tmp_path):
    path = tmp_path / "fuel.hvm4"
    path.write_text("@f = λ{0:0;1:1;λ&n.@f(n-1)+@f(n-2)}\n@main = [@f(9),@f(10)]\n", encoding="utf-8")
    needed = normal(hvm, path)[1]
    assert hvm(path, "--fuel", needed, "-T", threads)[:2] == (0, "[34,55]\n")
    for fuel in (0, 1, needed // 2, needed - 1):
        status, out, err = hvm(path, "--fuel", fuel, "-T", threads)
        assert (status, out, err) == (1, "", f"Error: more than {fuel} interactions (--fuel)\n")
    for text in ("@f = λn.@f(n)\n@main = @f(0)", "@f = λ&n.!!m = n+1; @f(m)\n@main = @f(0)", "@f = λ&n.&A{&{},@f(n)}\n@main = @f(0)", "@f = λ&n.1+@f(n)\n@main = @f(0)"):
        path.write_text(text + "\n", encoding="utf-8")
        for flags in ([], ["-C"]):
            assert hvm(path, "--fuel", 100000, "-T", threads, *flags) == (1, "", "Error: more than 100000 interactions (--fuel)\n"), (text, flags)
    path.write_text("@nat = λ&n.&N{n,@nat(n+1)}\n@main = @nat(0)\n", encoding="utf-8")
    status, out, err = hvm(path, "-C", "--fuel", 1000, "-T", threads)
    assert status == 1 and "--fuel" in err and out == "".join(f"{k}\n" for k in range(out.count("\n"))) and out
    assert hvm(path, "-C", "--fuel", 1000)[1] == out


def damaged(source, chance):
    """The bytes with some of them removed, repeated, exchanged or made random."""
    text = bytearray(source)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text))
        end = min(len(text), at + chance.choice((1, 1, 2, 8, 40)))
        kind = chance.randrange(5)
        if kind == 0:
            del text[at:end]
        elif kind == 1:
            text[at:at] = text[at:end] * chance.choice((1, 3, 200))
        elif kind == 2:
            text[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
        elif kind == 3:
            text[at:at] = chance.choice((b"(", b"\xce\xbb", b"&", b"!&x=", b"{", b"#", b"99999999999999999999", b"\"", b"'", b"%log(", b"\xe2\x86\x91", b"\0"))
        else:
            other = chance.randrange(len(text))
            text[at:end] = text[other : other + end - at]
        if not text:
            return b"@"
    return bytes(text)


def test_damaged_programs_end_with_a_result_or_an_error(hvm, tmp_path):
    sources, path, wrong = [case.path.read_bytes() for case in CASES], tmp_path / "damaged.hvm4", []
    for seed in range(hvm_cases.SEED, hvm_cases.SEED + hvm_cases.TERMS // 2):
        chance = random.Random(seed)
        path.write_bytes(damaged(chance.choice(sources), chance))
        flags = chance.choice(([], ["-C"], ["-C5"], ["-T", "3"]))
        try:
            status, _, err = hvm(path, "--fuel", 200000, "--memory", "64M", *flags)
        except subprocess.TimeoutExpired:
            status, err = "no end", ""
        if status not in (0, 1) or (status == 1 and not err):
            wrong.append(f"seed {seed} {flags}: status {status} {err[-300:]}")
    assert not wrong, "\n".join(wrong)
