"""The ./vortex wrapper in a small checkout of its own, with stand-ins for cmake's configure step, ninja and the package query."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

NINJA = """#!/bin/bash
echo built >> "$CHECKOUT/builds"
sleep 0.3
mkdir -p "$CHECKOUT/build/bin"
printf '#!/bin/bash\\necho "in $PWD: $*"\\nexit 7\\n' > "$CHECKOUT/build/bin/vortex"
chmod +x "$CHECKOUT/build/bin/vortex"
"""


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "checkout with space"
    (root / "tools/dev").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src/a.cpp").write_text("")
    for name in ("vortex", "tools/dev/prepare.sh", "tools/dev/packages.txt"):
        shutil.copy(ROOT / name, root / name)
    tools = tmp_path / "bin"
    tools.mkdir()
    write_tool(tools / "ninja", NINJA)
    write_tool(root / "tools/dev/configure", '#!/bin/bash\ntouch "$CHECKOUT/build/build.ninja"\n')
    write_tool(tools / "dpkg-query", '#!/bin/bash\nshift 2\nprintf "installed %s\\n" "$@"\n')
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CHECKOUT": str(root)}
    return root, tools, environment


def write_tool(path, text):
    path.write_text(text)
    path.chmod(0o755)


def call(checkout, *arguments, cwd=None):
    root, _, environment = checkout
    return subprocess.run([root / "vortex", *arguments], cwd=cwd or root, env=environment, capture_output=True, text=True)


def builds(checkout):
    return (checkout[0] / "builds").read_text().count("built")


def test_arguments_folder_status_and_output_are_those_of_the_program(checkout, tmp_path):
    done = call(checkout, "run", "a b.vx", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, f"in {tmp_path}: run a b.vx\n"), done.stderr


def test_the_second_call_builds_nothing(checkout):
    call(checkout)
    done = call(checkout)
    assert done.stderr == "" and builds(checkout) == 1


def test_an_edit_an_addition_and_a_removal_each_build_again(checkout):
    call(checkout)
    (checkout[0] / "src/a.cpp").write_text("changed")
    call(checkout)
    (checkout[0] / "src/b.cpp").write_text("")
    call(checkout)
    (checkout[0] / "src/b.cpp").unlink()
    call(checkout)
    assert builds(checkout) == 4


def test_two_calls_at_once_build_once(checkout):
    root, _, environment = checkout
    calls = [subprocess.Popen([root / "vortex"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.wait() for process in calls] == [7, 7, 7]
    assert builds(checkout) == 1


def test_it_works_through_a_link_and_from_another_folder(checkout, tmp_path):
    link = tmp_path / "vx"
    link.symlink_to(checkout[0] / "vortex")
    done = subprocess.run([link, "x"], cwd=tmp_path, env=checkout[2], capture_output=True, text=True)
    assert done.stdout == f"in {tmp_path}: x\n", done.stderr


def test_without_root_the_missing_packages_are_printed_as_one_command(checkout):
    root, tools, environment = checkout
    write_tool(tools / "dpkg-query", '#!/bin/bash\nprintf "installed cmake\\nnot-installed ccache\\n"\n')
    write_tool(tools / "id", "#!/bin/bash\necho 1000\n")
    write_tool(tools / "sudo", "#!/bin/bash\nexit 1\n")
    done = call(checkout)
    assert done.returncode == 1 and not (root / "builds").exists()
    line = next(line for line in done.stderr.splitlines() if "apt-get install" in line)
    wanted = next(line for line in (ROOT / "tools/dev/packages.txt").read_text().splitlines() if line.startswith("build:"))
    assert set(line.split("recommends ")[1].split()) == set(wanted.split()[1:]) - {"cmake"}


def test_a_failing_build_is_an_error_and_is_tried_again(checkout):
    root, tools, _ = checkout
    write_tool(tools / "ninja", '#!/bin/bash\necho "a.cpp:1: error: no"\nexit 1\n')
    for _ in range(2):
        done = call(checkout)
        assert done.returncode == 1 and done.stdout == "" and "a.cpp:1: error: no" in done.stderr
    write_tool(tools / "ninja", NINJA)
    assert call(checkout).returncode == 7
