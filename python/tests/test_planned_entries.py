"""Entry points of kernels for a GPU are made when launches first need them: over the stand-in driver, which runs nothing."""
import pathlib

import pytest
from test_gpu_arrays import FAKE
from test_kept import origin, run  # noqa: F401 (a fixture)

PRODUCT = """
import numpy as np
import vortex

program = vortex.compile(source='''
kernel mm(a: &Tensor<f16, [M, K]>, b: &Tensor<f16, [K, N]>) -> Tensor<f16, [M, N]> { return a @ b }
''', device="cuda:0")

def operands(m, k, n):
    return [vortex.asarray(np.zeros(shape, np.float16), "cuda:0") for shape in ((m, k), (k, n))]

program.mm(*operands(256, 256, 256))
"""
ODD = "program.mm(*operands(255, 255, 255))\n"


@pytest.fixture
def launches(run):
    """Runs a script on the stand-in; where its code came from, and the files of the cache."""
    if not FAKE.exists():
        pytest.skip("the stand-in driver is not built")

    def launch(text, **settings):
        return run(text, VORTEX_LIBCUDA=str(FAKE), **settings)

    launch.files = lambda: {path for path in pathlib.Path(run.folder).rglob("*") if path.is_file() and path.name != "lock"}
    return launch


def test_a_later_process_needs_no_compiler_for_the_launches_of_earlier_ones(launches):
    assert origin(launches(PRODUCT)) == "compiler"
    kept = launches.files()
    assert 4 <= len(kept) <= 12, kept  # the program, its kernel, the plan; text and, but for roles, machine code of one to three entry points
    assert origin(launches(PRODUCT)) == "disk" and launches.files() == kept
    assert origin(launches(PRODUCT + ODD)) == "compiler"  # from the plan
    assert origin(launches(PRODUCT + ODD)) == "disk"
    assert launches.files() > kept


def test_what_is_lost_of_a_kernel_is_made_again(launches):
    launches(PRODUCT)
    kept = launches.files()
    for path in sorted(kept, key=lambda path: -path.stat().st_size)[:2]:  # the plan is one of them
        path.unlink()
    assert launches(PRODUCT + ODD).stderr == ""
    assert kept < launches.files()
    for path in launches.files():
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert launches(PRODUCT + ODD).stderr == ""
    assert origin(launches(PRODUCT + ODD)) == "disk"


def test_a_program_whose_files_changed_is_not_mixed_with_what_it_was(launches, tmp_path):
    (tmp_path / "other.vx").write_text("pub fn factor() -> f16 { return 2.0 }\n")
    (tmp_path / "main.vx").write_text("import other\nkernel mm(a: &Tensor<f16, [M, K]>, b: &Tensor<f16, [K, N]>) -> Tensor<f16, [M, N]> { return (a @ b) * other.factor() }\n")
    script = PRODUCT.replace(PRODUCT[PRODUCT.index("source="):PRODUCT.index(", device")], repr(str(tmp_path / "main.vx")))
    launches(script)
    lose = f"""
import pathlib
for path in sorted(pathlib.Path({str(tmp_path / 'cache')!r}).rglob("*"), key=lambda path: -path.stat().st_size)[:3]:
    path.unlink()
pathlib.Path({str(tmp_path / 'other.vx')!r}).write_text("pub fn factor() -> f16 {{ return 3.0 }}")
try:
    {ODD.strip()}
    print("no error")
except RuntimeError as error:
    print(str(error).split(": ")[-2].split(" since ")[0])
"""
    assert "the files of the program have changed" in launches(script + lose).stdout


def test_an_entry_point_that_cannot_be_kept_is_a_warning_and_the_launch_runs(launches, tmp_path):
    (tmp_path / "file").write_text("")
    done = launches(PRODUCT + ODD, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.stderr.count("RuntimeWarning: ") == 1 and "not cached" in done.stderr, done.stderr
    launches(PRODUCT)
    folder = str(tmp_path / "cache")
    full = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (512, resource.RLIM_INFINITY))
"""
    done = launches(full + PRODUCT + ODD)
    assert done.stderr.count("RuntimeWarning: kernels are not cached: ") == 1, done.stderr
    errors = launches("import warnings; warnings.simplefilter('error')\n" + full + PRODUCT + ODD)
    assert "RuntimeWarning: kernels are not cached" in errors.stderr and "ignored" in errors.stderr, (folder, errors.stderr)


def test_nothing_is_kept_where_nothing_shall_be(launches):
    assert origin(launches(PRODUCT + ODD, VORTEX_NO_CACHE="1")) == "compiler"
    assert len(launches.files()) <= 4  # machine code that the driver's side keeps


def test_threads_that_first_need_an_entry_point_together_do_not_wait_for_ever(launches):
    """Some prepare a launch, some make one; the compiler is loaded by whoever comes first."""
    launches(PRODUCT)
    done = launches(PRODUCT + """
import faulthandler, threading
faulthandler.dump_traceback_later(120, exit=True)
for shape in ((255, 255, 255), (64, 512, 8), (2048, 2048, 2048)):
    given = operands(*shape)
    start = threading.Barrier(6)
    def work(number):
        start.wait()
        (program.mm.prepare(*given) if number % 2 else program.mm)(*(() if number % 2 else given))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("ended")
""")
    assert "ended" in done.stdout and done.stderr == "", done.stderr


def test_facts_are_those_of_the_whole_code(launches):
    done = launches(PRODUCT + "print(program.mm.facts()['ptx_bytes'])\n")
    assert 200_000 < int(done.stdout.split()[0]) < 2_000_000


def test_programs_end_while_their_kernels_are_compiled(launches):
    """A daemon thread has the compiler make an entry point when Python ends."""
    done = launches(PRODUCT + """
import threading, time
given = operands(255, 255, 255)
threading.Thread(target=lambda: program.mm(*given), daemon=True).start()
time.sleep(0.02)
""")
    assert done.stderr == "", done.stderr


def test_a_program_is_freed_with_its_kernels(launches):
    done = launches(PRODUCT + """
import gc, weakref
seen = weakref.ref(program)
del program
gc.collect()
print(seen() is None)
""")
    assert done.stdout.split()[0] == "True"
