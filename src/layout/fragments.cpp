#include "layout/fragments.h"

#include "base/check.h"

#include <bit>

namespace vortex::layout {

namespace {
/// Log2 of the elements in a 32-bit register.
unsigned packBits(unsigned elementBits) {
  VORTEX_CHECK(elementBits == 8 || elementBits == 16 || elementBits == 32, "%u-bit elements", elementBits);
  return static_cast<unsigned>(std::countr_zero(32 / elementBits));
}
}  // namespace

Layout mmaA(unsigned elementBits) {
  unsigned pack = packBits(elementBits);
  Layout result({4, 3 + pack});
  result.unit(In::Register, 1, pack).unit(In::Register, 0, 1, 3).unit(In::Register, 1, 1, pack + 2);
  result.unit(In::Lane, 1, 2, pack).unit(In::Lane, 0, 3);
  return result;
}

Layout mmaB(unsigned elementBits) {
  unsigned pack = packBits(elementBits);
  Layout result({3 + pack, 3});
  result.unit(In::Register, 0, pack).unit(In::Register, 0, 1, pack + 2);
  result.unit(In::Lane, 0, 2, pack).unit(In::Lane, 1, 3);
  return result;
}

Layout mmaC() {
  Layout result({4, 3});
  result.unit(In::Register, 1, 1).unit(In::Register, 0, 1, 3);
  result.unit(In::Lane, 1, 2, 1).unit(In::Lane, 0, 3);
  return result;
}

Layout mmaF64A() { return Layout({3, 2}).unit(In::Lane, 1, 2).unit(In::Lane, 0, 3); }
Layout mmaF64B() { return Layout({2, 3}).unit(In::Lane, 0, 2).unit(In::Lane, 1, 3); }
Layout mmaF64C() { return Layout({3, 3}).unit(In::Register, 1, 1).unit(In::Lane, 1, 2, 1).unit(In::Lane, 0, 3); }

Layout ldmatrix(unsigned matrixBits, bool transposed) {
  unsigned row = transposed ? 2 : 1, column = transposed ? 1 : 2;
  Layout result({matrixBits, 3, 3});
  result.unit(In::Register, column, 1).unit(In::Register, 0, matrixBits);
  result.unit(In::Lane, column, 2, 1).unit(In::Lane, row, 3);
  return result;
}

Layout ldmatrixAddresses(unsigned matrixBits) {
  Layout result({matrixBits, 3});
  result.unit(In::Lane, 1, 3).unit(In::Lane, 0, matrixBits).repeat(In::Lane, 2 - matrixBits);
  return result;
}

}  // namespace vortex::layout
