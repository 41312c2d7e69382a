"""`.npy` files of every byte order, layout and type that NumPy writes, and files that lie."""
import numpy
import pytest


def load(vortex, tmp_path, array, status=0):
    """What a program reads from the array's file and writes to another."""
    kinds = {"bool": "bool", "float32": "f32", "float64": "f64", "int16": "i16", "int32": "i32", "uint8": "u8", "uint64": "u64"}
    shape = ", ".join("ABCD"[: array.ndim])
    path = tmp_path / "copy.vx"
    path.write_text(f"""
fn main() {{
    let x: Tensor<{kinds[array.dtype.name]}, [{shape}]> = load_npy(args()[0])
    save_npy(args()[1], x)
}}
""")
    done = vortex("run", path, "--", tmp_path / "in.npy", tmp_path / "out.npy", status=status)
    return numpy.load(tmp_path / "out.npy") if status == 0 else done.stderr


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", ["<", ">"])
@pytest.mark.parametrize("kind", ["f4", "f8", "i2", "i4", "u8"])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (5, 1), (2, 3, 4), (4, 1, 3, 2), (0, 3)])
def test_all_layouts_are_read_as_numpy_reads_them(vortex, tmp_path, order, endian, kind, shape):
    array = numpy.random.default_rng().integers(0, 100, shape).astype(endian + kind)
    numpy.save(tmp_path / "in.npy", numpy.asarray(array, order=order))
    assert (load(vortex, tmp_path, array) == array).all()


def test_bools_are_zero_or_one(vortex, tmp_path):
    array = numpy.random.default_rng().integers(0, 2, (9, 4)).astype(bool)
    numpy.save(tmp_path / "in.npy", array)
    assert (load(vortex, tmp_path, array) == array).all()
    content = bytearray((tmp_path / "in.npy").read_bytes())
    for byte in (2, 128, 255):
        content[-5] = byte
        (tmp_path / "in.npy").write_bytes(content)
        message = load(vortex, tmp_path, array, status=1)
        assert "E0711" in message and f"element 31 of the .npy of bool is the byte {byte}" in message
