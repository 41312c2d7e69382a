#!/usr/bin/env python3
"""Packs the Python packages vortex and metile with the compiler into a wheel for the Python that the binding was built for. It runs on any
x86-64 Linux with glibc 2.36 and libstdc++ 12 or later, without LLVM or a compiler installed. Use ./vortex bundle --wheel."""
import argparse
import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile

import bundle

ROOT = bundle.ROOT
GLIBC = "2_36"
WHEN = (2024, 1, 1, 0, 0, 0)  # the same bytes whenever and wherever it is made


def extension_suffix(build):
    """cpython-312-x86_64-linux-gnu of the binding in the build folder."""
    found = sorted((build / "python").glob("_vortex.cpython-*.so"))
    if not found:
        sys.exit(f"wheel: {build}/python has no binding: run ./vortex python --version first")
    return max(found, key=os.path.getmtime).name.removeprefix("_vortex.").removesuffix(".so")


def package_files(build, folder):
    """wheel name → file or bytes: what CMake installs, the Python sources, and the libraries beside the compiler's own."""
    installed = folder / "install"
    bundle.output("cmake", "--install", build, "--prefix", installed, "--component", "python", "--strip")
    files = {str(path.relative_to(installed)): path for path in sorted(installed.rglob("*")) if path.is_file() and not path.is_symlink()}
    for package in ("vortex", "metile"):
        for path in sorted((ROOT / "python" / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files[str(path.relative_to(ROOT / "python"))] = path
    # A wheel holds no links: the compiler's library goes under the name that programs ask for.
    compiler = next(name for name in files if re.fullmatch(r"vortex/lib/libvortex_compiler\.so\.[\d.]+", name))
    soname = re.search(r"\(SONAME\).*\[(.+)\]", bundle.output("readelf", "-d", files[compiler])).group(1)
    files[f"vortex/lib/{soname}"] = files.pop(compiler)
    for name, content in bundle.library_files([files[f"vortex/lib/{soname}"]], folder).items():
        files["vortex/" + name] = content
    runtime = next(path for name, path in files.items() if name.startswith("_vortex.") and name.endswith(".so"))
    for name, library in bundle.closure([runtime]).items():
        files.setdefault(f"vortex/lib/{name}", library)
    # A process has one C++ library; it must be the newest that any of its parts needs, so a wheel brings none.
    return {name: path for name, path in files.items() if not re.search(r"/lib(stdc\+\+|gcc_s)\.so|licences/lib(stdc|gcc)", name)}


def metadata(tag):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = "".join(f"Requires-Dist: {need}\n" for need in project["dependencies"])
    return project, {
        "METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\nSummary: {project['description']}\n"
                    f"Requires-Python: {project['requires-python']}\n{needs}Description-Content-Type: text/markdown\n\n{(ROOT / project['readme']).read_text()}",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: vortex\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }


def write(target, files, level):
    record_name = next(name for name in files if name.endswith("/WHEEL")).replace("WHEEL", "RECORD")
    rows = io.StringIO()
    lines = csv.writer(rows, lineterminator="\n")
    temporary = target.with_name(target.name + ".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as wheel:
        for name, content in sorted(files.items(), key=lambda item: ".dist-info/" in item[0]):
            data = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else content.read_bytes()
            info = zipfile.ZipInfo(name, WHEN)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (0o755 if ".so" in name else 0o644) << 16
            wheel.writestr(info, data)
            lines.writerow([name, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), len(data)])
        lines.writerow([record_name, "", ""])
        wheel.writestr(zipfile.ZipInfo(record_name, WHEN), rows.getvalue())
    temporary.replace(target)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(prog="./vortex bundle --wheel", description=__doc__)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the wheel")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--fast", action="store_true", help="compress quickly, for tests")
    options = parser.parse_args()
    version = re.match(r"cpython-(\d+)-x86_64", extension_suffix(options.build))
    if not version:
        sys.exit("wheel: the binding is not for CPython on x86-64")
    tag = f"cp{version.group(1)}-cp{version.group(1)}-manylinux_{GLIBC}_x86_64"
    project, texts = metadata(tag)
    distribution = f"{project['name'].replace('-', '_')}-{project['version']}"
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        files = package_files(options.build, pathlib.Path(folder))
        files |= {f"{distribution}.dist-info/{name}": text for name, text in texts.items()}
        write(options.output / f"{distribution}-{tag}.whl", files, 1 if options.fast else 9)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"wheel: {error}\n{error.stderr}")
