"""Kernels from wherever Python lets functions come, and messages that show their source as it was when they were defined."""
import code
import importlib
import itertools
import linecache
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import BUILD, ROOT

import metile

_numbers = itertools.count()

BEFORE = """import metile

@metile.kernel
def kernel(X, Out, N, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    x = metile.load(X + offs, mask=offs < N)
"""
AFTER = "    metile.store(Out + offs, x, mask=offs < N)\n"
STATEMENT_LINE = BEFORE.count("\n") + 1
TRACED = "    x = x if x > 0 else 1.0\n"  # refused while the kernel is traced
COMPILED = "    x = x << 1\n"  # refused by the compiler
GOOD = "    x = x * 1.0\n"


def launch(kernel):
    x, out = np.arange(40, dtype=np.float32), np.full(40, np.nan, np.float32)
    kernel[2](x, out, 40, BLOCK=32)
    np.testing.assert_array_equal(out, x)


def refusal(kernel, statement):
    with pytest.raises(TypeError if statement == TRACED else metile.LoweringError) as raised:
        launch(kernel)
    return str(raised.value)


def executed(text, filename="<string>"):
    names = {"__name__": "somewhere"}
    exec(compile(text, filename, "exec"), names)
    return names["kernel"]


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Imports a module with this text; gives it and its path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def made(text):
        name = f"definitions_{next(_numbers)}"
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name), path

    return made


@pytest.mark.parametrize("statement", [TRACED, COMPILED], ids=["traced", "compiled"])
@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"], ids=["", "string annotations"])
def test_kernels_of_exec_run_and_name_their_line(statement, future):
    launch(executed(future + BEFORE + GOOD + AFTER))
    assert f"--> <string>:{STATEMENT_LINE + future.count(chr(10))}" in refusal(executed(future + BEFORE + statement + AFTER), statement)


def test_kernels_typed_at_the_prompt_run_and_name_their_line():
    console = code.InteractiveConsole({})
    for line in (BEFORE + TRACED + AFTER).splitlines() + [""]:
        console.push(line)
    first = 3  # the input with the definition begins at the decorator
    assert f"--> <console>:{STATEMENT_LINE - first + 1}" in refusal(console.locals["kernel"], TRACED)


@pytest.mark.parametrize("statement", [TRACED, COMPILED], ids=["traced", "compiled"])
def test_kernels_of_notebooks_show_the_cell(statement):
    cell, name = BEFORE + statement + AFTER, f"<ipython-input-{os.getpid()}-{statement == TRACED}>"
    linecache.cache[name] = len(cell), None, cell.splitlines(True), name
    text = refusal(executed(cell, name), statement)
    assert f"--> {name}:{STATEMENT_LINE}:" in text and statement.strip() in text and "^" in text


def test_a_lambda_is_a_kernel():
    out = np.zeros(3, np.float32)
    metile.kernel(lambda Out: metile.store(Out + 1, 3.0))[1](out)
    np.testing.assert_array_equal(out, [0, 3, 0])
    with pytest.raises(TypeError, match="pointer \\+ offsets") as raised:
        metile.kernel(lambda Out: metile.store(Out, 3.0))[1](out)
    line = next(number for number, text in enumerate(open(__file__), 1) if "lambda Out: metile.store(Out, 3.0)" in text)
    assert f"--> {__file__}:{line}:" in str(raised.value)


def test_a_kernel_decorated_twice_is_the_kernel(module):
    made, _ = module(BEFORE + GOOD + AFTER)
    twice = metile.kernel(metile.kernel(made.kernel))
    assert twice.fn is made.kernel.fn
    launch(twice)


@pytest.mark.parametrize("statement", [TRACED, COMPILED], ids=["traced", "compiled"])
@pytest.mark.parametrize("now", [None, b"", b"import metile\n", b"# more\n" * 100, b"\xff\xfe\n" * 50, b"\0" * 50], ids=["removed", "empty", "short", "longer", "no text", "zeros"])
def test_a_file_that_changed_since_its_import_is_shown_as_it_was(module, statement, now):
    made, path = module(BEFORE + statement + AFTER)
    if now is None:
        path.unlink()
    else:
        path.write_bytes(now)
    text = refusal(made.kernel, statement)
    assert f"--> {path}:{STATEMENT_LINE}:" in text and statement.strip() in text


@pytest.mark.parametrize("statement", [TRACED, COMPILED], ids=["traced", "compiled"])
@pytest.mark.parametrize("before", ["    ", "    é = 'ü𝔘ß'; ", "    if True:\n    \t", "    if True:\n\t\t\t"], ids=["plain", "letters", "tabs", "tabs only"])
def test_the_caret_is_under_the_expression(module, statement, before):
    try:
        made, path = module(BEFORE + before + statement.lstrip() + AFTER)
    except TabError:
        pytest.skip("Python refuses this mixture")
    text = refusal(made.kernel, statement)
    expression = "x > 0" if statement == TRACED else "x << 1"
    if sys.version_info < (3, 11):  # all of the line
        expression = (before.rpartition("\n")[2] + statement.lstrip()).strip()
    source, marks = next((above, below) for above, below in zip(text.splitlines(), text.splitlines()[1:]) if set(below) <= set(" ^|\t") and "^" in below)
    at = marks.index("^")
    assert source[at: at + len(expression)].replace("\t", " ") == expression
    assert len(marks) - at == len(expression)
    column = int(re.search(r":(\d+)\n", text).group(1))
    line = path.read_text(encoding="utf-8").splitlines()[STATEMENT_LINE - 1 + before.count("\n")]
    assert line[column - 1:].startswith(expression)


def test_an_expression_of_several_lines_is_marked_where_it_begins(module):
    made, path = module(BEFORE + "    x = (x +\n         (1.0 if x > 0\n          else 2.0))\n" + AFTER)
    assert f"--> {path}:{STATEMENT_LINE + 1}:{18 if sys.version_info >= (3, 11) else 10}" in refusal(made.kernel, TRACED)


def test_helpers_of_other_files_are_named_by_their_own_line(module):
    helper, path = module("def choose(x):\n    return x if x > 0 else 1.0\n")
    made, _ = module(BEFORE.replace("import metile\n", f"import metile; from {helper.__name__} import choose\n") + "    x = choose(x)\n" + AFTER)
    text = refusal(made.kernel, TRACED)
    assert f"--> {path}:2:" in text and "return x if x > 0" in text


def test_threads_that_launch_one_kernel_get_their_own_results(module):
    made, _ = module(BEFORE + GOOD + AFTER)
    other, _ = module(BEFORE + TRACED + AFTER)
    failures = []

    def work(seed):
        try:
            random = np.random.default_rng(seed)
            for block in random.permutation([32, 64, 96, 128, 160, 192]):
                x = random.random(400, dtype=np.float32)
                out = np.full(400, np.nan, np.float32)
                made.kernel[metile.cdiv(400, int(block))](x, out, 400, BLOCK=int(block))
                if not np.array_equal(out, x):
                    failures.append("other results")
                assert f":{STATEMENT_LINE}:" in refusal(other.kernel, TRACED)
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=3600)
    assert failures == []
    assert len(made.kernel._specialised) == 6


def test_operations_in_a_thread_of_a_kernel_are_outside_of_it():
    found = []

    def elsewhere():
        try:
            metile.program_id(0)
        except RuntimeError as error:
            found.append(str(error))

    @metile.kernel
    def kernel(Out):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        metile.store(Out + 0, 1.0)

    kernel[1](np.zeros(1, np.float32))
    assert found == ["metile.program_id is used outside a kernel"]


SCRIPT = f"""
import os, signal, sys, threading, time
sys.path[:0] = {[str(ROOT / 'python'), str(BUILD / 'python')]!r}
import numpy as np
import metile, vortex

@metile.kernel
def scale(X, Out, N, TIMES: metile.constexpr, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    x = metile.load(X + offs, mask=offs < N)
    for _ in metile.tile_range(0, TIMES):
        x = metile.sin(x)
    metile.store(Out + offs, x, mask=offs < N)

n = 1 << 16
x = np.random.default_rng().random(n, dtype=np.float32)
def run(times, block=1024):
    out = np.full(n, np.nan, np.float32)
    scale[metile.cdiv(n, block)](x, out, n, TIMES=times, BLOCK=block)
    expected = x.astype(np.float64)
    for _ in range(times):
        expected = np.sin(expected)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
"""


def runs(text, seconds=60):
    done = subprocess.run([sys.executable, "-c", SCRIPT + text], capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_forked_process_launches_old_and_new_kernels(device):
    if device.startswith("cuda"):
        pytest.skip("CUDA works in no forked process: test_gpu_arrays.py has what it says")
    assert runs("""
program = vortex.compile(source="kernel twice(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }")
run(1)
np.testing.assert_array_equal(program.twice(x), x * 2)
for _ in range(3):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        run(1)
        run(2, 512)
        buffer, out = metile.Buffer(data=x), metile.Buffer((n,))
        scale[n // 1024](buffer, out, n, TIMES=0, BLOCK=1024)
        np.testing.assert_array_equal(out.numpy(), x)
        np.testing.assert_array_equal(program.twice(x), x * 2)
        np.testing.assert_array_equal(vortex.compile(source="kernel half(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 0.5 }").half(x), x / 2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    run(1)
print("done")
""") == ["done"]


def test_ctrl_c_while_a_kernel_is_compiled_or_waited_for_leaves_the_process_well():
    assert runs("""
def interrupted(work):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background starts with it ignored
    timer = threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        work()
        time.sleep(1)
    except KeyboardInterrupt:
        return
    raise SystemExit("not interrupted")

@metile.kernel
def long(X, BLOCK: metile.constexpr):
    lanes = metile.arange(0, BLOCK)
    x = metile.load(X + lanes)
    for i in range(300):
        x = metile.sin(x) + i
    metile.store(X + lanes, x)

interrupted(lambda: long[1](x.copy(), BLOCK=64))
run(3)
interrupted(lambda: run(200))
interrupted(lambda: (run(200), metile.Device.get().sync()))
interrupted(lambda: metile.Device.get().sync())
run(3)
print("done")
""") == ["done"]


def test_arrays_that_nobody_holds_any_more_are_used_to_the_end():
    assert runs("""
import gc
out = metile.Buffer((n,))
for i in range(50):
    data = x + np.float32(i)
    expected = data.copy()
    scale[n // 1024](metile.Buffer(data=data), out, n, TIMES=0, BLOCK=1024)
    del data
    gc.collect()
    np.empty(n, np.float32).fill(np.nan)
    np.testing.assert_array_equal(out.numpy(), expected)
prepared = scale[n // 1024].prepare(metile.Buffer(data=x.copy()), out, n, TIMES=0, BLOCK=1024)
gc.collect()
out.numpy()[:] = 0
prepared.repeat(3)
np.testing.assert_array_equal(out.numpy(), x)
print("done")
""") == ["done"]


def test_signals_are_as_they_were():
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)
