#!/usr/bin/env python3
"""Builds and runs every test. Use ./test, which prepares the machine first. Ends with one line `N passed, N failed`."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIT = "/usr/lib/llvm-19/build/utils/lit/lit.py"
# LLVM's libraries are not instrumented and keep their registries until exit.
SANITIZER_ENV = {"ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0:allocator_may_return_null=1",
                 "UBSAN_OPTIONS": "print_stacktrace=1", "VORTEX_SANITIZED": "1"}


class Totals:
    def __init__(self):
        self.passed = self.failed = 0

    def add(self, name, passed, failed, seconds, output=""):
        self.passed += passed
        self.failed += failed
        print(f"{'FAIL' if failed else 'ok':4} {name}: {passed} passed, {failed} failed ({seconds:.1f} s)", flush=True)
        if failed and output.strip():
            print(output.rstrip(), flush=True)


def command(*arguments, env=None, timeout=1200):
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
    if not rules.exists() or "vortex_python" not in rules.read_text():  # configured before .venv was there
        status, output, seconds = command("tools/dev/configure", folder, *options)
        if status:
            totals.add(f"configure {folder}", 0, 1, seconds, output)
            return False
    # One failing target must not hide the tests of the others.
    status, output, _ = command("ninja", "-C", folder, f"-j{jobs}", "-k0", *targets, timeout=3600)
    failures = [line for line in output.splitlines() if not re.match(r"^\[\d+/\d+\]|^ninja: (Entering|no work)", line)]
    totals.add(f"build {folder}", int(status == 0), int(status != 0), time.monotonic() - start, "\n".join(failures[-80:]))
    return True


def registered_tests(folder):
    status, output, _ = command("ctest", "--test-dir", folder, "--show-only=json-v1")
    if status:
        return []
    return [(test["name"], test["command"]) for test in json.loads(output)["tests"] if "command" in test]


def run_gtest(totals, folder, name, argv, pattern, env):
    wanted = [] if not pattern or pattern in name else [f"--gtest_filter=*{pattern}*"]
    if not pathlib.Path(argv[0]).exists():
        totals.add(name, 0, 1, 0, "not built")
        return
    status, output, seconds = command(*argv, "--gtest_brief=1", *wanted, env=env)
    counts = {word: int(number) for word, number in re.findall(r"\[  (PASSED|FAILED)  \] (\d+) tests?[.,]", output)}
    passed, failed = counts.get("PASSED", 0), counts.get("FAILED", 0)
    if status and not failed:  # a crash: gtest printed no summary
        failed, output = 1, output + f"\n{name} ended with status {status}"
    if passed or failed or not wanted:
        totals.add(f"{folder}/{name}" if folder != "build" else name, passed, failed, seconds, output)


def run_gtests(totals, folder, pattern, jobs, env=None):
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda test: run_gtest(totals, folder, *test, pattern, env), registered_tests(folder)))


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


def run_pytest(totals, folder, pattern, device, env=None):
    files = [str(path) for top in ("tests", "tools", "bench", "examples", "python") for path in sorted((ROOT / top).rglob("test_*.py"))]
    if not files:
        return
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        arguments = ["-k", re.sub(r"\W+", "_", pattern)] if pattern else []
        environment = {"VORTEX_BUILD": str(ROOT / folder), "VORTEX_TEST_DEVICE": device, **(env or {})}
        status, output, seconds = command(sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider",
                                          f"--junitxml={report.name}", *arguments, *files, env=environment, timeout=3600)
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


def has_device(totals, folder, device):
    """Whether the driver finds the device; if not, that is one failure that says why, and tests on it do not run."""
    if device in ("cpu", "interpreter"):
        return True
    status, output, seconds = command(ROOT / folder / "bin/vortex", "run", "examples/scale.vx", "--device", device)
    if status:
        totals.add(f"device {device}", 0, 1, seconds, output)
    return status == 0


def run_fuzzers(totals, seconds, jobs):
    folder = "build-fuzz"
    if not build(totals, folder, ["-DVORTEX_FUZZ=ON", "-DVORTEX_SANITIZE=ON"], ["vortex_fuzzers"], jobs):
        return
    seeds = [ROOT / top for top in ("examples", "std", "tests/errors", "src/lang/syntax/testdata") if (ROOT / top).is_dir()]
    for fuzzer in sorted((ROOT / folder / "bin/fuzz").glob("*")):
        corpus, crashes = ROOT / folder / "corpus" / fuzzer.name, ROOT / folder / "crashes" / fuzzer.name
        corpus.mkdir(parents=True, exist_ok=True)
        crashes.mkdir(parents=True, exist_ok=True)
        status, output, spent = command(fuzzer, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=4096", "-max_len=20000",
                                        f"-artifact_prefix={crashes}/", corpus, *seeds, env=SANITIZER_ENV, timeout=seconds + 300)
        totals.add(f"fuzz {fuzzer.name}", int(status == 0), int(status != 0), spent, "\n".join(output.splitlines()[-60:]))


def compile_commands(folder):
    """{file: command} of every translation unit that the folder's build compiles."""
    database = json.loads((ROOT / folder / "compile_commands.json").read_text())
    return {entry["file"]: entry["command"] for entry in database if entry["file"].endswith(".cpp")}


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


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./test", description=__doc__)
    parser.add_argument("filter", nargs="?", default="", help="run only tests whose name contains this")
    parser.add_argument("--format", action="store_true", help="also check the format")
    parser.add_argument("--full", action="store_true", help="also format, clang-tidy, and everything again under ASan and UBSan")
    parser.add_argument("--fuzz", nargs="?", const=60, type=int, metavar="SECONDS", help="also fuzz each target (60 s)")
    parser.add_argument("--device", default="cpu", help="the device that example tests run on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


def main():
    options = parse_arguments()
    totals = Totals()
    jobs = options.jobs
    if options.fuzz:
        os.environ.setdefault("VORTEX_HVM_TERMS", "10000")
    if not options.filter:
        check(totals, "layers", sys.executable, "tools/dev/check_layers.py")
        check(totals, "sizes", sys.executable, "tools/dev/size_report.py")
        if options.format or options.full:
            check(totals, "format", "tools/dev/format", "--check")
    folders = [("build", [], None)]
    if options.full:
        folders.append(("build-asan", ["-DVORTEX_SANITIZE=ON"], SANITIZER_ENV))
    for folder, arguments, env in folders:
        if build(totals, folder, arguments, ["all", "vortex_tests"], jobs):
            run_gtests(totals, folder, options.filter, jobs, env)
            run_lit(totals, folder, options.filter, jobs, env)
            if has_device(totals, folder, options.device):
                run_pytest(totals, folder, options.filter, options.device, env)
    if options.full and not options.filter:
        run_tidy(totals, jobs)
        run_alone(totals, jobs)
    if options.fuzz:
        run_fuzzers(totals, options.fuzz, jobs)
    print(f"{totals.passed} passed, {totals.failed} failed")
    return int(totals.failed > 0 or totals.passed == 0)


if __name__ == "__main__":
    sys.exit(main())
