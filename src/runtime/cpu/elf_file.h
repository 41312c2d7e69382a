#pragma once

#include "base/result.h"

#include <cstdint>
#include <elf.h>
#include <span>
#include <string_view>
#include <vector>

namespace vortex::cpu {

/// The tables of a relocatable ELF64 x86-64 file, bounds-checked: section ranges lie inside the file, names end, symbols refer to
/// existing sections, relocations to existing symbols and to offsets inside their section. Views into the caller's bytes.
struct ElfFile {
  struct Section {
    Elf64_Shdr header;
    std::string_view name;
    std::span<const uint8_t> content;  ///< empty for SHT_NOBITS
    bool loads = false;                ///< needed at run time: allocated, and neither unwind tables nor notes
  };
  struct Symbol {
    Elf64_Sym entry;
    std::string_view name;  ///< of a section symbol: empty
  };
  struct Relocation {
    uint32_t section;  ///< that is patched
    uint64_t offset;   ///< in it
    uint32_t type;     ///< R_X86_64_…
    uint32_t symbol;   ///< index into symbols
    int64_t addend;
  };
  std::vector<Section> sections;
  std::vector<Symbol> symbols;
  std::vector<Relocation> relocations;  ///< of sections that load

  static Result<ElfFile> parse(std::span<const uint8_t> bytes);
};

}  // namespace vortex::cpu
