#include <elf.h>

#include <cstring>

#include "base/check.h"
#include "target/cpu/codegen/emit_object.h"

namespace vortex::target::cpu::codegen {

const std::vector<std::string>& allowedExternalSymbols() {
  static const std::vector<std::string>* symbols = new std::vector<std::string>{
      "memcpy",
      "memmove",
      "memset",  //
      "sin",
      "cos",
      "tan",
      "asin",
      "acos",
      "atan",
      "sinh",
      "cosh",
      "tanh",
      "cbrt",
      "erf",
      "erfc",
      "pow",
      "fmod",
      "atan2",
      "fma",
      "fmaxf",  // maxnum and minnum of halves, which instruction selection makes of comparisons and choices
      "fminf",  //
      "expm1",
      "log1p",
      "floor",
      "ceil",
      "trunc",
      "round",
      "roundeven",
      "rint",
      "nearbyint",
      "_GLOBAL_OFFSET_TABLE_",  // named by position-independent objects, never dereferenced by ours
  };
  return *symbols;
}

std::vector<std::string> undefinedSymbols(const std::vector<uint8_t>& object) {
  auto header = [&](uint64_t offset) {
    VORTEX_CHECK(offset + sizeof(Elf64_Shdr) <= object.size(), "truncated ELF object");
    Elf64_Shdr section;
    std::memcpy(&section, object.data() + offset, sizeof section);
    return section;
  };
  VORTEX_CHECK(object.size() >= sizeof(Elf64_Ehdr) && std::memcmp(object.data(), ELFMAG, SELFMAG) == 0,
               "not an ELF object");
  Elf64_Ehdr elf;
  std::memcpy(&elf, object.data(), sizeof elf);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < elf.e_shnum; i++) {
    const Elf64_Shdr table = header(elf.e_shoff + uint64_t(i) * elf.e_shentsize);
    if (table.sh_type != SHT_SYMTAB)
      continue;
    const Elf64_Shdr strings = header(elf.e_shoff + uint64_t(table.sh_link) * elf.e_shentsize);
    for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, object.data() + table.sh_offset + at, sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF)
        names.push_back(reinterpret_cast<const char*>(object.data()) + strings.sh_offset + symbol.st_name);
    }
  }
  return names;
}

}  // namespace vortex::target::cpu::codegen
