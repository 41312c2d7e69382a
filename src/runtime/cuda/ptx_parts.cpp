#include "runtime/cuda/ptx_parts.h"

#include <algorithm>
#include <functional>
#include <map>

namespace vortex::cuda {

namespace {

/// What a statement at the top level of a PTX text is.
enum class PtxKind : uint8_t { Other, Declaration, Prototype, Variable, Constant, Function, Entry, Section };

struct PtxItem {
  std::string_view text;
  std::string_view name;  ///< of what it defines or declares
  PtxKind kind = PtxKind::Other;
  std::vector<size_t> needs{};  ///< items it names
};

bool isWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}
/// Whether a word can be the name of something at the top level.
bool isName(std::string_view word) {
  return isWord(word[0]) && word[0] != '.' && word[0] != '%' && !(word[0] >= '0' && word[0] <= '9');
}

/// PTX ISA reference, "Syntax" and "Directives": directives of the header end with their line, functions with their body, sections with
/// their braces, everything else with a semicolon.
class PtxScanner {
public:
  explicit PtxScanner(std::string_view text) : text_(text) { skipBlank(); }
  bool atEnd() const { return at_ == text_.size(); }
  size_t position() const { return at_; }

  /// A word, a string or a single character; moves on to the next.
  std::string_view token() {
    const size_t begin = at_;
    if (text_[at_] == '"') {
      at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
    } else if (isWord(text_[at_])) {
      while (at_ < text_.size() && isWord(text_[at_]))
        ++at_;
    } else {
      ++at_;
    }
    end_ = at_;
    skipBlank();
    return text_.substr(begin, end_ - begin);
  }

  /// The next statement. Not at the end.
  PtxItem item() {
    const size_t begin = at_;
    PtxItem item;
    bool isExtern = false;
    int depth = 0;
    while (!atEnd()) {
      const bool isFirst = at_ == begin;
      const std::string_view word = token();
      if (isFirst && (word == ".version" || word == ".target" || word == ".address_size" || word == ".file")) {
        end_ = std::min(text_.find('\n', end_), text_.size());
        at_ = end_;
        skipBlank();
        break;
      }
      if (depth == 0) {
        isExtern |= word == ".extern";
        if (item.kind == PtxKind::Other)
          item.kind = kindOf(word);
        if (item.name.empty() && isName(word))
          item.name = word;
      }
      depth += word == "{" || word == "(" || word == "[";
      depth -= word == "}" || word == ")" || word == "]";
      const bool hasBody =
          item.kind == PtxKind::Entry || item.kind == PtxKind::Function || item.kind == PtxKind::Section;
      if (depth == 0 && (word == ";" || (word == "}" && hasBody)))
        break;
    }
    item.text = text_.substr(begin, end_ - begin);
    if (isExtern)
      item.kind = PtxKind::Declaration;
    else if (item.kind == PtxKind::Function && item.text.ends_with(';'))
      item.kind = PtxKind::Prototype;
    return item;
  }

private:
  static PtxKind kindOf(std::string_view word) {
    return word == ".entry"     ? PtxKind::Entry
           : word == ".func"    ? PtxKind::Function
           : word == ".global"  ? PtxKind::Variable
           : word == ".const"   ? PtxKind::Constant
           : word == ".section" ? PtxKind::Section
                                : PtxKind::Other;
  }
  void skipBlank() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || (text_[at_] >= '\t' && text_[at_] <= '\r'))
        ++at_;
      else if (text_.substr(at_, 2) == "//")
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (text_.substr(at_, 2) == "/*")
        at_ = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
      else
        return;
    }
  }

  std::string_view text_;
  size_t at_ = 0, end_ = 0;
};

/// Definitions that an entry point may lack.
bool isOptional(const PtxItem& item) {
  return item.kind == PtxKind::Variable || item.kind == PtxKind::Constant || item.kind == PtxKind::Function;
}

void findNeeds(std::vector<PtxItem>& items) {
  std::map<std::string_view, size_t> definitions;
  for (size_t i = 0; i < items.size(); ++i)
    if (isOptional(items[i]))
      definitions[items[i].name] = i;
  if (definitions.empty())
    return;
  // A part with a prototype and without its function would not link.
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].kind == PtxKind::Prototype)
      if (const auto found = definitions.find(items[i].name); found != definitions.end())
        items[found->second].needs.push_back(i);
  for (PtxItem& item : items)
    if (item.kind == PtxKind::Entry || isOptional(item))
      for (PtxScanner scanner(item.text); !scanner.atEnd();)
        if (const auto found = definitions.find(scanner.token()); found != definitions.end())
          item.needs.push_back(found->second);
}

/// The items of an entry point's part.
std::vector<bool> closureOf(const std::vector<PtxItem>& items, size_t entry) {
  std::vector<bool> has(items.size());
  const std::function<void(size_t)> add = [&](size_t i) {
    if (has[i])
      return;
    has[i] = true;
    for (size_t needed : items[i].needs)
      add(needed);
  };
  for (size_t i = 0; i < items.size(); ++i)
    if (i == entry || items[i].kind == PtxKind::Other || items[i].kind == PtxKind::Declaration ||
        items[i].kind == PtxKind::Section)
      add(i);
  return has;
}

}  // namespace

PtxParts::PtxParts(std::string_view ptx) {
  std::vector<PtxItem> items;
  bool separable = true;
  for (PtxScanner scanner(ptx); !scanner.atEnd();) {
    items.push_back(scanner.item());
    separable &= items.back().kind != PtxKind::Section;
  }
  findNeeds(items);
  std::vector<unsigned> users(items.size());
  for (size_t entry = 0; entry < items.size(); ++entry) {
    if (items[entry].kind != PtxKind::Entry)
      continue;
    const std::vector<bool> has = closureOf(items, entry);
    Part part{{items[entry].name}, {}};
    for (size_t i = 0; i < items.size(); ++i)
      if (has[i]) {
        part.items.push_back(items[i].text);
        separable &= items[i].kind != PtxKind::Variable || ++users[i] == 1;
      }
    parts_.push_back(std::move(part));
  }
  if (separable)
    return;
  Part all{{}, {ptx}};
  for (const Part& part : parts_)
    all.symbols.push_back(part.symbols[0]);
  parts_ = {std::move(all)};
}

size_t PtxParts::partOf(std::string_view symbol) const {
  const auto holds = [&](const Part& part) { return std::ranges::find(part.symbols, symbol) != part.symbols.end(); };
  return static_cast<size_t>(std::ranges::find_if(parts_, holds) - parts_.begin());
}

std::string PtxParts::text(size_t part) const {
  std::string text;
  for (std::string_view item : parts_[part].items)
    text.append(item).append("\n");
  return text;
}

}  // namespace vortex::cuda
