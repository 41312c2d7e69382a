#!/usr/bin/env python3
"""Packs a built checkout into a relocatable archive that runs on any x86-64 Linux with glibc 2.36 or later. Use ./vortex bundle.

Two parts that unpack over each other: `library` (LLVM, MLIR and what they need; changes rarely) and `driver` (all of ours). The archive
`all` is one after the other. An xz file may be a chain of streams, so every large file is compressed once and kept by content."""
import argparse
import concurrent.futures
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLVM = pathlib.Path("/usr/lib/llvm-19/lib")
# libLLVM asks for these only in parts that Vortex never enters: the static analyser's solver, manifests of Windows programs, line editing.
# They and what they need would be 60 MB; the bundle has libraries of the same names whose functions say so and stop.
STAND_INS = ["libz3.so.4", "libxml2.so.2", "libedit.so.2"]
SYSTEM = re.compile(r"^(libc|libm|libdl|librt|libpthread|ld-linux-x86-64)\.so")
PIECE_BYTES = 4 << 20  # smaller files share a piece
MAX_BYTES, MAX_METAL_BYTES = 45_000_000, 65_000_000
METAL = ["libvortex_msl.so", "libvortex_compiler.so.0", "libvortex_metal.so.0"]


def output(*arguments):
    return subprocess.run([str(a) for a in arguments], check=True, capture_output=True, text=True).stdout


def version(build):
    text = (build / "CMakeCache.txt").read_text()
    return re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.+)$", text, re.M).group(1)


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", path))


def find_library(name):
    for folder in (LLVM, pathlib.Path("/lib/x86_64-linux-gnu"), pathlib.Path("/usr/lib/x86_64-linux-gnu")):
        if (folder / name).exists():
            return (folder / name).resolve()
    sys.exit(f"bundle: {name} is not installed")


def closure(programs):
    """name → file of every library the programs need, without libc's own, our own and without what only stand-ins replace."""
    found, pending = {}, [name for program in programs for name in needed(program) if not name.startswith("libvortex_")]
    while pending:
        name = pending.pop()
        if name in found or SYSTEM.match(name):
            continue
        found[name] = None if name in STAND_INS else find_library(name)
        if found[name]:
            pending += needed(found[name])
    return found


def stand_in(name, users, folder):
    """A library that defines what `users` take from the real one, under the same versions."""
    real = find_library(name)
    defined = {}
    for line in output("nm", "-D", "--defined-only", real).splitlines():
        symbol, _, symbol_version = line.split()[-1].partition("@")
        defined[symbol] = symbol_version.lstrip("@")
    wanted = sorted({line.split()[-1].split("@")[0] for user in users for line in output("nm", "-D", "--undefined-only", user).splitlines()} & set(defined))
    source = ["#include <stdio.h>", "#include <stdlib.h>"]
    for symbol in wanted:
        source.append(f'void {symbol}(void) {{ fputs("{symbol}: {name} is not part of this bundle\\n", stderr); abort(); }}')
    versions = {}
    for symbol in wanted:
        if defined[symbol]:
            versions.setdefault(defined[symbol], []).append(symbol)
    # Nodes that users name must exist even where their symbols share another one.
    (folder / "stand_in.c").write_text("\n".join(source) + "\n")
    (folder / "stand_in.map").write_text("".join(f"{node} {{ global: {'; '.join(symbols)}; }};\n" for node, symbols in versions.items()))
    script = [f"-Wl,--version-script={folder / 'stand_in.map'}"] if versions else []
    output("clang-19", "-shared", "-fPIC", "-O1", "-fno-builtin", "-w", "-fuse-ld=lld", f"-Wl,-soname,{name}", *script, "-o", folder / name, folder / "stand_in.c")
    return folder / name


def licences(names):
    """The copyright files of the packages that the libraries come from, once each."""
    texts = {}
    for path in names:
        owner = subprocess.run(["dpkg-query", "-S", str(path)], capture_output=True, text=True).stdout.split(":")[0]
        copyright_file = pathlib.Path(f"/usr/share/doc/{owner}/copyright")
        if owner and copyright_file.exists():
            texts[owner] = copyright_file.read_bytes()
    return texts


def library_files(programs, folder):
    """archive name → file or bytes."""
    libraries = closure(programs)
    real = {name: path for name, path in libraries.items() if path}
    files = {f"lib/{name}": path for name, path in real.items()}
    for name in (name for name in libraries if name in STAND_INS):
        files[f"lib/{name}"] = stand_in(name, real.values(), folder)
    for owner, text in licences(real.values()).items():
        files[f"share/licences/{owner}.txt"] = text
    return files


def driver_files(build, folder, components):
    installed = folder / "install"
    for component in components:
        output("cmake", "--install", build, "--prefix", installed, "--component", component, "--strip")
    return {str(path.relative_to(installed)): path for path in sorted(installed.rglob("*")) if path.is_file()}


def member(name, content):
    """One tar member, the same bytes whenever and wherever it is made."""
    info = tarfile.TarInfo(name)
    data = content if isinstance(content, bytes) else content.read_bytes()
    info.size, info.mtime = len(data), 1704067200
    info.mode = 0o755 if not isinstance(content, bytes) and (os.access(content, os.X_OK) or ".so" in content.name) else 0o644
    stream = io.BytesIO()
    stream.write(info.tobuf(tarfile.GNU_FORMAT))
    stream.write(data)
    stream.write(bytes(-len(data) % 512))
    return stream.getvalue()


def pieces(prefix, files):
    """Tar bytes in chunks to compress: large files alone, the others together."""
    small = []
    for name, content in sorted(files.items()):
        data = member(prefix + name, content)
        if len(data) >= PIECE_BYTES:
            yield data
        else:
            small.append(data)
    yield b"".join(small)


def compressed(data, cache, preset):
    kept = cache / (hashlib.sha256(data + preset.encode()).hexdigest() + ".xz")
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(["xz", "--format=xz", "--check=crc64", "--x86", f"--lzma2=preset={preset},dict=64MiB,pb=0,lc=4", "--stdout"], input=data, check=True, stdout=subprocess.PIPE).stdout
        with tempfile.NamedTemporaryFile(dir=cache, delete=False) as file:
            file.write(packed)
        os.rename(file.name, kept)
    return kept.read_bytes()


def archive(target, chunks, cache, preset):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        streams = list(pool.map(lambda data: compressed(data, cache, preset), [*chunks, bytes(1024)]))
    temporary = target.with_name(target.name + ".tmp")
    temporary.write_bytes(b"".join(streams))
    temporary.replace(target)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(prog="./vortex bundle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the archive")
    parser.add_argument("--part", choices=["all", "library", "driver"], default="all")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--metal", action="store_true", help="with the reader of Metal source and libvortex_metal")
    parser.add_argument("--fast", action="store_true", help="compress quickly, for tests")
    options = parser.parse_args()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "vortex-bundle"
    name = f"vortex-{version(options.build)}-linux-x86_64"
    programs = [options.build / "bin/vortex"] + [options.build / "lib" / library for library in METAL if options.metal]
    for program in programs:
        if not program.exists():
            sys.exit(f"bundle: {program} is not built")
    if not shutil.which("xz"):
        sys.exit("bundle: xz is not installed (package xz-utils)")
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch, chunks = pathlib.Path(folder), []
        if options.part != "driver":
            chunks += pieces(name + "/", library_files(programs, scratch))
        if options.part != "library":
            chunks += pieces(name + "/", driver_files(options.build, scratch, ["vortex"] + ["vortex_metal"] * options.metal))
        suffix = "-metal" * options.metal + ("" if options.part == "all" else "-" + options.part)
        target = options.output / f"{name}{suffix}.tar.xz"
        archive(target, chunks, cache, "0" if options.fast else "9e")
    most = MAX_METAL_BYTES if options.metal else MAX_BYTES
    if not options.fast and target.stat().st_size > most:
        sys.exit(f"bundle: {target} has {target.stat().st_size} bytes, the limit is {most}")


if __name__ == "__main__":
    main()
