// Where memory of a space may be declared and where it may not go (language.md §7).
#include "lang/sema/check/types/spaces.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/scope.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {
namespace {

/// The first tensor of the type that lives in memory of one block: shared or local.
Type blockTensorIn(Type type) {
  switch (type->kind) {
  case TypeKind::Tensor:
    return !type->isValue && (type->space == Space::Shared || type->space == Space::Local) ? type : nullptr;
  case TypeKind::Ref:
  case TypeKind::Array:
  case TypeKind::Vec: return blockTensorIn(type->elem);
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (Type elem : type->elems)
      if (Type found = blockTensorIn(elem))
        return found;
    return nullptr;
  default: return nullptr;
  }
}

/// Of what it has of shared or local memory.
bool holdsReferencesOnly(Type type) {
  return !blockTensorIn(type) || type->kind == TypeKind::Ref ||
         (type->kind == TypeKind::Tuple && std::ranges::all_of(type->elems, holdsReferencesOnly));
}

}  // namespace

/// What a function hands to its caller must outlive the function: a tensor's value may, its own shared or local memory may not. A reference may be
/// to what the caller lent; ownership finds those that are not.
bool checkResultSpace(BodyState& body, Type type, SourceRange range) {
  Type found = blockTensorIn(type);
  const bool isRef = holdsReferencesOnly(type);
  const auto isLent = [](const Variable* param) {
    return param->type->kind == TypeKind::Ref && blockTensorIn(param->type);
  };
  if (!found || (isRef && std::ranges::any_of(body.function->params, isLent)))
    return true;
  error(body, "E0551", range,
        base::concat(spaceText(found), " ends with the scope that declares it and cannot be returned"))
      .primary(isRef ? "a reference to it would outlive it" : "promised to the caller")
      .label(body.function->nameRange, base::concat("`", body.function->name, "` ends here for its caller"))
      .help(isRef ? "let the caller lend the tensor: a parameter `&mut …`"
                  : "leave the space out: the value is returned, and the caller places it");
  return false;
}

/// Shared and local memory belong to a block of threads; host code has none.
bool checkHostSpace(BodyState& body, Type type, SourceRange range) {
  Type found = inKernel(body) || !body.instance ? nullptr : blockTensorIn(type);
  if (!found)
    return true;
  error(body, "E0550", range, base::concat(spaceText(found), " exists only in kernels"))
      .primary("declared in host code")
      .label(body.function->nameRange, base::concat("`", body.function->name, "` runs on the host"))
      .help("declare it in the kernel that uses it; host code owns global and constant memory");
  return false;
}

/// The arguments of a launch come from host code.
bool checkKernelParamSpace(BodyState& body, Type type, SourceRange range) {
  Type found = blockTensorIn(type);
  if (!found)
    return true;
  error(body, "E0550", range, base::concat("a kernel cannot be given ", spaceText(found)))
      .primary("host code has none to lend")
      .label(body.function->nameRange, "launched from host code")
      .help("take a global tensor and copy what is needed into a tensor declared here; a `fn` may take it");
  return false;
}

bool checkFieldSpace(BodyState& body, Type type, const syn::Field& field, const syn::Name& owner) {
  if (Type found = blockTensorIn(type)) {
    error(body, "E0551", field.type->range, base::concat(spaceText(found), " cannot be a field"))
        .primary("it ends with the scope that declares it")
        .label(owner.range, base::concat("`", owner.text, "` may leave that scope"))
        .help("declare the tensor by itself in the kernel and pass it by reference");
    return false;
  }
  return true;
}

std::optional<Space> spaceNamed(BodyState& body, const syn::Name& name) {
  if (const GenericValue* generic = findGeneric(body.generics, name.text))
    return generic->kind == GenericValue::Kind::Space ? std::optional(generic->space) : std::nullopt;
  if (name.text == "Global" || name.text == "global")
    return Space::Global;
  if (name.text == "Shared" || name.text == "shared")
    return Space::Shared;
  if (name.text == "Local" || name.text == "local")
    return Space::Local;
  if (name.text == "Constant" || name.text == "constant")
    return Space::Constant;
  return std::nullopt;
}

std::string spaceText(Type type) {
  if (type->param)
    return "the space `" + type->param->name + "`";
  constexpr const char* kNames[] = {"global memory", "shared memory", "local memory", "constant memory"};
  return kNames[static_cast<size_t>(type->space)];
}

}  // namespace vortex::lang
