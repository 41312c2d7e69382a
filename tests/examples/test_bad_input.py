"""What goes wrong at run time ends with one diagnostic, status 1 and no output file."""
import re

import numpy
import pytest


@pytest.fixture
def fails(vortex, device, tmp_path):
    """Runs an example that must fail; returns what it wrote to stderr."""
    before = set()

    def run(name, *arguments, outputs=("out.npy",)):
        before.update(tmp_path.iterdir())
        done = vortex("run", f"examples/{name}.vx", "--device", device, "--", *arguments, *(tmp_path / out for out in outputs), status=1)
        assert re.search(r"^error\[E\d{4}\]: ", done.stderr, re.M), done.stderr
        assert re.search(r"--> \S*\b(examples|std)/", done.stderr), done.stderr
        # No output and nothing half-written beside it.
        assert {path for path in tmp_path.iterdir() if path.name != "cache"} == before
        return done.stderr

    return run


def save(path, array):
    numpy.save(path, array)
    return path


def test_missing_file(fails, tmp_path):
    assert "nothing.npy" in fails("scale", tmp_path / "nothing.npy")


def test_folder_instead_of_file(fails, tmp_path):
    (tmp_path / "folder.npy").mkdir()
    fails("scale", tmp_path / "folder.npy")


@pytest.mark.parametrize("keep", [0, 5, 9, 40, 127, 128, 1000])
def test_truncated_npy(fails, tmp_path, keep):
    path = save(tmp_path / "x.npy", numpy.zeros(1000, numpy.float32))
    path.write_bytes(path.read_bytes()[:keep])
    fails("scale", path)


def test_header_without_commas(fails, tmp_path):
    path = save(tmp_path / "x.npy", numpy.zeros((2, 5), numpy.float32))
    path.write_bytes(path.read_bytes().replace(b"(2, 5)", b"(2  5)"))
    assert "header" in fails("scale", path)


def test_not_an_npy(fails, tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(bytes(range(256)) * 16)
    assert ".npy" in fails("scale", path)


def test_wrong_element_type(fails, tmp_path):
    message = fails("scale", save(tmp_path / "x.npy", numpy.zeros(10, numpy.float64)))
    assert "f64" in message and "f32" in message


def test_element_type_without_equivalent(fails, tmp_path):
    assert "c16" in fails("scale", save(tmp_path / "x.npy", numpy.zeros(10, numpy.complex128)))


def test_wrong_rank(fails, tmp_path):
    fails("scale", save(tmp_path / "x.npy", numpy.zeros((3, 4), numpy.float32)))
    (tmp_path / "x.npy").unlink()


def test_lengths_of_two_arguments_differ(fails, tmp_path):
    a = save(tmp_path / "a.npy", numpy.zeros(100, numpy.float32))
    b = save(tmp_path / "b.npy", numpy.zeros(101, numpy.float32))
    message = fails("vector_add", a, b)
    assert "100" in message and "101" in message and "`a`" in message and "`b`" in message


def test_inner_extents_of_a_product_differ(fails, tmp_path):
    a = save(tmp_path / "a.npy", numpy.zeros((4, 5), numpy.float32))
    b = save(tmp_path / "b.npy", numpy.zeros((6, 7), numpy.float32))
    message = fails("matmul", "f32", a, b)
    assert "5" in message and "6" in message


def test_header_that_announces_more_than_memory(fails, tmp_path):
    path = tmp_path / "x.npy"
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }"
    header += b" " * (117 - len(header)) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    fails("softmax", path)


def test_output_into_a_folder_that_does_not_exist(vortex, device, tmp_path):
    path = save(tmp_path / "x.npy", numpy.zeros(10, numpy.float32))
    done = vortex("run", "examples/scale.vx", "--device", device, "--", path, tmp_path / "none" / "out.npy", status=1)
    assert re.search(r"^error\[E\d{4}\]: .*none", done.stderr, re.M)


def test_number_that_is_none(fails, tmp_path):
    x = save(tmp_path / "x.npy", numpy.zeros(10, numpy.float32))
    assert "twice" in fails("saxpy", "twice", x, x)


@pytest.mark.parametrize("content", [b"", b"P5", b"P5\n3 ", b"P5\n3 3\n255\n12345", b"P5\n99999999999 99999999999\n255\n", b"P2\n1 1\n255\n7\n", b"P5\n0 4\n255\n"])
def test_bad_image(fails, tmp_path, content):
    path = tmp_path / "in.pgm"
    path.write_bytes(content)
    fails("blur", path, outputs=["out.pgm"])


def test_sizes_beyond_memory(vortex, device, tmp_path):
    program = tmp_path / "huge.vx"
    for size in ["1 << 40, 1 << 40", "1 << 62, 4", "1 << 44"]:
        program.write_text(f"fn main() {{\n    let x = random.normal::<f32>([{size.replace('1 <<', '1u64 <<')}], seed = 1)\n    print(x.shape[0])\n}}\n")
        done = vortex("run", program, "--device", device, status=1)
        assert re.search(r"^error\[E\d{4}\]: ", done.stderr, re.M), done.stderr


def test_empty_arrays_are_no_error(vortex, device, tmp_path):
    path = save(tmp_path / "x.npy", numpy.zeros(0, numpy.float32))
    vortex("run", "examples/scale.vx", "--device", device, "--", path, tmp_path / "out.npy")
    assert numpy.load(tmp_path / "out.npy").shape == (0,)
