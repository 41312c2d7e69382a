#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace vortex::base {

/// Everything streamed one after the other: concat("expected ", 3, " bytes").
template <typename... Parts> std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

/// Elements streamed with a separator between them.
template <typename Range> std::string join(const Range& elements, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& element : elements) {
    if (!first)
      out << separator;
    first = false;
    out << element;
  }
  return std::move(out).str();
}

}  // namespace vortex::base
