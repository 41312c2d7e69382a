#include "tools/vortex/build_outputs.h"

#include "base/file.h"

#include <filesystem>
#include <optional>

namespace vortex::tools {

Result<void> BuildOutputs::write(const std::string& folder) const {
  if (!folder.empty())
    if (auto made = base::createFolders(folder); !made)
      return made;
  std::error_code ignored;
  std::vector<std::optional<std::string>> before;
  for (const File& file : files_) {
    std::optional<std::string> old;
    if (std::filesystem::is_regular_file(file.path, ignored))
      if (auto content = base::readFile(file.path))
        old = *std::move(content);
    if (auto written = base::writeFileAtomic(file.path, file.content); !written) {
      for (size_t i = 0; i < before.size(); ++i) {
        if (before[i])
          (void)base::writeFileAtomic(files_[i].path, *before[i]);
        else
          std::filesystem::remove(files_[i].path, ignored);
      }
      return written.takeError();
    }
    before.push_back(std::move(old));
  }
  return {};
}

}  // namespace vortex::tools
