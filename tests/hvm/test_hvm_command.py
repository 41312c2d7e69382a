"""The command line of `vortex hvm`: options, statistics, and what is refused."""
import os
import re
import subprocess

import pytest


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "sum.hvm4"
    path.write_text("@main = &a{1 + 2, 4}\n", encoding="utf-8")
    return path


def test_run_and_the_small_program_do_the_same(file, program):
    expected = subprocess.run([program, "hvm", file, "-C"], capture_output=True, text=True, check=True).stdout
    assert expected == "3\n4\n"
    assert subprocess.run([program, "run", file, "-C"], capture_output=True, text=True, check=True).stdout == expected
    small = program.parent / "hvm"
    if small.exists():
        assert subprocess.run([small, file, "-C"], capture_output=True, text=True, check=True).stdout == expected


@pytest.mark.parametrize("text", ["@main = 1(2)\n", "@main = \n", "@f = 1\n", None], ids=["runtime", "parse", "no main", "no file"])
def test_a_failing_program_fails_alike_in_all_commands(text, program, tmp_path):
    path = tmp_path / "failing.hvm4"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    failed = [subprocess.run([program, *command, path], capture_output=True, text=True) for command in (["hvm"], ["run"])]
    assert [(one.returncode, one.stdout) for one in failed] == [(1, "")] * 2 and failed[0].stderr == failed[1].stderr != ""
    refused = subprocess.run([program, "--json", "run", path], capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (1, "") and "unknown option --json" in refused.stderr


def test_statistics_have_their_form(file, hvm):
    lines = hvm(file, "-s")[1].splitlines()
    forms = [r"&a\{3,4\}", r"- Itrs: 1 interactions", r"- Heap: \d+ nodes", r"- Time: \d+\.\d{3} seconds", r"- Perf: \d+\.\d\d M interactions/s"]
    assert len(lines) == len(forms) and all(re.fullmatch(form, line) for form, line in zip(forms, lines)), lines
    assert hvm(file, "-S")[1] == "- Itrs: 1 interactions\n"
    assert [line.split(":")[0] for line in hvm(file, "-S", "-s", "-T", "2")[1].splitlines()[:3]] == ["- Itrs", "- Itrs[0]", "- Itrs[1]"]
    assert [line.split(" #")[0] for line in hvm(file, "-s", "-C")[1].splitlines()[:2]] == ["3", "4"]


@pytest.mark.parametrize("spelling", [["-C1"], ["--collapse=1"], ["-C1", "-T3"], ["-C1", "--threads=3"], ["-C1", "--memory", "64M"], ["-C1", "--seed=9"],
                                      ["-C1", "--device", "cpu"], ["-C1", "--device", "cuda"], ["-C1", "--device", "cuda:0"]], ids=" ".join)
def test_options_have_several_spellings(spelling, file, hvm):
    """A GPU is opened when something is computed on it, so its names are taken with and without one."""
    assert hvm(file, *spelling) == (0, "3\n", "")


@pytest.mark.parametrize("words, named", [(["--device", "tpu:0"], "tpu:0"), (["--device", ""], "--device"), (["--device="], "--device"), (["--device", "cudas"], "'cudas'"),
                                          (["--device", "cuda:x"], "cuda:x"), (["--device", "cuda:-1"], "cuda:-1"), (["-Cx"], "-Cx"), (["-T", "0"], "0"), (["-T"], "-T"),
                                          (["--memory", "much"], "much"), (["--memory", "0"], "0"), (["--memory", "255K"], "255K: the limit is between 256K and 256G"), (["--memory", "257G"], "257G"), (["--write-slices", "net"], "--write-slices needs --device"), (["--to-c"], "--to-c"), (["second.hvm4"], "second.hvm4"),
                                          (["--threads=x"], "x"), (["-C18446744073709551616"], "-C18446744073709551616")], ids=lambda value: " ".join(value))
def test_wrong_options_are_named(words, named, file, hvm):
    status, out, err = hvm(file, *words)
    assert (status, out) == (1, "") and err.startswith("Error: ") and named in err


@pytest.mark.skipif(bool(os.environ.get("VORTEX_SANITIZED")), reason="sanitizers reserve terabytes")
@pytest.mark.parametrize("threads", ["1", "16"])
def test_the_memory_limit_follows_that_of_address_space(threads, file, program):
    limited = ["bash", "-c", 'ulimit -v 6000000; exec "$@"', "bash", program, "hvm", file, "-T", threads]
    assert subprocess.run(limited, capture_output=True, text=True).stdout == "&a{3,4}\n"
    refused = subprocess.run([*limited, "--memory", "64G"], capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (1, "") and "address space (--memory, ulimit -v)" in refused.stderr


def test_no_file_is_an_error(program):
    done = subprocess.run([program, "hvm", "-C"], capture_output=True, text=True)
    assert done.returncode == 1 and "no file" in done.stderr


@pytest.fixture
def without_gpu(program, tmp_path):
    """run(text): what --device cuda:0 does where there is no driver."""
    def run(text):
        path = tmp_path / "program.hvm4"
        path.write_text(text, encoding="utf-8")
        return subprocess.run([program, "hvm", path, "-s", "--device", "cuda:0"], capture_output=True, text=True, env={**os.environ, "VORTEX_LIBCUDA": "/nowhere/libcuda.so"})
    return run


def test_a_gpu_is_opened_when_there_are_tasks_for_it(without_gpu):
    narrow = without_gpu("@count = λ{0: 0; λn. 1 + @count(n - 1)}\n@main = %gnf(@count(300000))\n")
    assert narrow.returncode == 0 and narrow.stdout.splitlines()[0] == "300000" and "Itrs[cuda:0]" not in narrow.stdout
    wide = without_gpu("@fib = λ{0: 0; 1: 1; λ&n. @fib(n - 1) + @fib(n - 2)}\n@main = %gnf(@fib(25))\n")
    assert (wide.returncode, wide.stdout) == (1, "") and wide.stderr.startswith("Error: ") and "libcuda" in wide.stderr
