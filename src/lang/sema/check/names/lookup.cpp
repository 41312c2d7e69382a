#include "lang/sema/check/names/lookup.h"
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/instances.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"

#include "base/text.h"
#include "diag/names_elsewhere.h"

#include <algorithm>
#include <cctype>

namespace vortex::lang {

static std::vector<std::string> visibleNames(const BodyState& body) {
  std::vector<std::string> names;
  for (const BodyState::Local& local : body.locals)
    names.emplace_back(local.name);
  for (const GenericBinding& binding : body.generics)
    names.emplace_back(binding.name);
  for (const ItemScope* scope = body.items; scope; scope = scope->parent)
    for (const auto& [name, symbol] : scope->symbols)
      names.emplace_back(name);
  for (const char* name : {"thread", "block", "warp", "grid", "return", "break", "continue"})
    names.emplace_back(name);
  addBuiltinNames(names);
  return names;
}

/// An assignment of one short line, or the beginning of it.
static std::string shortText(const BodyState& body, SourceRange range, const syn::Name& name) {
  const std::string_view text = body.session.sources.text(range);
  return text.size() <= 60 && text.find('\n') == text.npos ? std::string(text) : base::concat(name.text, " = …");
}

bool isKnownName(const BodyState& body, std::string_view name) {
  return findLocal(body, name) || findGeneric(body.generics, name) || body.items->find(name) || isPositionBase(name) ||
         isBuiltinName(name);
}

static bool hasWord(std::string_view text, std::string_view word) {
  const auto isPart = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if ((at == 0 || !isPart(at - 1)) && !isPart(at + word.size()))
      return true;
  return false;
}

bool isSaid(const BodyState& body, const syn::Name& name, const std::string& message) {
  if (!body.instance)
    return false;
  const SourceRange function = body.instance->item->range;
  return std::ranges::any_of(body.session.sink().all(), [&](const diag::Diagnostic& each) {
    const SourceRange other = each.position();
    const bool isHere = other.file == function.file && other.begin >= function.begin && other.end <= function.end;
    return isHere && (each.message == message || ((each.id == "E0210" || each.id == "E0329" || each.id == "E0332") &&
                                                  hasWord(body.session.sources.text(other), name.text)));
  });
}

/// "Mode.Fast", if `Fast` is a variant of an enum in scope.
static std::string variantNamed(const BodyState& body, std::string_view name) {
  for (const ItemScope* scope = body.items; scope; scope = scope->parent)
    for (const auto& [known, symbol] : scope->symbols)
      if (symbol.kind == SymbolKind::Enum)
        for (const syn::EnumVariant& variant : symbol.item->as<syn::EnumItem>()->variants)
          if (variant.name.text == name)
            return base::concat(known, ".", name);
  return "";
}

void unknownName(BodyState& body, const syn::Name& name, const syn::AssignExpr* assigned, std::string_view member) {
  const std::string message = base::concat("there is no `", name.text, "` in scope");
  if (isSaid(body, name, message))
    return;
  auto builder = error(body, "E0201", name.range, message);
  const char* ours = diag::nameElsewhere(member.empty() ? name.text : member);
  if (const std::string variant = variantNamed(body, name.text); !variant.empty())
    builder.help("write `" + variant + "`");
  else if (!diag::suggest(builder, ours ? ours : diag::nameElsewhere(name.text), name.text, visibleNames(body)) &&
           (name.text == "block_m" || name.text == "block_n"))
    builder.help("`block_m` and `block_n` exist in kernels with `@tile`");
  if (assigned)
    builder.help("declare it: `let " + shortText(body, assigned->range, name) + "`, or `var` if it changes");
}

const Symbol* findSymbol(BodyState& body, const syn::Expr* expr) {
  if (auto* name = expr->tryAs<syn::NameExpr>())
    return findLocal(body, name->name.text) || findGeneric(body.generics, name->name.text)
               ? nullptr
               : body.items->find(name->name.text);
  auto* member = expr->tryAs<syn::MemberExpr>();
  const Symbol* base = member ? findSymbol(body, member->base) : nullptr;
  if (!base || base->kind != SymbolKind::Module)
    return nullptr;
  auto found = base->scope->symbols.find(member->name.text);
  return found == base->scope->symbols.end() ? nullptr : &found->second;
}

bool checkPublic(BodyState& body, const Symbol& symbol, const syn::Name& name) {
  const ItemScope* here = body.items;
  while (here->parent)
    here = here->parent;
  if (symbol.isPublic || symbol.scope == here || symbol.kind == SymbolKind::Module)
    return true;
  error(body, "E0205", name.range, base::concat("`", name.text, "` is not public"))
      .primary("used here")
      .label(symbol.nameRange, "defined here without `pub`");
  return false;
}

void unknownInModule(BodyState& body, const Symbol& module, const syn::Name& name) {
  std::vector<std::string> names;
  for (const auto& [known, symbol] : module.scope->symbols)
    names.emplace_back(known);
  auto builder =
      error(body, "E0204", name.range, base::concat("`", name.text, "` is not in `", module.scope->moduleName, "`"));
  diag::suggest(builder, nullptr, name.text, names);
}

}  // namespace vortex::lang
