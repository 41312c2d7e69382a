#include "python/lent_streams.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace vortex::python {

namespace {

using Lent = std::deque<std::pair<uint64_t, Stream>>;  // the last one asked for first

/// Never destroyed: daemon threads may work until the process is gone.
Lent& lentBy(const Device& device) {
  static auto& all = *new std::map<std::string, Lent>;
  return all[device.name()];
}

}  // namespace

Result<Stream> lentStream(const Device& device, uint64_t handle) {
  Lent& lent = lentBy(device);
  const auto known = std::ranges::find(lent, handle, &Lent::value_type::first);
  if (known == lent.begin() && known != lent.end())
    return known->second;
  if (known != lent.end()) {
    std::rotate(lent.begin(), known, known + 1);
    return lent.front().second;
  }
  Result<Stream> wrapped = device.wrapStream(handle);
  if (!wrapped)
    return wrapped;
  lent.emplace_front(handle, *wrapped);
  if (lent.size() > kLentStreams)
    lent.pop_back();
  return wrapped;
}

std::vector<Stream> lentStreams(const Device& device) {
  std::vector<Stream> streams;
  for (const auto& [handle, stream] : lentBy(device))
    streams.push_back(stream);
  return streams;
}

}  // namespace vortex::python
