// Rules, each a member of Prelexer:
//  - `[[buffer(0)]]` becomes `__attribute__((annotate("msl.buffer", 0)))`; attributes that are not Metal's stay.
//  - `1.0h`, `1.0bf` become casts.
//  - a member function's trailing address space (`const device`) goes: `this` accepts all spaces. Of twins of a class that differ in it, the
//    first stays; those that do something else are refused.
//  - the second of two swizzles with an operator between is made a value: Clang's templates take such pairs for numbers.
//  - `constant float x[N]` as a parameter becomes a pointer: an array parameter would lose its address space.
//  - what is cast between half and bfloat becomes a float first, where Clang refused the cast (compile.cpp).
//  - `static_cast<T>(x)` of values, and operands of `?:` that are places or calls, go through functions of the shim (00_language.metal).
#include "msl/front/prelexer.h"

#include "msl/front/inputs.h"

#include <clang/Basic/LangOptions.h>
#include <clang/Lex/Lexer.h>

#include <algorithm>
#include <array>
#include <optional>

namespace vortex::msl::front {

namespace tok = clang::tok;

Rewritten::Rewritten(std::string_view source, std::vector<Edit> edits, bool forbidsContraction)
    : forbidsContraction_(forbidsContraction) {
  uint32_t at = 0;
  auto add = [&](uint32_t from, bool isReplaced) {
    pieces_.push_back({static_cast<uint32_t>(text_.size()), from, isReplaced});
  };
  for (const Edit& edit : edits) {
    add(at, false);
    text_.append(source.substr(at, edit.begin - at));
    add(edit.begin, true);
    std::string_view replaced = source.substr(edit.begin, edit.end - edit.begin);
    for (char c : edit.text)
      text_ += c == '\n' ? ' ' : c;
    // Lines stay: also those that a macro definition continues.
    for (size_t i = 0; i < replaced.size(); ++i)
      if (replaced[i] == '\n')
        text_ += i > 0 && replaced[i - 1] == '\\' ? "\\\n" : "\n";
    at = edit.end;
  }
  add(at, false);
  text_.append(source.substr(at));
  for (uint32_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n')
      lineStarts_.push_back(i + 1);
}

uint32_t Rewritten::offsetOf(uint32_t line, uint32_t column) const {
  size_t index = std::clamp<size_t>(line, 1, lineStarts_.size()) - 1;
  return std::min(lineStarts_[index] + (column == 0 ? 0 : column - 1), static_cast<uint32_t>(text_.size()));
}

uint32_t Rewritten::sourceColumn(uint32_t line, uint32_t column) const {
  return sourceOffset(offsetOf(line, column)) - sourceOffset(offsetOf(line, 1)) + 1;
}

const Rewritten::Piece* Rewritten::pieceOf(uint32_t offset) const {
  auto after = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                [](uint32_t at, const Piece& piece) { return at < piece.from; });
  return after == pieces_.begin() ? nullptr : &*std::prev(after);
}

uint32_t Rewritten::sourceOffset(uint32_t offset) const {
  const Piece* piece = pieceOf(offset);
  return !piece ? offset : piece->isReplaced ? piece->to : piece->to + (offset - piece->from);
}

uint32_t Rewritten::sourceEnd(uint32_t offset) const {
  const Piece* last = offset == 0 ? nullptr : pieceOf(offset - 1);
  // What is not replaced follows what is.
  return last && last->isReplaced ? last[1].to : offset == 0 ? 0 : sourceOffset(offset - 1) + 1;
}

namespace {

/// Metal's beside the inputs of kernels.
constexpr std::string_view kAttributes[] = {"kernel",
                                            "buffer",
                                            "threadgroup",
                                            "texture",
                                            "sampler",
                                            "id",
                                            "function_constant",
                                            "host_name",
                                            "stage_in",
                                            "max_total_threads_per_threadgroup",
                                            "visible",
                                            "vertex",
                                            "fragment",
                                            "intersection",
                                            "mesh",
                                            "object"};
constexpr std::string_view kSpaces[] = {"device", "constant", "threadgroup", "thread"};
constexpr std::string_view kOperators[] = {"+",  "-",  "*",  "/", "%", "&",  "|",  "^",  "<<",
                                           ">>", "==", "!=", "<", ">", "<=", ">=", "&&", "||"};

template <class List> bool contains(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

struct Word {
  uint32_t begin, end;
  tok::TokenKind kind;
  std::string_view text;
};

class Prelexer {
public:
  explicit Prelexer(std::string_view source) : source_(source) {
    lex();
    findBrackets();
  }

  std::vector<Edit> run(const std::vector<Range>& widened) {
    for (size_t i = 0; i + 1 < words_.size();)
      i = rule(i);
    // What is widened may begin and end with what the rules change.
    std::vector<Edit> all;
    for (const Range& each : widened)
      all.push_back({each.begin, each.begin, "__msl_wide("});
    all.insert(all.end(), edits_.begin(), edits_.end());
    for (const Range& each : widened)
      all.push_back({each.end, each.end, ")"});
    std::vector<std::pair<uint32_t, size_t>> order;  // edits at one place stay in the order of their rules
    for (const Edit& edit : all)
      order.emplace_back(edit.begin, order.size());
    std::sort(order.begin(), order.end());
    std::vector<Edit> kept;
    for (auto [begin, number] : order)
      if (kept.empty() || begin >= kept.back().end)
        kept.push_back(std::move(all[number]));
    return kept;
  }

  /// Whether `#pragma METAL fp contract(off)`, or Clang's and C's words for it, stands anywhere.
  bool forbidsContraction() const {
    for (size_t i = 0; i < words_.size(); ++i) {
      std::string text;
      if (at(i) == "#" && at(i + 1) == "pragma") {
        const size_t begin = words_[i + 1].end;
        text = buffer_.substr(begin, buffer_.find('\n', begin) - begin);
      } else if (at(i) == "_Pragma" && at(i + 1) == "(") {
        text = at(i + 2);
      }
      std::erase_if(text, [](char c) { return c == ' ' || c == '\t' || c == '"'; });
      const bool isOfFloats = text.starts_with("METALfp") || text.starts_with("clangfp");
      if ((isOfFloats && text.find("contract(off)") != text.npos) || text.starts_with("STDCFP_CONTRACTOFF"))
        return true;
    }
    return false;
  }

private:
  void lex() {
    clang::LangOptions options;
    options.CPlusPlus = options.CPlusPlus11 = options.CPlusPlus14 = options.CPlusPlus17 = options.LineComment = true;
    buffer_ = std::string(source_);
    clang::Lexer lexer(clang::SourceLocation(), options, buffer_.data(), buffer_.data(),
                       buffer_.data() + buffer_.size());
    clang::Token token;
    while (true) {
      lexer.LexFromRawLexer(token);
      if (token.is(tok::eof))
        return;
      auto end = static_cast<uint32_t>(lexer.getBufferLocation() - buffer_.data());
      uint32_t begin = end - token.getLength();
      words_.push_back({begin, end, token.getKind(), std::string_view(buffer_).substr(begin, end - begin)});
    }
  }

  /// The innermost open bracket around each word, and which `:` belong to a `?`.
  void findBrackets() {
    around_.resize(words_.size());
    closesQuestion_.resize(words_.size());
    std::vector<std::pair<char, int>> open{{0, 0}};
    for (size_t i = 0; i < words_.size(); ++i) {
      std::string_view t = words_[i].text;
      if (t == "(" || t == "{" || t == "[")
        open.push_back({t[0], 0});
      around_[i] = open.back().first;
      if ((t == ")" || t == "}" || t == "]") && open.size() > 1)
        open.pop_back();
      int& questions = open.back().second;
      if (t == ";")
        questions = 0;
      if (t == "?")
        ++questions;
      if (t == ":" && questions > 0) {
        --questions;
        closesQuestion_[i] = true;
      }
    }
  }

  std::string_view at(size_t i) const { return i < words_.size() ? words_[i].text : std::string_view(); }
  bool isName(size_t i) const { return i < words_.size() && words_[i].kind == tok::raw_identifier; }
  /// One past the bracket that closes the one at `i`; the end if there is none.
  size_t afterBracket(size_t i) const {
    std::string_view open = at(i), close = open == "(" ? ")" : open == "[" ? "]" : "}";
    int depth = 0;
    for (; i < words_.size(); ++i) {
      depth += at(i) == open ? 1 : at(i) == close ? -1 : 0;
      if (depth == 0)
        return i + 1;
    }
    return i;
  }
  /// One past the `>` that closes the `<` at `i`.
  size_t afterAngles(size_t i) const {
    int depth = 0;
    for (; i < words_.size(); ++i) {
      depth += at(i) == "<" ? 1 : at(i) == ">" ? -1 : at(i) == ">>" ? -2 : 0;
      if (depth <= 0)
        return i + 1;
      if (at(i) == ";" || at(i) == "{" || at(i) == ")")
        break;  // it was a comparison
      if (at(i) == "(")
        i = afterBracket(i) - 1;
    }
    return i;
  }
  void replace(uint32_t begin, uint32_t end, std::string text) { edits_.push_back({begin, end, std::move(text)}); }
  void insert(uint32_t where, std::string text) { replace(where, where, std::move(text)); }
  void erase(size_t i) { replace(words_[i].begin, words_[i].end, ""); }

  /// Returns the next word to look at.
  size_t rule(size_t i) {
    std::string_view t = at(i);
    if (words_[i].kind == tok::numeric_constant)
      return literal(i);
    if (t == "[" && at(i + 1) == "[" && words_[i].end == words_[i + 1].begin)
      return attribute(i);
    if (t == "static_cast" && at(i + 1) == "<")
      return cast(i);
    if (t == "?" || (t == ":" && closesQuestion_[i]))
      return choice(i);
    if (contains(kOperators, t) && isSwizzle(i - 1))
      return operatorOnSwizzles(i);
    if (isName(i) && contains(kSpaces, t)) {
      if (around_[i] == '(' && t != "thread")
        if (size_t next = arrayParameter(i))
          return next;
      return memberSpace(i);
    }
    return i + 1;
  }

  size_t literal(size_t i) {
    const std::string number = joined(at(i));
    auto endsWith = [&](std::string_view a, std::string_view b) { return number.ends_with(a) || number.ends_with(b); };
    if (number.starts_with("0x") || number.starts_with("0X"))
      return i + 1;
    size_t cut = endsWith("bf", "BF") ? 2 : endsWith("h", "H") ? 1 : 0;
    if (cut == 0 || number.size() <= cut)
      return i + 1;
    std::string digits = number.substr(0, number.size() - cut);
    if (digits.find_first_of(".eE") != std::string::npos)
      digits += 'f';
    replace(words_[i].begin, words_[i].end, (cut == 2 ? "((bfloat)" : "((half)") + digits + ")");
    return i + 1;
  }

  /// A word that a backslash at the end of a line may have split.
  static std::string joined(std::string_view word) {
    std::string text(word);
    for (size_t at; (at = text.find("\\\n")) != std::string::npos;)
      text.erase(at, 2);
    return text;
  }

  /// The words between the bracket at `i` and the one that closes it, where `i` then stands behind: without comments and in one line.
  std::string insideBracket(size_t& i) const {
    const size_t close = afterBracket(i);
    std::string text;
    for (size_t k = i + 1; k + 1 < close; ++k)
      text += (text.empty() ? "" : " ") + joined(at(k));
    i = close;
    return text;
  }

  size_t attribute(size_t i) {
    std::string text;
    size_t j = i + 2;
    while (j < words_.size() && at(j) != "]") {
      std::string_view name = at(j);
      const bool isGraphics = isGraphicsAttribute(name);
      if (!contains(kAttributes, name) && !isKernelInput(name) && !isGraphics)
        return i + 1;
      std::string argument;
      if (at(++j) == "(")
        argument = insideBracket(j);
      if (at(j) == ",")
        ++j;
      const bool isParameter = i > 0 && around_[i - 1] == '(';
      // Members of structures have them without a meaning here, and arguments that are no expressions.
      if (!isGraphics || isParameter)
        text += annotation(name, isGraphics ? "" : argument, isParameter);
    }
    if (at(j + 1) != "]")
      return i + 1;
    bool touchesName = i > 0 && isName(i - 1) && words_[i - 1].end == words_[i].begin;
    replace(words_[i].begin, words_[j + 1].end, (touchesName ? " " : "") + text);
    return j + 2;
  }

  static std::string annotation(std::string_view name, std::string_view argument, bool isParameter) {
    std::string text;
    if (name == "function_constant" && !isParameter)
      text += "__attribute__((msl_function_constant)) ";
    text += "__attribute__((annotate(\"msl." + std::string(name);
    if (name == "host_name")
      return text + ":\" " + std::string(argument) + "))) ";
    if (name == "function_constant" && isParameter)
      return text + ":" + std::string(argument) + "\"))) ";
    return text + "\"" + (argument.empty() ? "" : ", ") + std::string(argument) + "))) ";
  }

  size_t cast(size_t i) {
    size_t end = afterAngles(i + 1);
    bool isPlain = at(end) == "(" && at(end + 1) != "{";
    for (size_t j = i + 2; j < end && j < words_.size(); ++j)
      isPlain &= at(j) != "*" && at(j) != "&";
    if (isPlain)
      replace(words_[i].begin, words_[i].end, "__msl_cast");
    return i + 1;
  }

  /// One past the name at `i` with members, subscripts and calls: `a.b[i].c`, `f<int>(x).y`, `packed_float3{1, 2, 3}`.
  size_t afterPlace(size_t i, bool& isCall) const {
    static constexpr std::array kNot = {"static_cast", "true", "false", "this", "sizeof", "as_type", "nullptr"};
    while (isName(i) && !contains(kNot, at(i))) {
      ++i;
      if (at(i) == "<")
        if (const size_t end = afterAngles(i);
            at(end - 1).starts_with(">") && (at(end) == "(" || at(end) == "{" || at(end) == "::"))
          i = end;
      for (; at(i) == "[" || at(i) == "(" || at(i) == "{"; i = afterBracket(i))
        isCall |= at(i) != "[";
      if (at(i) != "." && at(i) != "->" && at(i) != "::")
        break;
      ++i;
    }
    return i;
  }

  void makeValue(size_t first, size_t end, bool isCall) {
    insert(words_[first].begin, isCall ? "__msl_given((" : "__msl_value(");
    insert(words_[end - 1].end, isCall ? ", __msl_call()))" : ")");
  }

  /// A place, what a name of one points at, or a call, in as many parentheses as there are.
  size_t choice(size_t i) {
    size_t first = i + 1;
    while (at(first) == "(")
      ++first;
    bool isCall = false;
    size_t end = afterPlace(at(first) == "*" && isName(first + 1) ? first + 1 : first, isCall);
    if (end == first)
      return i + 1;
    for (size_t open = first - i - 1; open > 0; --open)
      if (at(end++) != ")")
        return i + 1;
    const bool isWhole = at(i) == "?" ? at(end) == ":"
                                      : at(end) == ";" || at(end) == ")" || at(end) == "," || at(end) == "}" ||
                                            at(end) == "]" || at(end) == ":";
    if (isWhole)
      makeValue(i + 1, end, isCall);
    return i + 1;
  }

  /// `.xy`, `->rgb`: two to four elements of a vector.
  bool isSwizzle(size_t i) const {
    std::string_view t = at(i);
    return i > 0 && i < words_.size() && (at(i - 1) == "." || at(i - 1) == "->") && t.size() >= 2 && t.size() <= 4 &&
           (t.find_first_not_of("xyzw") == t.npos || t.find_first_not_of("rgba") == t.npos);
  }

  size_t operatorOnSwizzles(size_t i) {
    bool isCall = false;
    const size_t end = afterPlace(i + 1, isCall);
    if (end > i + 1 && isSwizzle(end - 1) && at(end) != "++" && at(end) != "--")
      makeValue(i + 1, end, false);
    return i + 1;
  }

  /// `constant float x[N]` in a parameter list; 0 if it is none.
  size_t arrayParameter(size_t i) {
    size_t j = i + 1;
    for (; j < words_.size() && at(j) != "["; ++j) {
      if (at(j) == "<")
        j = afterAngles(j) - 1;
      else if (at(j) == "," || at(j) == ")" || at(j) == "(" || at(j) == ";" || at(j) == "*" || at(j) == "&")
        return 0;
    }
    if (at(j) != "[" || at(j + 1) == "[" || !isName(j - 1))
      return 0;
    size_t after = afterBracket(j);
    bool isNested = at(after) == "[" && at(after + 1) != "[";
    insert(words_[j - 1].begin, isNested ? "(*" : "*");
    replace(words_[j].begin, words_[after - 1].end, isNested ? ")" : "");
    return after;
  }

  /// `) const device {`
  size_t memberSpace(size_t i) {
    size_t close = i == 0 ? 0 : i - 1;
    if (at(close) == "const" && close > 0)
      --close;
    std::string_view next = at(i + 1);
    if (i == 0 || at(close) != ")" ||
        !(next == "{" || next == ":" || next == ";" || next == "noexcept" || next == "=" || next == "const"))
      return i + 1;
    const size_t first = memberBegin(close), end = memberEnd(i);
    const std::optional<size_t> twin = twinOf(first, i);
    if (!twin) {
      erase(i);
      return i + 1;
    }
    while (!edits_.empty() && edits_.back().begin >= words_[first].begin)
      edits_.pop_back();
    const bool isSame = isSameText(contains(kSpaces, at(*twin)) ? *twin + 1 : *twin, i + 1, end);
    replace(words_[first].begin, words_[end - 1].end,
            isSame ? ""
                   : "static_assert(false, \"members that differ in their address space have one meaning here\");");
    return end;
  }

  /// One past the body or the `;` of a member whose address space stands at `i`.
  size_t memberEnd(size_t i) const {
    size_t end = i + 1;
    while (end < words_.size() && at(end) != "{" && at(end) != ";")
      ++end;
    end = at(end) == "{" ? afterBracket(end) : end + 1;
    if (at(end) == ";")
      ++end;
    return std::min(end, words_.size());
  }

  size_t memberBegin(size_t i) const {
    int depth = 0;
    for (; i > 0; --i) {
      std::string_view t = at(i);
      if (t == ")" || t == "}") {
        if (t == "}" && depth == 0)
          break;
        ++depth;
      } else if (t == "(" || t == "{") {
        if (depth-- == 0)
          break;
      } else if (depth == 0 && (t == ";" || (t == ":" && (at(i - 1) == "public" || at(i - 1) == "private")))) {
        break;
      }
    }
    return i + 1;
  }

  /// What follows the same member with another space, earlier in the class: that space, or the body of one without.
  std::optional<size_t> twinOf(size_t first, size_t end) const {
    const size_t count = end - first;
    for (size_t i = classBegin(first); i + count < first; ++i) {
      std::string_view after = at(i + count);
      if ((contains(kSpaces, after) || after == "{" || after == ":") && isSameText(i, first, end))
        return i + count;
    }
    return std::nullopt;
  }

  /// One past the `{` around `i`.
  size_t classBegin(size_t i) const {
    int depth = 0;
    for (; i > 0; --i) {
      depth += at(i - 1) == "}" ? 1 : at(i - 1) == "{" ? -1 : 0;
      if (depth < 0)
        break;
    }
    return i;
  }

  /// The words from `other` on are those from `first` to `end`, but for a `;` behind a body.
  bool isSameText(size_t other, size_t first, size_t end) const {
    for (size_t i = first; i < end; ++i, ++other)
      if (at(other) != at(i) && !(at(i) == ";" && at(i - 1) == "}"))
        return false;
    return true;
  }

  std::string_view source_;
  std::string buffer_;
  std::vector<Word> words_;
  std::vector<char> around_;
  std::vector<bool> closesQuestion_;
  std::vector<Edit> edits_;
};

}  // namespace

Rewritten prelex(std::string_view source, const std::vector<Range>& widened) {
  Prelexer lexer(source);
  std::vector<Edit> edits = lexer.run(widened);
  return Rewritten(source, std::move(edits), lexer.forbidsContraction());
}

}  // namespace vortex::msl::front
