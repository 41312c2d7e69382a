#include "base/build_id.h"

#include "base/file.h"
#include "base/text.h"

#include <cstring>
#include <elf.h>
#include <optional>

namespace vortex::base {

namespace {

/// Null past the end: a file may be cut off anywhere.
template <typename T> std::optional<T> at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

/// The NT_GNU_BUILD_ID among the notes of a segment; empty: there is none.
std::string buildIdIn(std::string_view notes) {
  const auto padded = [](uint32_t size) { return (uint64_t{size} + 3) & ~uint64_t{3}; };
  uint64_t offset = 0;
  while (const std::optional<Elf64_Nhdr> note = at<Elf64_Nhdr>(notes, offset)) {
    const uint64_t name = offset + sizeof *note, content = name + padded(note->n_namesz);
    if (content > notes.size() || note->n_descsz > notes.size() - content)
      break;
    if (note->n_type == NT_GNU_BUILD_ID && notes.substr(name, note->n_namesz) == std::string_view("GNU", 4))
      return hex(notes.substr(content, note->n_descsz));
    offset = content + padded(note->n_descsz);
  }
  return "";
}

}  // namespace

Result<std::string> buildIdOf(const std::string& path) {
  constexpr size_t kHead = 1 << 14;  // linkers put headers and notes first
  const Result<std::string> file = readFile(path, kHead);
  if (!file)
    return file.error();
  const std::optional<Elf64_Ehdr> header = at<Elf64_Ehdr>(*file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
    return Error{concat(path, " is no 64-bit ELF file")};
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const std::optional<Elf64_Phdr> segment = at<Elf64_Phdr>(*file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || segment->p_type != PT_NOTE || segment->p_offset > file->size())
      continue;
    std::string found = buildIdIn(std::string_view(*file).substr(segment->p_offset, segment->p_filesz));
    if (!found.empty())
      return found;
  }
  return Error{concat(path, " has no build id")};
}

}  // namespace vortex::base
