#pragma once

#include "lang/syntax/ast.h"
#include "lang/syntax/lexer.h"

#include <initializer_list>
#include <string>

namespace vortex::lang::syntax {

/// Recursive descent over balanced tokens. After an error `failed_` is set and further errors are muted until a recovery point
/// (the next element of a list, the closing bracket, the next statement, the next item) clears it; parse functions return early or
/// return Error nodes meanwhile, never nullptr unless stated. No function consumes a closing bracket it did not open.
class Parser {
public:
  Parser(FileId file, const source::SourceManager& sources, diag::DiagnosticSink& sink, TokenStream stream,
         Module& module);
  void parseModule();

private:
  enum class ItemPlace : uint8_t { TopLevel, Block, Trait, Impl };

  /// Counts one level of nesting for the lifetime of a parse function; false once the limit is passed (and reported).
  class Nest {
  public:
    explicit Nest(Parser& parser);
    ~Nest() { --parser_.depth_; }
    explicit operator bool() const { return ok_; }

  private:
    Parser& parser_;
    bool ok_;
  };

  /// Sets a member for the lifetime of a parse function.
  class Scoped {
  public:
    Scoped(bool& place, bool value) : place_(place), old_(place) { place_ = value; }
    ~Scoped() { place_ = old_; }

  private:
    bool& place_;
    bool old_;
  };

  // Tokens (parser_state.cpp).
  const Token& current() const { return stream_.tokens[at_]; }
  const Token& previous() const { return stream_.tokens[at_ ? at_ - 1 : 0]; }
  const Token& ahead(uint32_t count) const;
  bool is(Tok tok) const { return current().tok == tok; }
  bool isWord(std::string_view word) const;
  bool newlineBefore() const { return current().newlineBefore; }
  /// The current token touches the previous one.
  bool isAdjacent() const { return at_ > 0 && current().begin == previous().end; }
  void advance();
  bool accept(Tok tok);
  /// Reports "expected `x` …" on failure; `where` continues the sentence ("after the condition").
  bool expect(Tok tok, std::string_view where = {});
  /// Consumes one `>`, splitting `>>`, `>=` and `>>=`.
  bool expectGreater();
  bool isGreater() const;
  Name expectName(std::string_view what);
  SourceRange rangeOf(const Token& token) const { return {file_, token.begin, token.end}; }
  SourceRange here() const { return rangeOf(current()); }
  /// From the first byte of token `first` to the last byte consumed.
  SourceRange since(uint32_t first) const;
  std::string_view textOf(const Token& token) const;
  std::string describeCurrent() const;

  // Errors (parser_state.cpp).
  /// The current token is a consequence of an error reported before parsing.
  bool isUnreliable() const;
  /// Reports and starts muting. Muted at once where the lexer or the balancing already complained.
  diag::DiagnosticBuilder fail(std::string_view id, SourceRange range, std::string message);
  /// Reports without muting: the parser knows what was meant and goes on.
  diag::DiagnosticBuilder complain(std::string_view id, SourceRange range, std::string message);
  diag::DiagnosticBuilder failExpected(std::string_view what);
  /// A block was to begin here; `where` continues the sentence.
  void failBlock(std::string_view where);
  /// The current word was meant to be the keyword (reported); what else is wrong on its line may come from a wrong guess and is muted.
  void replaceWord(Tok keyword);
  /// Skips one token, or a whole bracket.
  void skipOne();
  /// To the next comma that stands outside of the `<…>` of a type.
  void skipToComma(uint32_t start, uint32_t close);
  void skipToStatement(uint32_t start, uint32_t close);
  void skipToItem(uint32_t start, uint32_t close);

  /// Parses `open elem, elem, … close` with the current token at `open`; recovers at commas and always ends behind `close`.
  template <class ParseElem> void parseGroup(ParseElem parseElem, std::string_view what);

  // Nodes (parser_state.cpp).
  template <class T> T* makeExpr(SourceRange range, std::initializer_list<const Expr*> children = {});
  /// Returns `expr`, or an ErrorExpr after reporting that the tree is too high.
  Expr* checkHeight(Expr* expr);
  static void raise(Expr* parent, const Expr* child);
  template <class T, class Base> T* makeNode(SourceRange range);
  Expr* errorExpr();
  Type* errorType();
  Pattern* errorPattern();
  List<std::string_view> takeDocs(uint32_t tokenIndex);
  void takeModuleDocs();

  // Expressions (parse_expr.cpp, parse_primary.cpp, parse_control.cpp).
  Expr* parseExpr();
  /// An expression or an assignment.
  Expr* parseStatementExpr();
  Expr* parseRange(bool isOpenAllowed);
  Expr* parseBinary(int minPrecedence);
  Expr* parseCast();
  Expr* parseUnary();
  Expr* parsePower();
  Expr* parsePostfix();
  Expr* parsePostfixOf(Expr* base, uint32_t first);
  bool startsArm() const;
  Expr* parseMember(Expr* base, uint32_t first);
  Expr* parseColonColon(Expr* base, uint32_t first);
  Expr* parseGenericArgsOf(Expr* base, uint32_t first);
  Expr* parseCall(Expr* callee, uint32_t first);
  Expr* parseIndex(Expr* base, uint32_t first);
  Expr* parsePrimary();
  Expr* parseNumber();
  Expr* parseString();
  Expr* parseNameExpr();
  Expr* parseParenthesised();
  Expr* parseArray(uint32_t first, bool isVec);
  Expr* parseStructLiteral(Expr* path, uint32_t first);
  Expr* parseClosure();
  Expr* parseIf();
  Expr* parseMatch();
  Expr* parseWhile();
  Expr* parseLoop();
  Expr* parseFor();
  Expr* parseJump();
  Expr* parseCondition();
  Arg parseArg();
  List<Arg> parseArgs(std::string_view what);
  List<Arg> parseAttributeArgs();
  bool startsExpr() const;
  bool startsStructLiteral() const;
  bool startsStructFields(uint32_t brace) const;
  bool isAssignTarget(const Expr* expr) const;
  Type* typeOfPath(const Expr* path);

  // Statements (parse_stmt.cpp).
  BlockExpr* parseBlock();
  BlockExpr* expectBlock(std::string_view where);
  Stmt* parseStmt();
  Stmt* parseLet(uint32_t first, List<Attribute> attributes);
  void endStatement(const Stmt* stmt);
  void failStatementStart();
  List<Attribute> parseAttributes();
  Attribute parseAttribute();

  // Types and patterns (parse_type.cpp).
  Type* parseType(bool isSpaceAllowed = true);
  Type* parseTypeAtom(bool isSpaceAllowed);
  Type* parseNamedType(bool isSpaceAllowed);
  Type* parseParenthesisedType();
  Type* parseFunctionType();
  Type* parseArrayType();
  List<GenericArg> parseGenericArgs();
  GenericArg parseGenericArg();
  bool genericArgIsExpr() const;
  bool bracketHasSemicolon(uint32_t open) const;
  bool bracketHasComma(uint32_t open) const;
  List<Type*> parseBounds();
  Pattern* parsePattern(bool isOrAllowed = true);
  Pattern* parsePatternAtom();
  Pattern* parseLiteralPattern();
  Pattern* parseNamePattern();
  List<FieldPattern> parseFieldPatterns();

  // Items (parse_item.cpp).
  bool startsItem() const;
  /// nullptr after an error that leaves nothing to keep.
  Item* parseItem(ItemPlace place, uint32_t first, List<Attribute> attributes);
  Item* parseItemOf(ItemPlace place);
  Item* parseFunction(ItemPlace place);
  Item* parseStruct();
  Item* parseEnum();
  Item* parseTrait();
  Item* parseImpl();
  Item* parseTypeAlias(ItemPlace place);
  Item* parseConst(ItemPlace place);
  Item* parseImport();
  List<Item*> parseMembers(ItemPlace place);
  List<Item*> parseItems(ItemPlace place, uint32_t close);
  void failItem(ItemPlace place);
  List<GenericParam> parseGenericParams();
  GenericParam parseGenericParam();
  List<WherePredicate> parseWhere();
  List<Param> parseParams(ItemPlace place);
  Param parseParam(ItemPlace place, bool isFirst);
  bool parseSelfParam(Param& param, ItemPlace place, bool isFirst, uint32_t first);
  List<Field> parseFields();
  Expr* parseReduce();

  // What is misspelt, or written otherwise in other languages (parse_foreign.cpp, parse_slips.cpp): each reports what stands here, if it is
  // that, and says whether it did. These stop at it.
  bool complainAboutForeignStatement();
  bool complainAboutForeignBlock();
  bool complainAboutForeignOperand();
  bool complainAboutForeignString();
  bool complainAboutForeignCast();
  bool complainAboutForeignLambda();
  bool complainAboutForeignImport();
  bool complainAboutForeignLoop();
  /// `main() {`, `launch(block = 64)` before a kernel.
  bool complainAboutMissingStart();
  /// `int n` and `float* x` instead of `n: i32`; `name` is the first word.
  bool complainAboutTypeBeforeName(const Name& name);
  /// These go on behind it, or make the current token the one that was meant.
  bool complainAboutTypedShape();
  bool complainAboutShapeBehindType();
  bool complainAboutTwoWordType();
  bool complainAboutForeignResult();
  bool complainAboutForeignRange(bool isIndex);
  bool complainAboutForeignArrow();
  bool complainAboutUntypedConst(const Name& name);
  bool complainAboutMissingColon(const Name& name, std::string_view what);
  bool complainAboutMissingGreater();
  bool complainAboutMissingComma(bool& isSaid);
  bool complainAboutMisspeltItem();
  bool complainAboutMisspeltStatement();
  bool complainAboutMisspeltOperand();
  bool complainAboutMisspelt(std::string_view id, std::string_view what, std::initializer_list<Tok> meant);
  bool complainAboutGenericCall();
  void complainAboutChain(const Expr* lhs);
  /// True at `elif` and the like, which stand for `else if`; a misspelt `else` becomes one.
  bool complainAboutForeignElse();
  /// `=<`, `<>`, `===`, `and`: makes the current token the operator that was meant.
  void mendForeignOperator();
  /// `not x`: makes the current token a `!`.
  void mendForeignNot();
  /// The attributes but for memory spaces, which stand behind the type of a variable: each is reported.
  List<Attribute> withoutForeignSpaces(List<Attribute> attributes);
  bool isOnSameLine(uint32_t count) const;
  bool isTypeWord(std::string_view word) const;

  FileId file_;
  diag::DiagnosticSink& sink_;
  diag::DiagnosticSink muted_{1};
  TokenStream stream_;
  Module& module_;
  std::string_view text_;
  uint32_t at_ = 0;
  uint32_t split_ = UINT32_MAX;  ///< the token of which a `>` is used up already
  uint32_t depth_ = 0;
  bool failed_ = false;
  /// Inside a condition `name {` opens the block, not a struct literal.
  bool noStruct_ = false;
};

template <class T> T* Parser::makeExpr(SourceRange range, std::initializer_list<const Expr*> children) {
  T* node = module_.arena.make<T>();
  node->kind = T::kKind;
  node->range = range;
  node->id = module_.exprCount++;
  for (const Expr* child : children)
    raise(node, child);
  return node;
}

template <class T, class Base> T* Parser::makeNode(SourceRange range) {
  static_assert(std::is_base_of_v<Base, T>);
  T* node = module_.arena.make<T>();
  node->kind = T::kKind;
  node->range = range;
  return node;
}

template <class ParseElem> void Parser::parseGroup(ParseElem parseElem, std::string_view what) {
  const uint32_t close = stream_.partner[at_];
  const Scoped allowStruct(noStruct_, false);
  bool isCommaSaid = false;
  advance();
  while (at_ < close) {
    const uint32_t start = at_;
    parseElem();
    if (!failed_ && at_ < close && !is(Tok::Comma) && !complainAboutMissingComma(isCommaSaid) &&
        !complainAboutForeignLambda() && !complainAboutForeignCast())
      failExpected("`,` or `" + std::string(spelling(stream_.tokens[close].tok)) + "` in " + std::string(what));
    if (failed_) {
      skipToComma(start, close);
      failed_ = false;
    }
    if (at_ < close)
      accept(Tok::Comma);
    if (at_ == start)
      skipOne();
  }
  at_ = close;
  advance();
}

}  // namespace vortex::lang::syntax
