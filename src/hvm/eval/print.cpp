#include "hvm/eval/print.h"
#include "hvm/eval/lifted.h"

#include "hvm/syntax/cursor.h"

#include <algorithm>
#include <unordered_map>

namespace vortex::hvm {
namespace {

std::string alphabetic(uint64_t number, char first) {  // 0: a, 25: z, 26: aa
  std::string name;
  for (++number; number > 0; number = (number - 1) / 26)
    name += static_cast<char>(first + (number - 1) % 26);
  std::reverse(name.begin(), name.end());
  return name;
}

/// Work is a stack of texts and terms; what is pushed last is printed first.
class Printer {
public:
  Printer(const Term* heap, const Code& code, Naming naming) : heap_(heap), code_(code), naming_(naming) {}

  std::string run(Term term) {
    put(term);
    drain();
    if (!dups_.empty())
      out_ += ';';
    for (size_t i = 0; i < dups_.size(); ++i) {
      out_ += "!" + alphabetic(i, 'A') + "&" + decodeName(extOf(dups_[i])) + "=";
      Term cell = heap_[locOf(dups_[i])];
      put(tagOf(cell) == Stk ? heap_[locOf(cell)] : cell);
      drain();
      out_ += ';';
    }
    return std::move(out_);
  }

private:
  struct Work {
    Term term;
    const char* text;  // printed instead of the term unless null
    uint32_t depth;
    bool isHead;  // of an application: lambdas in parentheses
  };

  Term field(Term term, uint32_t index) const {
    const Loc at = locOf(term) + index;
    return at < kNodes ? heap_[at] : nodes_[at - kNodes];
  }
  /// Follows substitutions and operands that nobody came to, and makes nodes of what was lifted.
  Term resolve(Term term) {
    for (;;) {
      Tag tag = tagOf(term);
      if (isLifted(tag)) {
        const LiftedNode node = nodeOfLifted(heap_, term);
        term = node.head | (kNodes + nodes_.size());
        nodes_.insert(nodes_.end(), node.fields, node.fields + 2);
        return term;
      }
      if (!isReference(tag) && tag != Fut)
        return term;
      Term cell = heap_[locOf(term)];
      if (!isSub(cell) && tag != Fut)
        return term;
      term = cell & ~kSub;
    }
  }
  bool isNode(Term term, uint32_t constructor, uint32_t fields) const {
    return tagOf(term) == C00 + fields && extOf(term) == constructor;
  }

  void put(Term term, bool isHead = false) { work_.push_back({term, nullptr, depth_, isHead}); }
  void put(const char* text) { work_.push_back({0, text, depth_, false}); }
  /// What is put from here on is printed in the order of the calls.
  struct Sequence {
    Printer& printer;
    size_t begin;
    explicit Sequence(Printer& p) : printer(p), begin(p.work_.size()) {}
    ~Sequence() { std::reverse(printer.work_.begin() + static_cast<ptrdiff_t>(begin), printer.work_.end()); }
  };

  void drain() {
    while (!work_.empty()) {
      Work next = work_.back();
      work_.pop_back();
      depth_ = next.depth;
      if (next.text)
        out_ += next.text;
      else
        step(resolve(next.term), next.isHead);
    }
    depth_ = 0;
  }

  void step(Term term, bool isHead);
  void lambda(Term term, bool isHead);
  void application(Term term);
  void constructor(Term term);
  void naturals(Term term);
  void list(Term term);
  bool text(const std::vector<Term>& elements);
  void fields(Term term, uint32_t count, const char* open, const char* close);
  void matchNode(Term term);
  void pattern(Term term);
  void infix(Term term, const char* op);
  bool isPrintableCharacter(Term term, uint32_t& code);
  void quote(char32_t code, char quote);
  void projection(Term term);
  std::string binder(Term term) {
    const uint64_t key = isPartOfDuplicate(tagOf(term)) ? term : locOf(term);  // both sides name one cell
    return alphabetic(binders_.try_emplace(key, binders_.size()).first->second, 'a');
  }

  static constexpr Loc kNodes = Loc(3) << (kValueBits - 2);  // places from here on are not in the heap
  std::vector<Term> nodes_;
  const Term* heap_;
  const Code& code_;
  Naming naming_;
  std::string out_;
  std::vector<Work> work_;
  uint32_t depth_ = 0;
  std::unordered_map<Loc, size_t> binders_, dupIndex_;
  std::vector<Term> dups_;  // a projection of each
};

void Printer::step(Term term, bool isHead) {
  Sequence sequence(*this);
  switch (tagOf(term)) {
  case Num: out_ += std::to_string(numberOf(term)); return;
  case Ref: out_ += "@" + code_.definitions[extOf(term)]; return;
  case Era: out_ += "&{}"; return;
  case Any: out_ += "*"; return;
  case Nam: out_ += extOf(term) & kFreshName ? "_" : decodeName(extOf(term)); return;
  case Bjv: out_ += alphabetic(locOf(term) - 1, 'a'); return;
  case Var: out_ += binder(term); return;
  case Dp0:
  case Dp1: return projection(term);
  case Lm0:
  case Lm1:
  case Lam: return lambda(term, isHead);
  case App:
  case Dry: return application(term);
  case Sup: out_ += "&" + decodeName(extOf(term)); return fields(term, 2, "{", "}");
  case Svr:
    out_ += "&" + decodeName(extOf(term));
    return put("{"), put(makeTerm(Var, 0, locOf(term))), put(","), put(makeTerm(Var, 0, locOf(term) + 1)), put("}");
  case Mat:
  case Swi: return matchNode(term);
  case Use: return put("λ{"), put(field(term, 0)), put("}");
  case Op2: return infix(term, spelling(static_cast<Operator>(extOf(term))));
  case Eql: return infix(term, "===");
  case And: return infix(term, ".&.");
  case Or: return infix(term, ".|.");
  case Dsu:
    return put("&("), put(field(term, 0)), put("){"), put(field(term, 1)), put(","), put(field(term, 2)), put("}");
  case Ddu: return put("!("), put(field(term, 0)), put(")="), put(field(term, 1)), put(";"), put(field(term, 2));
  case Inc: return put("↑"), put(field(term, 0));
  case Pri:
    out_ += "%" + std::string(kNatives[extOf(term)].name);
    return fields(term, kNatives[extOf(term)].arity, "(", ")");
  case Thk:
  case Fun: out_ += "@{..}"; return;  // code that was not run
  default: return constructor(term);
  }
}

void Printer::lambda(Term term, bool isHead) {
  out_ += isHead ? "(λ" : "λ";
  out_ += naming_ == Naming::ByDepth ? alphabetic(depth_, 'a') : binder(term);
  out_ += ".";
  work_.push_back({tagOf(term) == Lam ? field(term, 0) : projectionIn(term), nullptr, depth_ + 1, false});
  if (isHead)
    put(")");
}

void Printer::application(Term term) {
  std::vector<Term> arguments;
  for (; tagOf(term) == App || tagOf(term) == Dry; term = resolve(field(term, 0)))
    arguments.push_back(field(term, 1));
  put(term, true);
  put("(");
  for (size_t i = arguments.size(); i-- > 0;) {
    put(arguments[i]);
    put(i ? "," : ")");
  }
}

void Printer::infix(Term term, const char* op) {
  put("("), put(field(term, 0)), put(" "), put(op), put(" "), put(field(term, 1)), put(")");
}

void Printer::fields(Term term, uint32_t count, const char* open, const char* close) {
  put(open);
  for (uint32_t i = 0; i < count; ++i) {
    if (i)
      put(",");
    put(field(term, i));
  }
  put(close);
}

void Printer::projection(Term term) {
  auto [place, isNew] = dupIndex_.try_emplace(locOf(term), dups_.size());
  if (isNew)
    dups_.push_back(term);
  out_ += alphabetic(place->second, 'A') + (tagOf(term) == Dp0 ? "₀" : "₁");
}

void Printer::constructor(Term term) {
  uint32_t code = 0;
  if (isPrintableCharacter(term, code)) {
    out_ += '\'';
    quote(code, '\'');
    out_ += '\'';
  } else if (isNode(term, kZer, 0) || isNode(term, kSuc, 1)) {
    naturals(term);
  } else if (isNode(term, kNil, 0) || isNode(term, kCon, 2)) {
    list(term);
  } else {
    out_ += "#" + code_.constructors[extOf(term)];
    fields(term, tagOf(term) - C00, "{", "}");
  }
}

void Printer::naturals(Term term) {
  uint64_t count = 0;
  for (; isNode(term, kSuc, 1); term = resolve(field(term, 0)))
    ++count;
  out_ += std::to_string(count) + "n";
  if (!isNode(term, kZer, 0))
    put("+"), put(term);
}

void Printer::list(Term term) {
  std::vector<Term> elements;
  for (; isNode(term, kCon, 2); term = resolve(field(term, 1)))
    elements.push_back(resolve(field(term, 0)));
  if (!isNode(term, kNil, 0)) {
    for (Term element : elements)
      put(element), put("<>");
    return put(term);
  }
  if (text(elements))
    return;
  put("[");
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i)
      put(",");
    put(elements[i]);
  }
  put("]");
}

bool Printer::text(const std::vector<Term>& elements) {
  uint32_t code = 0;
  for (Term element : elements)
    if (!isPrintableCharacter(element, code))
      return false;
  if (elements.empty())
    return false;
  out_ += '"';
  for (Term element : elements) {
    isPrintableCharacter(element, code);
    quote(code, '"');
  }
  out_ += '"';
  return true;
}

static const char* escapeOf(char32_t code) {
  switch (code) {
  case '\n': return "\\n";
  case '\t': return "\\t";
  case '\r': return "\\r";
  case '\0': return "\\0";
  case '\\': return "\\\\";
  default: return nullptr;
  }
}

bool Printer::isPrintableCharacter(Term term, uint32_t& code) {
  if (!isNode(term, kChr, 1))
    return false;
  Term inner = resolve(field(term, 0));
  code = numberOf(inner);
  bool isControl = (code < 0x20 && !escapeOf(code)) || (code >= 0x7f && code < 0xa0);
  return tagOf(inner) == Num && !isControl && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
}

void Printer::quote(char32_t code, char quote) {
  if (const char* escape = escapeOf(code))
    out_ += escape;
  else if (code == static_cast<unsigned char>(quote))
    (out_ += '\\') += quote;
  else
    appendUtf8(out_, code);
}

void Printer::pattern(Term term) {
  if (tagOf(term) == Swi)
    put(field(term, 2));
  else if (const char* known[] = {"0n", "1n+", "[]", "<>"}; extOf(term) < std::size(known))
    put(known[extOf(term)]);
  else
    put("#"), put(code_.constructors[extOf(term)].c_str());
}

void Printer::matchNode(Term term) {
  put("λ{");
  for (bool isFirst = true; tagOf(term) == Mat || tagOf(term) == Swi; term = resolve(field(term, 1)), isFirst = false) {
    if (!isFirst)
      put(";");
    pattern(term);
    put(":"), put(field(term, 0));
  }
  bool isMissing = tagOf(term) == Num && numberOf(term) == 0;
  if (!isMissing)
    put(";"), put(tagOf(term) == Use ? field(term, 0) : term);
  put("}");
}

}  // namespace

std::string printTerm(const Term* heap, const Code& code, Term term, Naming naming) {
  return Printer(heap, code, naming).run(term);
}

}  // namespace vortex::hvm
