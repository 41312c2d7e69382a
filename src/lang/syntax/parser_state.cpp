#include "lang/syntax/parser_state.h"

#include "lang/syntax/parser.h"

#include <algorithm>

namespace vortex::lang::syntax {

void* Arena::allocate(size_t bytes, size_t alignment) {
  constexpr size_t kChunkBytes = size_t{64} << 10;
  auto address = (reinterpret_cast<uintptr_t>(next_) + alignment - 1) & ~(uintptr_t{alignment} - 1);
  if (!next_ || address + bytes > reinterpret_cast<uintptr_t>(end_)) {
    const size_t size = std::max(kChunkBytes, bytes + alignment);
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    next_ = chunks_.back().get();
    end_ = next_ + size;
    address = (reinterpret_cast<uintptr_t>(next_) + alignment - 1) & ~(uintptr_t{alignment} - 1);
  }
  next_ = reinterpret_cast<std::byte*>(address + bytes);
  return reinterpret_cast<void*>(address);
}

Parser::Parser(FileId file, const source::SourceManager& sources, diag::DiagnosticSink& sink, TokenStream stream,
               Module& module)
    : file_(file), sink_(sink), stream_(std::move(stream)), module_(module), text_(sources.file(file).text()) {}

Parser::Nest::Nest(Parser& parser) : parser_(parser), ok_(++parser.depth_ <= Module::kMaxNesting) {
  if (!ok_)
    parser_.fail("E0111", parser_.here(), "nested more than " + std::to_string(Module::kMaxNesting) + " levels deep")
        .help("name a part of it with `let`, or move it into a function");
}

const Token& Parser::ahead(uint32_t count) const {
  return stream_.tokens[std::min<size_t>(at_ + count, stream_.tokens.size() - 1)];
}

bool Parser::isWord(std::string_view word) const { return is(Tok::Identifier) && textOf(current()) == word; }

void Parser::advance() {
  if (!is(Tok::EndOfFile))
    ++at_;
}

bool Parser::accept(Tok tok) {
  if (!is(tok))
    return false;
  advance();
  return true;
}

bool Parser::expect(Tok tok, std::string_view where) {
  if (accept(tok) || (tok == Tok::FatArrow && complainAboutForeignArrow()))
    return true;
  failExpected("`" + std::string(spelling(tok)) + "`" + (where.empty() ? "" : " " + std::string(where)));
  return false;
}

bool Parser::isGreater() const { return is(Tok::Gt) || is(Tok::Shr) || is(Tok::GtEq) || is(Tok::ShrEq); }

bool Parser::expectGreater() {
  if (accept(Tok::Gt))
    return true;
  if (!isGreater()) {
    failExpected("`,` or `>`");
    return false;
  }
  Token& token = stream_.tokens[at_];
  token.tok = is(Tok::Shr) ? Tok::Gt : is(Tok::GtEq) ? Tok::Eq : Tok::GtEq;
  ++token.begin;
  split_ = at_;
  return true;
}

Name Parser::expectName(std::string_view what) {
  if (is(Tok::Identifier)) {
    const Name name{textOf(current()), here()};
    advance();
    return name;
  }
  if (isKeyword(current().tok))
    fail("E0124", here(),
         "`" + std::string(textOf(current())) + "` is a keyword and cannot be used as " + std::string(what));
  else
    failExpected(what);
  return {};
}

SourceRange Parser::since(uint32_t first) const {
  const uint32_t begin = stream_.tokens[first].begin;
  // After the first half of a `>>` the node ends in the middle of the token.
  const uint32_t end = split_ == at_ ? stream_.tokens[at_].begin : at_ > first ? previous().end : begin;
  return {file_, begin, std::max(begin, end)};
}

std::string_view Parser::textOf(const Token& token) const { return text_.substr(token.begin, token.end - token.begin); }

std::string Parser::describeCurrent() const {
  const Token& token = current();
  switch (token.tok) {
  case Tok::EndOfFile: return "the end of the file";
  case Tok::String: return "a string";
  case Tok::Int:
  case Tok::Float: return "the number `" + std::string(textOf(token).substr(0, 40)) + "`";
  case Tok::Identifier: return "`" + std::string(textOf(token).substr(0, 80)) + "`";
  default: return (isKeyword(token.tok) ? "the keyword `" : "`") + std::string(spelling(token.tok)) + "`";
  }
}

bool Parser::isUnreliable() const {
  const auto isInside = [&](const auto& part) {
    return current().begin >= part.first && current().begin <= part.second;
  };
  return is(Tok::Invalid) || current().isSynthetic || current().begin >= stream_.unreliableFrom ||
         std::ranges::any_of(stream_.doubtful, isInside);
}

diag::DiagnosticBuilder Parser::complain(std::string_view id, SourceRange range, std::string message) {
  const bool isReported = failed_ || isUnreliable();
  return (isReported ? muted_ : sink_).error(id, range, std::move(message));
}

diag::DiagnosticBuilder Parser::fail(std::string_view id, SourceRange range, std::string message) {
  const bool isReported = failed_ || isUnreliable();
  failed_ = true;
  return (isReported ? muted_ : sink_).error(id, range, std::move(message));
}

diag::DiagnosticBuilder Parser::failExpected(std::string_view what) {
  return fail("E0110", here(), "expected " + std::string(what) + ", found " + describeCurrent());
}

void Parser::failBlock(std::string_view where) {
  failExpected("`{` " + std::string(where));
  if (stream_.surplus.empty())
    return;
  stream_.surplus.clear();  // the `}` of the block that does not begin, and what follows it
  stream_.unreliableFrom = std::min(stream_.unreliableFrom, current().begin);
}

void Parser::replaceWord(Tok keyword) {
  const size_t end = text_.find_first_of("\r\n", current().begin);
  stream_.doubtful.emplace_back(current().begin, static_cast<uint32_t>(std::min(end, text_.size())));
  stream_.tokens[at_].tok = keyword;
}

void Parser::skipOne() {
  if (isOpening(current().tok))
    at_ = stream_.partner[at_];
  advance();
}

void Parser::skipToComma(uint32_t start, uint32_t close) {
  const uint32_t failed = at_;
  uint32_t angles = 0;
  for (at_ = start; at_ < close && (at_ < failed || !is(Tok::Comma) || angles > 0); skipOne()) {
    if (is(Tok::Lt))
      ++angles;
    else if (is(Tok::Gt) || is(Tok::Shr))
      angles -= std::min(angles, is(Tok::Gt) ? 1u : 2u);
  }
}

void Parser::skipToStatement(uint32_t start, uint32_t close) {
  while (at_ < close) {
    if (at_ > start && newlineBefore())
      return;
    if (accept(Tok::Semicolon))
      return;
    skipOne();
  }
}

void Parser::skipToItem(uint32_t start, uint32_t close) {
  while (at_ < close) {
    if (at_ > start && newlineBefore() && startsItem())
      return;
    skipOne();
  }
}

void Parser::raise(Expr* parent, const Expr* child) {
  if (child)
    parent->height = std::max(parent->height, child->height + 1);
}

Expr* Parser::checkHeight(Expr* expr) {
  if (expr->height <= Module::kMaxHeight)
    return expr;
  fail("E0112", {file_, expr->range.begin, std::min(expr->range.end, expr->range.begin + 1)},
       "this expression is too long")
      .primary("starts here")
      .help("split it with `let`; the limit is " + std::to_string(Module::kMaxHeight) + " operators or calls in a row");
  return errorExpr();
}

Expr* Parser::errorExpr() { return makeExpr<ErrorExpr>(here()); }
Type* Parser::errorType() { return makeNode<ErrorType, Type>(here()); }
Pattern* Parser::errorPattern() { return makeNode<ErrorPattern, Pattern>(here()); }

static std::string_view docText(std::string_view comment) {
  comment.remove_prefix(3);
  if (comment.starts_with(' '))
    comment.remove_prefix(1);
  return comment;
}

List<std::string_view> Parser::takeDocs(uint32_t tokenIndex) {
  const auto before = [](const Comment& comment, uint32_t index) { return comment.tokenIndex < index; };
  auto comment = std::lower_bound(stream_.comments.begin(), stream_.comments.end(), tokenIndex, before);
  std::vector<std::string_view> lines;
  for (; comment != stream_.comments.end() && comment->tokenIndex == tokenIndex; ++comment)
    if (comment->kind == CommentKind::Doc)
      lines.push_back(docText(text_.substr(comment->begin, comment->end - comment->begin)));
  return module_.arena.copyList(lines);
}

void Parser::takeModuleDocs() {
  std::vector<std::string_view> lines;
  size_t used = 0;
  for (size_t i = 0; i < stream_.comments.size() && stream_.comments[i].tokenIndex == 0; ++i) {
    Comment& comment = stream_.comments[i];
    if (comment.kind != CommentKind::Doc)
      break;
    lines.push_back(docText(text_.substr(comment.begin, comment.end - comment.begin)));
    const uint32_t next = i + 1 < stream_.comments.size() && stream_.comments[i + 1].tokenIndex == 0
                              ? stream_.comments[i + 1].begin
                              : stream_.tokens[0].begin;
    const std::string_view gap = text_.substr(comment.end, next - comment.end);
    if (std::max(std::count(gap.begin(), gap.end(), '\n'), std::count(gap.begin(), gap.end(), '\r')) >= 2 ||
        (next >= text_.size() && stream_.tokens[0].tok == Tok::EndOfFile))
      used = i + 1;
    if (used)
      break;
  }
  lines.resize(used);
  for (size_t i = 0; i < used; ++i)
    stream_.comments[i].kind = CommentKind::Line;
  module_.docLines = module_.arena.copyList(lines);
}

std::unique_ptr<Module> parse(FileId file, const source::SourceManager& sources, diag::DiagnosticSink& sink) {
  auto module = std::make_unique<Module>();
  module->file = file;
  TokenStream stream = lex(file, sources, sink);
  balanceBrackets(stream, file, sources, sink);
  Parser(file, sources, sink, std::move(stream), *module).parseModule();
  return module;
}

}  // namespace vortex::lang::syntax
