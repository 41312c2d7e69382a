#pragma once

#include <map>
#include <string>

namespace vortex::target::metal {

/// Functions of a printed file: arithmetic that takes more than a line is written once, however many elements and entry points have it.
class Functions {
public:
  /// The name of the function with this body; `hint` is part of it.
  std::string name(const std::string& hint, const std::string& result, const std::string& parametersAndBody);
  /// All of them.
  std::string text() const { return text_; }

private:
  std::map<std::string, std::string> names_;  ///< by what is behind the name
  std::map<std::string, unsigned> uses_;      ///< of a hint
  std::string text_;
};

}  // namespace vortex::target::metal
