"""Runs the address computation of a PTX entry for the lanes of one warp, and counts what their accesses cost.

Integers are computed; floats, loaded data and results of warp operations are 0, so control flow must not depend on data. Every lane runs by
itself; the n-th time that lanes execute one instruction counts as one access of the warp. A statement becomes a function of Python when it is first reached."""
import re
from collections import defaultdict

WIDTH = {"8": 8, "16": 16, "32": 32, "64": 64}
IGNORED = ("bar", "membar", "fence", "mma", "shfl", "vote", "activemask", "atom", "red", "ex2", "lg2", "rcp", "sqrt", "rsqrt", "fma", "sin", "cos", "tanh",
           "copysign", "testp", "griddepcontrol", "prefetch", "redux", "match", "nanosleep", "bfi", "wgmma", "mbarrier")


def quotient(a, b):
    """Rounded to zero; 0 where there is none."""
    return 0 if b == 0 else a // b if (a < 0) == (b < 0) else -(-a // b)


class Access:
    """One access of the warp: `addresses` by lane, `bytes` per lane, `kind` "ld", "st", "cp.async" or "ldmatrix"."""

    def __init__(self, space, kind, size, text):
        self.space, self.kind, self.bytes, self.text, self.addresses = space, kind, size, text, {}

    def phases(self):
        lanes = sorted(self.addresses)
        width = 8 if self.bytes == 16 else 16 if self.bytes == 8 else 32
        for first in range(0, 32, width):
            if chosen := [lane for lane in lanes if first <= lane < first + width]:
                yield [self.addresses[lane] for lane in chosen]

    def bank_degree(self):
        worst = 1
        for addresses in self.phases():
            banks = defaultdict(set)
            for address in addresses:
                for byte in range(address, address + self.bytes, min(self.bytes, 4)):
                    banks[byte // 4 % 32].add(byte // 4)
            worst = max([worst, *(len(words) for words in banks.values())])
        return worst

    def sectors(self):
        return len({byte // 32 for address in self.addresses.values() for byte in range(address, address + self.bytes)})

    def used_bytes(self):
        return len({byte for address in self.addresses.values() for byte in range(address, address + self.bytes)})


class Program:
    def __init__(self, ptx, entry):
        bodies = re.findall(r"\.entry\s+(\w+)\s*\((.*?)\)(.*?)\n\{(.*?)\n\}", ptx, re.S)
        names = [name for name, *_ in bodies]
        _, _, self.directives, body = bodies[names.index(entry)]
        self.entry, self.code, self.labels = entry, [], {}
        for line in body.splitlines():
            line = line.split("//")[0].strip()
            if label := re.fullmatch(r"([$\w]+):", line):
                self.labels[label.group(1)] = len(self.code)
                continue
            for statement in filter(None, (part.strip() for part in line.split(";"))):
                if not statement.startswith((".reg", ".local", ".shared", ".loc", ".pragma", "{", "}")):
                    self.code.append(self.parse(statement))
        self.decoded = [None] * len(self.code)

    @staticmethod
    def parse(statement):
        guard, rest = re.fullmatch(r"(?:@(!?%p\d+)\s+)?(.*)", statement, re.S).groups()
        opcode, _, operands = rest.partition(" ") if " " in rest.split("\t")[0] else rest.partition("\t")
        operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", operands)
        return guard, opcode.strip().split("."), operands, statement

    def decode(self, at):
        """(predicate or None, whether its truth skips the statement, what to do, with what)."""
        guard, opcode, operands, text = self.code[at]
        if opcode[0] == "bra":
            what = "branch", self.labels[operands[0]]
        elif opcode[0] in ("ret", "exit", "trap"):
            what = "end", None
        elif opcode[0] in ("bar", "barrier"):
            what = "barrier" if "warp" not in opcode else "nothing", None
        elif opcode[0] in ("ld", "st", "ldmatrix") or opcode[:2] == ["cp", "async"]:
            what = memory(opcode, operands, text)
        else:
            what = "compute", computation(opcode, operands, text)
        self.decoded[at] = (guard and guard.lstrip("!"), bool(guard) and guard.startswith("!"), *what)
        return self.decoded[at]

    def run(self, words, block=(0, 0, 0), warp=0, grid=(1, 1, 1), steps=400_000):
        """Accesses of the warp in the order of their first lane; `words`: the launch slots."""
        accesses = {}
        for lane in range(32):
            Lane(self, words, block, warp * 32 + lane, grid, steps).run(lambda key, make, address: accesses.setdefault(key, make()).addresses.__setitem__(lane, address))
        return list(accesses.values())

    def copies_read_too_early(self, words, threads, block=(0, 0, 0), grid=(1, 1, 1), steps=400_000):
        """(read's text, copy's text) for each word of shared memory that a thread reads, or refills, where an asynchronous copy may still be writing
        it: a copy is over once its thread has waited for its group and a barrier came after that. All threads pass the same barriers."""
        copies, reads = defaultdict(list), defaultdict(list)
        for thread in range(threads):
            lane = Lane(self, words, block, thread, grid, steps)
            lane.run(lambda key, make, address: None)
            interval, open_group, groups = 0, [], []
            for event, *what in lane.events:
                if event == "barrier":
                    interval += 1
                elif event == "copy":
                    copy = {"from": interval, "to": None, "thread": thread, "text": what[2]}
                    open_group.append(copy)
                    for word in range(what[0] // 4, (what[0] + what[1]) // 4):
                        copies[word].append(copy)
                elif event == "commit":
                    groups.append(open_group)
                    open_group = []
                elif event == "wait":
                    for copy in (copy for group in groups[: len(groups) - what[0]] for copy in group):
                        copy["to"] = interval if copy["to"] is None else copy["to"]
                elif event == "read":
                    for word in range(what[0] // 4, max((what[0] + what[1]) // 4, what[0] // 4 + 1)):
                        reads[word].append((interval, thread, what[2]))
        found = set()
        for word, uses in reads.items():
            for copy in copies[word]:
                for interval, thread, text in uses:
                    after = interval >= copy["from"]
                    over = copy["to"] is not None and (interval > copy["to"] or (thread == copy["thread"] and interval == copy["to"]))
                    if after and not over:
                        found.add((text, copy["text"]))
        return found, sum(map(len, copies.values()))


def operand(text):
    """A register, a number or a name as an expression over `get`, which reads registers; those never written are 0."""
    if text.startswith("%"):
        return f"get({text!r}, 0)"
    if text == "vx_shared" or re.fullmatch(r"0[fd][0-9A-Fa-f]+|\w+_param_\d+", text):
        return "0"
    return str(int(text.rstrip("U"), 0))


def address(text):
    """(register or None, offset)."""
    base, _, offset = text.strip("[]").partition("+")
    return base if base.startswith("%") else None, int(offset, 0) if offset else 0


COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
#: Over operands of the instruction's type (a, b, c), as they stand in registers (r1, r2), and the type's bits.
INTEGER = {
    "mov": "{a}", "add": "{a} + {b}", "sub": "{a} - {b}", "and": "{a} & {b}", "or": "{a} | {b}", "xor": "{a} ^ {b}", "not": "~{a}", "neg": "-{a}", "abs": "abs({a})",
    "min": "min({a}, {b})", "max": "max({a}, {b})", "mad": "{a} * {b} + {c}", "mul": "{a} * {b}", "shl": "({a} << ({r1} & 63) if ({r1} & 0xFFFFFFFF) < {bits} else 0)",
    "shr": "{a} >> min({r1} & 0xFFFFFFFF, {most})", "div": "quotient({a}, {b})", "rem": "{a} - {b} * quotient({a}, {b})", "popc": "bin({a} & {mask}).count('1')",
    "clz": "{bits} - ({a} & {mask}).bit_length()", "cnot": "int({a} == 0)", "bfe": "({a} >> ({b} & 255)) & ((1 << ({c} & 255)) - 1)", "selp": "({a} if {r2} & 1 else {b})",
    "cvta": "{r0}", "cvt": "{a}"}


def computation(opcode, operands, text):
    """A function of (get, registers)."""
    name, kind = opcode[0], opcode[-1]
    targets = re.findall(r"%\w+", operands[0]) if operands else []
    results = {}
    if name in IGNORED or (kind[0] == "f" and kind[1:].isdigit()) or kind.startswith(("bf16", "f16", "e4m3", "e5m2")):
        results = dict.fromkeys(targets, "0")
    else:
        assert kind == "pred" or (kind[0] in "usb" and kind[1:] in WIDTH), f"not understood: {text}"
        bits, signed = (1, False) if kind == "pred" else (WIDTH[kind[1:]], kind[0] == "s")
        mask, half = (1 << bits) - 1, 1 << (bits - 1)
        raw = [operand(part) for part in operands[1:] if not part.startswith("{")]
        if operands[1:] and operands[1].startswith("{"):  # mov.b64 %rd, {%r1, %r2}
            parts = [operand(part) for part in re.findall(r"%\w+", operands[1])]
            each = bits // len(parts)
            raw = [" | ".join(f"(({part}) & {(1 << each) - 1}) << {i * each}" for i, part in enumerate(parts))]
        args = [f"(((({part}) & {mask}) ^ {half}) - {half})" if signed else f"(({part}) & {mask})" for part in raw]
        width = bits
        if name == "setp":
            width, result = 1, f"({args[0]} {COMPARE[opcode[1]]} {args[1]})"
            if len(raw) > 2 and opcode[2] in ("and", "or"):
                result = f"({result} {opcode[2]} bool({raw[2]}))"
        else:
            assert name in INTEGER, f"not understood: {text}"
            values = dict(zip(("a", "b", "c"), args + ["0", "0", "0"])) | {f"r{i}": f"({part})" for i, part in enumerate(raw)}
            result = INTEGER[name].format(**values, bits=bits, mask=mask, most=bits - (1 if signed else 0))
            if name == "mul" and "hi" in opcode:
                result = f"({result}) >> {bits}"
            if "wide" in opcode:
                width = 2 * bits
            if name == "cvt":
                target = opcode[-2]
                if target[0] == "f" or target.startswith("bf"):
                    result = "0"
                else:
                    width = WIDTH[target[1:]]
        if operands[0].startswith("{"):  # mov.b32 {%rs1, %rs2}, %r
            each = bits // len(targets)
            results = {target: f"(({result}) >> {i * each}) & {(1 << each) - 1}" for i, target in enumerate(targets)}
        else:
            results = {target: f"({result}) & {(1 << width) - 1}" for target in targets[:1]}
    pairs = ", ".join(f"{target!r}: {result}" for target, result in results.items())
    return eval(f"lambda get, registers: registers.update({{{pairs}}})", {"quotient": quotient})  # expressions made here


def memory(opcode, operands, text):
    kind = opcode[0]
    if kind == "cp":
        if "commit_group" in opcode:
            return "event", ("commit",)
        if "wait_group" in opcode or "wait_all" in opcode:
            return "event", ("wait", int(operands[0], 0) if operands else 0)
        filled = eval(f"lambda get: {operand(operands[3])} > 0") if len(operands) == 4 else None
        return "memory", ("cp.async", int(operands[2], 0), [("shared", *address(operands[0]), None), ("global", *address(operands[1]), filled)], (), text)
    names = tuple(re.findall(r"%\w+", operands[0])) if kind in ("ld", "ldmatrix") else ()
    if kind == "ldmatrix":
        lanes = 32 if "x4" in opcode else 16 if "x2" in opcode else 8
        return "memory", (kind, 16, [("shared", *address(operands[1]), lambda get: get("%laneid") < lanes)], names, text)
    space = next((name for name in opcode if name in ("param", "global", "shared", "local", "const")), "generic")
    element = int(re.sub(r"\D", "", opcode[-1])) // 8
    if space == "param":
        return "parameter", (operands[0], address(operands[1])[1], (1 << (element * 8)) - 1)
    size = element * next((int(part[1:]) for part in opcode if part in ("v2", "v4", "v8")), 1)
    return "memory", (kind, size, [(space, *address(operands[1] if kind == "ld" else operands[0]), None)], names, text)


class Lane:
    def __init__(self, program, words, block, thread, grid, steps):
        self.events = []  # of shared memory: ("copy" or "read", address, bytes, text), ("commit",), ("wait", groups left), ("barrier",)
        self.program, self.words, self.steps = program, words, steps
        threads = re.search(r"\.(?:req|max)ntid (\d+)", program.directives)
        self.registers = {"%tid.x": thread, "%laneid": thread % 32, "%ntid.x": int(threads.group(1)) if threads else 1024}
        for axis, at, count in zip("xyz", block, grid):
            self.registers["%ctaid." + axis], self.registers["%nctaid." + axis] = at, count
        self.counts = defaultdict(int)

    def run(self, note):
        program, registers, get, at = self.program, self.registers, self.registers.get, 0
        while at < len(program.code):
            self.steps -= 1
            assert self.steps > 0, "the program does not end"
            guard, skips, act, what = program.decoded[at] or program.decode(at)
            at += 1
            if guard and bool(get(guard, 0)) == skips:
                continue
            if act == "compute":
                what(get, registers)
            elif act == "memory":
                self.access(at, *what, note)
            elif act == "branch":
                at = what
            elif act == "parameter":
                target, byte, mask = what
                registers[target] = (self.words[byte // 8] >> (byte % 8 * 8)) & mask
            elif act == "event":
                self.events.append(what)
            elif act == "barrier":
                self.events.append(("barrier",))
            elif act == "end":
                return

    def access(self, at, kind, size, places, names, text, note):
        addresses = [(space, ((self.registers.get(base, 0) if base else 0) + offset) & (2**64 - 1))
                     for space, base, offset, holds in places if holds is None or holds(self.registers.get)]
        for name in names:
            self.registers[name] = 0
        self.counts[at] += 1
        for space, address in addresses:
            if space == "shared" and kind != "st":
                self.events.append(("copy" if kind == "cp.async" else "read", address, size, text))
            note((at, self.counts[at], space), lambda space=space: Access(space, kind, size, text), address)


def entries(ptx):
    return re.findall(r"\.entry\s+(\w+)\s*\(", ptx)


def tensor(address, *shape):
    """Launch slots of a contiguous row-major tensor."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return [address, *shape, *strides[: len(shape)]]
