// A PTX text taken apart, so that each entry point is assembled when a launch first needs it: a kernel has a version for every way its tensors
// may lie, and a launch runs one of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vortex::cuda {

/// Pieces of a PTX text that can be assembled on their own. Views into the text.
class PtxParts {
public:
  /// One part per entry point, with the functions, variables and directives it needs. The whole text is one part where parts would not be
  /// equivalent: entry points that share a variable which they may write, or debug sections, which point into several.
  explicit PtxParts(std::string_view ptx);

  size_t count() const { return parts_.size(); }
  /// The part with this entry point; count() if there is none.
  size_t partOf(std::string_view symbol) const;
  /// The PTX text of a part.
  std::string text(size_t part) const;

private:
  struct Part {
    std::vector<std::string_view> symbols;
    std::vector<std::string_view> items;  ///< in the order of the text
  };
  std::vector<Part> parts_;
};

}  // namespace vortex::cuda
