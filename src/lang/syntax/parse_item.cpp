// Items and their parts.

#include "lang/syntax/parser_state.h"

#include <map>

namespace vortex::lang::syntax {

void Parser::parseModule() {
  takeModuleDocs();
  const auto end = static_cast<uint32_t>(stream_.tokens.size() - 1);
  module_.items = parseItems(ItemPlace::TopLevel, end);
  for (const diag::Diagnostic& brace : stream_.surplus)
    sink_.report(brace);
}

bool Parser::startsItem() const {
  switch (current().tok) {
  case Tok::KwFn: return ahead(1).tok != Tok::LParen;  // a type or a closure of another language
  case Tok::KwKernel:
  case Tok::KwStruct:
  case Tok::KwEnum:
  case Tok::KwTrait:
  case Tok::KwImpl:
  case Tok::KwType:
  case Tok::KwConst:
  case Tok::KwImport:
  case Tok::KwPub: return true;
  default: return false;
  }
}

List<Item*> Parser::parseItems(ItemPlace place, uint32_t close) {
  std::vector<Item*> items;
  while (at_ < close) {
    const uint32_t start = at_;
    if (accept(Tok::Semicolon))
      continue;
    const List<Attribute> attributes = parseAttributes();
    Item* item = failed_ ? nullptr : parseItem(place, start, attributes);
    if (item)
      items.push_back(item);
    if (failed_) {
      skipToItem(start, close);
      failed_ = false;
    }
    if (at_ == start)
      skipOne();
  }
  return module_.arena.copyList(items);
}

List<Item*> Parser::parseMembers(ItemPlace place) {
  if (failed_ || !is(Tok::LBrace)) {
    if (!failed_)
      failBlock("before the members");
    return {};
  }
  const uint32_t close = stream_.partner[at_];
  advance();
  const List<Item*> members = parseItems(place, close);
  at_ = close;
  advance();
  return members;
}

Item* Parser::parseItem(ItemPlace place, uint32_t first, List<Attribute> attributes) {
  const Nest nest(*this);
  if (!nest)
    return nullptr;
  List<std::string_view> docs = takeDocs(first);
  if (docs.empty() && at_ != first)
    docs = takeDocs(at_);
  bool isPublic = false;
  while (is(Tok::KwPub)) {
    if (isPublic)
      complain("E0130", here(), "`pub` is written twice");
    isPublic = true;
    advance();
  }
  if (!startsItem() && !complainAboutMisspeltItem()) {
    failItem(place);
    return nullptr;
  }
  Item* item = parseItemOf(place);
  if (!item)
    return nullptr;
  item->docLines = docs;
  item->attributes = attributes;
  item->isPublic = isPublic;
  item->range = since(first);
  return item;
}

Item* Parser::parseItemOf(ItemPlace place) {
  const bool isMember = place == ItemPlace::Trait || place == ItemPlace::Impl;
  const Tok tok = current().tok;
  if (isMember && tok != Tok::KwFn && tok != Tok::KwConst && tok != Tok::KwType) {
    fail("E0116", here(),
         "`" + std::string(spelling(tok)) + "` cannot be a member of " +
             (place == ItemPlace::Trait ? "a trait" : "an impl"))
        .help("members are `fn`, `const` and `type`");
    return nullptr;
  }
  switch (tok) {
  case Tok::KwFn:
  case Tok::KwKernel: return parseFunction(place);
  case Tok::KwStruct: return parseStruct();
  case Tok::KwEnum: return parseEnum();
  case Tok::KwTrait: return parseTrait();
  case Tok::KwImpl: return parseImpl();
  case Tok::KwType: return parseTypeAlias(place);
  case Tok::KwConst: return parseConst(place);
  default: return parseImport();
  }
}

void Parser::failItem(ItemPlace place) {
  if (at_ > 0 && (is(Tok::EndOfFile) || isClosing(current().tok))) {
    fail("E0118", rangeOf(previous()), "an attribute must be followed by the item it applies to");
    return;
  }
  if (complainAboutForeignStatement())
    return;
  if (complainAboutMissingStart())
    return;
  auto error = fail("E0116", here(), "expected an item, found " + describeCurrent());
  if (place == ItemPlace::TopLevel && (startsExpr() || is(Tok::KwLet) || is(Tok::KwVar)))
    error.help("statements belong into a function, for example `fn main() { … }`");
  else
    error.help("items are fn, kernel, struct, enum, trait, impl, type, const and import");
}

Item* Parser::parseFunction(ItemPlace place) {
  auto* function = makeNode<FunctionItem, Item>(here());
  function->isKernel = is(Tok::KwKernel);
  const std::string keyword(textOf(current()));
  advance();
  function->name = expectName("the name of the " + std::string(function->isKernel ? "kernel" : "function"));
  if (failed_)
    return nullptr;
  function->generics.params = parseGenericParams();
  if (!failed_ && is(Tok::LParen))
    function->params = parseParams(place);
  else if (!failed_)
    failExpected("`(` after the name");
  if (!failed_ && (accept(Tok::Arrow) || complainAboutForeignResult())) {
    function->resultType = parseType();
    if (!failed_ && isWord("reduce") && ahead(1).tok == Tok::LParen)
      function->reduceOp = parseReduce();
  }
  if (!failed_ && is(Tok::KwWhere))
    function->generics.where = parseWhere();
  if (failed_)
    while (!is(Tok::LBrace) && !is(Tok::EndOfFile) && !isClosing(current().tok) && !(newlineBefore() && startsItem()))
      skipOne();
  failed_ = false;
  if (is(Tok::LBrace))
    function->body = parseBlock();
  else if (place != ItemPlace::Trait || function->isKernel)
    fail("E0122", function->name.range, "`" + std::string(function->name.text) + "` has no body")
        .help("write `{ … }` after the parameters and the result");
  if (failed_)
    function->body = makeExpr<BlockExpr>(function->name.range);
  return function;
}

Expr* Parser::parseReduce() {
  advance();
  Expr* op = nullptr;
  const SourceRange parens = here();
  bool isTooLong = false;
  parseGroup(
      [&] {
        isTooLong |= op != nullptr;
        op = parseExpr();
      },
      "`reduce(…)`");
  if (op && !isTooLong)
    return op;
  complain("E0110", parens, "`reduce` takes one operation")
      .help("reduce(add), mul, min, max, and, or, or the name of a function");
  return errorExpr();
}

List<GenericParam> Parser::parseGenericParams() {
  std::vector<GenericParam> params;
  if (!is(Tok::Lt))
    return {};
  advance();
  while (!failed_ && !isGreater()) {
    params.push_back(parseGenericParam());
    if (!accept(Tok::Comma))
      break;
  }
  if (!failed_)
    expectGreater();
  return module_.arena.copyList(params);
}

GenericParam Parser::parseGenericParam() {
  const uint32_t first = at_;
  GenericParam param;
  param.isConst = accept(Tok::KwConst);
  param.name = expectName("a generic parameter");
  if (failed_)
    return param;
  if (param.isConst) {
    if (expect(Tok::Colon, "and a type after the const parameter"))
      param.constType = parseType();
  } else if (accept(Tok::Colon)) {
    param.isConst = complainAboutUntypedConst(param.name);
    if (param.isConst)
      param.constType = parseType();
    else
      param.bounds = parseBounds();
  }
  if (!failed_ && accept(Tok::Eq))
    param.defaultValue = parseGenericArg();
  param.range = since(first);
  return param;
}

List<WherePredicate> Parser::parseWhere() {
  std::vector<WherePredicate> predicates;
  advance();
  while (!failed_ && !is(Tok::LBrace) && !is(Tok::EndOfFile)) {
    const uint32_t first = at_;
    WherePredicate predicate;
    predicate.subject = parseType();
    if (!failed_ && expect(Tok::Colon, "after the name in the `where` clause"))
      predicate.bounds = parseBounds();
    predicate.range = since(first);
    predicates.push_back(predicate);
    if (!accept(Tok::Comma))
      break;
  }
  if (!failed_ && is(Tok::KwWhere))
    fail("E0130", here(), "a second `where` clause").help("separate conditions by commas");
  return module_.arena.copyList(predicates);
}

List<Param> Parser::parseParams(ItemPlace place) {
  std::vector<Param> params;
  parseGroup(
      [&] {
        const Param param = parseParam(place, params.empty());
        if (!failed_)
          params.push_back(param);
      },
      "the parameters");
  return module_.arena.copyList(params);
}

bool Parser::parseSelfParam(Param& param, ItemPlace place, bool isFirst, uint32_t first) {
  const uint32_t start = at_;
  const bool isRef = accept(Tok::Amp);
  const bool isMutable = isRef && accept(Tok::KwMut);
  if (!isWord("self") || ahead(1).tok == Tok::Colon) {
    at_ = start;
    return false;
  }
  param.name = {textOf(current()), here()};
  param.self = isMutable ? SelfKind::MutRef : isRef ? SelfKind::Ref : SelfKind::Value;
  advance();
  param.range = since(first);
  if (!isFirst || (place != ItemPlace::Trait && place != ItemPlace::Impl))
    complain("E0126", param.range, "`self` is only the first parameter of a function in a trait or impl");
  return true;
}

Param Parser::parseParam(ItemPlace place, bool isFirst) {
  const uint32_t first = at_;
  Param param;
  param.attributes = parseAttributes();
  if (failed_ || parseSelfParam(param, place, isFirst, first))
    return param;
  if (is(Tok::KwMut) || is(Tok::KwVar) || is(Tok::KwLet)) {
    complain("E0117", here(), "parameters have no `" + std::string(spelling(current().tok)) + "`")
        .help("parameters are read-only: copy into a `var`, or take `&mut T`");
    advance();
  }
  param.name = expectName("a parameter's name");
  if (failed_ || complainAboutTypeBeforeName(param.name))
    return param;
  if (!accept(Tok::Colon) && !complainAboutMissingColon(param.name, "parameter")) {
    fail("E0123", param.name.range, "parameter `" + std::string(param.name.text) + "` has no type")
        .help("write `" + std::string(param.name.text) + ": T`");
    return param;
  }
  param.type = parseType();
  if (!failed_ && is(Tok::Eq))
    fail("E0117", here(), "parameters have no default values").help("write a second function that passes the value");
  param.range = since(first);
  return param;
}

List<Field> Parser::parseFields() {
  std::vector<Field> fields;
  std::map<std::string_view, SourceRange> names;
  if (failed_ || !is(Tok::LBrace)) {
    if (!failed_)
      failBlock("before the fields");
    return {};
  }
  parseGroup(
      [&] {
        const uint32_t first = at_;
        Field field;
        field.docLines = takeDocs(first);
        field.attributes = parseAttributes();
        if (is(Tok::KwPub)) {
          complain("E0117", here(), "fields have no `pub`").help("fields are visible wherever their struct is");
          advance();
        }
        field.name = failed_ ? Name{} : expectName("a field name");
        if (failed_ || complainAboutTypeBeforeName(field.name))
          return;
        if (!accept(Tok::Colon) && !complainAboutMissingColon(field.name, "field")) {
          fail("E0123", field.name.range, "field `" + std::string(field.name.text) + "` has no type")
              .help("write `name: T`");
          return;
        }
        field.type = parseType();
        field.range = since(first);
        if (auto [earlier, isNew] = names.emplace(field.name.text, field.name.range); !isNew)
          complain("E0130", field.name.range, "field `" + std::string(field.name.text) + "` is declared twice")
              .label(earlier->second, "first declared here");
        fields.push_back(field);
      },
      "the fields");
  return module_.arena.copyList(fields);
}

Item* Parser::parseStruct() {
  auto* item = makeNode<StructItem, Item>(here());
  advance();
  item->name = expectName("the name of the struct");
  if (failed_)
    return nullptr;
  item->generics.params = parseGenericParams();
  if (!failed_ && accept(Tok::Colon))
    item->traits = parseBounds();
  if (!failed_ && is(Tok::KwWhere))
    item->generics.where = parseWhere();
  item->fields = parseFields();
  return item;
}

Item* Parser::parseEnum() {
  auto* item = makeNode<EnumItem, Item>(here());
  advance();
  item->name = expectName("the name of the enum");
  if (failed_ || !is(Tok::LBrace)) {
    if (!failed_)
      failBlock("before the variants");
    return failed_ && !item->name.isPresent() ? nullptr : item;
  }
  std::vector<EnumVariant> variants;
  parseGroup(
      [&] {
        const uint32_t first = at_;
        EnumVariant variant;
        variant.docLines = takeDocs(first);
        variant.name = expectName("a variant's name");
        if (!failed_ && is(Tok::LParen))
          fail("E0117", here(), "variants carry no values").help("enums are lists of names; use a struct for values");
        if (!failed_ && accept(Tok::Eq))
          variant.value = parseExpr();
        variant.range = since(first);
        if (!failed_)
          variants.push_back(variant);
      },
      "the variants");
  item->variants = module_.arena.copyList(variants);
  return item;
}

Item* Parser::parseTrait() {
  auto* item = makeNode<TraitItem, Item>(here());
  advance();
  item->name = expectName("the name of the trait");
  if (failed_)
    return nullptr;
  item->generics.params = parseGenericParams();
  if (!failed_ && accept(Tok::Colon))
    item->supertraits = parseBounds();
  if (!failed_ && is(Tok::KwWhere))
    item->generics.where = parseWhere();
  item->members = parseMembers(ItemPlace::Trait);
  return item;
}

Item* Parser::parseImpl() {
  auto* item = makeNode<ImplItem, Item>(here());
  advance();
  item->generics.params = parseGenericParams();
  Type* type = failed_ ? errorType() : parseType();
  if (!failed_ && accept(Tok::KwFor)) {
    item->trait = type;
    type = parseType();
  }
  item->selfType = type;
  if (!failed_ && is(Tok::KwWhere))
    item->generics.where = parseWhere();
  item->members = parseMembers(ItemPlace::Impl);
  return item;
}

Item* Parser::parseTypeAlias(ItemPlace place) {
  const SourceRange start = here();
  advance();
  const Name name = expectName("the name of the type");
  if (failed_)
    return nullptr;
  const List<GenericParam> params = parseGenericParams();
  if (!failed_ && is(Tok::Eq) && ahead(1).tok == Tok::KwStruct) {
    auto* item = makeNode<StructItem, Item>(start);
    item->name = name;
    item->generics.params = params;
    advance();
    advance();
    if (accept(Tok::Colon))
      item->traits = parseBounds();
    item->fields = parseFields();
    return item;
  }
  auto* item = makeNode<TypeAliasItem, Item>(start);
  item->name = name;
  item->generics.params = params;
  if (!failed_ && place == ItemPlace::Trait && accept(Tok::Colon))
    item->bounds = parseBounds();
  if (!failed_ && place == ItemPlace::Trait && !is(Tok::Eq))
    return item;
  if (!failed_ && expect(Tok::Eq, "after the name of the type"))
    item->aliased = parseType();
  if (!item->aliased)
    item->aliased = errorType();
  return item;
}

Item* Parser::parseConst(ItemPlace place) {
  auto* item = makeNode<ConstItem, Item>(here());
  advance();
  item->name = expectName("the name of the constant");
  if (failed_)
    return nullptr;
  if (accept(Tok::Colon))
    item->type = parseType();
  if (!failed_ && place == ItemPlace::Trait && !is(Tok::Eq)) {
    if (!item->type)
      complain("E0123", item->name.range, "constant `" + std::string(item->name.text) + "` of a trait has no type");
    return item;
  }
  if (!failed_ && expect(Tok::Eq, "and a value after the constant"))
    item->value = parseExpr();
  if (!item->value)
    item->value = errorExpr();
  if (!failed_ && !newlineBefore() && !is(Tok::Semicolon) && !is(Tok::EndOfFile) && !isClosing(current().tok))
    fail("E0115", here(), "expected the end of the constant, found " + describeCurrent());
  return item;
}

Item* Parser::parseImport() {
  auto* item = makeNode<ImportItem, Item>(here());
  advance();
  if (complainAboutForeignImport())
    return nullptr;
  std::vector<Name> path = {expectName("the name of a module")};
  while (!failed_ && (is(Tok::Dot) || is(Tok::ColonColon) || is(Tok::Slash))) {
    if (!is(Tok::Dot))
      complain("E0117", here(), "module paths are written with `.`").fix(here(), ".", "write a dot");
    advance();
    path.push_back(expectName("the name of a module"));
  }
  item->path = module_.arena.copyList(path);
  if (failed_)
    return nullptr;
  if (accept(Tok::KwAs))
    item->alias = expectName("a name after `as`");
  if (!failed_ && !newlineBefore() && (is(Tok::Colon) || is(Tok::LParen)))
    return fail("E0117", here(), "the names of an import stand in braces").help("write `import a.b { X }`"), nullptr;
  if (failed_ || !is(Tok::LBrace))
    return item;
  item->hasNames = true;
  std::vector<ImportName> names;
  parseGroup(
      [&] {
        ImportName name;
        name.name = expectName("an imported name");
        if (!failed_ && accept(Tok::KwAs))
          name.alias = expectName("a name after `as`");
        if (!failed_)
          names.push_back(name);
      },
      "the import");
  item->names = module_.arena.copyList(names);
  return item;
}

}  // namespace vortex::lang::syntax
