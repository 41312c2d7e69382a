// A buffer is written as TYPE:VALUES (`f32:1,2,3`), TYPE[COUNT] (zeros) or the path of a .npy file.
#include "tools/vortex/metal_launch.h"

#include "base/file.h"
#include "base/text.h"
#include "host/npy.h"
#include "msl/launch_file.h"
#include "session/request.h"
#include "tools/vortex/device_backend.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

namespace vortex::tools {
namespace {

using artifact::ScalarType;
using base::Error;
using base::Result;

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = std::min(text.find(by, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<int64_t> number(const std::string& text) {
  int64_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    return Error{"`" + text + "` is not a whole number"};
  return value;
}

/// A count that is too large for any of them is the largest.
Result<int64_t> countOf(const std::string& text) {
  const bool hasDigits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return hasDigits && text.size() > 18 ? Result<int64_t>(INT64_MAX) : number(text);
}

/// "N=TEXT"
Result<std::pair<uint32_t, std::string>> indexed(const std::string& text) {
  size_t equals = text.find('=');
  auto index = number(text.substr(0, equals));
  if (equals == std::string::npos || !index || *index < 0 || *index > 1 << 20)
    return Error{"`" + text + "` is not INDEX=VALUE"};
  return std::pair(static_cast<uint32_t>(*index), text.substr(equals + 1));
}

Result<std::array<int64_t, 3>> extents(const std::string& text, const char* what) {
  std::array<int64_t, 3> values{1, 1, 1};
  std::vector<std::string> parts = split(text, ',');
  if (parts.size() > 3)
    return Error{base::concat(what, " has at most three extents, not `", text, "`")};
  for (size_t i = 0; i < parts.size(); ++i) {
    auto value = countOf(parts[i]);
    if (!value || *value < 0)
      return Error{base::concat(what, " `", text, "` is not X,Y,Z")};
    if (*value > INT32_MAX)
      return Error{base::concat(what, " `", text, "` is too large: an extent is at most ", INT32_MAX)};
    values[i] = *value;
  }
  return values;
}

/// The bits of a number that the type holds: what is too large for it is refused, not cut.
Result<uint64_t> bitsOf(ScalarType type, const std::string& text) {
  const auto tooLarge = [&] { return Error{base::concat("`", text, "` does not fit ", artifact::name(type))}; };
  const bool isNegative = text.starts_with('-');
  const char *begin = text.c_str(), *digits = begin + isNegative;
  char* end = nullptr;
  errno = 0;
  uint64_t bits = 0;
  if (artifact::isFloat(type)) {
    const double value = std::strtod(begin, &end);
    bits = artifact::floatBits(type, value);
    const double kept = artifact::floatValue(type, bits);
    if (end != begin && (std::isnan(kept) != std::isnan(value) || std::isinf(kept) != std::isinf(value) ||
                         (errno == ERANGE && std::isinf(value))))
      return tooLarge();
  } else if (*digits >= '0' && *digits <= '9') {
    const uint64_t size = std::strtoull(digits, &end, 0);
    const uint32_t width = type == ScalarType::Bool ? 1 : 8 * artifact::byteSize(type);
    const bool isSigned = ScalarType::I8 <= type && type <= ScalarType::I64;
    const uint64_t most = UINT64_MAX >> (64 - width + isSigned);
    if (errno == ERANGE || size > (isNegative ? (isSigned ? most + 1 : 0) : most))
      return tooLarge();
    bits = isNegative ? 0 - size : size;
  }
  if (text.empty() || end != begin + text.size())
    return Error{base::concat("`", text, "` is no ", artifact::name(type))};
  return bits;
}

Result<MetalBuffer> readBuffer(const std::string& text) {
  MetalBuffer buffer;
  if (text.ends_with(".npy")) {
    auto file = base::readFile(text);
    if (!file)
      return file.takeError();
    auto array = host::parseNpy(*file);
    if (!array)
      return Error{text + ": " + array.error().message};
    return MetalBuffer{session::toArtifact(array->type), array->extents, std::move(array->bytes)};
  }
  size_t end = text.find_first_of(":[");
  auto type = artifact::scalarTypeNamed(text.substr(0, end));
  if (!type || end == std::string::npos)
    return Error{"`" + text + "` is neither TYPE:VALUES, TYPE[COUNT] nor a .npy file"};
  buffer.type = *type;
  if (text[end] == '[') {
    auto count = countOf(text.substr(end + 1, text.size() - end - 2));
    if (!count || *count < 0 || text.back() != ']')
      return Error{"`" + text + "` is not TYPE[COUNT]"};
    if (*count > int64_t{1} << 32)
      return Error{"`" + text + "` is too large: a buffer has at most 4294967296 elements"};
    buffer.bytes.resize(static_cast<size_t>(*count) * artifact::byteSize(*type));
    buffer.extents = {*count};
    return buffer;
  }
  for (const std::string& word : split(text.substr(end + 1), ',')) {
    auto bits = bitsOf(*type, word);
    if (!bits)
      return bits.takeError();
    for (uint32_t i = 0; i < artifact::byteSize(*type); ++i)
      buffer.bytes.push_back(static_cast<uint8_t>(*bits >> (8 * i)));
  }
  buffer.extents = {static_cast<int64_t>(buffer.bytes.size() / artifact::byteSize(*type))};
  return buffer;
}

/// The same as options; those of the command line come after, so they win.
Result<MetalOptions> readOptions(const std::string& path) {
  auto file = base::readFile(path);
  if (!file)
    return file.takeError();
  auto words = msl::readLaunchFile(*file);
  if (!words)
    return Error{path + ": " + words.error().message};
  MetalOptions options;
  for (const auto& [key, word] : *words) {
    std::string* text = key == "kernel"   ? &options.kernel
                        : key == "grid"   ? &options.grid
                        : key == "groups" ? &options.groups
                        : key == "block"  ? &options.block
                                          : nullptr;
    std::vector<std::string>* list = key == "buffers"       ? &options.buffers
                                     : key == "threadgroup" ? &options.threadgroup
                                     : key == "constants"   ? &options.constants
                                     : key == "save"        ? &options.saves
                                                            : nullptr;
    if (text)
      *text = word;
    else if (list)
      list->push_back(word);
    else if (key == "print")
      options.prints = split(word, ',');
    else
      return Error{path + ": `" + key + "` is not understood"};
  }
  return options;
}

/// What is given twice in one place would win without a word. The command line replaces what a file says.
Result<void> refuseTwice(const MetalOptions& options) {
  for (auto [name, member] : {std::pair{"--buffer", &MetalOptions::buffers},
                              {"--threadgroup", &MetalOptions::threadgroup},
                              {"--constant", &MetalOptions::constants},
                              {"--save", &MetalOptions::saves}}) {
    std::set<uint32_t> seen;
    for (const std::string& text : options.*member)
      if (auto pair = indexed(text); pair && !seen.insert(pair->first).second)
        return Error{base::concat(name, " ", pair->first, " is given twice")};
  }
  return {};
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Result<void> readSizes(const MetalOptions& options, MetalLaunch& launch) {
  std::array<int64_t, 3> block{1, 1, 1};
  if (!options.block.empty()) {
    auto read = extents(options.block, "--block");
    if (!read)
      return read.takeError();
    block = *read;
    launch.request.block = block;
  }
  if (!options.groups.empty() && !options.grid.empty())
    return Error{"--grid counts threads and --groups threadgroups: give one of them"};
  auto grid = extents(options.groups.empty() ? options.grid.empty() ? "1" : options.grid : options.groups,
                      options.groups.empty() ? "--grid" : "--groups");
  if (!grid)
    return grid.takeError();
  launch.grid = *grid;
  for (size_t axis = 0; axis < 3 && !options.groups.empty(); ++axis)
    launch.grid[axis] *= block[axis];
  launch.request.isWhole = launch.request.block && !(options.groups.empty() && options.grid.empty());
  for (size_t axis = 0; axis < 3 && launch.request.isWhole; ++axis)
    launch.request.isWhole = block[axis] > 0 && launch.grid[axis] % block[axis] == 0;
  return {};
}

Result<void> readMaps(const MetalOptions& options, MetalLaunch& launch) {
  auto each = [&](const std::vector<std::string>& texts, auto take) -> Result<void> {
    for (const std::string& text : texts) {
      auto pair = indexed(text);
      if (!pair)
        return pair.takeError();
      if (Result<void> taken = take(pair->first, pair->second); !taken)
        return taken;
    }
    return {};
  };
  auto buffers = each(options.buffers, [&](uint32_t index, const std::string& text) -> Result<void> {
    auto buffer = readBuffer(text);
    if (!buffer)
      return Error{base::concat("buffer ", index, ": ", buffer.error().message)};
    launch.buffers[index] = std::move(*buffer);
    return {};
  });
  if (!buffers)
    return buffers;
  auto lengths = each(options.threadgroup, [&](uint32_t index, const std::string& text) -> Result<void> {
    auto bytes = number(text);
    if (!bytes || *bytes <= 0 || *bytes % 16 != 0 || *bytes > 1 << 20)
      return Error{
          base::concat("the length of threadgroup memory ", index, " is a multiple of 16 bytes, not `", text, "`")};
    launch.request.threadgroupBytes[index] = static_cast<uint64_t>(*bytes);
    return {};
  });
  if (!lengths)
    return lengths;
  auto saves = each(options.saves, [&](uint32_t index, const std::string& text) -> Result<void> {
    launch.saves[index] = text;
    return {};
  });
  if (!saves)
    return saves;
  return each(options.constants, [&](uint32_t index, const std::string& text) -> Result<void> {
    char* end = nullptr;
    double value = text == "true" ? 1 : text == "false" ? 0 : std::strtod(text.c_str(), &end);
    if (text.empty() || (end && *end))
      return Error{base::concat("function constant ", index, " is a number, true or false, not `", text, "`")};
    launch.request.constants[index] = value;
    return {};
  });
}

}  // namespace

Result<MetalLaunch> readMetalLaunch(const Settings& settings) {
  MetalOptions options;
  if (!settings.metal.json.empty()) {
    auto read = readOptions(settings.metal.json);
    if (!read)
      return read.takeError();
    options = std::move(*read);
  }
  const MetalOptions inFile = options;
  const MetalOptions& given = settings.metal;
  for (auto member : {&MetalOptions::grid, &MetalOptions::groups, &MetalOptions::block})
    if (!(given.*member).empty())
      options.*member = given.*member;
  if (!settings.kernel.empty())
    options.kernel = settings.kernel;
  for (auto member : {&MetalOptions::buffers, &MetalOptions::threadgroup, &MetalOptions::constants,
                      &MetalOptions::saves, &MetalOptions::prints, &MetalOptions::includes, &MetalOptions::definitions})
    append(options.*member, given.*member);
  MetalLaunch launch;
  launch.request.file = settings.files[0];
  auto text = base::readFile(settings.files[0]);
  if (!text)
    return text.takeError();
  launch.request.text = std::move(*text);
  launch.request.kernel = options.kernel;
  launch.request.includeFolders = options.includes;
  launch.request.definitions = options.definitions;
  if (auto sizes = readSizes(options, launch); !sizes)
    return sizes.takeError();
  if (auto maps = readMaps(options, launch); !maps)
    return maps.takeError();
  for (const MetalOptions* each : {&inFile, &given})
    if (auto once = refuseTwice(*each); !once)
      return once.takeError();
  for (const std::string& index : options.prints) {
    auto value = number(index);
    if (!value || *value < 0 || !launch.buffers.contains(static_cast<uint32_t>(*value)))
      return Error{"--print " + index + ": there is no such buffer"};
    launch.prints.push_back(static_cast<uint32_t>(*value));
  }
  for (const auto& [index, path] : launch.saves)
    if (!launch.buffers.contains(index))
      return Error{base::concat("--save ", index, "=", path, ": there is no such buffer")};
  return launch;
}

std::string printBuffer(const MetalBuffer& buffer) {
  uint32_t size = artifact::byteSize(buffer.type);
  std::vector<std::string> words;
  for (size_t at = 0; at + size <= buffer.bytes.size(); at += size) {
    uint64_t bits = 0;
    std::memcpy(&bits, buffer.bytes.data() + at, size);
    char text[40];
    if (artifact::isFloat(buffer.type)) {
      std::snprintf(text, sizeof text, "%.9g", artifact::floatValue(buffer.type, bits));
    } else if (buffer.type >= ScalarType::I8) {
      int64_t shifted = static_cast<int64_t>(bits << (64 - 8 * size)) >> (64 - 8 * size);
      std::snprintf(text, sizeof text, "%lld", static_cast<long long>(shifted));
    } else {
      std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(bits));
    }
    words.push_back(text);
  }
  return base::join(words, " ");
}

Result<void> saveBuffer(const MetalBuffer& buffer, const std::string& path) {
  return base::writeFileAtomic(path, host::formatNpy({toLanguage(buffer.type), buffer.extents, buffer.bytes}));
}

}  // namespace vortex::tools
