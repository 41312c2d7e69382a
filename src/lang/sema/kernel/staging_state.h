// What the simulation of staged copies knows at one place of a kernel.
#pragma once

#include "lang/sema/program.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace vortex::lang::staging {

/// Groups of copies that may stay in flight after a `sync_block()`.
constexpr size_t kMaxInFlight = 4;
constexpr int64_t kAnySlot = -1;

/// A tensor, or one of an array of tensors.
struct Slot {
  const Variable* variable = nullptr;
  int64_t index = 0;
  bool operator<(const Slot& other) const {
    return variable != other.variable ? variable < other.variable : index < other.index;
  }
};

inline bool mayBeSame(const Slot& a, const Slot& b) {
  return a.variable == b.variable && (a.index == b.index || a.index == kAnySlot || b.index == kAnySlot);
}

inline bool contains(const std::set<Slot>& slots, const Slot& slot) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& other) { return mayBeSame(slot, other); });
}

/// What a slot may hold: one bit per possibility.
enum Content : uint8_t { kNothing = 1, kPending = 2, kReady = 4 };

struct State {
  std::map<Slot, uint8_t> contents;
  std::map<Slot, const Expr*> stagedBy;
  std::map<Slot, std::set<const Variable*>> sources;  ///< the tensors that copies into a slot read
  std::set<Slot> touched;                             ///< since the last barrier
  std::set<Slot> current;                             ///< copies started since the last sync_block()
  std::vector<std::set<Slot>> groups;                 ///< closed ones, the most recent first
  std::set<Expr*> lastSync;
  bool ends = false;  ///< control does not get here

  void join(const State& other) {
    if (other.ends)
      return;
    if (ends) {
      *this = other;
      return;
    }
    for (const auto& [slot, content] : other.contents)
      contents[slot] |= content;
    stagedBy.insert(other.stagedBy.begin(), other.stagedBy.end());
    for (const auto& [slot, roots] : other.sources)
      sources[slot].insert(roots.begin(), roots.end());
    touched.insert(other.touched.begin(), other.touched.end());
    current.insert(other.current.begin(), other.current.end());
    groups.resize(std::max(groups.size(), other.groups.size()));
    for (size_t i = 0; i < other.groups.size(); ++i)
      groups[i].insert(other.groups[i].begin(), other.groups[i].end());
    lastSync.insert(other.lastSync.begin(), other.lastSync.end());
  }
};

}  // namespace vortex::lang::staging
