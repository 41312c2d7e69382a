#include "target/metal/functions.h"

#include "base/text.h"

#include <cctype>

namespace vortex::target::metal {

std::string Functions::name(const std::string& hint, const std::string& result, const std::string& parametersAndBody) {
  auto [known, isNew] = names_.try_emplace(base::concat(result, " ", parametersAndBody));
  if (!isNew)
    return known->second;
  std::string name = "fn_";  // entry points begin with vx_, Metal has none of these
  for (char c : hint)
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (unsigned number = ++uses_[name]; number > 1)
    name += base::concat("_", number);
  text_ += base::concat("\ninline ", result, " ", name, parametersAndBody);
  return known->second = name;
}

}  // namespace vortex::target::metal
