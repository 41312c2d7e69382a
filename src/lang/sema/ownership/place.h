// Places of a function: a variable and the way from it to a part of its storage.
#pragma once

#include <string>
#include <vector>

#include "lang/sema/program.h"

namespace vortex::lang::ownership {

using LocalId = uint32_t;
inline constexpr LocalId kNoLocal = UINT32_MAX;

struct Projection {
  enum class Kind : uint8_t { Field, Deref, Index } kind = Kind::Field;
  uint32_t field = 0;          ///< Field
  const Expr* expr = nullptr;  ///< Index: the Element or Slice
};

struct Place {
  LocalId root = kNoLocal;
  std::vector<Projection> path;

  bool hasDeref() const { return find(Projection::Kind::Deref); }
  bool hasIndex() const { return find(Projection::Kind::Index); }
  /// Only fields: what a move or an assignment can empty or fill as a whole.
  bool isMovePath() const { return !hasDeref() && !hasIndex(); }
  /// The leading fields.
  std::vector<uint32_t> fields() const;

private:
  bool find(Projection::Kind kind) const;
};

}  // namespace vortex::lang::ownership
