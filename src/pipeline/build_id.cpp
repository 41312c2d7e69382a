#include "pipeline/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace vortex::pipeline {

static std::string hex(const unsigned char* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

static bool containsThisCode(const dl_phdr_info& object) {
  const uint64_t here = reinterpret_cast<uint64_t>(&containsThisCode);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    const uint64_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && here >= begin && here < begin + segment.p_memsz)
      return true;
  }
  return false;
}

/// The NT_GNU_BUILD_ID note of the object that holds the compiler, which may be a library that another program loaded.
static int findBuildId(dl_phdr_info* object, size_t, void* result) {
  if (!containsThisCode(*object))
    return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const char* at = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const char* content = name + ((note.n_namesz + 3u) & ~3u);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        *static_cast<std::string*>(result) = hex(reinterpret_cast<const unsigned char*>(content), note.n_descsz);
      at = content + ((note.n_descsz + 3u) & ~3u);
    }
  }
  return 1;
}

const std::string& buildId() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(findBuildId, &found);
    return found;
  }();
  return id;
}

}  // namespace vortex::pipeline
