// Result<T>: a value or an Error. Vortex throws no exceptions.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace vortex {

namespace detail {
/// Reading the wrong side of a Result is a mistake of the caller: print why and abort.
[[noreturn]] inline void failAccess(const char* message) {
  std::fprintf(stderr, "vortex: unchecked result: %s\n", message);
  std::abort();
}
}  // namespace detail

/// What tells errors apart for a caller who does not read messages.
enum class ErrorKind : uint8_t {
  Failed,       ///< arguments, a program, a file or a device do not allow it
  OutOfMemory,  ///< a device or the host has too little memory left
  Fault         ///< a kernel stopped while it ran, see Stream::lastFault
};

/// The world said no (driver, file, memory). The message carries the numbers that decided it.
struct Error {
  std::string message;
  ErrorKind kind = ErrorKind::Failed;

  /// The same error with words before its message.
  Error after(std::string_view words) const { return {std::string(words) + message, kind}; }
};

/// A value or an Error. `if (!result) return result.takeError();`
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return checked(), *std::get_if<0>(&state_); }
  const T& value() const& { return checked(), *std::get_if<0>(&state_); }
  T&& value() && { return checked(), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    if (ok())
      detail::failAccess("the result holds no error");
    return *std::get_if<1>(&state_);
  }
  Error takeError() {
    if (ok())
      detail::failAccess("the result holds no error");
    return std::move(*std::get_if<1>(&state_));
  }

private:
  void checked() const {
    if (!ok())
      detail::failAccess(error().message.c_str());
  }

  std::variant<T, Error> state_;
};

/// Success, or an Error. `return {};` is success.
template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  void value() const {
    if (!ok())
      detail::failAccess(error_.message.c_str());
  }
  const Error& error() const {
    if (ok())
      detail::failAccess("the result holds no error");
    return error_;
  }
  Error takeError() {
    if (ok())
      detail::failAccess("the result holds no error");
    return std::move(error_);
  }

private:
  bool failed_ = false;
  Error error_;
};

}  // namespace vortex
