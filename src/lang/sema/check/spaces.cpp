// Where memory of a space may be declared and where it may not go (language.md §7).
#include "lang/sema/check/checker.h"
#include "lang/sema/check/names.h"

#include "base/text.h"

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

}  // namespace

/// What a function hands to its caller must outlive the block: a tensor's value may, its shared or local memory may not.
bool Checker::checkResultSpace(Type type, SourceRange range) {
  Type found = blockTensorIn(type);
  if (!found)
    return true;
  const bool isRef = type->kind == TypeKind::Ref;
  error("E0551", range, base::concat(spaceText(found), " ends with the scope that declares it and cannot be returned"))
      .primary(isRef ? "a reference to it would outlive it" : "promised to the caller")
      .label(function->nameRange, base::concat("`", function->name, "` ends here for its caller"))
      .help(isRef ? "let the caller lend the tensor: a parameter `&mut …`"
                  : "leave the space out: the value is returned, and the caller places it");
  return false;
}

/// Shared and local memory belong to a block of threads; host code has none.
bool Checker::checkHostSpace(Type type, SourceRange range) {
  Type found = inKernel() || !instance ? nullptr : blockTensorIn(type);
  if (!found)
    return true;
  error("E0550", range, base::concat(spaceText(found), " exists only in kernels"))
      .primary("declared in host code")
      .label(function->nameRange, base::concat("`", function->name, "` runs on the host"))
      .help("declare it in the kernel that uses it; host code owns global and constant memory");
  return false;
}

/// The arguments of a launch come from host code.
bool Checker::checkKernelParamSpace(Type type, SourceRange range) {
  Type found = blockTensorIn(type);
  if (!found)
    return true;
  error("E0550", range, base::concat("a kernel cannot be given ", spaceText(found)))
      .primary("host code has none to lend")
      .label(function->nameRange, "launched from host code")
      .help("take a global tensor and copy what is needed into a tensor declared here; a `fn` may take it");
  return false;
}

bool Checker::checkFieldSpace(Type type, const syn::Field& field, const syn::Name& owner) {
  if (Type found = blockTensorIn(type)) {
    error("E0551", field.type->range, base::concat(spaceText(found), " cannot be a field"))
        .primary("it ends with the scope that declares it")
        .label(owner.range, base::concat("`", owner.text, "` may leave that scope"))
        .help("declare the tensor by itself in the kernel and pass it by reference");
    return false;
  }
  return true;
}

}  // namespace vortex::lang
