"""What the compiler says in words of .vx, said in those of metile."""
from __future__ import annotations

_WORDS = (
    ("`sync_block()`", "`metile.barrier()`"),
    *((f"`warp.{theirs}`", f"`metile.simd_{ours}`") for theirs, ours in (("sum", "sum"), ("max", "max"), ("shuffle_xor", "shuffle_xor"), ("broadcast", "broadcast"))),
    ("lane of the warp", "lane of the simdgroup"),
    ("lanes of the warp", "lanes of the simdgroup"),
    ("the lanes of a warp touch", "the lanes of a simdgroup touch"),
    ("`@unchecked(coalescing)` on the statement or kernel accepts it", "without `METILE_WARNINGS=1` it is not told"),
    ("`@unchecked(races)` on the statement says that they never meet; `--check` finds", "`METILE_CHECK=1` finds"),
    ("let each thread write elements of its own, or use an atomic", "let each thread write elements of its own, or use `metile.atomic_add`"),
    ("read the elements one by one: `t[thread.local_id]`", "what stands beside a tile is the same for all lanes, as the result of `metile.sum` is"),
    (", or lift the check with `@unchecked(init)`", ""),
    ("write `if thread.local_id == 0 { … }` to do it once per block", "mask it by `metile.thread_id() == 0` to do it once per block"),
)


def did_you_mean(name, known):
    """": did you mean 'load'?" if the name is a slip of a known one, else an empty text."""
    import difflib  # most programs have no slips

    close = difflib.get_close_matches(name, known, 1, 0.7)
    return f": did you mean '{close[0]}'?" if close else ""


def in_python(said):
    """A text, or a list or dict of such, in the words of metile."""
    if isinstance(said, str):
        for theirs, ours in _WORDS:
            said = said.replace(theirs, ours)
        return said
    if isinstance(said, (list, tuple)):
        return type(said)(map(in_python, said))
    if isinstance(said, dict):
        return {name: in_python(value) for name, value in said.items()}
    return said
