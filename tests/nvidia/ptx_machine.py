"""Runs the address computation of a PTX entry for the lanes of one warp, and counts what their accesses cost.

Integers are computed; floats, loaded data and results of warp operations are 0, so control flow must not depend on data. Every lane runs by
itself; the n-th time that lanes execute one instruction counts as one access of the warp."""
import re
from collections import defaultdict

WIDTH = {"8": 8, "16": 16, "32": 32, "64": 64}
IGNORED = ("bar", "membar", "fence", "mma", "shfl", "vote", "activemask", "atom", "red", "ex2", "lg2", "rcp", "sqrt", "rsqrt", "fma", "sin", "cos", "tanh",
           "copysign", "testp", "griddepcontrol", "prefetch", "redux", "match", "nanosleep", "bfi", "wgmma", "mbarrier")


def sign(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


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

    @staticmethod
    def parse(statement):
        guard, rest = re.fullmatch(r"(?:@(!?%p\d+)\s+)?(.*)", statement, re.S).groups()
        opcode, _, operands = rest.partition(" ") if " " in rest.split("\t")[0] else rest.partition("\t")
        operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", operands)
        return guard, opcode.strip().split("."), operands, statement

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


class Lane:
    def __init__(self, program, words, block, thread, grid, steps):
        self.events = []  # of shared memory: ("copy" or "read", address, bytes, text), ("commit",), ("wait", groups left), ("barrier",)
        self.program, self.words, self.steps = program, words, steps
        threads = re.search(r"\.(?:req|max)ntid (\d+)", program.directives)
        self.registers = {"vx_shared": 0, "%tid.x": thread, "%laneid": thread % 32, "%ntid.x": int(threads.group(1)) if threads else 1024}
        for axis, at, count in zip("xyz", block, grid):
            self.registers["%ctaid." + axis], self.registers["%nctaid." + axis] = at, count
        self.counts = defaultdict(int)

    def value(self, text):
        if text in self.registers:
            return self.registers[text]
        if text.startswith("%"):
            return 0
        if re.fullmatch(r"0[fd][0-9A-Fa-f]+|\w+_param_\d+", text):
            return 0
        return int(text.rstrip("U"), 0)

    def address(self, text):
        base, _, offset = text.strip("[]").partition("+")
        if base.startswith("%") or base == "vx_shared":
            return (self.value(base) + (int(offset, 0) if offset else 0)) & (2**64 - 1)
        return int(offset, 0) if offset else 0  # a parameter

    def run(self, note):
        code, at = self.program.code, 0
        while at < len(code):
            self.steps -= 1
            assert self.steps > 0, "the program does not end"
            guard, opcode, operands, text = code[at]
            at += 1
            if guard and bool(self.registers.get(guard.lstrip("!"), 0)) == guard.startswith("!"):
                continue
            if opcode[0] == "bra":
                at = self.program.labels[operands[0]]
            elif opcode[0] in ("ret", "exit", "trap"):
                return
            elif opcode[0] in ("bar", "barrier"):
                if "warp" not in opcode:
                    self.events.append(("barrier",))
            elif opcode[0] in ("ld", "st", "ldmatrix") or opcode[:2] == ["cp", "async"]:
                self.memory(at, opcode, operands, text, note)
            else:
                self.compute(opcode, operands, text)

    def memory(self, at, opcode, operands, text, note):
        kind, size = opcode[0], 0
        if kind == "cp":
            if "commit_group" in opcode:
                return self.events.append(("commit",))
            if "wait_group" in opcode or "wait_all" in opcode:
                return self.events.append(("wait", int(operands[0], 0) if operands else 0))
            kind, size = "cp.async", int(operands[2], 0)
            places = [("shared", operands[0])]
            if len(operands) < 4 or self.value(operands[3]) > 0:
                places.append(("global", operands[1]))
        elif kind == "ldmatrix":
            lanes = 32 if "x4" in opcode else 16 if "x2" in opcode else 8
            size, places = 16, [("shared", operands[1])] if self.registers["%laneid"] < lanes else []
        else:
            space = next((name for name in opcode if name in ("param", "global", "shared", "local", "const")), "generic")
            element = int(re.sub(r"\D", "", opcode[-1])) // 8
            size = element * next((int(part[1:]) for part in opcode if part in ("v2", "v4", "v8")), 1)
            places = [(space, operands[1] if kind == "ld" else operands[0])]
            if space == "param":
                word = self.address(operands[1])
                self.registers[operands[0]] = (self.words[word // 8] >> (word % 8 * 8)) & ((1 << (element * 8)) - 1)
                return
        if kind in ("ld", "ldmatrix"):
            for name in re.findall(r"%\w+", operands[0]):
                self.registers[name] = 0
        self.counts[at] += 1
        for space, operand in places:
            if space == "shared" and kind != "st":
                self.events.append(("copy" if kind == "cp.async" else "read", self.address(operand), size, text))
            note((at, self.counts[at], space), lambda: Access(space, kind, size, text), self.address(operand))

    def compute(self, opcode, operands, text):
        name, kind = opcode[0], opcode[-1]
        targets = re.findall(r"%\w+", operands[0]) if operands else []
        if name in IGNORED or (kind[0] == "f" and kind[1:].isdigit()) or kind.startswith(("bf16", "f16", "e4m3", "e5m2")):
            for target in targets:
                self.registers[target] = 0
            return
        if kind == "pred":
            bits, signed = 1, False
        else:
            assert kind[0] in "usb" and kind[1:] in WIDTH, f"not understood: {text}"
            bits, signed = WIDTH[kind[1:]], kind[0] == "s"
        mask = (1 << bits) - 1
        raw = [self.value(part) for part in operands[1:] if not part.startswith("{")]
        if operands[1:] and operands[1].startswith("{"):  # mov.b64 %rd, {%r1, %r2}
            parts = [self.value(part) for part in re.findall(r"%\w+", operands[1])]
            raw = [sum((part & ((1 << (bits // len(parts))) - 1)) << (i * bits // len(parts)) for i, part in enumerate(parts))]
        args = [sign(part, bits) if signed else part & mask for part in raw]
        result = self.result(name, opcode, args, raw, bits, signed, text)
        width = 2 * bits if "wide" in opcode else 1 if name == "setp" else bits
        if operands[0].startswith("{"):  # mov.b32 {%rs1, %rs2}, %r
            part = bits // len(targets)
            for i, target in enumerate(targets):
                self.registers[target] = (result >> (i * part)) & ((1 << part) - 1)
            return
        for target in targets[:1]:
            self.registers[target] = int(result) & ((1 << width) - 1)

    def result(self, name, opcode, args, raw, bits, signed, text):
        if name == "cvt":
            target, source = opcode[-2], opcode[-1]
            assert source[0] in "us" or source[0] == "b", text
            if target[0] == "f" or target.startswith("bf"):
                return 0
            return args[0] & ((1 << WIDTH[target[1:]]) - 1)
        if name == "cvta":
            return raw[0]
        if name == "mov":
            return args[0]
        if name == "setp":
            compare = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
                       "ge": lambda a, b: a >= b, "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b, "hi": lambda a, b: a > b, "hs": lambda a, b: a >= b}
            holds = compare[opcode[1]](args[0], args[1])
            return {"and": holds and bool(raw[2]), "or": holds or bool(raw[2])}.get(opcode[2], holds) if len(raw) > 2 else holds
        if name == "selp":
            return args[0] if raw[2] & 1 else args[1]
        a, b, c = (args + [0, 0, 0])[:3]
        if name == "bfe":
            return (a >> (b & 255)) & ((1 << (c & 255)) - 1)
        simple = {"add": lambda: a + b, "sub": lambda: a - b, "and": lambda: a & b, "or": lambda: a | b, "xor": lambda: a ^ b, "not": lambda: ~a, "neg": lambda: -a,
                  "abs": lambda: abs(a), "min": lambda: min(a, b), "max": lambda: max(a, b), "mad": lambda: a * b + c,
                  "mul": lambda: (a * b) >> bits if "hi" in opcode else a * b, "shl": lambda: a << (raw[1] & 63) if (raw[1] & 0xFFFFFFFF) < bits else 0,
                  "shr": lambda: a >> min(raw[1] & 0xFFFFFFFF, bits - (1 if signed else 0)), "div": lambda: int(a / b) if signed and b else a // b if b else 0,
                  "rem": lambda: a - b * int(a / b) if signed and b else a % b if b else 0, "popc": lambda: bin(a & ((1 << bits) - 1)).count("1"),
                  "clz": lambda: bits - (a & ((1 << bits) - 1)).bit_length(), "cnot": lambda: int(a == 0)}
        assert name in simple, f"not understood: {text}"
        return simple[name]()


def entries(ptx):
    return re.findall(r"\.entry\s+(\w+)\s*\(", ptx)


def tensor(address, *shape):
    """Launch slots of a contiguous row-major tensor."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return [address, *shape, *strides[: len(shape)]]
