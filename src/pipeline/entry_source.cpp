#include "pipeline/entry_source.h"

#include "base/hash.h"
#include "pipeline/back_end.h"

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
      warn_("compiled kernels are not kept: " + stored.error().message);
  return made_.emplace(symbol, std::move(code).value()).first->second;
}

}  // namespace vortex::pipeline
