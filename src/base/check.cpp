#include "base/check.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace vortex::base {
namespace {

std::atomic<CheckHandler> checkHandler{nullptr};

[[noreturn]] void finish() {
  std::fputc('\n', stderr);
  std::fflush(stderr);
  // exchange: a check that fails inside the handler must not call it again.
  if (CheckHandler handler = checkHandler.exchange(nullptr))
    handler();
  std::abort();
}

void printPlace(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "internal error: %s at %s:%d", condition, file, line);
}

}  // namespace

void failCheck(const char* condition, const char* file, int line, const char* format, ...) {
  printPlace(condition, file, line);
  std::fputs(": ", stderr);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  finish();
}

void failCheck(const char* condition, const char* file, int line) {
  printPlace(condition, file, line);
  finish();
}

void setCheckHandler(CheckHandler handler) { checkHandler = handler; }

}  // namespace vortex::base
