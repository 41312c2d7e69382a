"""Kernels on disk: a later process finds them without the compiler, whatever else there is compiles anew."""
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT

PATHS = f"import sys; sys.path[:0] = {[str(ROOT / 'python'), str(BUILD / 'python')]!r}\n"
TELL = "\nprint('compiler' if 'libLLVM' in open('/proc/self/maps').read() else 'disk')\n"
KERNEL = """
import numpy as np
import metile

FACTOR = 3.0

@metile.kernel
def scale(X, Out, N, BLOCK: metile.constexpr):
    i = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + i, metile.load(X + i, mask=i < N) * FACTOR, mask=i < N)

x = np.random.default_rng().random(100, dtype=np.float32)
out = np.full(100, np.nan, np.float32)
scale[(2,)](x, out, 100, BLOCK=64)
assert np.array_equal(out, x * np.float32(FACTOR))
"""
PROGRAM = """
import numpy as np
import vortex

program = vortex.compile(source='''
kernel scale(x: &Tensor<f32, [N]>, factor: f32) -> Tensor<f32, [N]> { return x * factor }
kernel unused(x: &mut Tensor<f32, [N]>) { x[thread.global_id] = 1.0 }
''')
x = np.random.default_rng().random(100, dtype=np.float32)
assert np.array_equal(program.scale(x, 3.0), x * np.float32(3))
print(sorted(program.kernels), len(program.diagnostics))
"""


@pytest.fixture
def run(tmp_path):
    """Runs a script, written to a file, in a process of its own with a cache of its own."""

    def run_script(text, *options, check=True, **env):
        script = tmp_path / "script.py"
        script.write_text(PATHS + text + TELL)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("METILE", "VORTEX", "XDG"))}
        done = subprocess.run([sys.executable, *options, script], capture_output=True, text=True,
                              env=inherited | {"XDG_CACHE_HOME": str(tmp_path / "cache"), **env})
        assert done.returncode == 0 or not check, done.stderr
        return done

    run_script.folder = tmp_path / "cache/vortex"
    return run_script


def origin(done):
    return done.stdout.split()[-1]


@pytest.mark.parametrize("script", [KERNEL, PROGRAM], ids=["metile", "vortex"])
def test_a_second_process_needs_no_compiler(run, script):
    first, second = run(script), run(script)
    assert (origin(first), origin(second)) == ("compiler", "disk")
    assert first.stdout.split()[:-1] == second.stdout.split()[:-1]
    assert origin(run(script, VORTEX_NO_CACHE="1")) == "compiler"


@pytest.mark.parametrize("old,new", [("FACTOR = 3.0", "FACTOR = 4.0"), ("* FACTOR", "* 5.0 / 5.0 * FACTOR"), ("BLOCK=64", "BLOCK=128"), ("(2,)", "(2, 2)")])
def test_what_a_kernel_depends_on_is_part_of_its_key(run, old, new):
    run(KERNEL)
    changed = KERNEL.replace(old, new).replace("assert np.array_equal", "assert np.allclose")
    assert changed != KERNEL
    assert [origin(run(changed)), origin(run(changed))] == ["compiler", "disk"]


@pytest.mark.parametrize("old,new", [("x * factor", "x * factor * 1.0"), ("scale(x, 3.0)", "scale.launch(block=32)(x, 3.0)"), ("compile(source", "compile(dims={'N': 100}, source")])
def test_what_a_program_depends_on_is_part_of_its_key(run, old, new):
    run(PROGRAM)
    changed = PROGRAM.replace(old, new)
    assert changed != PROGRAM
    assert [origin(run(changed)), origin(run(changed))] == ["compiler", "disk"]


def test_settings_of_the_environment_are_part_of_the_key(run):
    run(KERNEL)
    assert origin(run(KERNEL, METILE_ONLINE_SOFTMAX="0")) == "compiler"
    assert origin(run(KERNEL, METILE_DISABLE_DISK_CACHE="1")) == "compiler"
    assert origin(run(KERNEL, METILE_CACHE_DIR=str(run.folder / "other"))) == "compiler"
    assert origin(run(KERNEL)) == "disk"


def test_code_elsewhere_in_the_file_is_no_part_of_the_key(run):
    run(KERNEL)
    assert origin(run(KERNEL + "\nprint('more')\n")) == "disk"


def test_programs_of_several_files_see_changes_of_each(run, tmp_path):
    (tmp_path / "other.vx").write_text("pub fn factor() -> f32 { return 2.0 }\n")
    (tmp_path / "main.vx").write_text("import other\nkernel scale(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * other.factor() }\n")
    script = f"""
import numpy as np
import vortex
print(vortex.compile({str(tmp_path / 'main.vx')!r}).scale(np.ones(3, np.float32))[0])
"""
    assert run(script).stdout.split()[0] == "2.0"
    (tmp_path / "other.vx").write_text("pub fn factor() -> f32 { return 7.0 }\n")
    assert run(script).stdout.split()[0] == "7.0"


def many_files(folder) -> str:
    for name, text in {"main.vx": "import shapes.area\nimport other\nkernel scale(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * other.factor() * area.one() }\n",
                       "other.vx": "import deep.inner\npub fn factor() -> f32 { return inner.two() }\n", "deep/inner.vx": "pub fn two() -> f32 { return 2.0 }\n",
                       "shapes/area.vx": "pub fn one() -> f32 { return 1.0 }\n"}.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text)
    return f"import numpy as np\nimport vortex\nprint(vortex.compile({str(folder / 'main.vx')!r}).scale(np.ones(3, np.float32))[0])\n"


def test_a_program_of_several_files_needs_no_compiler_the_second_time(run, tmp_path):
    script = many_files(tmp_path / "program")
    for where in ("compiler", "disk", "disk"):
        assert run(script).stdout.split() == ["2.0", where]


@pytest.mark.parametrize("file, text, result", [
    ("other.vx", "pub fn factor() -> f32 { return 7.0 }\n", "7.0"), ("deep/inner.vx", "pub fn two() -> f32 { return 5.0 }\n", "5.0"),
    ("shapes/area.vx", "pub fn one() -> f32 { return 3.0 }\n", "6.0"), ("unrelated.vx", "pub fn one() -> f32 { return 3.0 }\n", "2.0")])
def test_a_program_depends_on_each_of_its_files(run, tmp_path, file, text, result):
    script = many_files(tmp_path / "program")
    run(script)
    (tmp_path / "program" / file).write_text(text)
    assert run(script).stdout.split() == [result, "disk" if result == "2.0" else "compiler"]
    assert run(script).stdout.split() == [result, "disk"]


def test_a_file_that_is_imported_instead_of_another_is_seen(run, tmp_path):
    folder = tmp_path / "program"
    script = many_files(folder)
    (folder / "other.vx").write_text("import deep.value\npub fn factor() -> f32 { return value() }\n")
    (folder / "deep.vx").write_text("pub fn value() -> f32 { return 4.0 }\n")
    for where in ("compiler", "disk"):
        assert run(script).stdout.split() == ["4.0", where]
    (folder / "deep/value.vx").write_text("pub fn value() -> f32 { return 9.0 }\n")
    (folder / "other.vx").write_text("import deep.value\npub fn factor() -> f32 { return value() }\n")
    done = run(script, check=False)  # `value` is the module deep/value.vx now
    assert done.returncode != 0 and "CompileError" in done.stderr, (done.stdout, done.stderr)
    (folder / "deep/value.vx").unlink()
    assert run(script).stdout.split()[0] == "4.0"
    for name in ("deep.vx", "deep"):
        (folder / name).rename(folder / f"gone_{name}")
    assert run(script, check=False).returncode != 0


def test_the_standard_library_is_a_part_of_the_key(run, tmp_path):
    script = """
import numpy as np
import vortex
program = vortex.compile(source="import image.pgm\\nkernel scale(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }")
print(program.scale(np.ones(3, np.float32))[0])
"""
    assert [run(script).stdout.split() for _ in range(2)] == [["2.0", "compiler"], ["2.0", "disk"]]


def test_errors_are_found_by_every_process(run):
    wrong = PROGRAM.replace("return x * factor", "return y * factor")
    for _ in range(2):
        done = run(wrong, check=False)
        assert done.returncode != 0 and "vortex._errors.CompileError" in done.stderr and "`y`" in done.stderr, done.stderr


def test_warnings_are_told_by_every_process_at_the_launch(run):
    not_proven = KERNEL.replace("(2,)", "(2, 2)")  # instances of one store the same elements
    line = next(number for number, text in enumerate((PATHS + not_proven).splitlines(), 1) if text.startswith("scale[(2, 2)]"))
    texts = [run(not_proven).stderr for _ in range(2)]
    assert f"script.py:{line}: UserWarning: warning[W0631]" in texts[0], texts[0]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("script", [KERNEL, PROGRAM], ids=["metile", "vortex"])
@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[: len(content) // 2], lambda content: content[:-1] + bytes([content[-1] ^ 1]),
                                    lambda content: b"x" * len(content)], ids=["empty", "cut off", "one bit", "other bytes"])
def test_damaged_entries_are_compiled_anew(run, script, damage):
    run(script)
    for entry in run.folder.glob("??/*"):
        entry.write_bytes(damage(entry.read_bytes()))
    assert [origin(run(script)), origin(run(script))] == ["compiler", "disk"]


@pytest.mark.parametrize("script", [KERNEL, PROGRAM], ids=["metile", "vortex"])
def test_a_cache_that_cannot_be_written_is_a_warning_and_the_kernel_runs(run, script, tmp_path):
    (tmp_path / "file").write_text("")
    done = run(script, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.stderr.count("RuntimeWarning: kernels are not cached: ") == 1, done.stderr
    assert str(tmp_path / "file") in done.stderr


def test_a_full_disk_is_a_warning_and_leaves_no_half_entry(run):
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (512, resource.RLIM_INFINITY))\n"
    done = run(limit + KERNEL, "-B")
    assert "RuntimeWarning: kernels are not cached: cannot write" in done.stderr and "File too large" in done.stderr, done.stderr
    assert [path for path in pathlib.Path(run.folder).rglob("*") if path.is_file() and path.name != "lock"] == []
    assert origin(run(KERNEL)) == "compiler"


@pytest.mark.parametrize("folder", ["file/cache", "dev"])
def test_winners_that_cannot_be_kept_are_found_again(run, tmp_path, folder):
    (tmp_path / "file").write_text("")
    tuned = KERNEL.replace("@metile.kernel", "@metile.autotune(configs=[metile.Config(BLOCK=32), metile.Config(BLOCK=64)], key=['N'], rep=1, warmup=1)\n@metile.kernel")
    tuned = tuned.replace("(x, out, 100, BLOCK=64)", "(x, out, 100)").replace("(2,)", "lambda chosen: metile.cdiv(100, chosen['BLOCK'])")
    for _ in range(2):
        done = run(tuned, METILE_CACHE_DIR=str(tmp_path / folder) if folder != "dev" else "/dev/null/cache")
        assert "autotune scale" in done.stdout and "Traceback" not in done.stderr, done.stderr
