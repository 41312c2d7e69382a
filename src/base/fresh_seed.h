// Seeds of random tests: other ones on every run, and printed, so that a failure can be repeated.
#pragma once

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <source_location>
#include <string_view>

namespace vortex::base {

/// A seed for one random generator, which goes to stderr together with the place that asks. With a number in VORTEX_SEED it is that number;
/// any other text there gives every place seeds of its own that are the same in the next run with that text.
inline unsigned freshSeed(std::source_location place = std::source_location::current()) {
  static std::atomic<unsigned> asked = 0;
  const unsigned count = asked++;
  const std::string_view file =
      std::string_view(place.file_name()).substr(std::string_view(place.file_name()).rfind('/') + 1);
  unsigned seed = 0;
  if (const char* given = std::getenv("VORTEX_SEED")) {
    const std::string_view text = given;
    auto [end, error] = std::from_chars(text.begin(), text.end(), seed);
    if (error != std::errc() || end != text.end()) {
      uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
      auto add = [&](unsigned byte) { hash = (hash ^ byte) * 0x100000001b3; };
      for (char c : text)
        add(static_cast<unsigned char>(c));
      for (char c : file)
        add(static_cast<unsigned char>(c));
      for (unsigned number : {unsigned(place.line()), count})
        for (int shift = 0; shift < 32; shift += 8)
          add(number >> shift & 255);
      seed = static_cast<unsigned>(hash ^ hash >> 32);
    }
  } else {
    seed = std::random_device{}();
  }
  std::fprintf(stderr, "%.*s:%u: VORTEX_SEED=%u\n", int(file.size()), file.data(), unsigned(place.line()), seed);
  return seed;
}

}  // namespace vortex::base
