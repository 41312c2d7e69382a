"""Products of tensors that were widened before are those of the narrow ones, in whichever order they are widened, turned and cut."""
import numpy
import pytest

# name: (parameters of the kernel, result, body)
KERNELS = {
    "signed": ("x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>", "i32", "(x as i32) @ (w as i32).transpose()"),
    "turned_first": ("x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>", "i32", "(x as i32) @ (w.transpose() as i32)"),
    "in_two_steps": ("x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>", "i32", "((x as i16) as i32) @ ((w as i16).transpose() as i32)"),
    "unsigned": ("x: &Tensor<u8, [M, K]>, w: &Tensor<u8, [N, K]>", "i32", "(x as i32) @ (w as i32).transpose()"),
    "mixed": ("x: &Tensor<u8, [M, K]>, w: &Tensor<i8, [N, K]>", "i32", "(x as i32) @ (w as i32).transpose()"),
    "cut_sign": ("x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>", "i32", "(((x as i16) as u16) as i32) @ (w as i32).transpose()"),
    "in_i16": ("x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>", "i16", "(x as i16) @ (w as i16).transpose()"),
    "sliced": ("x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>", "i32", "(x as i32)[.., 3..] @ (w as i32).transpose()[3.., ..]"),
    "computed": ("x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>", "i32", "((x + x) as i32) @ (w as i32).transpose()"),
    "half": ("x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [N, K]>", "f32", "(x as f32) @ (w as f32).transpose()"),
    "bfloat": ("x: &Tensor<bf16, [M, K]>, w: &Tensor<bf16, [N, K]>", "f32", "(x as f32) @ (w as f32).transpose()"),
    "half_by_bfloat": ("x: &Tensor<f16, [M, K]>, w: &Tensor<bf16, [N, K]>", "f32", "(x as f32) @ (w as f32).transpose()"),
    "quarter_by_bfloat": ("x: &Tensor<f8e4m3, [M, K]>, w: &Tensor<bf16, [N, K]>", "f32", "(x as f32) @ (w as f32).transpose()"),
    "rounded": ("x: &Tensor<f32, [M, K]>, w: &Tensor<bf16, [N, K]>", "f32", "((x as bf16) as f32) @ (w as f32).transpose()")}
DTYPES = {"i8": numpy.int8, "u8": numpy.uint8, "f16": numpy.float32, "bf16": numpy.float32, "f8e4m3": numpy.float32, "f32": numpy.float32}


def program():
    text, calls = "", ""
    for element in ("f16", "bf16", "f8e4m3"):
        text += f"kernel to_{element}(x: &Tensor<f32, [M, K]>) -> Tensor<{element}, [M, K]> {{\n    return x as {element}\n}}\n"
    for name, (parameters, result, body) in KERNELS.items():
        for strict in ("", "@strict\n"):
            suffix = "_strict" if strict else ""
            text += f"{strict}kernel {name}{suffix}({parameters}) -> Tensor<{result}, [M, N]> {{\n    return {body}\n}}\n"
            arguments = []
            for which, parameter in zip("xw", parameters.split("&Tensor<")[1:]):
                element = parameter.split(",")[0]
                file = f'format("{{}}/{which}_{DTYPES[element].__name__}.npy", dir)'
                loaded, shape = f"{name}{suffix}_{which}", "[M, K]" if which == "x" else "[N, K]"
                if DTYPES[element] is numpy.float32 and element != "f32":
                    calls += f"    let {loaded}_wide: Tensor<f32, {shape}> = load_npy({file})\n    let {loaded} = to_{element}(&{loaded}_wide)\n"
                else:
                    calls += f"    let {loaded}: Tensor<{element}, {shape}> = load_npy({file})\n"
                arguments.append(f"&{loaded}")
            calls += f'    save_npy(format("{{}}/{name}{suffix}.npy", dir), {name}{suffix}({", ".join(arguments)}))\n'
    return text + "fn main() {\n    let dir = args()[0]\n" + calls + "}\n"


def expected(name, x, w):
    a, b = (x[numpy.uint8] if "u8" in KERNELS[name][0].split("w:")[0] else x[numpy.int8]).astype(numpy.int64), (
        w[numpy.uint8] if "u8" in KERNELS[name][0].split("w:")[1] else w[numpy.int8]).astype(numpy.int64)
    if name == "cut_sign":
        a = a.astype(numpy.uint16).astype(numpy.int64)
    if name == "sliced":
        a, b = a[:, 3:], b[:, 3:]
    if name == "computed":
        a = (2 * a).astype(numpy.int8).astype(numpy.int64)
    return (a @ b.T).astype(numpy.int16 if name == "in_i16" else numpy.int32)


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_widened_operands_are_multiplied_as_they_are(vortex, tmp_path, backend):
    rng = numpy.random.default_rng()
    shapes = {"x": (37, 70), "w": (21, 70)}
    made = {}
    for which, shape in shapes.items():
        integers = rng.integers(-128, 128, shape, dtype=numpy.int8)
        # Of 4 significant bits, so that all types have them: sums of 70 products are exact.
        floats = (rng.integers(-15, 16, shape) / 8).astype(numpy.float32)
        made[which] = {numpy.int8: integers, numpy.uint8: integers.view(numpy.uint8), numpy.float32: floats}
        for kind, array in made[which].items():
            numpy.save(tmp_path / f"{which}_{kind.__name__}.npy", array)
    path = tmp_path / "products.vx"
    path.write_text(program())
    vortex("run", path, "--device", backend, "--", tmp_path)
    exact = made["x"][numpy.float32].astype(float) @ made["w"][numpy.float32].astype(float).T
    for name, (parameters, _, _) in KERNELS.items():
        wanted = exact if "f" in parameters.split("&Tensor<")[1][:3] else expected(name, made["x"], made["w"])
        for suffix in ("", "_strict"):
            assert (numpy.load(tmp_path / f"{name}{suffix}.npy") == wanted).all(), name + suffix
