// The files of one `vortex build`: all of them are written, or none.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

namespace vortex::tools {

class BuildOutputs {
public:
  void add(std::string path, std::string content) { files_.push_back({std::move(path), std::move(content)}); }
  /// Makes the folder, and every file in it. Error: the first that cannot be written; those before it are again what they were.
  Result<void> write(const std::string& folder) const;

private:
  struct File {
    std::string path, content;
  };
  std::vector<File> files_;
};

}  // namespace vortex::tools
