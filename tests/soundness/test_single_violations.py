"""Generated programs with a single violation are refused with its id: by `vortex check`, or by `--check` while a kernel runs. Seeds are
printed by what fails; VORTEX_SOUNDNESS_SECONDS=600 runs each test that long with new seeds, VORTEX_SOUNDNESS_SEED one seed."""
import json
import random
import re

import numpy
import pytest

import host_violations
import tiles
import violations
import whole
from test_sound_programs import groups, seeds

TOGETHER = 60


def diagnostics(output):
    decoder, at, found = json.JSONDecoder(), 0, []
    while (at := output.find("[", at)) >= 0:
        items, at = decoder.raw_decode(output, at)
        found += items
    return found


def host(seed):
    what, text, id_ = host_violations.broken(seed)
    # What was moved while borrowed is gone for the rest of the program too.
    return what, text, {id_}, {"E0512"} if id_ == "E0515" else set()


def thread(seed):
    rng = random.Random(seed)
    what, text, ids = violations.threadViolation(rng, violations.Kernel(rng, "c", seed))
    return what, text, ids, set()


def tensor(seed):
    rng = random.Random(seed)
    what, text, ids = violations.wholeViolation(rng, whole.Whole(rng, "c", seed))
    return what, text, ids, set()


def tile(seed):
    rng = random.Random(seed)
    what, text, ids = violations.tileViolation(rng, lambda styles: tiles.Kernel(rng, "c", seed, styles=styles, plain=True))
    return what, text, ids, None  # a tile of another kind has consequences


KINDS = {"host": (host, 240), "threads": (thread, 180), "whole tensors": (tensor, 60), "tiles": (tile, 60)}


@pytest.mark.parametrize("kind", KINDS)
def test_single_violations_are_refused_with_their_id(kind, vortex, tmp_path):
    make, count = KINDS[kind]
    wrong, total = [], 0
    for group in groups(seeds(count), TOGETHER):
        made = {}
        for seed in group:
            path = tmp_path / f"broken{seed}.vx"
            what, text, wanted, more = make(seed)
            path.write_text(text)
            made[str(path)] = (seed, what, wanted, more)
        done = vortex("check", "--json", *made, status=None)
        ids = {path: set() for path in made}
        for item in diagnostics(done.stderr):
            if item["severity"] == "error":
                ids[item["labels"][0]["file"]].add(item["id"])
        for path, (seed, what, wanted, more) in made.items():
            if not ids[path] & wanted or (more is not None and not ids[path] <= wanted | more):
                wrong.append(f"seed {seed}: {sorted(wanted)} expected, {sorted(ids[path])} reported\n{what}\n{path}")
            else:
                (tmp_path / f"broken{seed}.vx").unlink()
        total += len(group)
    assert not wrong, f"{len(wrong)} wrong of {total}\n" + "\n\n".join(wrong[:20])


def test_checked_runs_find_races_and_uninitialised_memory(vortex, tmp_path):
    wrong = []
    for seed in seeds(24):
        rng = random.Random(seed)
        kernel = violations.Kernel(rng, f"c{seed}", seed)
        what, text, wanted = violations.race(rng, kernel)
        path, folder = tmp_path / f"race{seed}.vx", tmp_path / f"race{seed}"
        folder.mkdir()
        path.write_text(text)
        for name, array in kernel.case.inputs.items():
            numpy.save(folder / f"{kernel.case.name}_{name}.npy", array)
        done = vortex("run", path, "--check", "--", folder, status=None)
        ids = set(re.findall(r"error\[(E\d+)\]", done.stderr))
        if done.returncode == 0 or not ids or not ids <= wanted:
            wrong.append(f"seed {seed}: {sorted(wanted)} expected, {sorted(ids)} reported\n{what}\n{path}\n{done.stderr[:500]}")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:10])
