// The rows of rules.def as text, for the programs that write the kernels' rules from them.
//
// Such a program defines the vocabulary of rules.def as text in the kernels' language, with LINE between statements, and reads the rows by
// including that file.
#pragma once

#include "hvm/eval/term.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace vortex::hvm {

class RuleTable {
public:
  static constexpr uint32_t kTags = kFrames;  // of terms, and of frames
  struct Row {
    std::string names, action;
    bool isCounted;
    bool isOther;  // for whatever no other row is for
  };

  void add(const char* name, bool isCounted, uint32_t frame, uint32_t firstTag, uint32_t lastTag, std::string action,
           bool isOther = false) {
    auto [found, isNew] = numberOf_.try_emplace((isCounted ? "1 " : "0 ") + action, rows_.size() + 1);
    if (isNew)
      rows_.push_back({"", std::move(action), isCounted, isOther});
    std::string& names = rows_[found->second - 1].names;
    if (*name && names.find(name) == std::string::npos)
      names += (names.empty() ? "" : ", ") + std::string(name);
    for (uint32_t tag = firstTag; tag <= lastTag; ++tag)
      if (uint32_t& row = rowOf_[frame - kFrames][tag]; row == 0)
        row = static_cast<uint32_t>(found->second);
  }
  /// All other tags. Functions that are code have no row: see step_frame in machine.vx.
  void addOther(const char* name, bool isCounted, uint32_t frame, const std::string& action) {
    for (uint32_t tag = 0; tag < kTags; ++tag)
      if (frame != OnArg || tag != Fun)
        add(name, isCounted, frame, tag, tag, action, true);
  }

  const std::vector<Row>& rows() const { return rows_; }
  /// From 1 on; 0: there is none.
  uint32_t rowOf(uint32_t frame, uint32_t tag) const { return rowOf_[frame - kFrames][tag]; }

  /// The statements of an action.
  static std::vector<std::string> linesOf(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t from = 0; from < text.size();) {
      size_t to = std::min(text.find("LINE", from), text.size());
      std::string line = text.substr(from, to - from);
      line.erase(0, line.find_first_not_of(' '));
      line.erase(line.find_last_not_of(' ') + 1);
      if (!line.empty())
        lines.push_back(std::move(line));
      from = to + 4;
    }
    return lines;
  }

private:
  std::vector<Row> rows_;
  std::map<std::string, size_t> numberOf_;
  uint32_t rowOf_[kTags][kTags] = {};
};

#define VORTEX_HVM_TEXT(...) #__VA_ARGS__
#define VORTEX_HVM_EXPANDED(...) VORTEX_HVM_TEXT(__VA_ARGS__)

// Where rules.def is included, `table` is a RuleTable.
#define RULE(name, counted, frame, tag, ...)                                                                           \
  table.add(name, counted, frame, tag, tag, VORTEX_HVM_EXPANDED(__VA_ARGS__));
#define RULE_CONSTRUCTOR(name, counted, frame, ...)                                                                    \
  table.add(name, counted, frame, C00, C16, VORTEX_HVM_EXPANDED(__VA_ARGS__));
#define RULE_QUOTED(name, counted, frame, ...)                                                                         \
  table.add(name, counted, frame, Nam, Dry, VORTEX_HVM_EXPANDED(__VA_ARGS__));                                         \
  table.add(name, counted, frame, Bjv, Bj1, VORTEX_HVM_EXPANDED(__VA_ARGS__));
#define RULE_DUP(name, counted, tag, ...)                                                                              \
  RULE(name, counted, OnDp0, tag, __VA_ARGS__) RULE(name, counted, OnDp1, tag, __VA_ARGS__)
#define RULE_DUP_CONSTRUCTOR(name, counted, ...)                                                                       \
  RULE_CONSTRUCTOR(name, counted, OnDp0, __VA_ARGS__) RULE_CONSTRUCTOR(name, counted, OnDp1, __VA_ARGS__)
#define RULE_DUP_QUOTED(name, counted, ...)                                                                            \
  for (uint32_t frame : {OnDp0, OnDp1}) {                                                                              \
    table.add(name, counted, frame, Nam, Nam, VORTEX_HVM_EXPANDED(__VA_ARGS__));                                       \
    table.add(name, counted, frame, Bjv, Bj1, VORTEX_HVM_EXPANDED(__VA_ARGS__));                                       \
  }
#define RULE_OTHER(name, counted, frame, ...) table.addOther(name, counted, frame, VORTEX_HVM_EXPANDED(__VA_ARGS__));

}  // namespace vortex::hvm
