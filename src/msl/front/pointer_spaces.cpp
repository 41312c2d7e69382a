// Metal wants an address space at every pointer that is written. To Clang memory of a thread lies in the space that nothing names, so the shim makes
// `thread` a mark of the type that has no other effect here (`noderef`, whose warnings are off). Only what is written is asked, templates as they
// stand: the `T` of `T* p` may be `device float`.
#include "msl/front/pointer_spaces.h"

#include "msl/front/kernels.h"

#include <clang/AST/RecursiveASTVisitor.h>

namespace vortex::msl::front {

static bool isMark(const clang::AttributedType* type) { return type->getAttrKind() == clang::attr::NoDeref; }

/// A dependent type that is a class whatever its arguments are, and so has no address space of its own.
static bool isClass(const clang::Type* type) {
  if (llvm::isa<clang::InjectedClassNameType>(type))
    return true;
  auto* made = llvm::dyn_cast<clang::TemplateSpecializationType>(type);
  return made && llvm::isa_and_nonnull<clang::ClassTemplateDecl>(made->getTemplateName().getAsTemplateDecl());
}

bool namesSpace(clang::QualType pointee) {
  if (pointee.hasAddressSpace() || pointee->isFunctionType())
    return true;
  const clang::Type* type = pointee.getTypePtr();
  if (llvm::isa<clang::AutoType, clang::DeducedTemplateSpecializationType, clang::DecltypeType,
                clang::SubstTemplateTypeParmType>(type))
    return true;
  if (auto* attributed = llvm::dyn_cast<clang::AttributedType>(type))
    return isMark(attributed) || namesSpace(attributed->getModifiedType());
  if (auto* array = llvm::dyn_cast<clang::ArrayType>(type))
    return namesSpace(array->getElementType());
  const clang::QualType next = pointee->getLocallyUnqualifiedSingleStepDesugaredType();
  if (next.getTypePtr() != type)
    return namesSpace(next);
  return type->isDependentType() && !isClass(type) && !type->isPointerType();
}

namespace {

class Checker : public clang::RecursiveASTVisitor<Checker> {
public:
  Checker(clang::ASTContext& context, Unit& unit) : sources_(context.getSourceManager()), unit_(unit) {}

  bool VisitPointerTypeLoc(clang::PointerTypeLoc pointer) {
    const clang::SourceLocation at = pointer.getStarLoc();
    if (!isOfSources(at, sources_, *unit_.files) || namesSpace(pointer.getPointeeLoc().getType()))
      return true;
    Problem made{"E0902", "a pointer names its address space: device, constant, threadgroup or thread", {}, 0, 0, {}};
    setPlace(made, at, sources_, *unit_.files);
    const bool isNew = llvm::none_of(unit_.problems, [&](const Problem& each) {
      return each.file == made.file && each.begin == made.begin;  // a macro may write it often
    });
    if (isNew)
      unit_.problems.push_back(std::move(made));
    return true;
  }

private:
  const clang::SourceManager& sources_;
  Unit& unit_;
};

}  // namespace

void checkPointerSpaces(clang::ASTContext& context, Unit& unit) { Checker(context, unit).TraverseAST(context); }

}  // namespace vortex::msl::front
