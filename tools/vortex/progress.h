#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace vortex::tools {

/// A status line on stderr while something takes longer than half a second, when stderr is a terminal; nothing otherwise.
class Progress {
public:
  explicit Progress(std::string what);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Removes the line. Idempotent.
  void finish();

private:
  void show();

  std::string what_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace vortex::tools
