#include "runtime/cpu/elf_file.h"

#include "base/text.h"

#include <cstring>
#include <optional>

namespace vortex::cpu {

using base::concat;

namespace {

Error malformed(const std::string& reason) { return {"malformed object: " + reason}; }

/// A copy: fields of a file need not be aligned. The caller has checked the range.
template <typename T> T readAt(std::span<const uint8_t> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool isInside(std::span<const uint8_t> bytes, uint64_t offset, uint64_t count) {
  return offset <= bytes.size() && count <= bytes.size() - offset;
}

/// The zero-terminated text at an offset of a string table.
std::optional<std::string_view> textAt(std::span<const uint8_t> table, uint64_t offset) {
  if (offset >= table.size())
    return std::nullopt;
  const char* start = reinterpret_cast<const char*>(table.data()) + offset;
  const void* end = std::memchr(start, 0, table.size() - offset);
  if (!end)
    return std::nullopt;
  return std::string_view(start, static_cast<const char*>(end) - start);
}

class Parser {
public:
  explicit Parser(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  Result<ElfFile> run() {
    for (auto step : {&Parser::readHeader, &Parser::readSections, &Parser::selectSections, &Parser::readSymbols,
                      &Parser::readRelocations})
      if (Result<void> done = (this->*step)(); !done)
        return done.takeError();
    return std::move(file_);
  }

private:
  Result<void> readHeader() {
    if (bytes_.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0)
      return malformed(concat(bytes_.size(), " bytes that are no ELF file"));
    header_ = readAt<Elf64_Ehdr>(bytes_, 0);
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB || header_.e_type != ET_REL)
      return malformed("not a 64-bit little-endian relocatable ELF file");
    if (header_.e_machine != EM_X86_64)
      return Error{concat("the object is for ",
                          header_.e_machine == EM_AARCH64 ? "aarch64" : concat("machine ", header_.e_machine),
                          ", this loader takes x86-64")};
    if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shnum == 0)
      return malformed(concat(header_.e_shnum, " section headers of ", header_.e_shentsize, " bytes"));
    if (!isInside(bytes_, header_.e_shoff, uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr)))
      return malformed(
          concat(header_.e_shnum, " section headers at ", header_.e_shoff, " exceed the ", bytes_.size(), " bytes"));
    return {};
  }

  Result<void> readSections() {
    for (uint32_t i = 0; i < header_.e_shnum; ++i) {
      ElfFile::Section section;
      section.header = readAt<Elf64_Shdr>(bytes_, header_.e_shoff + uint64_t{i} * sizeof(Elf64_Shdr));
      const Elf64_Shdr& header = section.header;
      if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL) {
        if (!isInside(bytes_, header.sh_offset, header.sh_size))
          return malformed(concat("section ", i, ": ", header.sh_size, " bytes at ", header.sh_offset, " exceed the ",
                                  bytes_.size(), " bytes"));
        section.content = bytes_.subspan(header.sh_offset, header.sh_size);
      }
      file_.sections.push_back(section);
    }
    if (header_.e_shstrndx >= file_.sections.size())
      return malformed(concat("section names in section ", header_.e_shstrndx, " of ", file_.sections.size()));
    const std::span<const uint8_t> names = file_.sections[header_.e_shstrndx].content;
    for (ElfFile::Section& section : file_.sections) {
      const std::optional<std::string_view> name = textAt(names, section.header.sh_name);
      if (!name)
        return malformed(concat("section name at ", section.header.sh_name, " of ", names.size()));
      section.name = *name;
    }
    return {};
  }

  /// Decides what is needed at run time and refuses what this loader does not do.
  Result<void> selectSections() {
    for (ElfFile::Section& section : file_.sections) {
      const Elf64_Shdr& header = section.header;
      if (header.sh_type == SHT_NULL || !(header.sh_flags & SHF_ALLOC))
        continue;
      if (header.sh_flags & SHF_TLS)
        return Error{concat("section ", section.name, ": thread-local data is not supported")};
      if (header.sh_flags & SHF_COMPRESSED)
        return Error{concat("section ", section.name, ": compressed sections are not supported")};
      if ((header.sh_flags & SHF_EXECINSTR) && (header.sh_flags & SHF_WRITE))
        return Error{concat("section ", section.name, " is writable and executable")};
      if (header.sh_type == SHT_INIT_ARRAY || header.sh_type == SHT_FINI_ARRAY || header.sh_type == SHT_PREINIT_ARRAY)
        return Error{concat("section ", section.name, ": static initialisers are not supported")};
      if (header.sh_addralign > 1 && (header.sh_addralign & (header.sh_addralign - 1)) != 0)
        return malformed(concat("section ", section.name, " has alignment ", header.sh_addralign));
      const bool isContent = header.sh_type == SHT_PROGBITS || header.sh_type == SHT_NOBITS;
      section.loads = isContent && section.name != ".eh_frame" && !section.name.starts_with(".note");
    }
    return {};
  }

  Result<void> readSymbols() {
    const ElfFile::Section* table = nullptr;
    for (const ElfFile::Section& section : file_.sections) {
      if (section.header.sh_type != SHT_SYMTAB)
        continue;
      if (table)
        return malformed("two symbol tables");
      table = &section;
      symbolTable_ = static_cast<uint32_t>(&section - file_.sections.data());
    }
    if (!table)
      return {};
    if (table->header.sh_entsize != sizeof(Elf64_Sym) || table->content.size() % sizeof(Elf64_Sym) != 0 ||
        table->header.sh_link >= file_.sections.size())
      return malformed(concat("symbol table of ", table->content.size(), " bytes"));
    const std::span<const uint8_t> names = file_.sections[table->header.sh_link].content;
    for (uint64_t at = 0; at < table->content.size(); at += sizeof(Elf64_Sym)) {
      ElfFile::Symbol symbol{readAt<Elf64_Sym>(table->content, at), {}};
      const std::optional<std::string_view> name =
          symbol.entry.st_name == 0 ? std::string_view() : textAt(names, symbol.entry.st_name);
      if (!name)
        return malformed(concat("symbol name at ", symbol.entry.st_name, " of ", names.size()));
      symbol.name = *name;
      const uint16_t section = symbol.entry.st_shndx;
      if (section < SHN_LORESERVE && section >= file_.sections.size())
        return malformed(concat("symbol '", symbol.name, "' in section ", section, " of ", file_.sections.size()));
      file_.symbols.push_back(symbol);
    }
    return {};
  }

  Result<void> readRelocations() {
    for (const ElfFile::Section& section : file_.sections) {
      const Elf64_Shdr& header = section.header;
      if (header.sh_type != SHT_RELA && header.sh_type != SHT_REL)
        continue;
      if (header.sh_info >= file_.sections.size())
        return malformed(concat("relocations for section ", header.sh_info, " of ", file_.sections.size()));
      const ElfFile::Section& target = file_.sections[header.sh_info];
      if (!target.loads)
        continue;
      if (header.sh_type == SHT_REL)
        return Error{concat("section ", section.name, ": relocations without addend are not used on x86-64")};
      if (header.sh_entsize != sizeof(Elf64_Rela) || section.content.size() % sizeof(Elf64_Rela) != 0 ||
          header.sh_link != symbolTable_)
        return malformed(concat("section ", section.name, " of ", section.content.size(), " bytes"));
      for (uint64_t at = 0; at < section.content.size(); at += sizeof(Elf64_Rela))
        if (Result<void> added = addRelocation(readAt<Elf64_Rela>(section.content, at), header.sh_info); !added)
          return added;
    }
    return {};
  }

  Result<void> addRelocation(const Elf64_Rela& entry, uint32_t section) {
    const ElfFile::Section& target = file_.sections[section];
    const auto symbol = static_cast<uint32_t>(ELF64_R_SYM(entry.r_info)),
               type = static_cast<uint32_t>(ELF64_R_TYPE(entry.r_info));
    if (type == R_X86_64_NONE)
      return {};
    if (symbol >= file_.symbols.size())
      return malformed(concat("relocation of ", target.name, " by symbol ", symbol, " of ", file_.symbols.size()));
    const bool wide = type == R_X86_64_64 || type == R_X86_64_PC64 || type == R_X86_64_GOTOFF64 ||
                      type == R_X86_64_GOTPC64 || type == R_X86_64_GOT64 || type == R_X86_64_GOTPCREL64 ||
                      type == R_X86_64_PLTOFF64;
    const uint64_t width = wide ? 8 : 4;
    if (target.header.sh_type == SHT_NOBITS || !isInside(target.content, entry.r_offset, width))
      return malformed(concat("relocation at ", entry.r_offset, " of ", target.name, ", which has ",
                              target.content.size(), " bytes"));
    file_.relocations.push_back({section, entry.r_offset, type, symbol, entry.r_addend});
    return {};
  }

  std::span<const uint8_t> bytes_;
  Elf64_Ehdr header_{};
  uint32_t symbolTable_ = UINT32_MAX;
  ElfFile file_;
};

}  // namespace

Result<ElfFile> ElfFile::parse(std::span<const uint8_t> bytes) { return Parser(bytes).run(); }

}  // namespace vortex::cpu
