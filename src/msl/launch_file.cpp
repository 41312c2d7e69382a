#include "msl/launch_file.h"

#include <llvm/Support/JSON.h>

namespace vortex::msl {

/// A list is its elements with commas; the rest as written, but without quotes.
static std::string wordOf(const llvm::json::Value& value) {
  if (auto* list = value.getAsArray()) {
    std::string word;
    for (const llvm::json::Value& each : *list)
      word += (word.empty() ? "" : ",") + wordOf(each);
    return word;
  }
  if (auto text = value.getAsString())
    return text->str();
  std::string printed;
  llvm::raw_string_ostream out(printed);
  out << value;
  return printed;
}

base::Result<std::vector<std::pair<std::string, std::string>>> readLaunchFile(const std::string& text) {
  auto parsed = llvm::json::parse(text);
  if (!parsed)
    return base::Error{llvm::toString(parsed.takeError())};
  auto* object = parsed->getAsObject();
  if (!object)
    return base::Error{"not a JSON object"};
  std::vector<std::pair<std::string, std::string>> words;
  for (const auto& [key, value] : *object) {
    auto* entries = value.getAsObject();
    if (!entries)
      words.emplace_back(key.str(), wordOf(value));
    else
      for (const auto& [index, each] : *entries)
        words.emplace_back(key.str(), index.str() + "=" + wordOf(each));
  }
  return words;
}

}  // namespace vortex::msl
