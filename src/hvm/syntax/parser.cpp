#include "hvm/syntax/parser.h"

#include "base/file.h"
#include "base/text.h"

#include <filesystem>

namespace vortex::hvm {

static constexpr uint32_t kMaxNatural = 1 << 20;      // a numeral 5n becomes that many nodes
static constexpr uint32_t kMaxConstructors = 0xffff;  // their numbers have 16 bits
static constexpr size_t kMaxFileBytes = 64 << 20;     // what is longer is no program, or has no end

static Result<std::string> readSource(const std::string& path) {
  Result<std::string> content = base::readFile(path, kMaxFileBytes);
  if (content && content->size() > kMaxFileBytes)
    return Error{base::concat("cannot read ", path, ": it has more than ", kMaxFileBytes, " bytes")};
  return content;
}

std::string Parser::parseFile(const std::string& path) {
  Result<std::string> content = readSource(path);
  return content ? parseText(*content, path) : "Error: " + content.error().message;
}

std::string Parser::parseText(std::string_view text, const std::string& path) {
  static constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  std::error_code ignored;
  filesRead_.insert(std::filesystem::weakly_canonical(path, ignored).string());
  Cursor cursor(text, path);
  cursor_ = &cursor;
  for (size_t position = 0; position < text.size();)
    if (size_t begin = position; decodeUtf8(text, position) == kBadUtf8) {
      cursor.failWith(begin, "UTF-8", "bytes that are not UTF-8");
      break;
    }
  for (cursor.skipSpace(); !cursor.atEnd(); cursor.skipSpace()) {
    if (cursor.take("#include"))
      include(path);
    else
      definition();
  }
  return cursor.failed() ? cursor.error() : "";
}

void Parser::include(const std::string& from) {
  cursor_->skipSpace();
  size_t position = cursor_->position();
  cursor_->expect("\"");
  std::string name = cursor_->path('"');
  if (cursor_->failed())
    return;
  std::string path = (std::filesystem::path(from).parent_path() / name).string();
  std::error_code ignored;
  if (filesRead_.contains(std::filesystem::weakly_canonical(path, ignored).string()))
    return;
  Result<std::string> content = readSource(path);
  if (!content)
    return cursor_->failWith(position, "a file that can be read", content.error().message);
  Cursor* outer = cursor_;
  std::string error = Parser(program_, filesRead_).parseText(*content, path);
  cursor_ = outer;
  if (!error.empty())
    cursor_->failAs(error);
}

void Parser::definition() {
  if (!cursor_->take("@"))
    return cursor_->fail(defined_.empty() ? "`@name = term` or `#include`"
                                          : "an operator, a call, or the next definition (`@name = term`)");
  cursor_->skipSpace();
  size_t position = cursor_->position();
  std::string name = cursor_->name("the name of a definition");
  cursor_->expect("=");
  if (!cursor_->failed() && !defined_.insert(name).second)
    cursor_->failWith(position, "a name that this file defines once", base::concat("a second `@", name, "`"));
  NodeId root = term();
  if (!cursor_->failed())
    program_.definitions[program_.definition(name)].root = root;
}

NodeId Parser::term(int level) {
  if (++depth_ > kMaxDepth)
    cursor_->failWith(cursor_->position(), base::concat("at most ", kMaxDepth, " terms inside each other"), "more");
  NodeId left = atom();
  if (!cursor_->failed())
    left = suffixes(left, level);
  --depth_;
  return cursor_->failed() ? 0 : left;
}

NodeId Parser::suffixes(NodeId left, int level) {
  for (;;) {
    NodeId longer = suffixAfter(left, level);
    if (longer == 0)
      return left;
    left = longer;
  }
}

// Longer spellings before their beginnings.
struct Infix {
  std::string_view spelling;
  Operator op;
  int level;
};
static constexpr Infix kInfix[] = {
    {"<<", Operator::Shl, 5}, {">>", Operator::Shr, 5}, {"<=", Operator::Le, 4},  {">=", Operator::Ge, 4},
    {"==", Operator::Eq, 3},  {"!=", Operator::Ne, 3},  {"&&", Operator::And, 2}, {"||", Operator::Or, 1},
    {"<", Operator::Lt, 4},   {">", Operator::Gt, 4},   {"^", Operator::Xor, 8},  {"*", Operator::Mul, 7},
    {"/", Operator::Div, 7},  {"%", Operator::Mod, 7},  {"+", Operator::Add, 6},  {"-", Operator::Sub, 6},
    {"~", Operator::Not, 0},
};

/// `left` with one suffix more; 0 if there is none. The first four take no notice of the level.
NodeId Parser::suffixAfter(NodeId left, int level) {
  Cursor& cursor = *cursor_;
  if (cursor.take("<>"))
    return cons(left, term());
  auto binary = [&](NodeKind kind, int right, uint32_t value = 0) {
    NodeId operand = term(right);
    return cursor.failed() ? 0 : add(kind, {left, operand}, value);
  };
  if (cursor.takeHere("==="))
    return binary(NodeKind::Equal, 4);
  if (cursor.takeHere(".&."))
    return binary(NodeKind::And, 2);
  if (cursor.takeHere(".|."))
    return binary(NodeKind::Or, 1);
  for (const Infix& infix : kInfix)
    if (cursor.seesHere(infix.spelling)) {
      if (infix.level < level)
        return 0;
      cursor.takeHere(infix.spelling);
      return binary(NodeKind::Operator, infix.level + 1, static_cast<uint32_t>(infix.op));
    }
  if (!cursor.takeHere("("))
    return 0;
  for (NodeId argument : arguments(")"))
    left = add(NodeKind::Apply, {left, argument});
  return cursor.failed() ? 0 : left;
}

std::vector<NodeId> Parser::arguments(std::string_view close) {
  std::vector<NodeId> found;
  while (!cursor_->take(close) && !cursor_->failed()) {
    static constexpr std::string_view kNoTerm = ")]};,";
    if (cursor_->atEnd() || kNoTerm.find(cursor_->spelledAt(cursor_->position())) != std::string_view::npos) {
      cursor_->fail(base::concat("`", close, "` or a term"));
      break;
    }
    found.push_back(term());
    cursor_->take(",");
  }
  return found;
}

NodeId Parser::atom() {
  Cursor& cursor = *cursor_;
  if (cursor.take("λ"))
    return lambda();
  if (cursor.takeHere("!"))
    return binding();
  if (cursor.takeHere("&"))
    return sup();
  if (cursor.takeHere("#"))
    return constructor();
  if (cursor.takeHere("@")) {
    std::string name = cursor.name("the name of a definition");
    return cursor.failed() ? 0 : add(NodeKind::Reference, {}, program_.definition(name));
  }
  if (cursor.seesDigit())
    return numeral();
  if (cursor.seesName())
    return variable();
  return atomOfPunctuation();
}

NodeId Parser::atomOfPunctuation() {
  Cursor& cursor = *cursor_;
  if (cursor.takeHere("%"))
    return native();
  if (cursor.takeHere("^"))
    return stuck();
  if (cursor.takeHere("↑")) {
    ++depth_;
    NodeId inner = depth_ > kMaxDepth ? term() : atom();  // term() reports the depth
    --depth_;
    return add(NodeKind::Priority, {inner});
  }
  if (cursor.takeHere("*"))
    return add(NodeKind::Wildcard);
  if (cursor.takeHere("(")) {
    NodeId inner = term();
    cursor.expect(")");
    return inner;
  }
  if (cursor.takeHere("[")) {
    std::vector<NodeId> elements = arguments("]");
    NodeId list = add(NodeKind::Constructor, {}, kNil);
    for (size_t i = elements.size(); i-- > 0;)
      list = cons(elements[i], list);
    return list;
  }
  if (cursor.takeHere("'"))
    return character();
  for (char quote : {'"', '`'})
    if (cursor.takeHere(std::string_view(&quote, 1)))
      return text(quote);
  cursor.fail("a term");
  return 0;
}

NodeId Parser::variable() {
  size_t position = cursor_->position();
  std::string name = cursor_->name("a variable");
  Side side = cursor_->takeHere("₀") ? Side::Zero : cursor_->takeHere("₁") ? Side::One : Side::None;
  NodeId node = 0;
  switch (scope_.use(name, side, node)) {
  case Scope::Found::Yes: return node;
  case Scope::Found::Undefined:
    cursor_->failWith(position,
                      base::concat("a variable in scope; `", cursor_->sees("{") ? "#" + name + "` is a constructor"
                                                                                : "@" + name + "` is a definition"),
                      base::concat("undefined variable `", name, "`"));
    break;
  case Scope::Found::NeedsSubscript:
    cursor_->failWith(position, base::concat("`", name, "₀` or `", name, "₁`"),
                      base::concat("undefined variable `", name, "`; a duplication binds that name"));
    break;
  case Scope::Found::HasNoSides:
    cursor_->failWith(position, base::concat("`", name, "` without subscript"),
                      base::concat("undefined variable `", name, "` with a subscript; no duplication binds that name"));
    break;
  case Scope::Found::UsedTwice:
    cursor_->failWith(position,
                      base::concat("at most one use of `", name, "` (`&", name, "` at its binder allows more)"),
                      "a second use");
    break;
  }
  return 0;
}

/// Arithmetic wraps, what is written does not.
bool Parser::isWord(uint64_t number, size_t position) {
  if (number > UINT32_MAX)
    cursor_->failAt(position, base::concat("a number of at most ", UINT32_MAX));
  return !cursor_->failed();
}

NodeId Parser::numeral() {
  size_t position = cursor_->position();
  uint64_t value = cursor_->number();
  if (!cursor_->takeHere("n"))
    return isWord(value, position) ? add(NodeKind::Number, {}, static_cast<uint32_t>(value)) : 0;
  if (value > kMaxNatural) {
    cursor_->failAt(position, base::concat("a natural of at most ", kMaxNatural));
    return 0;
  }
  NodeId natural = cursor_->takeHere("+") ? term() : add(NodeKind::Constructor, {}, kZer);
  for (; value > 0; --value)
    natural = add(NodeKind::Constructor, {natural}, kSuc);
  return natural;
}

NodeId Parser::constructor() {
  size_t position = cursor_->position() - 1;
  std::string name = cursor_->name("the name of a constructor");
  std::vector<NodeId> fields;
  if (cursor_->take("{"))
    fields = arguments("}");
  if (fields.size() > kMaxFields)
    cursor_->failWith(position, base::concat("at most ", kMaxFields, " fields"),
                      base::concat(fields.size(), " fields"));
  uint32_t id = constructorId(name, position);
  return cursor_->failed() ? 0 : add(NodeKind::Constructor, std::move(fields), id);
}

uint32_t Parser::constructorId(const std::string& name, size_t position) {
  auto [place, isNew] =
      program_.constructorIndex.try_emplace(name, static_cast<uint32_t>(program_.constructors.size()));
  if (isNew)
    program_.constructors.push_back(name);
  if (program_.constructors.size() > kMaxConstructors)
    cursor_->failWith(position, base::concat("at most ", kMaxConstructors, " constructors"), "one more");
  return place->second;
}

NodeId Parser::native() {
  size_t position = cursor_->position() - 1;
  std::string name = cursor_->name("the name of a native function");
  for (uint32_t i = 0; i < std::size(kNatives); ++i)
    if (kNatives[i].name == name) {
      cursor_->expect("(");
      std::vector<NodeId> given = arguments(")");
      if (given.size() != kNatives[i].arity)
        cursor_->failWith(position, base::concat(kNatives[i].arity, " argument of %", name),
                          base::concat(given.size(), " arguments"));
      return cursor_->failed() ? 0 : add(NodeKind::Native, std::move(given), i);
    }
  cursor_->failWith(position, "a native function (%log, %nf, %gnf)", base::concat("unknown `%", name, "`"));
  return 0;
}

NodeId Parser::stuck() {
  if (cursor_->takeHere("(")) {
    NodeId head = term();
    NodeId argument = term();
    cursor_->expect(")");
    return cursor_->failed() ? 0 : add(NodeKind::Dry, {head, argument});
  }
  return add(NodeKind::Name, {}, label());
}

NodeId Parser::character() {
  uint32_t code = characterCode();
  return cursor_->failed() ? 0 : add(NodeKind::Constructor, {add(NodeKind::Number, {}, code)}, kChr);
}

/// Of a character literal whose opening quote is consumed.
uint32_t Parser::characterCode() {
  size_t begin = cursor_->position();
  std::u32string text = cursor_->quoted('\'');
  if (text.size() == 1)
    return text[0];
  std::string first;
  if (!text.empty())
    appendUtf8(first, text[0]);
  size_t length = cursor_->failed() ? 0 : first.size() + (text.size() > 1 && cursor_->spelledAt(begin) == '\\');
  cursor_->failAt(begin + length, text.empty() ? "a character" : "`'` after one character");
  return 0;
}

NodeId Parser::text(char quote) {
  std::u32string text = cursor_->quoted(quote);
  NodeId list = add(NodeKind::Constructor, {}, kNil);
  for (size_t i = text.size(); i-- > 0;)
    list = cons(add(NodeKind::Constructor, {add(NodeKind::Number, {}, text[i])}, kChr), list);
  return list;
}

static Result<Program> finish(Program program, const std::string& error) {
  if (!error.empty())
    return Error{error};
  return program;
}

Result<Program> parseFile(const std::string& path) {
  Program program;
  std::set<std::string> filesRead;
  std::string error = Parser(program, filesRead).parseFile(path);
  return finish(std::move(program), error);
}

Result<Program> parseText(std::string text, const std::string& path) {
  Program program;
  std::set<std::string> filesRead;
  std::string error = Parser(program, filesRead).parseText(text, path);
  return finish(std::move(program), error);
}

}  // namespace vortex::hvm
