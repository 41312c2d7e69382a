"""Choosing among configurations by measuring them."""
from __future__ import annotations

import functools
import hashlib
import json
import os
import pathlib
import tempfile
import time
import types
from collections.abc import Iterable

import numpy as np

import vortex
from vortex import _foreign

from .._arguments import GpuArray, host_array
from .._values import is_number, unwrap
from ..runtime.buffer import Buffer
from ..runtime.device import Device
from ..runtime.environment import is_on
from .kernel import Kernel, grid_of, interprets

_autotune_cache: dict = {}
_TIE = 0.0025
_FINAL = 0.08


class Config:
    """Values for constexprs and hints."""

    def __init__(self, *given, num_simdgroups: int = 4, num_stages: int = 1, **constexprs):
        if given:
            named = given[0] if len(given) == 1 and isinstance(given[0], dict) else {}
            example = ", ".join(f"{name}={value!r}" for name, value in named.items()) or "BLOCK=64"
            raise TypeError(f"metile.Config takes constexprs and hints by name: Config({example})")
        self.num_simdgroups, self.num_stages = num_simdgroups, num_stages
        self.kwargs = {**constexprs, **({"num_stages": num_stages} if num_stages > 1 else {})}

    def __eq__(self, other):
        return isinstance(other, Config) and self.kwargs == other.kwargs

    def __hash__(self):
        return hash(tuple(sorted(self.kwargs.items())))

    def __repr__(self):
        return f"Config({', '.join(f'{name}={value}' for name, value in self.kwargs.items())})"


def _identity(code) -> tuple:
    """Of what a function does, alike in all processes."""
    return code.co_code, code.co_names, *(_identity(part) if isinstance(part, types.CodeType) else repr(part) for part in code.co_consts)


def cache_directory() -> pathlib.Path:
    """$METILE_CACHE_DIR, else metile in the user's cache folder."""
    root = os.environ.get("METILE_CACHE_DIR")
    if root:
        return pathlib.Path(root)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "metile"


class Autotuned:
    """A kernel whose configuration is chosen at the first launch with new key values."""

    def __init__(self, kernel, configs, key, warmup: int = 5, rep: int = 20, verbose: bool = True):
        if not isinstance(kernel, (Kernel, Autotuned)):
            raise TypeError(f"autotune takes a kernel, not a {type(kernel).__name__}: @metile.autotune(…) stands above @metile.kernel")
        self.kernel_fn: Kernel = kernel.kernel_fn if isinstance(kernel, Autotuned) else kernel
        for what, names in (("configs", configs), ("key", key)):
            if isinstance(names, (str, Config)) or not isinstance(names, Iterable):
                raise TypeError(f"autotune of '{self.kernel_fn.name}': {what} is a list, not a {type(names).__name__}")
        self.configs, self.key = list(configs), list(key)
        for what, number in (("warmup", warmup), ("rep", rep)):
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"autotune of '{self.kernel_fn.name}': {what} is a number of launches, not a {type(number).__name__}")
            if number < 0:
                raise ValueError(f"autotune of '{self.kernel_fn.name}': {what} is a number of launches, not {number}")
        if not self.configs:
            raise ValueError(f"autotune of '{self.kernel_fn.name}': there are no configurations")
        for config in self.configs:
            if not isinstance(config, Config):
                raise TypeError(f"autotune of '{self.kernel_fn.name}': configs are metile.Config, not a {type(config).__name__}")
        unknown = [name for name in self.key if name not in self.kernel_fn.signature.parameters]
        if unknown:
            raise ValueError(f"autotune of '{self.kernel_fn.name}': the kernel has no parameter '{unknown[0]}' to tune by")
        self.warmup, self.rep, self.verbose = warmup, rep, verbose
        self.name, self.fn = self.kernel_fn.name, self.kernel_fn.fn

    def __getitem__(self, grid):
        return _Launcher(self, grid)

    def choose(self, grid, args: tuple, kwargs: dict) -> Config | None:
        """The configuration for these arguments; None when the call names all constexprs itself."""
        kernel = self.kernel_fn
        if all(name in kwargs for name in kernel.constexprs):
            return None
        key = self._key(grid, args, kwargs)
        if key not in _autotune_cache:
            stored = self._stored(key)
            _autotune_cache[key] = stored if stored is not None else self._measure(grid, args, kwargs, key)
        return _autotune_cache[key]

    def _key(self, grid, args: tuple, kwargs: dict) -> tuple:
        kernel = self.kernel_fn
        given = {**dict(zip(kernel.signature.parameters, args)), **kwargs}
        values = tuple((name, _describe(given.get(name))) for name in self.key)
        shape = "callable" if callable(grid) else grid_of(grid, kernel.name)
        device = Device.get()
        return kernel.name, self._source, values, shape, self._names, device.id, device.name

    @functools.cached_property
    def _source(self) -> str:
        return hashlib.sha256(repr(_identity(self.kernel_fn.fn.__code__)).encode()).hexdigest()

    @functools.cached_property
    def _names(self) -> tuple:
        return tuple(repr(config) for config in self.configs)

    def _file(self, key: tuple) -> pathlib.Path:
        return cache_directory() / "autotune" / (hashlib.sha256(repr(key).encode()).hexdigest() + ".json")

    def _stored(self, key: tuple) -> Config | None:
        if is_on("METILE_DISABLE_DISK_CACHE"):
            return None
        try:
            wanted = json.loads(self._file(key).read_text())["config"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return next((config for config in self.configs if repr(config) == wanted), None)

    def _store(self, key: tuple, config: Config) -> None:
        if is_on("METILE_DISABLE_DISK_CACHE"):
            return
        path, written = self._file(key), None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
                written = file.name
                file.write(json.dumps({"kernel": self.name, "config": repr(config)}))
            os.replace(written, path)
        except OSError:  # a cache that cannot be written costs time only
            if written is not None:
                os.unlink(written)

    def _measure(self, grid, args: tuple, kwargs: dict, key: tuple) -> Config:
        """All configurations in turns, so that a slow moment hits each; those close to the best again."""
        saved = _contents({**dict(zip(self.kernel_fn.signature.parameters, args)), **kwargs})
        where = next((place.gpu for place, _ in saved if isinstance(place, GpuArray)), None) or Device.get().id
        ready, failures = {}, {}
        for config in self.configs:
            try:
                ready[config] = self._prepare(config, grid, args, kwargs)
            except Exception as error:  # noqa: BLE001 - a configuration that fails is left out, whatever it fails with
                failures[config] = error
            _restore(saved)
        if not ready:
            first = next(iter(failures.values()))
            raise RuntimeError(f"autotune of '{self.name}': every configuration fails; the first: {first}") from first
        times = self._times(ready, 1 if interprets() or len(ready) == 1 else self.rep, saved, where)
        best = min(times.values())
        finalists = {config: ready[config] for config in ready if times[config] <= best * (1 + _FINAL)}
        if len(finalists) > 1 and not interprets():
            times.update(self._times(finalists, self.rep, saved, where))
            best = min(times[config] for config in finalists)
        tied = [config for config in finalists if times[config] <= best * (1 + _TIE)]
        chosen = min(tied, key=lambda config: ready[config].code_bytes) if len(tied) > 1 else tied[0]
        _restore(saved)
        self._store(key, chosen)
        if self.verbose:
            self._report(key, chosen, times, failures)
        return chosen

    def _prepare(self, config: Config, grid, args: tuple, kwargs: dict):
        return self.kernel_fn[grid].prepare(*args, **{**kwargs, **self._values(config, kwargs)})

    def _values(self, config: Config, kwargs: dict) -> dict:
        return {name: value for name, value in config.kwargs.items() if name not in kwargs}

    def _times(self, ready: dict, rounds: int, saved: list, where: str) -> dict:
        """The shortest of the rounds for each."""
        best = {config: float("inf") for config in ready}
        for _ in range(max(1, min(rounds, self.rep))):
            for config, dispatch in ready.items():
                _restore(saved)
                vortex.synchronize(where)
                start = time.perf_counter()
                dispatch()
                vortex.synchronize(where)  # with the streams of other libraries
                best[config] = min(best[config], time.perf_counter() - start)
            if sum(best.values()) > 1.0:  # long kernels need no many rounds
                break
        return best

    def _report(self, key: tuple, chosen: Config, times: dict, failures: dict) -> None:
        print(f"autotune {self.name} [{', '.join(f'{name}={value}' for name, value in key[2])}]: {chosen}")
        for config in self.configs:
            if config in failures:
                print(f"  {config}: FAILED ({str(failures[config]).splitlines()[0]})")
            else:
                print(f"  {config}: {times[config] * 1e6:.1f} us{' <--' if config == chosen else ''}")


class _Launcher:
    def __init__(self, tuned: Autotuned, grid):
        self.tuned, self.grid = tuned, grid

    def _chosen(self, args: tuple, kwargs: dict):
        config = self.tuned.choose(self.grid, args, kwargs)
        values = self.tuned._values(config, kwargs) if config is not None else {}
        return config, {**kwargs, **values}

    def __call__(self, /, *args, **kwargs) -> Config | None:
        config, values = self._chosen(args, kwargs)
        self.tuned.kernel_fn[self.grid](*args, **values)
        return config

    def prepare(self, /, *args, **kwargs):
        _, values = self._chosen(args, kwargs)
        return self.tuned.kernel_fn[self.grid].prepare(*args, **values)


def _describe(value):
    value = unwrap(value)
    return value if is_number(value) else tuple(getattr(value, "shape", ())) if hasattr(value, "shape") else repr(value)


def _contents(given: dict) -> list:
    """(where, elements) of what the launches may write."""
    out: list = []
    for name, value in given.items():
        gpu = _foreign.gpu_of(value)
        array = value if isinstance(value, np.ndarray) else None if is_number(value) or isinstance(value, Buffer) or gpu else host_array(value, name)
        if gpu is not None:
            place = GpuArray(value, gpu, name)
            if not place.is_read_only:
                out.append((place, place.host().copy()))
        elif isinstance(value, Buffer) and value._flat.flags.writeable:
            out.append((value, value.host().copy()))
        elif array is not None and array.flags.writeable:
            out.append((array, array.copy()))
    return out


def _restore(saved: list) -> None:
    for place, before in saved:
        (place if isinstance(place, np.ndarray) else place.host())[...] = before
        if isinstance(place, GpuArray):
            place.finish()


def autotune(configs, key, warmup: int = 5, rep: int = 20, verbose: bool = True):
    """Chooses among configurations at the first launch with new values of the arguments named in `key`."""
    return lambda kernel: Autotuned(kernel, configs, key, warmup, rep, verbose)
