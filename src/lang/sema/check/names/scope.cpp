#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/traits/traits.h"

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

}  // namespace vortex::lang
