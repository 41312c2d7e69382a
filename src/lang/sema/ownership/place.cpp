#include "lang/sema/ownership/place.h"

#include <algorithm>

namespace vortex::lang::ownership {
bool Place::find(Projection::Kind kind) const {
  return std::any_of(path.begin(), path.end(), [&](const Projection& each) { return each.kind == kind; });
}

std::vector<uint32_t> Place::fields() const {
  std::vector<uint32_t> out;
  for (const Projection& each : path) {
    if (each.kind != Projection::Kind::Field)
      break;
    out.push_back(each.field);
  }
  return out;
}

}  // namespace vortex::lang::ownership
