#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/traits/traits.h"

#include <algorithm>

namespace vortex::lang {

GenericValue* findGeneric(GenericEnv& env, std::string_view name) {
  for (GenericBinding& binding : env)
    if (binding.name == name)
      return &binding.value;
  return nullptr;
}
const GenericValue* findGeneric(const GenericEnv& env, std::string_view name) {
  return findGeneric(const_cast<GenericEnv&>(env), name);
}

std::string text(const GenericValue& value) {
  switch (value.kind) {
  case GenericValue::Kind::None: return "_";
  case GenericValue::Kind::Type: return text(value.type, {});
  case GenericValue::Kind::Const: return std::to_string(static_cast<long long>(value.value));
  case GenericValue::Kind::Space: {
    if (value.param)
      return value.param->name;
    constexpr const char* kNames[] = {"Global", "Shared", "Local", "Constant"};
    return kNames[static_cast<size_t>(value.space)];
  }
  case GenericValue::Kind::Shape: {
    std::string out = "[";
    for (size_t i = 0; i < value.shape.size(); ++i)
      out += i ? ", _" : "_";  // one instance serves every shape of this rank
    return out + "]";
  }
  }
  return "_";
}

std::string text(const GenericEnv& env) {
  std::string out;
  for (const GenericBinding& binding : env)
    out += (out.empty() ? "" : ", ") + std::string(binding.name) + " = " + text(binding.value);
  return out;
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t bestDistance = name.size() < 2 ? 0 : name.size() <= 3 ? 2 : name.size() / 3 + 1;  // a slip, not another word
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 64 || name.size() > 64 || candidate == name)
      continue;
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j < row.size(); ++j)
      row[j] = j;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j < row.size(); ++j) {
        const size_t above = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    if (row.back() < bestDistance) {
      bestDistance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace vortex::lang
