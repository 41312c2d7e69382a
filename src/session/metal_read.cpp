// The cache of readings. An entry is what was read, and the contents of the files that were included; it counts while they are the same. A file that
// appears in a folder searched earlier is not noticed.
#include "session/metal_read.h"

#include "artifact/cache.h"
#include "base/build_id.h"
#include "base/file.h"
#include "base/hash.h"
#include "msl/loader.h"
#include "msl/record.h"

#include <bit>
#include <filesystem>

namespace vortex::session {
namespace {

namespace fs = std::filesystem;

std::string keyOf(const msl::Request& request) {
  const auto reader = base::buildIdOf(msl::readerPath());
  if (!reader)
    return "";
  std::error_code unknown;
  base::Hasher hasher;
  hasher.addField("metal reading").addField(*reader).addField(fs::current_path(unknown).string());
  hasher.addField(request.file).addField(request.text).addField(request.kernel);
  hasher.addNumber(request.lowersOnlyKernel);
  for (const auto* list : {&request.includeFolders, &request.definitions}) {
    hasher.addNumber(list->size());
    for (const std::string& each : *list)
      hasher.addField(each);
  }
  hasher.addNumber(request.block.has_value());
  for (const int64_t extent : request.block.value_or(std::array<int64_t, 3>{}))
    hasher.addNumber(static_cast<uint64_t>(extent));
  hasher.addNumber(request.isCheck).addNumber(request.isWhole).addNumber(request.checksBarriers);
  hasher.addNumber(request.threadgroupBytes.size());
  for (const auto& [index, bytes] : request.threadgroupBytes)
    hasher.addNumber(index).addNumber(bytes);
  for (const auto& [index, value] : request.constants)
    hasher.addNumber(index).addNumber(std::bit_cast<uint64_t>(value));
  return hasher.finishHex();
}

/// Of all included files; the request has the text of its own.
std::string contentsOf(const msl::Request& request, const std::vector<std::string>& files) {
  std::error_code unknown;
  const std::string own = fs::absolute(request.file, unknown).lexically_normal().string();
  base::Hasher hasher;
  for (const std::string& file : files)
    if (file != own) {
      const auto text = base::readFile(file);
      hasher.addField(file).addNumber(text.ok()).addField(text ? *text : std::string());
    }
  return hasher.finishHex();
}

constexpr size_t kHashBytes = 32;

std::optional<msl::Response> findReading(artifact::Cache& cache, const msl::Request& request, const std::string& key) {
  const auto bytes = cache.get(key);
  if (!bytes || bytes->size() < kHashBytes)
    return std::nullopt;
  auto response = msl::fromBytes(std::span(*bytes).subspan(kHashBytes));
  if (!response || contentsOf(request, response->files) != std::string(bytes->begin(), bytes->begin() + kHashBytes))
    return std::nullopt;
  return response;
}

}  // namespace

base::Result<msl::Response> readMetal(const msl::Request& request, bool useCache) {
  artifact::Cache cache;
  const std::string key = useCache ? keyOf(request) : "";
  if (!key.empty())
    if (auto known = findReading(cache, request, key))
      return *std::move(known);
  auto reader = msl::openReader();
  if (!reader)
    return reader.takeError();
  msl::Response response;
  (*reader)(request, response);
  if (!key.empty() && response.problems.empty()) {
    const std::string contents = contentsOf(request, response.files);
    std::vector<uint8_t> entry(contents.begin(), contents.end());
    const std::vector<uint8_t> bytes = msl::toBytes(response);
    entry.insert(entry.end(), bytes.begin(), bytes.end());
    (void)cache.put(key, entry);  // a cache that cannot be written stops nothing
  }
  return response;
}

void reportProblems(const msl::Request& request, const msl::Response& response, source::SourceManager& sources,
                    diag::DiagnosticSink& sink) {
  source::FileId own;
  auto range = [&](const std::string& file, uint32_t begin, uint32_t end) -> source::SourceRange {
    if (file.empty())
      return {};
    if (file == request.file) {
      if (!own.isValid())
        own = sources.addText(request.file, request.text);
      return {own, begin, end};
    }
    const auto id = sources.addFile(file);
    return id ? source::SourceRange{*id, begin, end} : source::SourceRange{};
  };
  for (const msl::Problem& problem : response.problems) {
    diag::Diagnostic diagnostic;
    diagnostic.id = problem.id;
    diagnostic.message = problem.message;
    if (const source::SourceRange place = range(problem.file, problem.begin, problem.end); place.isValid())
      diagnostic.labels.push_back({place, "", true});
    for (const msl::Note& note : problem.notes)
      if (const source::SourceRange place = range(note.file, note.offset, note.offset); place.isValid())
        diagnostic.labels.push_back({place, note.message, false});
    sink.report(std::move(diagnostic));
  }
}

}  // namespace vortex::session
