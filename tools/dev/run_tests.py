#!/usr/bin/env python3
"""Builds and runs every test. Use ./test, which prepares the machine first. Ends with one line `N passed, N failed`."""
import argparse
import json
import os
import pathlib
import re
import resource
import secrets
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIT = "/usr/lib/llvm-19/build/utils/lit/lit.py"
SLOW_FOLDERS = ("soundness", "nvidia")
SHARDS = 4  # processes per suite of unit tests: a slow suite keeps every core busy
PASSED_TEST = re.compile(r"^\[ RUN      \] (\S+)\n(?:(?!\[ RUN ).*\n)*?\[       OK \] \1 .*\n", re.MULTILINE)  # with what it printed
# Only what hangs is stopped: a busy machine may take many times what an idle one does.
HANGS_AFTER_S = 3600
# LLVM's libraries are not instrumented and keep their registries until exit.
ADDRESS_ENV = {"ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0:allocator_may_return_null=1",
                 "UBSAN_OPTIONS": "print_stacktrace=1", "VORTEX_SANITIZED": "1"}
THREAD_ENV = {"TSAN_OPTIONS": "halt_on_error=0", "VORTEX_SANITIZED": "1"}
# What has threads of its own; the compiler has none, and LLVM is not instrumented.
THREADED_SUITES = [f"vortex_{name}_test" for name in ("runtime_hal", "runtime_null", "runtime_cpu", "runtime_cuda", "api_runtime", "hvm")]


class Totals:
    def __init__(self):
        self.passed = self.failed = 0

    def add(self, name, passed, failed, seconds, output=""):
        self.passed += passed
        self.failed += failed
        print(f"{'FAIL' if failed else 'ok':4} {name}: {passed} passed, {failed} failed ({seconds:.1f} s)", flush=True)
        if failed and output.strip():
            print(output.rstrip(), flush=True)


def command(*arguments, env=None, timeout=HANGS_AFTER_S):
    """(status, combined output, seconds); a timeout is status 124."""
    start = time.monotonic()
    try:
        done = subprocess.run([str(a) for a in arguments], cwd=ROOT, env={**os.environ, **(env or {})}, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        return done.returncode, done.stdout, time.monotonic() - start
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b"").decode(errors="replace")
        return 124, text + f"\ntimed out after {timeout} s", time.monotonic() - start


def check(totals, name, *arguments):
    status, output, seconds = command(*arguments)
    totals.add(name, int(status == 0), int(status != 0), seconds, output)


def build(totals, folder, options, targets, jobs):
    """Configures and builds; what cannot be built is one failure and its tests do not run."""
    start = time.monotonic()
    rules = ROOT / folder / "build.ninja"
    if not rules.exists() or (not options and "vortex_python" not in rules.read_text()):  # configured before .venv was there
        status, output, seconds = command("tools/dev/configure", folder, *options)
        if status:
            totals.add(f"configure {folder}", 0, 1, seconds, output)
            return False
    # One failing target must not hide the tests of the others.
    status, output, _ = command("ninja", "-C", folder, f"-j{jobs}", "-k0", *targets)
    failures = [line for line in output.splitlines() if not re.match(r"^\[\d+/\d+\]|^ninja: (Entering|no work)", line)]
    totals.add(f"build {folder}", int(status == 0), int(status != 0), time.monotonic() - start, "\n".join(failures[-80:]))
    return True


def registered_tests(folder):
    status, output, _ = command("ctest", "--test-dir", folder, "--show-only=json-v1")
    if status:
        return []
    return [(test["name"], test["command"]) for test in json.loads(output)["tests"] if "command" in test]


def run_shard(argv, pattern, env, shard):
    wanted = [f"--gtest_filter=*{pattern}*"] if pattern else []
    sharded = {"GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(shard)}
    status, output, seconds = command(*argv, *wanted, env={**(env or {}), **sharded})
    output = PASSED_TEST.sub("", output)
    counts = {word: int(number) for word, number in re.findall(r"\[  (PASSED|FAILED)  \] (\d+) tests?[.,]", output)}
    passed, failed = counts.get("PASSED", 0), counts.get("FAILED", 0)
    if status and not failed:  # a crash, or a sanitizer's finding at the end
        failed, output = 1, output + f"\n{argv[0]}, shard {shard} of {SHARDS}, ended with status {status}"
    return passed, failed, seconds, output if failed else ""


def run_gtests(totals, folder, pattern, jobs, env=None, suites=None):
    """Every suite in shards, so that all cores work on the slow ones too."""
    tests = [(name, argv) for name, argv in registered_tests(folder) if suites is None or name in suites]
    with ThreadPoolExecutor(jobs) as pool:
        started = []
        for name, argv in tests:
            own = "" if not pattern or pattern in name else pattern
            built = pathlib.Path(argv[0]).exists()
            started.append((name, own, [pool.submit(run_shard, argv, own, env, shard) for shard in range(SHARDS)] if built else None))
        for name, own, shards in started:
            results = [shard.result() for shard in shards] if shards else [(0, 1, 0, "not built")]
            passed, failed, seconds, outputs = zip(*results)
            if sum(passed) or sum(failed) or not own:
                totals.add(f"{folder}/{name}" if folder != "build" else name, sum(passed), sum(failed), sum(seconds), "\n".join(filter(None, outputs)))


def run_lit(totals, folder, pattern, jobs, env=None):
    if not (ROOT / folder / "bin/vx-opt").exists() and not (ROOT / folder / "bin/vortex").exists():
        return
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        arguments = ["--filter", pattern] if pattern else []
        status, output, seconds = command(sys.executable, LIT, "-q", f"-j{jobs}", "--allow-empty-runs", "--output", report.name,
                                          f"-Dbuild={ROOT / folder}", *arguments, ROOT / "src", ROOT / "tests", env=env)
        if "filter did not match any tests" in output:
            return
        try:
            codes = [test["code"] for test in json.load(open(report.name))["tests"]]
        except ValueError:
            totals.add("lit", 0, 1, seconds, output)
            return
    failed = sum(code in ("FAIL", "XPASS", "UNRESOLVED", "TIMEOUT") for code in codes)
    passed = sum(code in ("PASS", "XFAIL", "FLAKYPASS") for code in codes)
    totals.add("lit", passed, failed or int(status != 0), seconds, output)


def run_pytest(totals, folder, pattern, device, jobs, env=None, tops=("tests", "tools", "bench", "examples", "python")):
    """Files in parallel processes, so that what the tests of a file share is made once; the folders with the longest tests first."""
    if env:  # Python itself is not sanitized and cannot load a binding that is
        tops = [top for top in tops if top != "python"]
    files = [path for top in tops for path in sorted((ROOT / top).rglob("test_*.py"))]
    files.sort(key=lambda path: path.parent.name not in SLOW_FOLDERS)
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        arguments = ["-k", re.sub(r"\W+", "_", pattern)] if pattern else []
        environment = {"VORTEX_BUILD": str(ROOT / folder), "VORTEX_TEST_DEVICE": device, **(env or {})}
        status, output, seconds = command(sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", f"-n{jobs}", "--dist=loadfile",
                                          f"--junitxml={report.name}", *arguments, *files, env=environment)
        if status == 5:  # the pattern chose nothing
            return
        try:
            suite = xml.etree.ElementTree.parse(report.name).getroot()[0]
        except (xml.etree.ElementTree.ParseError, IndexError):
            totals.add("pytest", 0, 1, seconds, output)
            return
    count = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    totals.add("pytest", count["tests"] - failed - count["skipped"], failed, seconds, output)


def check_metal(totals, jobs):
    """What is printed for Metal, by Apple's compiler. Where that is not, nothing passed: the line says so."""
    status, output, seconds = command("tools/dev/metal_check", "--jobs", jobs)
    if status == 2:
        print(f"     {output.strip()}", flush=True)
    else:
        totals.add("metal_check", int(status == 0), int(status != 0), seconds, output)


def has_device(totals, folder, device):
    """Whether the driver finds the device; if not, that is one failure that says why, and tests on it do not run."""
    if device in ("cpu", "interpreter"):
        return True
    status, output, seconds = command(ROOT / folder / "bin/vortex", "run", "examples/scale.vx", "--device", device)
    if status:
        totals.add(f"device {device}", 0, 1, seconds, output)
    return status == 0


def run_sanitized(totals, options):
    """Unit tests and generated programs under ASan and UBSan, with --full all tests; what has threads under TSan."""
    folder, jobs, pattern = "build-asan", options.jobs, options.filter
    if build(totals, folder, ["-DVORTEX_SANITIZE=address", f"-DVORTEX_KERNEL_COMPILER={ROOT / 'build/bin/vortex_stage1'}"], ["all" if options.full else "vortex", "vortex_tests"], jobs):
        run_gtests(totals, folder, pattern, jobs, ADDRESS_ENV)
        if options.full:
            run_lit(totals, folder, pattern, jobs, ADDRESS_ENV)
            run_pytest(totals, folder, pattern, options.device, jobs, ADDRESS_ENV)
        else:
            run_pytest(totals, folder, pattern, options.device, jobs, ADDRESS_ENV, ["tests/soundness"])
    if build(totals, "build-tsan", ["-DVORTEX_SANITIZE=thread"], THREADED_SUITES, jobs):
        run_gtests(totals, "build-tsan", pattern, jobs, THREAD_ENV, THREADED_SUITES)


def run_fuzzers(totals, seconds, jobs):
    folder = "build-fuzz"
    if not build(totals, folder, ["-DVORTEX_FUZZ=ON", "-DVORTEX_SANITIZE=address"], ["vortex_fuzzers"], jobs):
        return
    seeds = [ROOT / top for top in ("examples", "std", "tests/errors", "src/lang/syntax/testdata") if (ROOT / top).is_dir()]
    for fuzzer in sorted((ROOT / folder / "bin/fuzz").glob("*")):
        corpus, crashes = ROOT / folder / "corpus" / fuzzer.name, ROOT / folder / "crashes" / fuzzer.name
        corpus.mkdir(parents=True, exist_ok=True)
        crashes.mkdir(parents=True, exist_ok=True)
        status, output, spent = command(fuzzer, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=4096", "-max_len=20000",
                                        f"-artifact_prefix={crashes}/", corpus, *seeds, env=ADDRESS_ENV, timeout=seconds + HANGS_AFTER_S)
        totals.add(f"fuzz {fuzzer.name}", int(status == 0), int(status != 0), spent, "\n".join(output.splitlines()[-60:]))


def compile_commands(folder):
    """{file: command} of every translation unit that the folder's build compiles."""
    database = json.loads((ROOT / folder / "compile_commands.json").read_text())
    return {entry["file"]: entry["command"] for entry in database if entry["file"].endswith(".cpp") and "/.venv/" not in entry["file"]}


def run_over(totals, name, jobs, files, make):
    """Runs the command `make(file)` for each file: one passed each, a failure with its output for what failed."""
    def one(path):
        status, output, seconds = command(*make(path))
        if status:
            totals.add(f"{name} {os.path.relpath(path, ROOT)}", 0, 1, seconds, output)
        return status == 0

    start = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        clean = sum(pool.map(one, sorted(files)))
    totals.add(name, clean, 0, time.monotonic() - start)


def run_tidy(totals, jobs):
    """clang-tidy over the shared translation units, most of whose time are the headers, as a compiler's is."""
    run_over(totals, "clang-tidy", jobs, compile_commands("build"), lambda path: ["clang-tidy-19", "-p", "build", "--quiet", path])


def run_alone(totals, jobs):
    """Each source by itself: this finds the includes that a shared translation unit hides."""
    folder = "build-single"
    if not build(totals, folder, ["-DVORTEX_UNITY=0"], ["vortex_generated"], jobs):
        return
    commands = compile_commands(folder)
    run_over(totals, "alone", jobs, commands, lambda path: ["sh", "-c", f"cd {folder} && {commands[path]} -fsyntax-only"])


def seed_of_run(options):
    """The commit, so that one commit's random tests are the same everywhere; anything where files differ from it, and for long runs."""
    status, files, _ = command("git", "status", "--porcelain")
    if status or files or options.fuzz:
        return f"run {secrets.token_hex(4)}"
    return f"commit {command('git', 'rev-parse', '--short=12', 'HEAD')[1].strip()}"


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./test", description=__doc__)
    parser.add_argument("filter", nargs="?", default="", help="run only tests whose name contains this")
    parser.add_argument("--format", action="store_true", help="also check the format")
    parser.add_argument("--sanitize", action="store_true", help="also unit tests and generated programs under ASan, UBSan and TSan")
    parser.add_argument("--full", action="store_true", help="also format, clang-tidy, TSan, and everything again under ASan and UBSan")
    parser.add_argument("--fuzz", nargs="?", const=60, type=int, metavar="SECONDS", help="also fuzz each target (60 s)")
    parser.add_argument("--device", default="cpu", help="the device that example tests run on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


def main():
    start = time.monotonic()
    options = parse_arguments()
    totals = Totals()
    jobs = options.jobs
    print(f"VORTEX_SEED='{os.environ.setdefault('VORTEX_SEED', seed_of_run(options))}'", flush=True)
    if options.fuzz:
        os.environ.setdefault("VORTEX_HVM_TERMS", "10000")
        os.environ.setdefault("VORTEX_RANDOM_KERNELS", "20000")
    if not options.filter:
        check(totals, "layers", sys.executable, "tools/dev/check_layers.py")
        check(totals, "sizes", sys.executable, "tools/dev/size_report.py")
        check(totals, "mutants fit", sys.executable, "tools/dev/mutants", "--check")
        if options.format or options.full:
            check(totals, "format", "tools/dev/format", "--check")
    if build(totals, "build", [], ["all", "vortex_tests"], jobs):
        run_gtests(totals, "build", options.filter, jobs)
        run_lit(totals, "build", options.filter, jobs)
        if has_device(totals, "build", options.device):
            run_pytest(totals, "build", options.filter, options.device, jobs)
        if not options.filter:
            check_metal(totals, jobs)
    if options.sanitize or options.full:
        run_sanitized(totals, options)
        if not options.filter:
            check(totals, "diagnostic sites", "tools/dev/diagnostic_sites", "--jobs", jobs)
    if options.full and not options.filter:
        run_tidy(totals, jobs)
        run_alone(totals, jobs)
    if options.fuzz:
        run_fuzzers(totals, options.fuzz, jobs)
        check(totals, "mutants", "tools/dev/mutants", "--jobs", jobs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"took {(time.monotonic() - start) / 60:.1f} minutes, {(used.ru_utime + used.ru_stime) / 60:.1f} of processor time")
    print(f"{totals.passed} passed, {totals.failed} failed")
    return int(totals.failed > 0 or totals.passed == 0)


if __name__ == "__main__":
    sys.exit(main())
