#include "lang/flow/testing/random_kernel.h"

#include <array>
#include <random>
#include <utility>

namespace vortex::lang::flow::testing {
namespace {

constexpr std::array<const char*, 9> kTypes = {"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "usize"};

/// Names after which no functions are made.
constexpr int kMostNames = 40;

struct Declared {
  std::string name, type;
  bool isUniform = false, isAssignable = false;
};

class Generator {
public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomKernel run() {
    RandomKernel out;
    out.input = type();
    std::string body;
    for (int i = 0; i < 2; ++i)
      body += declare(true);
    for (int i = 0; i < 3; ++i)
      body += declare(false);
    indent_ = 1;
    size_ = 18;
    body += statements(3, true);
    std::string params, stores;
    int count = 0;
    for (const Declared& variable : variables_)
      if (variable.name[0] == 'v') {
        const std::string name = "o" + std::to_string(count++);
        params += ", " + name + ": &mut Tensor<" + variable.type + ", [64]>";
        stores += "  " + name + "[t] = " + variable.name + "\n";
        out.outputs.push_back(variable.type);
      }
    out.text =
        functions_ + "@launch(grid = [1], block = 64)\nkernel k(x: &Tensor<" + out.input +
        ", [64]>, sized: &Tensor<u8, [N]>, table: &Tensor<i16, [N, M]>, n: u32" + params +
        ") {\n  let t = thread.local_id\n  let shared: Tensor<u32, [64]> @shared\n  let own: Tensor<i32, [4]> @local = "
        "zeros()\n  var few = [1u32, 5, 9, 2]\n" +
        body + stores + "}\n";
    return out;
  }

private:
  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  std::string type() { return kTypes[pick(kTypes.size())]; }
  std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }
  std::string pad() const { return std::string(indent_ * 2, ' '); }

  std::string declare(bool isUniform) {
    Declared variable{fresh(isUniform ? "u" : "v"), type(), isUniform, true};
    const std::string from = isUniform ? "n" : "x[t]";
    const std::string text = "  var " + variable.name + " = " + from + " as " + variable.type + "\n";
    variables_.push_back(std::move(variable));
    return text;
  }

  //===-- expressions ---------------------------------------------------------------------------------------------===//

  std::string literal(const std::string& type) { return std::to_string(pick(3) ? pick(12) : pick(128)) + type; }

  const Declared* variableFor(bool isUniform) {
    std::vector<const Declared*> usable;
    for (const Declared& each : variables_)
      if (!isUniform || each.isUniform)
        usable.push_back(&each);
    return usable.empty() ? nullptr : usable[pick(static_cast<uint32_t>(usable.size()))];
  }

  std::string leaf(const std::string& type, bool isUniform) {
    const Declared* variable = variableFor(isUniform);
    if (!variable || pick(4) == 0)
      return literal(type);
    return variable->type == type ? variable->name : "(" + variable->name + " as " + type + ")";
  }

  std::string expression(const std::string& type, bool isUniform, int depth) {
    if (depth == 0)
      return leaf(type, isUniform);
    const auto part = [&] { return expression(type, isUniform, depth - 1); };
    // Functions see neither memory nor the other threads.
    switch (pick(isUniform ? 13 : isFunction_ ? 14 : 20)) {
    case 0:
    case 1:
    case 2: {
      const std::string other = this->type();
      return "(" + expression(other, isUniform, depth - 1) + " as " + type + ")";
    }
    case 3: return "(if " + condition(isUniform, depth - 1) + " { " + part() + " } else { " + part() + " })";
    case 4: return "select(" + condition(isUniform, depth - 1) + ", " + part() + ", " + part() + ")";
    case 5: return "min(" + part() + ", " + part() + ")";
    case 6: return "max(" + part() + ", " + part() + ")";
    case 7: return "(" + part() + " << (" + part() + " & 7" + type + "))";
    case 8: return "(" + part() + " >> (" + part() + " & 7" + type + "))";
    case 13:
      if (isFunction_)
        return names_ < kMostNames ? "(" + call() + " as " + type + ")" : part();
      return "(x[(" + expression("usize", false, depth - 1) + ") % 64] as " + type + ")";
    case 14: return "(few[(" + expression("usize", false, depth - 1) + ") % 4] as " + type + ")";
    case 15: return "(own[(" + expression("usize", false, depth - 1) + ") % 4] as " + type + ")";
    case 16: return names_ < kMostNames ? "(" + call() + " as " + type + ")" : part();
    case 17: return "(sized[" + index("N", depth - 1) + "] as " + type + ")";
    case 18: return "(table[" + index("N", depth - 1) + ", " + index("M", depth - 1) + "] as " + type + ")";
    default: break;
    }
    static constexpr std::array<const char*, 8> kOperators = {"+", "-", "*", "/", "%", "^", "&", "|"};
    return "(" + part() + " " + kOperators[pick(kOperators.size())] + " " + part() + ")";
  }

  /// Inside or not; sometimes it can be seen.
  std::string index(const std::string& extent, int depth) {
    const std::string narrow = kTypes[pick(8)], any = expression("usize", false, depth);
    switch (pick(8)) {
    case 0: return any + " % " + extent;
    case 1: return "min(" + any + ", " + extent + " - 1)";
    case 2: return "t % max(" + extent + ", 1)";
    case 3: return "(" + expression(narrow, false, depth) + " % 5" + narrow + ") as usize";
    case 4: return "(if " + any + " < " + extent + " { " + any + " } else { 0 })";
    case 5: return extent + " - 1 - (" + any + " % " + extent + ")";
    case 6: return extent + " / 2 + " + any + " % 2";
    default: return any;
    }
  }

  std::string condition(bool isUniform, int depth) {
    static constexpr std::array<const char*, 6> kComparisons = {"<", "<=", ">", ">=", "==", "!="};
    const auto compared = [&] {
      const std::string type = this->type();
      return "(" + expression(type, isUniform, std::min(depth, 1)) + " % 7" + type + " " + kComparisons[pick(6)] + " " +
             leaf(type, isUniform) + " % 5" + type + ")";
    };
    if (depth > 0 && pick(3) == 0)
      return "(" + condition(isUniform, depth - 1) + (pick(2) ? " && " : " || ") + condition(isUniform, depth - 1) +
             ")";
    return pick(6) == 0 ? "!" + compared() : compared();
  }

  /// The body of a function with these variables, with loops and early returns.
  std::string bodyOf(std::vector<Declared> own, const std::string& result) {
    std::swap(own, variables_);
    const int indent = std::exchange(indent_, 1), size = std::exchange(size_, 5);
    const auto loops = std::exchange(loops_, {});
    const std::string returned = std::exchange(returns_, result);
    const bool had = std::exchange(isFunction_, true);
    std::string body = statements(2, false);
    isFunction_ = had;
    returns_ = returned;
    loops_ = loops;
    size_ = size;
    indent_ = indent;
    std::swap(own, variables_);
    return body;
  }

  std::string call() {
    const std::string name = fresh("f"), a = type(), result = type();
    const std::string body = bodyOf({{"a", a, false, false}, {"w", result, false, true}}, result);
    functions_ +=
        "fn " + name + "(a: " + a + ") -> " + result + " {\n  var w = a as " + result + "\n" + body + "  return w\n}\n";
    return name + "(" + leaf(a, false) + ")";
  }

  /// Changes a variable, or an element, through a reference.
  std::string callByReference() {
    std::string target = "few[(" + expression("usize", false, 1) + ") % 4]", type = "u32";
    const Declared* variable = variableFor(false);
    if (variable && variable->isAssignable && !variable->isUniform && pick(4)) {
      target = variable->name;
      type = variable->type;
    }
    const std::string name = fresh("g"), other = this->type();
    const std::string body = bodyOf({{"*a", type, false, true}, {"b", other, false, false}}, "");
    functions_ += "fn " + name + "(a: &mut " + type + ", b: " + other + ") {\n" + body + "}\n";
    return pad() + name + "(&mut " + target + ", " + leaf(other, false) + ")\n";
  }

  //===-- statements ----------------------------------------------------------------------------------------------===//

  std::string statements(int depth, bool isUniform) {
    std::string out;
    const size_t visible = variables_.size();
    const uint32_t count = 1 + pick(4);
    for (uint32_t i = 0; i < count + (indent_ == 1 ? 3 : 0) && size_ > 0; ++i)
      out += statement(depth, isUniform);
    variables_.resize(visible);
    return out.empty() ? pad() + "let " + fresh("z") + " = 0u32\n" : out;
  }

  std::string nested(int depth, bool isUniform) {
    ++indent_;
    std::string out = "{\n" + statements(depth, isUniform) + pad().substr(2) + "}";
    --indent_;
    return out;
  }

  std::string assignment(bool isUniform) {
    std::vector<const Declared*> targets;
    for (const Declared& each : variables_)
      if (each.isAssignable && (isUniform || !each.isUniform))
        targets.push_back(&each);
    if (targets.empty())
      return "";
    const Declared& target = *targets[pick(static_cast<uint32_t>(targets.size()))];
    static constexpr std::array<const char*, 5> kAssign = {"=", "=", "+=", "^=", "-="};
    return pad() + target.name + " " + kAssign[pick(5)] + " " + expression(target.type, target.isUniform, 2) + "\n";
  }

  std::string binding() {
    const std::string name = fresh("p"), other = fresh("q"), a = type(), b = type();
    const std::string text = pad() + "let (" + name + ", " + other + ") = (" + expression(a, false, 1) + ", " +
                             expression(b, false, 1) + ")\n";
    variables_.push_back({name, a, false, false});
    variables_.push_back({other, b, false, false});
    return text;
  }

  /// In control that all threads share: through shared memory, the warp or the block.
  std::string exchange() {
    std::vector<const Declared*> targets;
    for (const Declared& each : variables_)
      if (each.isAssignable && !each.isUniform)
        targets.push_back(&each);
    const Declared& target = *targets[pick(static_cast<uint32_t>(targets.size()))];
    std::vector<const Declared*> uniform;  // what all threads have alike may go there, too
    for (const Declared& each : variables_)
      if (each.isAssignable && each.isUniform)
        uniform.push_back(&each);
    const std::string sent = expression("u32", false, 1);
    const Declared& common =
        uniform.empty() || pick(2) == 0 ? target : *uniform[pick(static_cast<uint32_t>(uniform.size()))];
    switch (pick(7)) {
    case 0:
      return pad() + target.name + " = (warp.shuffle_xor(" + sent + ", " + std::to_string(1 + pick(31)) + ") as " +
             target.type + ")\n";
    case 1: return pad() + target.name + " = (warp.sum(" + sent + ") as " + target.type + ")\n";
    case 2: return pad() + target.name + " = (warp.ballot(" + condition(false, 1) + ") as " + target.type + ")\n";
    case 3: {
      static constexpr const char* kKinds[] = {"sum", "max", "min"};
      return pad() + common.name + " = (block." + kKinds[pick(3)] + "(" + sent + ") as " + common.type + ")\n";
    }
    case 4:
      return pad() + common.name + " = if block." + (pick(2) == 0 ? "any" : "all") + "(" + condition(false, 1) +
             ") { 1 } else { 0 }\n";
    default: break;
    }
    return pad() + "shared[t] = " + sent + "\n" + pad() + "sync_block()\n" + pad() + target.name + " = (shared[(t + " +
           std::to_string(pick(64)) + ") % 64] as " + target.type + ")\n" + pad() + "sync_block()\n";
  }

  std::string loop(int depth, bool isUniform) {
    const std::string counter = fresh("i"), type = this->type();
    std::string head;
    switch (pick(5)) {
    case 0: head = "for " + counter + " in 0" + type + ".." + std::to_string(1 + pick(5)) + type + " "; break;
    case 1:
      head = "for " + counter + " in range(" + std::to_string(pick(4)) + type + ", " + std::to_string(pick(12)) + type +
             ", " + std::to_string(1 + pick(4)) + type + ") ";
      break;
    case 2:
      head = "for " + counter + " in [" + literal(type) + ", " + literal(type) + ", " + literal(type) + "] ";
      break;
    case 3:
      if (!isFunction_) {
        head = "for " + counter + " in " + (pick(2) ? "0usize..N " : "range(1usize, N, 2) ");
        variables_.push_back({counter, "usize", isUniform, false});
        loops_.push_back(isUniform);
        const std::string read = "sized[" + counter + "]";
        const Declared target = *variableFor(isUniform);
        std::string body = nested(depth - 1, isUniform);
        if (target.isAssignable && !target.isUniform)
          body.insert(2, pad() + "  " + target.name + " += " + read + " as " + target.type + "\n");
        loops_.pop_back();
        variables_.pop_back();
        return pad() + head + body + "\n";
      }
      [[fallthrough]];
    default: {
      // A loop of a `var`, with its bound inside.
      const std::string start = pad() + "var " + counter + " = " + std::to_string(pick(3)) + type + "\n";
      variables_.push_back({counter, type, isUniform, false});
      loops_.push_back(isUniform);
      ++indent_;
      std::string body = pad() + counter + " += 1" + type + "\n" + statements(depth - 1, isUniform);
      --indent_;
      loops_.pop_back();
      return start + pad() + "while " + counter + " < " + std::to_string(1 + pick(5)) + type + " {\n" + body + pad() +
             "}\n";
    }
    }
    variables_.push_back({counter, type, isUniform, false});
    loops_.push_back(isUniform);
    std::string out = pad() + head + nested(depth - 1, isUniform) + "\n";
    loops_.pop_back();
    variables_.pop_back();
    return out;
  }

  /// Out of the loop or function, under a condition. Only in loops whose control may differ, since the rest of the body then does.
  std::string jump() {
    const bool mayDiffer = !loops_.empty() && !loops_.back();
    std::string what = !mayDiffer ? "" : pick(2) ? "break" : "continue";
    if (isFunction_ && (!mayDiffer || pick(3) == 0))
      what = returns_.empty() ? "return" : "return " + expression(returns_, false, 1);
    return what.empty() ? "" : pad() + "if " + condition(false, 1) + " { " + what + " }\n";
  }

  std::string statement(int depth, bool isUniform) {
    --size_;
    switch (pick(13)) {
    case 0: return isUniform && !isFunction_ ? exchange() : assignment(isUniform);
    case 1:
    case 2:
      if (depth > 0) {
        const bool inner = isUniform && pick(2);
        const std::string decides = condition(inner, 1);
        std::string out = pad() + "if " + decides + " " + nested(depth - 1, inner);
        return out + (pick(2) ? " else " + nested(depth - 1, inner) : "") + "\n";
      }
      return assignment(isUniform);
    case 3:
    case 4:
    case 5: return depth > 0 ? loop(depth, isUniform && pick(2)) : assignment(isUniform);
    case 6: return binding();
    case 7:
      if (isFunction_)
        return assignment(isUniform);
      return pad() + "few[(" + expression("usize", false, 1) + ") % 4] = " + expression("u32", false, 1) + "\n";
    case 8:
      if (isFunction_)
        return assignment(isUniform);
      return pad() + "own[(" + expression("usize", false, 1) + ") % 4] = " + expression("i32", false, 1) + "\n";
    case 10:
      if (!isFunction_ && names_ < kMostNames)
        return callByReference();
      return assignment(isUniform);
    case 9: return !isUniform ? jump() : assignment(isUniform);
    default: return assignment(isUniform);
    }
  }

  std::mt19937_64 random_;
  std::vector<Declared> variables_;
  std::vector<bool> loops_;
  std::string functions_, returns_;
  bool isFunction_ = false;
  int indent_ = 1, names_ = 0, size_ = 0;
};

}  // namespace

RandomKernel randomKernel(uint64_t seed) { return Generator(seed).run(); }

}  // namespace vortex::lang::flow::testing
