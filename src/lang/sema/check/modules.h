// The files of one analysis: modules, their items and imports.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lang/sema/check/names/scope.h"

namespace vortex::lang {

class Session;

struct DeclaredFunction {
  const syn::FunctionItem* item;
  ItemScope* scope;
  const syn::ImplItem* impl;
};
struct DeclaredTrait {
  const syn::TraitItem* item;
  ItemScope* scope;
};

class Modules {
public:
  explicit Modules(Session& session) : session_(session) {}

  ItemScope* loadRoot(source::FileId file);
  /// Declares the items of a block; null when there are none.
  ItemScope* declareLocalItems(const std::vector<const syn::Item*>& items, ItemScope* parent);
  /// The trait that needs no import; parsed when first asked for with `load`, null before (fields.cpp).
  const Symbol* primeField(bool load);
  const std::vector<ImplBlock>& impls() const { return impls_; }
  /// Every function item with its scope, in source order: what `vortex check` walks.
  const std::vector<DeclaredFunction>& functions() const { return functions_; }
  const std::vector<DeclaredTrait>& traits() const { return traits_; }

private:
  diag::DiagnosticSink& sink() const;
  struct PendingImport {
    const syn::ImportItem* item;
    ItemScope* scope;
  };
  ItemScope* loadModule(source::FileId file, std::string name);
  void declareItems(const std::vector<const syn::Item*>& items, ItemScope* scope);
  void declare(const syn::Item* item, ItemScope* scope);
  void resolveImport(const PendingImport& pending);
  void bindMissing(const syn::ImportItem* item, ItemScope* into);
  void importNames(const syn::ImportItem* item, ItemScope* into, ItemScope* module);
  ItemScope* findModule(const syn::ImportItem* item, size_t length, ItemScope* from, std::vector<std::string>& tried);
  void bind(ItemScope* scope, const syn::Name& name, Symbol symbol);

  std::vector<std::unique_ptr<syn::Module>> trees_;
  std::vector<std::unique_ptr<ItemScope>> scopes_;
  std::map<std::string, ItemScope*> modulesByPath_;
  std::vector<PendingImport> imports_;
  std::vector<ImplBlock> impls_;
  std::vector<DeclaredFunction> functions_;
  std::vector<DeclaredTrait> traits_;
  ItemScope* prelude_ = nullptr;
  Session& session_;
};

}  // namespace vortex::lang
