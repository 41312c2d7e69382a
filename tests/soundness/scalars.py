"""The language's numbers in NumPy: integers wrap, x / 0 and x % 0 are 0, shift counts are modulo the width, floats saturate when they
become integers. Floats are pairs of an f64 value and a bound of the error that any permitted evaluation order and rounding may make."""
import numpy

SIGNED = {"i8": numpy.int8, "i16": numpy.int16, "i32": numpy.int32, "i64": numpy.int64}
UNSIGNED = {"u8": numpy.uint8, "u16": numpy.uint16, "u32": numpy.uint32, "u64": numpy.uint64, "usize": numpy.uint64}
INTEGERS = {**SIGNED, **UNSIGNED}
FLOATS = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}  # unit roundoff
SMALLEST = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}  # normal numbers; less may become 0
FLOAT8 = {"f8e4m3": (3, -6, 448.0), "f8e5m2": (2, -14, 57344.0)}  # bits of the fraction, least exponent, largest number


def width(kind):
    return INTEGERS[kind]().itemsize * 8


def divide(a, b):
    zero, minus = b == 0, (b == -1 if a.dtype.kind == "i" else numpy.zeros(b.shape, bool))
    safe = numpy.where(zero | minus, numpy.ones_like(b), b)
    quotient = a // safe
    rest = a - quotient * safe
    if a.dtype.kind == "i":
        quotient = quotient + ((rest != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return numpy.where(zero, numpy.zeros_like(a), numpy.where(minus, -a, quotient))


def remainder(a, b):
    return numpy.where(b == 0, numpy.zeros_like(a), a - divide(a, b) * b)


def shift(a, b, left):
    count = (b.astype(numpy.uint64) & numpy.uint64(a.dtype.itemsize * 8 - 1)).astype(a.dtype)
    return a << count if left else a >> count


BINARY = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": divide, "%": remainder,
          "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
          "<<": lambda a, b: shift(a, b, True), ">>": lambda a, b: shift(a, b, False)}
COMPARE = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
           ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}


def saturated(values, kind):
    """Floats (f64) that become integers."""
    limits, of = numpy.iinfo(INTEGERS[kind]), INTEGERS[kind]
    whole = numpy.trunc(numpy.nan_to_num(values, nan=0.0, posinf=1e300, neginf=-1e300))
    low, high = whole <= float(limits.min), whole >= float(limits.max)
    inside = numpy.where(low | high, 0.0, whole).astype(INTEGERS[kind])
    return numpy.where(low, of(limits.min), numpy.where(high, of(limits.max), inside)).astype(of)


def rounded(values, kind):
    """Floats as they are in memory of the kind, as f64."""
    if kind == "f64":
        return values.astype(numpy.float64)
    if kind in ("f32", "f16"):
        return values.astype(numpy.float32 if kind == "f32" else numpy.float16).astype(numpy.float64)
    bits, least, _ = FLOAT8.get(kind, (7, -126, 0))
    step = numpy.exp2(numpy.maximum(numpy.frexp(values)[1] - 1, least) - bits)
    return numpy.round(values / step) * step


class Float:
    """`value` ± `error`, elementwise, of what a program computes in the kind."""

    def __init__(self, value, error, kind):
        self.value, self.error, self.kind = numpy.asarray(value, numpy.float64), numpy.asarray(error, numpy.float64), kind

    @staticmethod
    def exact(value, kind):
        return Float(value, numpy.zeros(numpy.shape(value)), kind)

    def rounded(self, kind=None, times=1.0):
        """After a rounding to the kind (the own one by default); `times` that error."""
        kind = kind or self.kind
        size = numpy.abs(self.value) + self.error
        # f64 arithmetic of this file rounds too.
        return Float(self.value, self.error + times * 1.5 * FLOATS[kind] * size + SMALLEST[kind], kind)

    def __add__(self, other):
        return Float(self.value + other.value, self.error + other.error, self.kind).rounded()

    def __sub__(self, other):
        return Float(self.value - other.value, self.error + other.error, self.kind).rounded()

    def __mul__(self, other):
        error = numpy.abs(self.value) * other.error + numpy.abs(other.value) * self.error + self.error * other.error
        return Float(self.value * other.value, error, self.kind).rounded()

    def clamp(self, low, high):
        return Float(numpy.clip(self.value, low, high), self.error, self.kind)

    def where(self, mask, other):
        return Float(numpy.where(mask, self.value, other.value), numpy.where(mask, self.error, other.error), self.kind)

    def __getitem__(self, index):
        return Float(self.value[index], self.error[index], self.kind)


def choose(mask, new, old):
    """`new` where the mask holds."""
    return new.where(mask, old) if isinstance(new, Float) else numpy.where(mask, new, old)


def samples(rng, kind, shape):
    """Random inputs with the kind's extreme values among them; floats between -8 and 8, exact in the kind."""
    count = int(numpy.prod(shape))
    if kind == "bool":
        values = numpy.array([rng.random() < 0.5 for _ in range(count)])
    elif kind in INTEGERS:
        limits = numpy.iinfo(INTEGERS[kind])
        special = [0, 1, 2, limits.min, limits.max, limits.max - 1, limits.max // 2]
        pick = [lambda: rng.choice(special), lambda: rng.randint(limits.min, limits.max), lambda: rng.randint(0, 63)]
        values = numpy.array([rng.choice(pick)() for _ in range(count)], INTEGERS[kind])
    else:
        values = rounded(numpy.array([rng.choice([rng.uniform(-8, 8), float(rng.randint(-8, 8)), rng.uniform(-0.1, 0.1)])
                                      for _ in range(count)]), kind)
    return values.reshape(shape)
