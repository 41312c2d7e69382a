#include "base/nearest.h"

#include <algorithm>

namespace vortex::base {
namespace {

constexpr size_t kLongest = 64;

std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '_')
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// Insertions, deletions, substitutions and exchanges of neighbours that make `b` of `a`.
size_t slips(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > kLongest)
    return "";
  const std::string wanted = folded(name);
  const size_t most = name.size() < 2 ? 0 : name.size() <= 3 ? 1 : name.size() / 3;
  // Twice the slips, and one for another spelling of the same letters.
  size_t bestDistance = 2 * most + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest || candidate == name)
      continue;
    const size_t exact = 2 * slips(name, candidate);
    const std::string other = folded(candidate);
    const size_t loose = 2 * slips(wanted, other) + 1;
    const size_t distance = wanted.empty() || other.empty() ? exact : std::min(exact, loose);
    if (distance < bestDistance || (distance == bestDistance && best.empty())) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace vortex::base
