#include "tools/vortex/progress.h"

#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace vortex::tools {

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (isatty(STDERR_FILENO))
    thread_ = std::thread([this] { show(); });
}

void Progress::show() {
  using namespace std::chrono;
  auto start = steady_clock::now();
  bool shown = false;
  while (!done_) {
    std::this_thread::sleep_for(milliseconds(20));
    auto elapsed = duration_cast<milliseconds>(steady_clock::now() - start).count();
    if (elapsed < 500 || done_)
      continue;
    std::fprintf(stderr, "\r\x1b[K%s … %.1f s", what_.c_str(), static_cast<double>(elapsed) / 1000);
    std::fflush(stderr);
    shown = true;
  }
  if (shown)
    std::fputs("\r\x1b[K", stderr);
}

void Progress::finish() {
  done_ = true;
  if (thread_.joinable())
    thread_.join();
}

}  // namespace vortex::tools
