"""What an operation gives at the edge of its type: the same whether the values are known when the kernel is compiled or only when it runs.

Each expression of A (and B) runs with literals of a variable, with what the buffers hold, and in a loop that is unrolled."""
from rules import N, rule

INT_MIN, INT_MAX = -2**31, 2**31 - 1


def wrap(value, bits=32):
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def saturated(value, bits, signed):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if value != value:
        return 0
    return min(max(int(value) if abs(value) < 1e30 else (10**30 if value > 0 else -10**30), low), high)


def both(name, before, body, expected):
    """With a variable whose value Clang sees, and with one that hangs on n[0], which is -4."""
    for way, given in (("known", "0"), ("at_run_time", "(n[0] + 4)")):
        rule(f"{name}_{way}", "int", before.replace("$", given) + " out[i] = " + body + ";", expected)


KINDS = {"char": (8, True), "uchar": (8, False), "short": (16, True), "ushort": (16, False), "int": (32, True), "uint": (32, False), "long": (64, True), "ulong": (64, False)}
for kind, (bits, signed) in KINDS.items():
    for text, value in (("300.0f", 300.0), ("-5.5f", -5.5), ("3e9f", 3e9), ("NAN", float("nan")), ("INFINITY", float("inf")), ("-1e20f", -1e20)):
        label = text.replace(".", "_").replace("-", "minus_")
        both(f"{kind}_of_{label}", f"float f = {text} + float($);", f"int({kind}(f) % 1000) + 1000", (lambda got: [1000 + (abs(got) % 1000) * (1 if got >= 0 else -1)] * 8)(saturated(value, bits, signed)))
both("conversion_of_the_largest_int", "float f = float(INT_MAX + $);", "int(f) / 2", [INT_MAX // 2] * 8)
both("conversion_of_half", "half h = half(70000.0f + $);", "int(ushort(h))", [65535] * 8)
both("conversions_of_vectors", "float4 v = float4(300, -5, 2.9f, i) + float4($);", "[](uchar4 a) { return a.x * 1000 + a.y * 100 + a.z * 10 + a.w; }(uchar4(v))", lambda i: 255020 + i)
both("conversion_of_a_vector_leaves_its_other_elements", "float4 v = float4(300, -5, 2.9f, i) + float4($);", "int(uchar4(v).w)", lambda i: i)
for by in (31, 32, 33, 40, -1):
    both(f"shift_of_one_by_{by}".replace("-", "minus_"), f"int s = {by} + $;", "(1 << s) + 100", [wrap((1 << (by & 31)) + 100)] * 8)
    both(f"shift_to_the_right_by_{by}".replace("-", "minus_"), f"int s = {by} + $;", "((n[i] >> s) ^ int(0x80000000u >> s))", lambda i, by=by: wrap((N[i] >> (by & 31)) ^ (0x80000000 >> (by & 31))))
both("shift_of_a_long", "ulong s = 64 + $;", "int((ulong(i) + 3) << s)", lambda i: i + 3)
both("shift_of_vectors", "uint4 s = uint4(33, 1, 2, 3) + uint4($); uint4 r = uint4(1) << s;", "int(r.x + r.y * 10 + r.w * 100)", [822] * 8)
both("shift_of_short_vectors", "uchar2 s = uchar2(9, 1) + uchar2($); uchar2 r = uchar2(1) << s;", "int(r.x + r.y * 10)", [22] * 8)
both("loop_of_shifts", "uint t = 0; for (uint k = 0; k < 40u + $; ++k) t += 1u << k;", "int(t)", [254] * 8)
both("quotient_of_the_smallest_int", "int a = INT_MIN + $, b = -1 + $;", "a / b", [INT_MIN] * 8)
both("remainder_of_the_smallest_int", "int a = INT_MIN + $, b = -1 + $;", "a % b + 7", [7] * 8)
both("quotients_of_vectors", "int2 a = int2(INT_MIN, 7) + int2($), b = int2(-1, 2) + int2($);", "(a / b).y + ((a / b).x == INT_MIN)", [4] * 8)
both("abs_of_the_smallest_int", "int a = INT_MIN + $;", "abs(a)", [INT_MIN] * 8)
both("abs_of_a_shifted_bit", "int one = 1 + $;", "abs(int(i & one) << 31)", lambda i: INT_MIN * (i & 1))
both("sign_of_abs", "int one = 1 + $;", "(abs(int(i & one) << 31) < 0) + 2 * (abs(int(i & one) << 31) >> 31)", lambda i: -(i & 1))
both("negation_of_the_smallest_int", "int a = int(uint(i & 1 + $) << 31); int c = a < 0 ? -a : a;", "c", lambda i: INT_MIN * (i & 1))
both("sum_past_the_largest_int_is_no_more", "int a = INT_MAX + $;", "(a + int(i) > a) + 2 * (a + int(i) < 0)", lambda i: 2 * (i > 0))
both("sum_past_the_largest_int_as_a_float", "float f = 3e9f + float($);", "int(float(int(f) + int(i)) < 0.0f)", lambda i: i > 0)
both("sum_past_the_largest_int_as_a_long", "int a = INT_MAX + $;", "int(long(a + int(i)) >> 32)", lambda i: -(i > 0))
both("difference_below_the_smallest_int", "int a = INT_MIN + $;", "int(a - int(i) < a)", [0] * 8)
both("half_of_a_product_that_wraps", "int a = INT_MAX + $;", "(a * 2 + int(i & 1)) / 2", lambda i: i % 2 - 1)
both("loop_that_ends_where_its_counter_wraps", "int r = 0; for (int k = INT_MAX - 2 + $; k > 0; ++k) ++r;", "r", [3] * 8)
both("largest_int_wraps", "int a = INT_MAX + $; a += 1;", "a", [INT_MIN] * 8)
both("quotient_by_zero_under_a_condition", "int z = $; int q = 7; if (n[i] != z - 4) { q = int(i) + 1; if (n[i] == 5) q = 3; }", "q + (i == 100 ? 5 / z : 0)",
     lambda i: 7 if N[i] == -4 else 3 if N[i] == 5 else i + 1)
