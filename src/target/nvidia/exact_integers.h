// Instructions on integers that ptxas does not hold to their definition, as others that it does. What wraps in 16 bits is extended as if it had not: by neg.s16,
// abs.s16, rem.s16 and by conversions to floats of sums and products. abs.s32 is taken for at least 0 (of -2^31, too), max(x, -x) for abs.s32, and the predicate of
// a comparison with a max.u16 is read from the wrong half of VIMNMX.U16x2. Seen with ptxas 13.0 and the compiler of a driver: on an H200 `abs(x) as u32` of
// the i16 -32768 was 32768, and `x != 0 && max(x, 1) == 1` of the byte 2 was true. C++ promotes such operands to 32 bits and leaves abs(-2^31) undefined, so
// that these are little tested there.
//
// In the text: LLVM's instruction selection makes these of other operations (a negation of a multiplication by -256), and makes narrow ones of wide ones
// whose result is truncated.
#pragma once

#include <string>

namespace vortex::target::nvidia {

/// PTX as LLVM prints it, an instruction a line.
std::string withExactIntegers(const std::string& ptx);

}  // namespace vortex::target::nvidia
