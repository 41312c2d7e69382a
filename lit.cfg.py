"""lit: every .mlir file beside the code (src/**/testdata) and under tests/. Run by ./test, or for one folder or file
python3 /usr/lib/llvm-19/build/utils/lit/lit.py -v src/passes. Tools: %vx-opt, %vortex, FileCheck, not, count."""
import os

import lit.formats

root = os.path.dirname(os.path.abspath(__file__))
build = lit_config.params.get("build", os.path.join(root, "build"))

config.name = "vortex"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = [name for name in os.listdir(root) if name not in ("src", "tests")]
config.test_source_root = root
config.test_exec_root = os.path.join(build, "lit")
config.substitutions += [("%vx-opt", os.path.join(build, "bin", "vx-opt")), ("%vortex", os.path.join(build, "bin", "vortex"))]
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), "/usr/lib/llvm-19/bin", os.environ["PATH"]])
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
