// Loading files, declaring items, resolving imports.
#include "lang/sema/check/body_state.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"

#include "base/file.h"
#include "base/text.h"
#include "diag/names_elsewhere.h"
#include "lang/syntax/parser.h"

#include <sys/stat.h>

namespace vortex::lang {

diag::DiagnosticSink& Modules::sink() const { return session_.sink(); }

namespace {

std::string folderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

bool isFile(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::optional<SymbolKind> symbolKind(const syn::Item* item) {
  switch (item->kind) {
  case syn::ItemKind::Function: return SymbolKind::Function;
  case syn::ItemKind::Struct: return SymbolKind::Struct;
  case syn::ItemKind::Enum: return SymbolKind::Enum;
  case syn::ItemKind::Trait: return SymbolKind::Trait;
  case syn::ItemKind::TypeAlias: return SymbolKind::Alias;
  case syn::ItemKind::Const: return SymbolKind::Const;
  case syn::ItemKind::Impl:
  case syn::ItemKind::Import: return std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::string> exportedNames(const ItemScope* module) {
  std::vector<std::string> names;
  for (const auto& [name, symbol] : module->symbols)
    names.emplace_back(name);
  return names;
}

}  // namespace

ItemScope* Modules::loadRoot(source::FileId file) {
  modulesByPath_[session_.sources.file(file).name()] = nullptr;
  ItemScope* root = loadModule(file, "");
  modulesByPath_[session_.sources.file(file).name()] = root;
  // Imports may load further files, which add imports of their own.
  for (size_t i = 0; i < imports_.size(); ++i)
    resolveImport(PendingImport(imports_[i]));
  return root;
}

ItemScope* Modules::loadModule(source::FileId file, std::string name) {
  trees_.push_back(syn::parse(file, session_.sources, sink()));
  scopes_.push_back(std::make_unique<ItemScope>());
  ItemScope* scope = scopes_.back().get();
  scope->moduleName = std::move(name);
  scope->file = file;
  const syn::Module* tree = trees_.back().get();
  declareItems({tree->items.begin(), tree->items.end()}, scope);
  return scope;
}

ItemScope* Modules::declareLocalItems(const std::vector<const syn::Item*>& items, ItemScope* parent) {
  if (items.empty())
    return nullptr;
  scopes_.push_back(std::make_unique<ItemScope>());
  ItemScope* scope = scopes_.back().get();
  scope->parent = parent;
  scope->moduleName = parent->moduleName;
  scope->file = parent->file;
  const size_t firstImport = imports_.size();
  declareItems(items, scope);
  for (size_t i = firstImport; i < imports_.size(); ++i)
    resolveImport(PendingImport(imports_[i]));
  return scope;
}

void Modules::declareItems(const std::vector<const syn::Item*>& items, ItemScope* scope) {
  for (const syn::Item* item : items)
    declare(item, scope);
}

void Modules::declare(const syn::Item* item, ItemScope* scope) {
  if (auto* import = item->tryAs<syn::ImportItem>()) {
    imports_.push_back({import, scope});
    return;
  }
  if (auto* impl = item->tryAs<syn::ImplItem>()) {
    impls_.push_back({impl, scope});
    for (const syn::Item* member : impl->members)
      if (auto* function = member->tryAs<syn::FunctionItem>())
        functions_.push_back({function, scope, impl});
    return;
  }
  if (!item->name.isPresent())
    return;
  if (auto* trait = item->tryAs<syn::TraitItem>())
    traits_.push_back({trait, scope});
  if (auto* function = item->tryAs<syn::FunctionItem>())
    functions_.push_back({function, scope, nullptr});
  bind(scope, item->name, Symbol{*symbolKind(item), item, scope, item->name.range, item->isPublic});
}

void Modules::bind(ItemScope* scope, const syn::Name& name, Symbol symbol) {
  auto [found, isNew] = scope->symbols.emplace(name.text, symbol);
  if (!isNew)
    sink()
        .error("E0202", name.range, base::concat("`", name.text, "` is defined twice"))
        .primary("second definition")
        .label(found->second.nameRange, "first defined here");
}

ItemScope* Modules::findModule(const syn::ImportItem* item, size_t length, ItemScope* from,
                               std::vector<std::string>& tried) {
  std::string relative, dotted;
  for (size_t i = 0; i < length; ++i) {
    relative += (i ? "/" : "") + std::string(item->path[i].text);
    dotted += (i ? "." : "") + std::string(item->path[i].text);
  }
  relative += ".vx";
  std::vector<std::string> folders{folderOf(session_.sources.file(from->file).name())};
  for (const std::string& folder : session_.options.importPaths)
    folders.push_back(folder.empty() || folder.back() == '/' ? folder : folder + "/");
  for (const std::string& folder : folders) {
    const std::string path = folder + relative;
    if (auto known = modulesByPath_.find(path); known != modulesByPath_.end() && known->second)
      return known->second;
    if (!isFile(path)) {
      tried.push_back(path);
      continue;
    }
    auto file = session_.sources.addFile(path);
    if (!file.ok()) {
      sink().error("E0206", item->range, file.error().message);
      return nullptr;
    }
    ItemScope* module = loadModule(file.value(), dotted);
    modulesByPath_[path] = module;
    return module;
  }
  return nullptr;
}

void Modules::resolveImport(const PendingImport& pending) {
  const syn::ImportItem* item = pending.item;
  if (item->path.empty())
    return;
  const uint32_t errorsBefore = sink().errorCount();
  std::vector<std::string> tried;
  ItemScope* module = findModule(item, item->path.size(), pending.scope, tried);
  if (module) {
    if (item->hasNames)
      return importNames(item, pending.scope, module);
    const syn::Name& name = item->alias.isPresent() ? item->alias : item->path.back();
    return bind(pending.scope, name, Symbol{SymbolKind::Module, nullptr, module, name.range, item->isPublic});
  }
  if (sink().errorCount() != errorsBefore)
    return bindMissing(item, pending.scope);
  // `import a.f` may name the item f of module a.
  if (!item->hasNames && item->path.size() > 1) {
    std::vector<std::string> ignored;
    if (ItemScope* outer = findModule(item, item->path.size() - 1, pending.scope, ignored))
      if (auto found = outer->symbols.find(item->path.back().text); found != outer->symbols.end()) {
        const syn::Name& name = item->alias.isPresent() ? item->alias : item->path.back();
        return bind(pending.scope, name, found->second);
      }
  }
  bindMissing(item, pending.scope);
  SourceRange range = source::join(item->path.front().range, item->path.back().range);
  auto builder = sink().error("E0203", range, base::concat("module `", session_.sources.text(range), "` is not found"));
  for (const std::string& path : tried)
    if (diag::suggest(builder, nullptr, item->path.back().text, base::stemsIn(folderOf(path), ".vx")))
      break;
  builder.help("looked for " + base::join(tried, ", "));
}
/// After a failed import its names exist, but mean nothing.
void Modules::bindMissing(const syn::ImportItem* item, ItemScope* into) {
  const auto add = [&](const syn::Name& name) {
    bind(into, name, Symbol{SymbolKind::Missing, nullptr, into, name.range, false});
  };
  if (!item->hasNames)
    add(item->alias.isPresent() ? item->alias : item->path.back());
  for (const syn::ImportName& entry : item->names)
    add(entry.alias.isPresent() ? entry.alias : entry.name);
}

void Modules::importNames(const syn::ImportItem* item, ItemScope* into, ItemScope* module) {
  for (const syn::ImportName& entry : item->names) {
    auto found = module->symbols.find(entry.name.text);
    const std::string moduleText = module->moduleName.empty() ? "the root file" : "`" + module->moduleName + "`";
    if (found == module->symbols.end()) {
      auto builder =
          sink().error("E0204", entry.name.range, base::concat("`", entry.name.text, "` is not in ", moduleText));
      diag::suggest(builder, nullptr, entry.name.text, exportedNames(module));
      bind(into, entry.alias.isPresent() ? entry.alias : entry.name,
           Symbol{SymbolKind::Missing, nullptr, into, entry.name.range, false});
      continue;
    }
    if (!found->second.isPublic && found->second.scope == module) {
      sink()
          .error("E0205", entry.name.range, base::concat("`", entry.name.text, "` is not public"))
          .primary("used here")
          .label(found->second.nameRange, "defined here without `pub`");
      bind(into, entry.alias.isPresent() ? entry.alias : entry.name,
           Symbol{SymbolKind::Missing, nullptr, into, entry.name.range, false});
      continue;
    }
    Symbol symbol = found->second;
    symbol.isPublic = item->isPublic;
    bind(into, entry.alias.isPresent() ? entry.alias : entry.name, symbol);
  }
}

}  // namespace vortex::lang
