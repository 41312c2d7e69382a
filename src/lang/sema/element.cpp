#include "lang/sema/element.h"

#include <algorithm>

namespace vortex::lang {
namespace {

uint32_t aligned(uint32_t offset, uint32_t alignment) { return (offset + alignment - 1) / alignment * alignment; }

class LayoutWalk {
public:
  explicit LayoutWalk(ElementLayout& out) : out_(out) {}

  /// Returns the alignment.
  uint32_t add(Type type, const std::string& path) {
    switch (type->kind) {
    case TypeKind::Array: {
      uint32_t alignment = 1;
      for (uint64_t i = 0; i < type->count; ++i)
        alignment = std::max(alignment, add(type->elem, path + "." + std::to_string(i)));
      return alignment;
    }
    case TypeKind::Tuple:
    case TypeKind::Struct: {
      const uint32_t begin = out_.bytes = aligned(out_.bytes, alignmentOf(type));
      uint32_t alignment = 1;
      for (size_t i = 0; i < type->elems.size(); ++i)
        alignment = std::max(
            alignment, add(type->elems[i],
                           path + "." + (type->kind == TypeKind::Struct ? type->decl->fields[i] : std::to_string(i))));
      out_.bytes = begin + aligned(out_.bytes - begin, alignment);
      return alignment;
    }
    default: {
      const Scalar scalar = type->kind == TypeKind::Enum ? Scalar::I32 : type->scalar;
      const uint32_t bytes = alignmentOf(type);
      out_.bytes = aligned(out_.bytes, bytes);
      out_.leaves.push_back({scalar, path, out_.bytes});
      out_.bytes += bytes;
      return bytes;
    }
    }
  }

private:
  static uint32_t alignmentOf(Type type) {
    if (type->kind == TypeKind::Scalar)
      return (bitWidth(type->scalar) + 7) / 8;
    if (type->kind == TypeKind::Enum)
      return 4;
    if (type->kind == TypeKind::Array)
      return type->count ? alignmentOf(type->elem) : 1;
    uint32_t most = 1;
    for (Type elem : type->elems)
      most = std::max(most, alignmentOf(elem));
    return most;
  }

  ElementLayout& out_;
};

}  // namespace

std::pair<Type, std::string> unstorablePart(Type type) {
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Enum: return {nullptr, ""};
  case TypeKind::Array: return unstorablePart(type->elem);
  case TypeKind::Tuple:
  case TypeKind::Struct:
    if (type->param)  // the definition of a generic function: its instances are checked
      return {nullptr, ""};
    for (size_t i = 0; i < type->elems.size(); ++i)
      if (auto [part, path] = unstorablePart(type->elems[i]); part)
        return {part, "." + (type->kind == TypeKind::Struct ? type->decl->fields[i] : std::to_string(i)) + path};
    return {nullptr, ""};
  default: return {type, ""};
  }
}

bool isStorable(Type type) { return !unstorablePart(type).first; }

uint64_t scalarCount(Type type) {
  if (type->param)
    return 1;
  switch (type->kind) {
  case TypeKind::Array: {
    uint64_t count = 0;
    return __builtin_mul_overflow(scalarCount(type->elem), type->count, &count) ? UINT64_MAX : count;
  }
  case TypeKind::Tuple:
  case TypeKind::Struct: {
    uint64_t count = 0;
    for (Type elem : type->elems)
      if (__builtin_add_overflow(count, scalarCount(elem), &count))
        return UINT64_MAX;
    return count;
  }
  default: return 1;
  }
}

uint64_t scalarsBefore(Type type, uint32_t part) {
  if (type->kind == TypeKind::Array)
    return part * scalarCount(type->elem);
  uint64_t count = 0;
  for (uint32_t i = 0; i < part; ++i)
    count += scalarCount(type->elems[i]);
  return count;
}

ElementLayout elementLayout(Type element) {
  ElementLayout out;
  LayoutWalk(out).add(element, "");
  out.isInterleaved = element->kind == TypeKind::Struct && element->decl->arrayOfStructs;
  return out;
}

}  // namespace vortex::lang
