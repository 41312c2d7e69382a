#include "target/nvidia/assemble.h"

#include "base/file.h"
#include "base/hash.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/FileUtilities.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Program.h>

#include <cstdlib>
#include <cstring>

namespace vortex::target::nvidia {

const std::optional<std::string>& findPtxas() {
  static const std::optional<std::string> found = []() -> std::optional<std::string> {
    if (auto path = llvm::sys::findProgramByName("ptxas"))
      return *path;
    const char* home = std::getenv("CUDA_HOME");
    if (!home)
      return std::nullopt;
    std::string folder = std::string(home) + "/bin";
    if (auto path = llvm::sys::findProgramByName("ptxas", {folder}))
      return *path;
    return std::nullopt;
  }();
  return found;
}

/// The number before `unit` in "… 24 registers, 16 bytes smem".
static int64_t numberBefore(llvm::StringRef line, llvm::StringRef unit) {
  size_t at = line.find(unit);
  if (at == llvm::StringRef::npos)
    return 0;
  llvm::StringRef before = line.take_front(at).rtrim();
  size_t start = before.find_last_not_of("0123456789");
  int64_t number = 0;
  before.drop_front(start == llvm::StringRef::npos ? 0 : start + 1).getAsInteger(10, number);
  return number;
}

static std::vector<EntryFacts> parseFacts(llvm::StringRef log) {
  std::vector<EntryFacts> entries;
  llvm::SmallVector<llvm::StringRef> lines;
  log.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    if (line.contains("Compiling entry function")) {
      entries.emplace_back();
      entries.back().symbol = line.split('\'').second.split('\'').first.str();
      continue;
    }
    if (entries.empty())
      continue;
    EntryFacts& entry = entries.back();
    if (line.contains("stack frame")) {
      entry.stackBytes += numberBefore(line, "bytes stack frame");
      entry.spillStoreBytes += numberBefore(line, "bytes spill stores");
      entry.spillLoadBytes += numberBefore(line, "bytes spill loads");
    } else if (line.contains("Used ")) {
      entry.registers = numberBefore(line, "registers");
      entry.sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  return entries;
}

/// A file that was replaced is another assembler, whatever it says about its version; asking it costs more than small kernels do.
static std::string keyOf(const std::string& ptxas, const std::string& ptx, const std::string& architecture) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(ptxas, status))
    return {};
  base::Hasher hasher;
  hasher.addField("ptxas").addField(ptxas).addNumber(status.getSize());
  hasher.addNumber(static_cast<uint64_t>(status.getLastModificationTime().time_since_epoch().count()));
  return hasher.addField(architecture).addField(ptx).finishHex();
}

static Assembled assembledOf(llvm::StringRef log, llvm::StringRef cubin) {
  return {{cubin.bytes_begin(), cubin.bytes_end()}, parseFacts(log)};
}

/// What keep() stored: the length of the log, the log, the machine code.
static std::optional<Assembled> find(artifact::Cache& cache, const std::string& key) {
  const auto kept = cache.get(key);
  uint64_t length = 0;
  if (!kept || kept->size() < sizeof length)
    return std::nullopt;
  std::memcpy(&length, kept->data(), sizeof length);
  const llvm::StringRef rest =
      llvm::StringRef(reinterpret_cast<const char*>(kept->data()), kept->size()).drop_front(sizeof length);
  if (length > rest.size())
    return std::nullopt;
  return assembledOf(rest.take_front(length), rest.drop_front(length));
}

static void keep(artifact::Cache& cache, const std::string& key, llvm::StringRef log, llvm::StringRef cubin) {
  const uint64_t length = log.size();
  std::vector<uint8_t> bytes(sizeof length);
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes.insert(bytes.end(), log.bytes_begin(), log.bytes_end());
  bytes.insert(bytes.end(), cubin.bytes_begin(), cubin.bytes_end());
  (void)cache.put(key, bytes);  // that nothing can be kept there, the compiler of the text has said
}

Result<Assembled> assemble(const std::string& ptxas, const std::string& ptx, const std::string& architecture,
                           artifact::Cache* cache) {
  const std::string key = cache ? keyOf(ptxas, ptx, architecture) : std::string();
  if (!key.empty())
    if (auto known = find(*cache, key))
      return *std::move(known);
  llvm::SmallString<128> source, object, log;
  for (auto [suffix, path] : {std::pair{"ptx", &source}, {"cubin", &object}, {"log", &log}})
    if (auto error = llvm::sys::fs::createTemporaryFile("vortex", suffix, *path))
      return base::Error{"no temporary file for ptxas: " + error.message()};
  llvm::FileRemover removers[] = {llvm::FileRemover(source), llvm::FileRemover(object), llvm::FileRemover(log)};
  if (auto written = base::writeFileAtomic(source.str().str(), ptx); !written)
    return written.takeError();
  std::string arch = "-arch=" + architecture;
  llvm::StringRef arguments[] = {ptxas, "-v", arch, source, "-o", object};
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), log.str(), log.str()};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, 0, 0, &message);
  auto text = llvm::MemoryBuffer::getFile(log);
  std::string said = text ? (*text)->getBuffer().str() : std::string();
  if (status != 0)
    return base::Error{"ptxas refuses the code: " + (said.empty() ? message : said)};
  auto code = llvm::MemoryBuffer::getFile(object, false, false);
  if (!code)
    return base::Error{"ptxas wrote no object: " + code.getError().message()};
  if (!key.empty())
    keep(*cache, key, said, (*code)->getBuffer());
  return assembledOf(said, (*code)->getBuffer());
}

}  // namespace vortex::target::nvidia
