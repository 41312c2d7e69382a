"""Programs and their kernels as callables."""
from __future__ import annotations

import copy
import functools
import keyword
import os
from typing import Any

import numpy as np

import _vortex

from . import _devices, _errors, _foreign, _imports, _interpreted, _kept, _launch, _parts
from ._devices import Device


def _compiler():
    """The extension that holds the compiler; LLVM is loaded with it."""
    import _vortex_compiler

    return _vortex_compiler


def _uses_disk() -> bool:
    return not os.environ.get("VORTEX_NO_CACHE")


def _library_paths() -> list[str]:
    """Where `import std…` of programs looks: beside this package when installed, in the checkout otherwise."""
    here = os.path.dirname(os.path.realpath(__file__))
    return [path for path in (os.path.join(here, "std"), os.path.join(os.path.dirname(os.path.dirname(here)), "std")) if os.path.isdir(path)]


def _three(sizes, what: str) -> list[int] | None:
    if sizes is None:
        return None
    values = [sizes] if isinstance(sizes, (int, np.integer)) else list(sizes) if isinstance(sizes, (tuple, list, np.ndarray)) else []
    if not 1 <= len(values) <= 3 or not all(isinstance(value, (int, np.integer)) and value > 0 for value in values):
        raise ValueError(f"{what} is one to three positive integers, not {sizes!r}")
    return [int(value) for value in values] + [1] * (3 - len(values))


class Prepared:
    """A checked launch: calling it runs the kernel on the same arrays again and returns the same results, which the next run overwrites."""

    def __init__(self, kernel: Kernel | LoadedProgram, launch, stream, results):
        self._launch, self._stream, self._kernel = launch, stream, kernel
        self.results = results

    @classmethod
    def of(cls, kernel: Kernel | LoadedProgram, device: Device, loaded: _launch.Loaded, args: tuple, out, grid) -> Prepared:
        leaves = loaded.leaves(args)
        _launch.require_on_device(device, loaded, leaves, out)
        outputs = [array for array, _ in _launch.outputs_of(device, loaded.name, loaded.result_names, out, in_place=True)]
        stream = _foreign.stream_for(device, leaves) or _devices.default_stream(device.name)
        launch = loaded.native.prepare(device, stream, tuple(_foreign.adopted(device, leaf) for leaf in leaves), outputs, grid)
        made = [_launch.lasting(args, result) for result in launch.results()] if out is None else ()
        return cls(kernel, launch, stream, out if out is not None else _launch.several(loaded.shaped(made)))

    def __call__(self):
        self._launch.submit(self._stream)
        return self.results

    def repeat(self, times: int) -> None:
        """Runs it `times` times in order. Ctrl-C ends it between two runs."""
        if isinstance(times, bool) or not isinstance(times, (int, np.integer)) or times < 0:
            raise ValueError(f"repeat takes a number of times, not {times!r}")
        if times >= 1 << 64:
            raise OverflowError(f"repeat takes less than 2**64 times, not {times}")
        self._launch.repeat(self._stream, int(times))


class Kernel:
    """A kernel of a program, called with its arguments. It is compiled for a device at the first call. Of a generic kernel it stands for all
    instances: a call takes the one that fits the arguments, `kernel["f64"]` is one of them."""

    def __init__(self, program: Program, instances: list[dict], grid=None, block=None, loaded: dict[tuple, Any] | None = None,
                 is_chosen: bool = False):
        self._program, self._instances, self._grid, self._block = program, instances, grid, block
        self._info = instances[0]
        self._is_chosen = is_chosen  # by the caller: its arguments are those of the launch, whatever is given
        self._is_single = len(instances) == 1 and (is_chosen or not self._info["generics"])
        self._is_same_for_all = self._is_single and not self._info["fixed_extents"]  # whatever the arguments
        self._last: tuple[Device, _launch.Loaded] | None = None
        self._names = [param["name"] for param in self._info["params"]]
        self.name: str = self._info["name"]
        self.__name__ = self.__qualname__ = self.name
        self._is_of_all = bool(self._info["generics"]) and not is_chosen  # of all instances of a generic kernel
        self._loaded: dict[tuple, Any] = {} if loaded is None else loaded  # by what the code depends on: not by the grid
        self._chosen: dict[str, Kernel] = {}

    def __repr__(self):
        if self._is_of_all:
            return f"<vortex.Kernel {self.name}[…]({', '.join(self._names)})>"
        values = ", ".join(str(value) for value, *_ in self._info["generics"])
        params = ", ".join(f"{param['name']}: {param['type']}" for param in self._info["params"])
        return f"<vortex.Kernel {self.name}{f'<{values}>' if values else ''}({params})>"

    def __getattr__(self, name: str):
        if name != "__signature__":
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        import inspect

        # A word of Python and `out`, which is the call's own, name no parameter: those up to the last of them go by position.
        unnamed = [keyword.iskeyword(name) or name in ("out", "self") for name in self._names]
        by_position = max((place + 1 for place, is_unnamed in enumerate(unnamed) if is_unnamed), default=0)
        parameters = [inspect.Parameter(f"{param['name']}_" if unnamed[place] else param["name"],
                                        inspect.Parameter.POSITIONAL_ONLY if place < by_position else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                        annotation=inspect.Parameter.empty if self._is_of_all else param["type"])
                      for place, param in enumerate(self._info["params"])]
        return inspect.Signature([*parameters, inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)])

    def __reduce__(self):
        raise TypeError(f"kernel '{self.name}' cannot be pickled: compile the program where it is used")

    def launch(self, *, grid=None, block=None) -> Kernel:
        """The same kernel with explicit numbers of blocks and threads per axis."""
        return Kernel(self._program, self._instances, _three(grid, "grid"), _three(block, "block"), self._loaded, self._is_chosen)

    def __getitem__(self, types) -> Kernel:
        """The instance of a generic kernel for types ("f64", a NumPy type) and constants."""
        return self._instance(tuple(_spelled(given) for given in (types if isinstance(types, tuple) else (types,))))

    def _instance(self, arguments: tuple[str, ...]) -> Kernel:
        """One that the program uses, else one made now."""
        ending = f"{self.name}<{', '.join(arguments)}>"
        for info in self._instances:
            if info["unique_name"].endswith(ending):
                return self._of(info)
        if not self._info["generics"]:
            raise KeyError(f"kernel '{self.name}' is not generic: it has no instance <{', '.join(arguments)}>")
        made = self._chosen.get(ending)
        if made is None:
            program = self._program.with_instance(self.name, arguments)
            info = next(info for info in program.kernels[self.name]._instances if info["unique_name"].endswith(ending))
            made = self._chosen[ending] = Kernel(program, [info], self._grid, self._block, self._loaded, True)
        return made

    def _of(self, info: dict) -> Kernel:
        if self._is_single:
            return self
        return self._chosen.setdefault(info["unique_name"], Kernel(self._program, [info], self._grid, self._block, self._loaded, True))

    def _fitting(self, args: tuple) -> Kernel:
        """The instance that fits the arguments: one that the program uses, else one made now."""
        if self._is_single:
            return self
        told = [_told(argument, args) for _, *argument in self._info["generics"]]
        found = [info for info in self._instances if not info["is_representative"] and _has(info, told)
                 and all(_fits(param, value) for param, value in zip(info["params"], args))]
        if len(found) == 1:
            return self._of(found[0])
        wanted = tuple(value for value in told if value is not None)
        if len(wanted) == len(told):
            return self._instance(wanted)
        used = found or [info for info in self._instances if not info["is_representative"]]
        raise TypeError(f"kernel '{self.name}' has no instance for these arguments, which do not tell all of its parameters: name one, {self.name}[…]; "
                        f"the program makes {_instances(used) or 'none'}")

    @property
    def _native(self):
        return self._program._native if self._grid is None else self._program._with_grid

    def __call__(self, *args, out=None, **named):
        """Runs the kernel; results are of the kind of the first array argument, `out` (an array or a tuple of them) receives them instead."""
        if self._last is not None and not named and len(args) == len(self._names):
            return _launch.call(*self._last, args, out, self._grid)
        args = self._bind(args, named)
        kernel = self._fitting(args)
        if self._program.device == "interpreter":
            return _interpreted.run(kernel, args, out)
        device = _devices.device(self._program.device)
        loaded = kernel._load(device, args)
        if self._is_same_for_all:
            self._last = device, loaded
        return _launch.call(device, loaded, args, out, self._grid)

    def prepare(self, *args, out=None, **named) -> Prepared:
        """Checks the launch once; the object returned repeats it without checks."""
        device = self._device()
        args = self._bind(args, named)
        kernel = self._fitting(args)
        prepared = Prepared.of(self, device, kernel._load(device, args), args, out, self._grid)
        if self._program.device == "interpreter":
            prepared._launch = _interpreted.Launch(kernel, args, prepared._launch.results())
        return prepared

    def source(self, stage: str = "schedule", *args) -> str:
        """Text after a stage of the compiler: irgen, schedule, vxt, llvm, optimized-llvm, assembly."""
        if not isinstance(stage, str):
            raise TypeError(f"a stage of the compiler is a str, not a {type(stage).__name__}")
        args = self._bind(args, {}) if args else ()
        kernel = self._fitting(args) if args else self
        return kernel._native.text(kernel._info["unique_name"], stage, kernel._request(_target(self._program.device), args))

    def facts(self, *args) -> dict[str, int]:
        """Resources of the code for these arguments: registers, spilled bytes, size. Those of an entry point stand under its name too."""
        args = self._bind(args, {}) if args else ()
        kernel, device = self._fitting(args), self._device()
        return _kept.facts(kernel._load(device, args).native, device,
                           lambda: kernel._native.build(kernel._info["unique_name"], kernel._request(device.target, args)))

    def _device(self) -> Device:
        """The device whose code there is: of the interpreter, the CPU."""
        return _devices.device("cpu" if self._program.device == "interpreter" else self._program.device)

    def _bind(self, args: tuple, named: dict) -> tuple:
        names = self._names
        if named:
            given = dict(zip(names, args))
            for name, value in named.items():
                if name not in names:
                    raise TypeError(f"kernel '{self.name}' has no parameter '{name}'; it has {', '.join(names) or 'none'}")
                if name in given:
                    raise TypeError(f"kernel '{self.name}' got two values for '{name}'")
                given[name] = value
            missing = [repr(name) for name in names if name not in given]
            if missing:
                raise TypeError(f"kernel '{self.name}' misses {', '.join(missing)}")
            if len(args) <= len(names):
                return tuple(given[name] for name in names)
        if len(args) != len(names):
            raise TypeError(f"kernel '{self.name}' takes {len(names)} arguments ({', '.join(names)}), {len(args)} given")
        return args

    def _extents(self, args: tuple) -> list:
        if not self._info["fixed_extents"]:
            return []
        leaves = [leaf for value in args for leaf in _parts.natural(value)]
        extents: list = [None] * len(leaves)
        for argument, _ in self._info["fixed_extents"]:
            if argument < len(leaves):
                value = leaves[argument]
                extents[argument] = [int(value)] if np.isscalar(value) else [int(extent) for extent in value.shape]
        return extents

    def _request(self, target: str, args: tuple):
        return _compiler().request(target, self._grid, self._block, self._extents(args), _uses_disk())

    def _load(self, device: Device, args: tuple) -> _launch.Loaded:
        extents = tuple(tuple(extent) if extent else None for extent in self._extents(args)) if self._info["fixed_extents"] else ()
        key = (self._info["unique_name"], device.name, self._grid is not None, tuple(self._block or ()), extents)
        loaded = self._loaded.get(key)
        if loaded is None:
            native = self._program.load(self._info["unique_name"], self._grid is not None, device, self._block, self._extents(args))
            loaded = self._loaded[key] = _launch.Loaded(native)
        return loaded


_ANY_GRID = [1, 1, 1]  # a kernel whose launches give the grid serves every one


class Program:
    """A compiled program; its kernels are attributes."""

    def __init__(self, name: str, text: str, device: str, dims: dict[str, int], check: bool, wanted: tuple = ()):
        self.device, self.check, self._dims = device, check, dims
        self._compile = lambda with_grid: _compiler().compile(name, text, list(dims.items()), _library_paths(), with_grid, wanted, check)
        self.with_instance = functools.lru_cache(maxsize=None)(lambda kernel, arguments: Program(name, text, device, dims, check, ((kernel, arguments),)))
        self._key = ("vx", name, text, tuple(dims.items()), wanted, check) if _uses_disk() else None
        self._imports = _imports.Imports(self._key, _library_paths()) if self._key and "import" in text else None
        kernels, found = self._described()
        self.diagnostics = _errors.diagnostics(found)
        instances: dict[str, list[dict]] = {}
        for info in kernels:
            instances.setdefault(info["name"], []).append(info)
        self.kernels = {name: Kernel(self, of) for name, of in instances.items()}

    def _described(self) -> tuple[list[dict], list[dict]]:
        """Kernels and warnings, without the compiler if they are known. A CompileError where there are errors."""
        if self._imports is not None:
            self._key = self._imports.key()
        known = _kept.find(self._key) if self._key else None
        if known is None:
            native = self._native
            known = native.kernels(), native.diagnostics()
            if not native.ok:
                raise _errors.CompileError(native.report, _errors.diagnostics(known[1]))
            if unknown := self._dims.keys() - set(native.dimensions()):
                raise ValueError(f"dims: the program has no dimension {', '.join(sorted(unknown))}; it has {', '.join(native.dimensions()) or 'none'}")
            if self._imports is not None:
                self._key = self._imports.found(native.files())
            if self._key:
                _kept.keep(self._key, known)
        return known

    def load(self, kernel: str, with_grid: bool, device: Device, block, extents: list):
        """The kernel on a device, from disk if it is there."""
        key = self._key and (*self._key, kernel, with_grid, device.target, device.model, block, extents)
        target, compiled = device.target, self._compile

        def planned(program):
            return program.plan(kernel, _compiler().request(target, _ANY_GRID if with_grid else None, block, extents, not key and _uses_disk()))

        native, _ = _kept.load(device, key, lambda: (planned(self._with_grid if with_grid else self._native), None),
                               lambda: planned(compiled(with_grid)))
        return native

    @functools.cached_property
    def _native(self):
        return self._compile(False)

    @functools.cached_property
    def _with_grid(self):
        """The program for launches that give the numbers of blocks."""
        return self._compile(True)

    def __getattr__(self, name: str) -> Kernel:
        kernels = self.__dict__.get("kernels", {})
        if name not in kernels:
            raise AttributeError(f"the program has no kernel '{name}'; it has {', '.join(kernels) or 'none'}")
        return kernels[name]

    def __reduce__(self):
        raise TypeError("programs cannot be pickled: compile them where they are used")

    def __dir__(self):
        return [*super().__dir__(), *self.kernels]

    def __repr__(self):
        return f"<vortex.Program of {', '.join(self.kernels) or 'no kernels'} on '{self.device or os.environ.get('VORTEX_DEVICE', 'cpu')}'>"


class LoadedProgram:
    """A kernel artifact (.vxk), loaded without the compiler."""

    def __init__(self, path, device: str):
        self._device = _devices.device(device)
        self._kernel = _launch.Loaded(_vortex.load_file(self._device, os.fspath(path)))
        self.name: str = self._kernel.name
        self._grid = None

    def launch(self, *, grid) -> LoadedProgram:
        """The same kernel with these numbers of blocks, for kernels whose launches give them."""
        given = copy.copy(self)
        given._grid = _three(grid, "grid")
        return given

    def __repr__(self):
        return f"<vortex.LoadedProgram {self.name}({', '.join(self._kernel.tree)})>"

    def __call__(self, *args, out=None):
        return _launch.call(self._device, self._kernel, args, out, self._grid)

    def prepare(self, *args, out=None) -> Prepared:
        """Checks the launch once; the object returned repeats it without checks."""
        return Prepared.of(self, self._device, self._kernel, args, out, self._grid)


def compile(path=None, *, source: str | None = None, name: str = "<source>", device: str = "", dims: dict[str, int] | None = None,
            check: bool = False) -> Program:
    """Compiles a .vx file, or `source`. `device` is a name of devices(), or "interpreter"; `check` runs kernels in the interpreter and
    reports accesses out of bounds, races and uninitialised reads."""
    if (path is None) == (source is None):
        raise TypeError("compile() takes a path or source=, one of them")
    if path is not None and not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"compile() takes the path of a program, not a {type(path).__name__}")
    if isinstance(path, str) and "\n" in path:
        raise ValueError("compile() takes the path of a program; its text is given as source=")
    if source is None:
        try:
            with open(path, encoding="utf-8") as file:
                source, name = file.read(), os.fsdecode(path)
        except UnicodeDecodeError as error:
            raise _errors.CompileError(f"{path} is not UTF-8: byte {error.object[error.start]:#04x} at offset {error.start}") from None
    elif not isinstance(source, str):
        raise TypeError(f"source= is the text of a program, not a {type(source).__name__}")
    else:
        try:
            source.encode()
        except UnicodeEncodeError as error:
            raise _errors.CompileError(f"source= is no text: character {error.start} is {source[error.start]!r}, a half of a character") from None
    for dim, value in (dims or {}).items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise ValueError(f"dims: {dim} is a size, not {value!r}")
    is_interpreted = check or not device and os.environ.get("VORTEX_DEVICE") == "interpreter"
    if not is_interpreted and device != "interpreter":
        _devices.device(device)  # a device that is not there is told here, not by the first call
    return Program(name, source, "interpreter" if is_interpreted else device, dims or {}, check)


def load(path, device: str = "") -> LoadedProgram:
    """A kernel that `vortex build` wrote, as a callable."""
    return LoadedProgram(path, device)


def _target(device: str) -> str:
    return "cpu" if device == "interpreter" else _devices.device(device).target


def _fits(param: dict, value) -> bool:
    if not _devices.is_plain(param):
        return True
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        is_float = param["dtype"].startswith(("f", "bf"))
        return not param["is_tensor"] and (is_float or not isinstance(value, float))
    return _devices.is_dtype(dtype, param["dtype"])


def _told(place: list, args: tuple) -> str | None:
    """What the arguments of a launch say of a kernel's generic parameter."""
    param, dim = place
    value = args[param] if param is not None else None
    if hasattr(value, "shape") and dim is not None:
        return str(int(value.shape[dim])) if dim < len(value.shape) else None
    if hasattr(value, "dtype"):
        return next((name for name in _devices.DTYPES if _devices.is_dtype(value.dtype, name)), None)
    return None


def _has(info: dict, told: list) -> bool:
    return all(value is None or value == argument[0] for argument, value in zip(info["generics"], told))


def _spelled(given) -> str:
    if isinstance(given, (int, np.integer, np.bool_)):
        return str(int(given))
    return given if isinstance(given, str) else _devices.dtype_name(given)


def _instances(infos: list[dict]) -> str:
    return ", ".join(info["unique_name"] for info in infos)
