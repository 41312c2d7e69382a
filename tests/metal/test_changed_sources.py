"""Metal sources with words deleted, doubled, exchanged and taken from others: `check` accepts them or says what is wrong at a place, and neither crashes nor
hangs. VORTEX_METAL_CHANGES=2000 VORTEX_METAL_SEED=7 ./test changed_sources tries that many from that seed."""
import json
import os
import pathlib
import random
import re
import subprocess

import pytest
import test_model_kernels
import test_parallel_kernels
import test_programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = [path.read_text() for folder in ("examples/metal", "bench/kernels") for path in sorted((ROOT / folder).glob("*.metal"))]
SOURCES += [program[0] for module in (test_programs, test_model_kernels, test_parallel_kernels) for program in module.PROGRAMS.values()]
WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\s+|\[\[|\]\]|::|->|<<|>>|[-+*/%&|^=!<>]=|&&|\|\||.", re.DOTALL)
RARE = ["device", "constant", "threadgroup", "thread", "kernel", "template", "[[", "]]", "(", ")", "{", "}", "<", ">", ";", ",", "&", "*", "[", "]", "0", "-1", "4294967296", "1.0h", "1e999",
        "float3", "half", "uint", "bool", "void", "struct", "return", "break", "if", "for", "while (true)", "threadgroup_barrier(mem_flags::mem_none);", "simd_sum", "#", "\\\n", "\"", "'",
        "/*", "//", "\0", "\xe9", "?", ":", "operator", "auto", "constexpr", "[[buffer(0)]]", "[[function_constant(0)]]", "nullptr", "this", "sizeof", "goto x;", "static"]
SECONDS = 120  # for a batch, which takes two when nobody else is at work
BATCH = 10


def changed(rng):
    words = WORD.findall(rng.choice(SOURCES))
    others = WORD.findall(rng.choice(SOURCES))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        kind = rng.randrange(7)
        if kind == 0:
            del words[i]
        elif kind == 1:
            words.insert(i, words[j])
        elif kind == 2:
            words[i], words[j] = words[j], words[i]
        elif kind == 3:
            words[i] = rng.choice(others)
        elif kind == 4:
            words.insert(i, rng.choice(RARE))
        elif kind == 5:
            del words[i:i + rng.randrange(1, 30)]
        else:
            start = rng.randrange(len(others))
            words[i:i] = others[start:start + rng.randrange(1, 30)]
        if not words:
            break
    return "".join(words)


def outcome(program, paths):
    """Status and messages of one process; status None: it took too long."""
    try:
        done = subprocess.run([program, "--json", "check", *paths], capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stderr.decode(errors="replace")


def judge(status, messages):
    """What is wrong with it; None for nothing."""
    if status is None:
        return "hangs"
    if status not in (0, 1):
        return f"ends with status {status}: {messages[-600:]}"
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(messages.rstrip()):
        try:
            part, at = decoder.raw_decode(messages, at)
        except json.JSONDecodeError:
            return f"says {messages[at:at + 600]}"
        found += part
        while at < len(messages) and messages[at].isspace():
            at += 1
    if status == 1 and not any(each["severity"] == "error" for each in found):
        return "fails without an error"
    if any(not re.fullmatch(r"[EW]\d{4}", each["id"]) for each in found):
        return f"has a message without an id: {messages[:600]}"
    return None


@pytest.mark.parametrize("part", range(4))
def test_changed_sources_are_taken_or_refused(program, tmp_path, part):
    count = int(os.environ.get("VORTEX_METAL_CHANGES", "160")) // 4
    seed = int(os.environ.get("VORTEX_METAL_SEED", random.randrange(10**9))) * 4 + part
    rng = random.Random(seed)
    for first in range(0, count, BATCH):
        paths = []
        for number in range(first, min(first + BATCH, count)):
            paths.append(tmp_path / f"{number}.metal")
            paths[-1].write_text(changed(rng), encoding="utf-8")
        if judge(*outcome(program, paths)) is None:
            continue
        for path in paths:
            wrong = judge(*outcome(program, [path]))
            assert wrong is None, f"seed {seed}, {path}: {wrong}\n{path.read_text()}"
        assert False, f"seed {seed}: only together: {paths}"
