#include "diag/diagnostic.h"

#include <algorithm>
#include <array>

namespace vortex::diag {
namespace {

// One file per range, so that additions to different ranges never touch the same lines. Entries may be written in any order.
constexpr auto kUnsorted = std::to_array<IdEntry>({
#define VORTEX_ID(id, title, explanation) {id, title, explanation},
#include "diag/ids/e01_syntax.def"
#include "diag/ids/e02_names.def"
#include "diag/ids/e03_types.def"
#include "diag/ids/e04_execution.def"
#include "diag/ids/e05_ownership.def"
#include "diag/ids/e05_spaces.def"
#include "diag/ids/e06_memory.def"
#include "diag/ids/e07_runtime.def"
#include "diag/ids/e08_driver.def"
#include "diag/ids/e09_metal.def"
#include "diag/ids/w_warnings.def"
#undef VORTEX_ID
});

constexpr auto sorted() {
  auto entries = kUnsorted;
  std::sort(entries.begin(), entries.end(), [](const IdEntry& a, const IdEntry& b) { return a.id < b.id; });
  return entries;
}
constexpr auto kEntries = sorted();

constexpr bool wellFormed() {
  for (size_t i = 0; i < kEntries.size(); ++i) {
    const IdEntry& entry = kEntries[i];
    if (entry.id.size() != 5 || (entry.id[0] != 'E' && entry.id[0] != 'W') || entry.title.empty() ||
        entry.explanation.empty())
      return false;
    if (i > 0 && kEntries[i - 1].id == entry.id)
      return false;
  }
  return true;
}
static_assert(wellFormed(), "an id is duplicated, misspelt (E0123, W0123) or lacks its texts");

}  // namespace

std::span<const IdEntry> allIds() { return kEntries; }

const IdEntry* findId(std::string_view id) {
  const auto found = std::lower_bound(kEntries.begin(), kEntries.end(), id,
                                      [](const IdEntry& entry, std::string_view key) { return entry.id < key; });
  return found != kEntries.end() && found->id == id ? &*found : nullptr;
}

std::string explain(std::string_view id) {
  const IdEntry* entry = findId(id);
  if (!entry)
    return {};
  std::string_view text = entry->explanation;
  while (text.starts_with('\n'))
    text.remove_prefix(1);
  while (text.ends_with('\n') || text.ends_with(' '))
    text.remove_suffix(1);
  return std::string(entry->id) + ": " + std::string(entry->title) + "\n\n" + std::string(text) + "\n";
}

}  // namespace vortex::diag
