#include "msl/front/attributes.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/Sema/ParsedAttr.h>
#include <clang/Sema/Sema.h>

namespace vortex::msl::front {
namespace {

/// A local variable in threadgroup memory: one per threadgroup, as a static one, before Sema refuses the address space.
struct ThreadgroupAttribute : clang::ParsedAttrInfo {
  ThreadgroupAttribute() {
    static constexpr Spelling kSpellings[] = {{clang::ParsedAttr::AS_GNU, "msl_threadgroup"}};
    Spellings = kSpellings;
  }
  bool diagAppertainsToDecl(clang::Sema&, const clang::ParsedAttr&, const clang::Decl*) const override { return true; }
  AttrHandling handleDeclAttribute(clang::Sema& sema, clang::Decl* decl, const clang::ParsedAttr&) const override {
    auto* variable = llvm::dyn_cast<clang::VarDecl>(decl);
    if (variable && !llvm::isa<clang::ParmVarDecl>(variable) && variable->hasLocalStorage() &&
        variable->getType().getAddressSpace() == clang::LangAS::sycl_local) {
      variable->setStorageClass(clang::SC_Static);
      variable->addAttr(clang::SectionAttr::CreateImplicit(sema.Context, "msl_threadgroup"));
    }
    return AttributeApplied;
  }
};

/// A function constant: its value comes when the pipeline is made, so it is neither constexpr nor const to Clang.
struct FunctionConstantAttribute : clang::ParsedAttrInfo {
  FunctionConstantAttribute() {
    static constexpr Spelling kSpellings[] = {{clang::ParsedAttr::AS_GNU, "msl_function_constant"}};
    Spellings = kSpellings;
  }
  bool diagAppertainsToDecl(clang::Sema&, const clang::ParsedAttr&, const clang::Decl*) const override { return true; }
  AttrHandling handleDeclAttribute(clang::Sema& sema, clang::Decl* decl, const clang::ParsedAttr&) const override {
    auto* variable = llvm::dyn_cast<clang::VarDecl>(decl);
    if (!variable || llvm::isa<clang::ParmVarDecl>(variable))
      return AttributeApplied;
    variable->setConstexpr(false);
    clang::Qualifiers qualifiers = variable->getType().getQualifiers();
    qualifiers.removeConst();
    variable->setType(sema.Context.getQualifiedType(variable->getType().getUnqualifiedType(), qualifiers));
    return AttributeApplied;
  }
};

}  // namespace

void addAttributes() {
  // Clang looks plugins' attributes up in this registry and nowhere else.
  static const clang::ParsedAttrInfoRegistry::Add<ThreadgroupAttribute> threadgroup("msl_threadgroup", "");
  static const clang::ParsedAttrInfoRegistry::Add<FunctionConstantAttribute> constant("msl_function_constant", "");
}

}  // namespace vortex::msl::front
