#pragma once

namespace vortex::base {

/// Prints "internal error: <condition> at file:line: <message>" to stderr and aborts.
[[noreturn, gnu::format(printf, 4, 5)]] void failCheck(const char* condition, const char* file, int line,
                                                       const char* format, ...);
[[noreturn]] void failCheck(const char* condition, const char* file, int line);

/// Called once by failCheck after the message and before abort, for instance to write a reproducer. One per process.
using CheckHandler = void (*)();
void setCheckHandler(CheckHandler handler);

}  // namespace vortex::base

/// VORTEX_CHECK(condition) or VORTEX_CHECK(condition, "printf format", …): our own mistake, on in release builds.
#define VORTEX_CHECK(condition, ...)                                                                                   \
  (__builtin_expect(static_cast<bool>(condition), 1)                                                                   \
       ? void(0)                                                                                                       \
       : ::vortex::base::failCheck(#condition, __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__))

/// A place that no input can reach.
#define VORTEX_UNREACHABLE(...) ::vortex::base::failCheck("reached", __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__)
