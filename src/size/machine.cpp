#include "size/machine.h"

namespace vortex::size {

Expr wrapped(Expr value, unsigned bits, bool isSigned) {
  if (bits >= 64)
    return value;
  const int64_t all = int64_t{1} << bits, least = isSigned ? -(all / 2) : 0;
  if (value.range().low >= least && value.range().high < least + all)
    return value;
  return make(Op::Add, make(Op::Mod, make(Op::Sub, value, least), all), least);
}

}  // namespace vortex::size
