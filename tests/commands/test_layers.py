import pathlib
import subprocess
import sys


def check(tmp_path, files):
    """Runs the layer check on a small tree of our own with the real layers.txt."""
    real = pathlib.Path(__file__).resolve().parents[2] / "tools/dev"
    (tmp_path / "tools/dev").mkdir(parents=True)
    (tmp_path / "tools/dev/layers.txt").write_text((real / "layers.txt").read_text())
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run([sys.executable, real / "check_layers.py", tmp_path], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_an_include_of_a_lower_folder_is_accepted(tmp_path):
    status, output = check(tmp_path, {"src/lang/sema/a.cpp": '#include "lang/syntax/ast.h"\n#include <vector>\n'})
    assert status == 0, output


def test_an_upward_include_is_reported_with_its_line(tmp_path):
    status, output = check(tmp_path, {"src/lang/syntax/a.cpp": '\n#include "lang/sema/program.h"\n'})
    assert status == 1 and "src/lang/syntax/a.cpp:2: lang/syntax must not include lang/sema" in output


def test_the_language_sees_no_mlir(tmp_path):
    status, output = check(tmp_path, {"src/lang/sema/a.h": "#include <mlir/IR/Builders.h>\n"})
    assert status == 1 and "lang/sema must not include mlir" in output


def test_targets_never_include_each_other_not_even_in_tests(tmp_path):
    status, output = check(tmp_path, {"src/target/nvidia/sub/a_test.cpp": '#include "target/cpu/gemm/gemm.h"\n'})
    assert status == 1 and "must not include target/cpu" in output


def test_a_test_may_include_any_folder_below_its_own(tmp_path):
    status, output = check(tmp_path, {"src/pipeline/a_test.cpp": '#include "runtime/hal/driver.h"\n'})
    assert status == 1, output
    status, output = check(tmp_path / "2", {"src/runtime/cpu/a_test.cpp": '#include "target/cpu/codegen/target.h"\n'})
    assert status == 0, output


def test_an_include_without_a_folder_is_reported(tmp_path):
    status, output = check(tmp_path, {"src/base/a.cpp": '#include "hash.h"\n'})
    assert status == 1 and '"hash.h" names no folder' in output


def test_the_graph_names_operands_of_expressions(tmp_path):
    status, output = check(tmp_path, {"src/lang/flow/graph/a.cpp": "auto x = expr.args[0];\n"})
    assert status == 1 and "a.cpp:1: name the operand" in output
    status, output = check(tmp_path / "2", {"src/lang/flow/graph/a.cpp": "auto x = node.args[0];\nauto y = expr.args[i];\n"})
    assert status == 0, output


def test_headers_of_ordered_subfolders_include_earlier_ones_only(tmp_path):
    include = '#include "lang/sema/check/traits/bounds.h"\n'
    status, output = check(tmp_path, {"src/lang/sema/check/types/shapes.h": include})
    assert status == 1 and "shapes.h:1: this header stands before those of lang/sema/check/traits" in output
    status, output = check(tmp_path / "2", {"src/lang/sema/check/types/shapes.cpp": include, "src/lang/sema/check/calls/calls.h": include})
    assert status == 0, output
