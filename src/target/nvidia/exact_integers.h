// Instructions on integers that ptxas does not hold to their definition, as others that it does. ptxas 13.0 and the compiler of drivers extend what neg.s16,
// abs.s16 and rem.s16 leave as if it could not have wrapped, take abs.s32 for at least 0 (of -2^31, too), and read the predicate of a comparison with a
// max.u16 from the wrong half of VIMNMX.U16x2. On an H200 `abs(x) as u32` of the i16 -32768 was 32768, and `x != 0 && max(x, 1) == 1` of the byte 2 was
// true. C++ promotes such operands to 32 bits, and leaves abs(-2^31) undefined, so that these are little tested there.
//
// In the text: LLVM's instruction selection makes these of other operations (a negation of a multiplication by -256), and makes narrow ones of wide ones
// whose result is truncated.
#pragma once

#include <string>

namespace vortex::target::nvidia {

/// PTX as LLVM prints it, an instruction a line.
std::string withExactIntegers(const std::string& ptx);

}  // namespace vortex::target::nvidia
