#include "pipeline/entry_source.h"

#include "base/hash.h"
#include "base/text.h"
#include "pipeline/back_end.h"
#include "pipeline/build_id.h"

#include <array>
#include <charconv>

namespace vortex::pipeline {

Result<std::vector<uint8_t>> EntrySource::make(const std::string& symbol) {
  const std::lock_guard lock(mutex_);
  if (auto known = made_.find(symbol); known != made_.end())
    return known->second;
  const std::string key = base::Hasher().addField("entry point").addField(plan_.key).addField(symbol).finishHex();
  if (cache_)
    if (auto kept = cache_->get(key))
      return made_.emplace(symbol, std::move(*kept)).first->second;
  auto code = compileEntry(plan_.target, plan_.entries, symbol, plan_.slotCount);
  if (!code)
    return code.takeError();
  if (cache_)
    if (auto stored = cache_->put(key, *code); !stored && warn_)
      warn_(stored.error().message);
  return made_.emplace(symbol, std::move(code).value()).first->second;
}

/// A hash of the rest; then, each ended by a line feed, the compiler's id, the target, the key and the number of slots; then the code.
std::vector<uint8_t> EntrySource::kept() const {
  std::string rest = base::concat(buildId(), "\n", plan_.target, "\n", plan_.key, "\n", plan_.slotCount, "\n");
  rest.append(plan_.entries.begin(), plan_.entries.end());
  const std::string all = base::contentHash(rest) + rest;
  return {all.begin(), all.end()};
}

Result<std::shared_ptr<EntrySource>> EntrySource::of(std::span<const uint8_t> kept,
                                                     std::shared_ptr<artifact::Cache> cache) {
  constexpr size_t kHashDigits = 32;
  std::string_view rest(reinterpret_cast<const char*>(kept.data()), kept.size());
  const std::string_view hash = rest.substr(0, kHashDigits);
  rest.remove_prefix(hash.size());
  std::array<std::string_view, 4> head;
  if (base::contentHash(rest) == hash)
    for (std::string_view& line : head) {
      line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
  const auto [id, target, key, slots] = head;
  Plan plan{std::string(target), std::string(key), 0, {rest.begin(), rest.end()}};
  if (std::from_chars(slots.begin(), slots.end(), plan.slotCount).ptr == slots.begin())
    return Error{"the plan of a kernel is damaged"};
  if (id != buildId())
    return Error{"the plan of a kernel was made by another build of the compiler: plan it again"};
  return std::make_shared<EntrySource>(std::move(plan), std::move(cache), nullptr);
}

}  // namespace vortex::pipeline
