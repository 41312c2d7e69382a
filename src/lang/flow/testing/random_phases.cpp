#include "lang/flow/testing/random_phases.h"

#include <random>
#include <vector>

namespace vortex::lang::flow::testing {
namespace {

/// Where statements stand.
struct Where {
  int depth = 2;
  bool isAlike = true;    ///< all threads of the block are there, so that barriers may be
  bool isLoop = false;    ///< `break` and `continue` may be
  std::string away = {};  ///< what leaves the function or kernel; empty: it may not be left
};

class Phases {
public:
  explicit Phases(uint64_t seed) : random_(seed) {}

  std::string run() {
    static constexpr const char* kBlocks[] = {"8", "8", "8", "[4, 2]", "[2, 4]", "40", "34", "[20, 2]"};
    static constexpr int kThreads[] = {8, 8, 8, 8, 8, 40, 34, 40};
    const uint32_t block = pick(8);
    threads_ = kThreads[block];
    hasWarps_ = threads_ > 8 || pick(4) == 0;
    isCooperative_ = pick(4) == 0;
    const std::string grid = isCooperative_ || pick(2) ? "2" : "1";
    isCrossing_ = pick(2);
    if (isCrossing_)
      tensors_ = {"s"};
    alike_ = {"r", "q", "n", "m"};
    isTight_ = isCrossing_ && pick(2);
    size_ = isTight_ ? 3 + static_cast<int>(pick(5)) : 6 + static_cast<int>(pick(9));
    const std::string body = statements({2 + static_cast<int>(pick(2)), true, false, pick(3) ? "" : "return"});
    const std::string width = std::to_string(threads_);
    std::string out = functions_ + "@launch(grid = [" + grid + "], block = " + kBlocks[block] +
                      (isCooperative_ ? ", cooperative" : "") +
                      ")\nkernel k(x: &mut Tensor<u32, [400]>, y: &mut Tensor<u32, [400]>, d: &Tensor<u32, [8]>, n: "
                      "usize, m: usize) {\nlet t = thread.local_id\nlet g = block.id.x * " +
                      width + " + t\nlet s: Tensor<u32, [" + std::to_string(4 * threads_) +
                      "]> @shared\nlet p: Tensor<u32, [3, " + width + "]> @shared\nlet h: Tensor<u32, [2]> @shared\n";
    for (int i = 0; i < 4; ++i)
      out += "s[t + " + std::to_string(i * threads_) + "] = 0\n" +
             (i < 3 ? "p[" + std::to_string(i) + ", t] = 0\n" : "if t < 2 { h[t] = 0 }\nsync_block()\n");
    return out + "var r = 0usize\nvar q = 1usize\n" + body + "}\n";
  }

private:
  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  std::string number(uint32_t count) { return std::to_string(pick(count)); }
  std::string width() const { return std::to_string(threads_); }
  std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }
  std::string name() {
    return alike_[pick(3) ? alike_.size() - 1 - pick(static_cast<uint32_t>(std::min<size_t>(alike_.size(), 3)))
                          : pick(static_cast<uint32_t>(alike_.size()))];
  }

  //===-- numbers -------------------------------------------------------------------------------------------------===//

  /// The same for all threads of a block.
  std::string alike(int depth = 1) {
    if (depth == 0 || pick(2))
      return pick(12) == 0 && !isCooperative_ ? "block.id.x" : pick(12) == 0 ? "d[" + number(8) + "] as usize" : name();
    switch (pick(6)) {
    case 0: return "(" + alike(0) + " + " + std::to_string(1 + pick(3)) + ")";
    case 1: return "(" + alike(0) + " + " + alike(0) + ")";
    case 2: return "(" + alike(0) + " * 2)";
    case 3: return "(" + alike(0) + " / 2)";
    case 4: return "(5 - " + alike(0) + ")";
    default: return "min(" + alike(0) + ", " + alike(0) + ")";
    }
  }

  /// One of a few buffers.
  std::string buffer() {
    if (isTight_)
      return pick(3) == 0 ? "0" : pick(3) == 0 ? "((" + name() + " + 1) % 2)" : "(" + name() + " % 2)";
    switch (pick(7)) {
    case 0: return "q";
    case 1: return "(1 - q)";
    case 2: return number(3);
    case 3: return "((" + alike() + ") % 3)";
    case 4: return "((" + name() + " + 1) % 2)";
    default: return "(" + name() + " % 2)";
    }
  }

  /// An element of a buffer.
  std::string lane() {
    switch (pick(10)) {
    case 0: return "(" + std::to_string(threads_ - 1) + " - t)";
    case 1: return "((t + 1) % " + width() + ")";
    case 2: return "(t ^ 1)";
    case 3: return "((t + " + alike() + ") % " + width() + ")";
    case 4: return pick(2) ? number(4) : buffer();
    default: return "t";
    }
  }

  std::string place(const std::vector<std::string>& tensors) {
    const std::string tensor = tensors[pick(static_cast<uint32_t>(tensors.size()))];
    if (tensor == "p")
      return "p[" + buffer() + ", " + lane() + "]";
    if (tensor == "x")
      switch (pick(5)) {
      case 0: return "x[g]";
      case 1: return "x[(g + " + alike() + ") % " + std::to_string(2 * threads_) + "]";
      case 2: return "x[" + buffer() + " * " + std::to_string(2 * threads_) + " + g]";
      case 3: return "x[(block.id.x + " + alike() + ") * " + width() + " + t]";
      default: return "x[block.id.x * " + width() + " + " + lane() + "]";
      }
    switch (pick(8)) {
    case 0: return tensor + "[t * 2 + " + buffer() + "]";
    case 1: return tensor + "[" + lane() + "]";
    default: return tensor + "[" + buffer() + " * " + width() + " + " + lane() + "]";
    }
  }

  std::string compared(const std::string& what) {
    static constexpr const char* kComparisons[] = {"<", ">=", "==", "!=", "<=", ">"};
    switch (pick(4)) {
    case 0: return what + " % 2 " + (pick(2) ? "==" : "!=") + " " + number(2);
    case 1: return what + " " + kComparisons[pick(6)] + " " + name();
    case 2: return what + " + 1 " + kComparisons[pick(6)] + " " + name();
    default: return what + " " + kComparisons[pick(6)] + " " + number(4);
    }
  }

  /// All threads of a block agree on it.
  std::string condition() {
    const std::string one = pick(14) == 0 && !isCooperative_ ? compared("block.id.x") : compared(name());
    return pick(6) ? one : one + (pick(2) ? " && " : " || ") + compared(name());
  }

  std::string conditionOfThreads() {
    switch (pick(5)) {
    case 0: return "t == " + number(3);
    case 1: return "t == " + buffer();
    case 2: return "t < " + std::to_string(1 + pick(static_cast<uint32_t>(threads_)));
    case 3: return pick(2) ? compared("t") : compared("t / 2");
    default: return compared("t") + " && " + condition();
    }
  }

  //===-- statements ----------------------------------------------------------------------------------------------===//

  std::string statements(Where where) {
    std::string out;
    const size_t visible = alike_.size();
    for (uint32_t count = 1 + pick(4); count > 0 && size_ > 0; --count)
      out += statement(where);
    alike_.resize(visible);
    return out.empty() ? access() : out;
  }

  std::string nested(Where where) {
    --where.depth;
    return "{\n" + statements(where) + "}";
  }

  /// What a thread stores others read: only barriers and buffers are between them.
  std::string crossing() {
    const std::string only = pick(isTight_ ? 2 : 4) == 0 ? "if " + condition() + " { " : "",
                      end = only.empty() ? "\n" : " }\n";
    if (isCooperative_ && !isFunction_ && pick(2)) {
      const std::string others[] = {std::to_string(2 * threads_ - 1) + " - g]",
                                    "(g + " + width() + ") % " + std::to_string(2 * threads_) + "]", "g]"};
      const std::string both = "x[" + buffer() + " * " + std::to_string(2 * threads_) + " + ";
      return only + (pick(2) ? both + "g] = t as u32" : "y[g] += " + both + others[pick(3)]) + end;
    }
    const std::string row = tensors_.front() + "[" + buffer() + " * " + width() + " + ";
    if (pick(2))
      return only + row + "t] = t as u32" + end;
    return only + "y[g] += " + row + (pick(2) ? std::to_string(threads_ - 1) + " - t]" : "(t + 1) % " + width() + "]") +
           end;
  }

  std::string access() {
    if (isCrossing_ && pick(8))
      return crossing();
    const std::string at = place(tensors_);
    const std::string only = pick(4) == 0 ? "if " + conditionOfThreads() + " { " : "",
                      end = only.empty() ? "\n" : " }\n";
    switch (pick(8)) {
    case 0: return only + "atomic_add(&mut " + at + ", t as u32)" + end;
    case 1:
    case 2:
    case 3: return only + at + " = t as u32" + end;
    default: return only + "y[g] += " + at + end;
    }
  }

  std::string barrier() {
    if (isCooperative_ && !isFunction_ && pick(2))
      return "sync_grid()\n";
    return hasWarps_ && pick(3) == 0 ? "sync_warp()\n" : "sync_block()\n";
  }

  std::string jump(const Where& where) {
    std::string what = where.isLoop ? (pick(2) ? "break" : "continue") : where.away;
    if (!where.away.empty() && pick(4) == 0)
      what = where.away;
    if (where.isAlike && isTight_ && where.isLoop && !where.away.empty() && pick(3) == 0)
      return "sync_block()\nreturn\n";
    const std::string before = !where.isAlike ? "" : pick(3) == 0 ? barrier() : pick(3) == 0 ? access() : "";
    const std::string when = where.isAlike ? condition() : conditionOfThreads();
    return what.empty() ? access() : "if " + when + " {\n" + before + what + "\n}\n";
  }

  std::string change() {
    switch (pick(7)) {
    case 0: return "q = 1 - q\n";
    case 1: return "r = (r + 1) % " + std::to_string(2 + pick(2)) + "\n";
    case 2: return "r = " + alike() + " % 4\n";
    case 3: return "r = 0\n";
    default: return "r += 1\n";
    }
  }

  /// One thread tells the others a number.
  std::string tell() {
    const std::string cell = "h[" + (pick(3) ? "0" : name() + " % 2") + "]", made = fresh("u");
    const std::string told = pick(3) ? "if t == " + number(2) + " { " + cell + " = ((" + alike() + ") % 3) as u32 }\n" +
                                           (pick(6) ? "sync_block()\n" : "")
                                     : "";
    const std::string text = told + "let " + made + " = h[" + (pick(4) ? "0" : name() + " % 2") + "] as usize\n" +
                             (pick(3) ? "sync_block()\n" : "");
    alike_.push_back(made);
    return text;
  }

  /// A function with phases of its own, on all of `s`, on a part of it or on `p`'s first row.
  std::string call(const Where& where) {
    const std::string name = fresh("f");
    const uint32_t part = pick(3);
    const int first = static_cast<int>(pick(2)), size = part == 0 ? 4 : 3;
    const auto tensors = std::exchange(tensors_, {"v"});
    const auto alike = std::exchange(alike_, {"r", "q", "n", "m"});
    isFunction_ = true;
    const std::string body = statements({where.depth - 1, true, false, pick(2) ? "return" : ""});
    isFunction_ = false;
    tensors_ = tensors;
    alike_ = alike;
    functions_ += "fn " + name + "(v: &mut Tensor<u32, [" + std::to_string(size * threads_) +
                  "]> @shared, y: &mut Tensor<u32, [400]>, d: &Tensor<u32, [8]>, t: usize, g: usize, n: usize, m: "
                  "usize) {\nvar r = m\nvar q = 1usize\n" +
                  body + "}\n";
    const std::string taken =
        part == 0 ? "s" : "s[" + std::to_string(first * threads_) + ".." + std::to_string((first + 3) * threads_) + "]";
    return name + "(&mut " + taken + ", y, d, t, g, " + this->alike() + ", " + this->alike() + ")\n";
  }

  std::string loop(Where where) {
    const std::string k = fresh("k");
    where.isLoop = true;
    const std::string end = rounds();
    const uint32_t shape = pick(9);
    alike_.push_back(k);
    std::string out;
    switch (shape) {
    case 0:
      out = "for " + k + " in range(" + number(2) + "usize, " + end + ", " + std::to_string(1 + pick(2)) + ") " +
            nested(where);
      break;
    case 1: out = "for " + k + " in " + (pick(2) ? "1usize" : "r") + ".." + end + " " + nested(where); break;
    case 2: out = "for " + k + " in [" + (pick(2) ? "1usize, 0, 2" : "2usize, 1") + "] " + nested(where); break;
    case 3:
      out = "var " + k + " = " + end + "\nwhile " + k + " > 0 {\n" + k + (pick(2) ? " -= 1\n" : " /= 2\n") +
            nested(where).substr(2);
      break;
    case 4:
      out = "var " + k + " = 0usize\nloop {\n" + k + " += 1\n" + (pick(2) ? access() : "") + "if " + k + " > " + end +
            " { break }\n" + nested(where).substr(2);
      break;
    case 5:
      // A number that is not set back bounds it.
      out = "var " + k + " = 0usize\nwhile " + k + " < 3 && r < " + end + " {\n" + k + " += 1\nr += " + number(2) +
            "\n" + nested(where).substr(2);
      break;
    default: out = "for " + k + " in 0.." + end + " " + nested(where); break;
    }
    alike_.pop_back();
    return out + "\n";
  }

  /// Not many, and often none.
  std::string rounds() {
    switch (pick(7)) {
    case 0: return number(3) + "usize";
    case 1: return "(" + alike() + ") % 3";
    case 2: return "min(" + alike() + ", 2)";
    case 3: return "d[" + number(8) + "] as usize";
    case 4: return name() + " % 2";
    default: return pick(2) ? "n" : "m";
    }
  }

  std::string statement(const Where& where) {
    --size_;
    if (!where.isAlike)
      return pick(3) == 0 && where.isLoop ? jump(where) : access();
    switch (pick(where.depth > 0 ? 20 : 12)) {
    case 0:
    case 1:
    case 2:
    case 3: return access();
    case 4:
    case 5:
    case 6: return barrier();
    case 7: return "if " + condition() + " {\n" + (pick(3) ? "" : access()) + barrier() + "}\n";
    case 8:
    case 9: return change();
    case 10: return jump(where);
    case 11: return isFunction_ || isCooperative_ ? access() : tell();
    case 12:
    case 13: {
      const std::string out = "if " + condition() + " " + nested(where);
      return out + (pick(2) ? " else " + nested(where) : "") + "\n";
    }
    case 14: {
      Where there = where;
      there.isAlike = false;
      there.away.clear();
      there.isLoop = true;
      if (pick(2))
        return "for " + fresh("k") + " in 0.." + rounds() + " " + nested(there) + "\n";
      there.isLoop = false;
      return "if " + conditionOfThreads() + " " + nested(there) + "\n";
    }
    case 15: return isFunction_ ? loop(where) : call(where);
    default: return loop(where);
    }
  }

  std::mt19937_64 random_;
  int threads_ = 8, size_ = 0, names_ = 0;
  bool hasWarps_ = false, isFunction_ = false, isCrossing_ = false, isTight_ = false, isCooperative_ = false;
  std::vector<std::string> alike_, tensors_ = {"s", "s", "s", "p", "x"};
  std::string functions_;
};

}  // namespace

std::string randomPhases(uint64_t seed) { return Phases(seed).run(); }

}  // namespace vortex::lang::flow::testing
