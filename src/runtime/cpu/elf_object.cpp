// Our own loader, because the runtime is to be free of LLVM (100 MB, 20 ms of start-up) and needs a fraction of what JITLink
// does: one object, no unwinding, no threads, no initialisers, a fixed table of externals.
//
// One mapping: [code, then one jump per external][constants, then one pointer per external or GOT symbol][data]. Externals may
// lie more than 2 GB away, so near references to them go through the jump. Static code (32-bit absolute relocations) is
// placed below 2 GB.
#include "runtime/cpu/elf_object.h"

#include "base/text.h"
#include "runtime/cpu/elf_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>

namespace vortex::cpu {

using base::concat;

namespace {

constexpr uint64_t kJumpBytes = 8;  ///< ff 25 disp32: jmp *disp32(%rip), padded

enum Part { kCode, kConstants, kData, kParts };

Part partOf(const ElfFile::Section& section) {
  if (section.header.sh_flags & SHF_EXECINSTR)
    return kCode;
  // Relocated once at load time, constant from then on.
  const bool constantAfterLoading = section.name.starts_with(".data.rel.ro");
  return (section.header.sh_flags & SHF_WRITE) && !constantAfterLoading ? kData : kConstants;
}

bool usesGot(uint32_t type) {
  return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX ||
         type == R_X86_64_GOT64 || type == R_X86_64_GOTPCREL64;
}

bool isNear(uint32_t type) {
  return type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_32 || type == R_X86_64_32S;
}

}  // namespace

class ObjectLoader {
public:
  ObjectLoader(ElfFile file, LoadedObject::Resolver resolve) : file_(std::move(file)), resolve_(resolve) {}

  Result<std::unique_ptr<LoadedObject>> run() {
    for (auto step : {&ObjectLoader::collectReferences, &ObjectLoader::layOut, &ObjectLoader::map, &ObjectLoader::fill,
                      &ObjectLoader::relocate, &ObjectLoader::protect})
      if (Result<void> done = (this->*step)(); !done)
        return done.takeError();
    publish();
    return std::move(object_);
  }

private:
  bool isGotBase(uint32_t symbol) const { return file_.symbols[symbol].name == "_GLOBAL_OFFSET_TABLE_"; }
  bool isExternal(uint32_t symbol) const {
    return file_.symbols[symbol].entry.st_shndx == SHN_UNDEF && symbol != 0 && !isGotBase(symbol);
  }

  /// Which symbols need a pointer, which a jump, and whether the code must lie low.
  Result<void> collectReferences() {
    for (const ElfFile::Relocation& relocation : file_.relocations) {
      const bool external = isExternal(relocation.symbol);
      if (external && !externals_.contains(relocation.symbol)) {
        const std::string_view name = file_.symbols[relocation.symbol].name;
        void* address = resolve_(name);
        if (!address)
          return Error{concat("the object needs the function '", name, "', which the runtime does not provide")};
        externals_.emplace(relocation.symbol, address);
      }
      if (usesGot(relocation.type) || external)
        pointers_.emplace(relocation.symbol, pointers_.size());
      if (external && (isNear(relocation.type) || relocation.type == R_X86_64_PLTOFF64))
        jumps_.emplace(relocation.symbol, jumps_.size());
      low_ |= relocation.type == R_X86_64_32 || relocation.type == R_X86_64_32S;
    }
    return {};
  }

  Result<void> reserve(uint64_t bytes, uint64_t alignment, uint64_t& offset) {
    const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    alignment = std::max<uint64_t>(alignment, 1);
    if (alignment > page)
      return Error{concat("a section asks for alignment ", alignment, "; at most one page (", page, ") is supported")};
    offset = (total_ + alignment - 1) / alignment * alignment;
    if (bytes > INT64_MAX / 2 || offset > INT64_MAX / 2)
      return Error{concat("malformed object: a section of ", bytes, " bytes")};
    total_ = offset + bytes;
    return {};
  }

  Result<void> layOut() {
    const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    offsets_.assign(file_.sections.size(), 0);
    for (int part = 0; part < kParts; ++part) {
      uint64_t start = 0;
      if (Result<void> done = reserve(0, page, start); !done)
        return done;
      starts_[part] = start;
      for (size_t i = 0; i < file_.sections.size(); ++i) {
        const ElfFile::Section& section = file_.sections[i];
        if (section.loads && partOf(section) == part)
          if (Result<void> done = reserve(section.header.sh_size, section.header.sh_addralign, offsets_[i]); !done)
            return done.error().after(concat("section ", section.name, ": "));
      }
      Result<void> extra = part == kCode        ? reserve(jumps_.size() * kJumpBytes, kJumpBytes, jumpOffset_)
                           : part == kConstants ? reserve(pointers_.size() * 8, 8, pointerOffset_)
                                                : Result<void>();
      if (!extra)
        return extra;
    }
    uint64_t end = 0;
    return reserve(0, page, end);
  }

  Result<void> map() {
    if (total_ == 0)
      return Error{"the object has nothing to load"};
    const int low = low_ ? MAP_32BIT : 0;  // the first 2 GB, where 32 signed bits are an address
    void* base = ::mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | low, -1, 0);
    if (base == MAP_FAILED)
      return Error{concat("cannot map ", total_, " bytes for kernel code", low ? " below 2 GB" : "", ": ",
                          std::strerror(errno))};
    object_.reset(new LoadedObject(static_cast<uint8_t*>(base), total_));
    return {};
  }

  uint64_t address(uint64_t offset) const { return reinterpret_cast<uint64_t>(object_->base_) + offset; }
  uint64_t pointerAddress(uint32_t symbol) const { return address(pointerOffset_ + 8 * pointers_.at(symbol)); }
  uint64_t jumpAddress(uint32_t symbol) const { return address(jumpOffset_ + kJumpBytes * jumps_.at(symbol)); }

  /// Copies the sections, then writes jumps and pointers.
  Result<void> fill() {
    for (size_t i = 0; i < file_.sections.size(); ++i)
      if (file_.sections[i].loads && !file_.sections[i].content.empty())
        std::memcpy(object_->base_ + offsets_[i], file_.sections[i].content.data(), file_.sections[i].content.size());
    for (const auto& [symbol, index] : pointers_) {
      const Result<uint64_t> value =
          externals_.contains(symbol) ? reinterpret_cast<uint64_t>(externals_.at(symbol)) : symbolAddress(symbol);
      if (!value)
        return value.error();
      std::memcpy(object_->base_ + pointerOffset_ + 8 * index, &*value, 8);
    }
    for (const auto& [symbol, index] : jumps_) {
      uint8_t* jump = object_->base_ + jumpOffset_ + kJumpBytes * index;
      const auto distance = static_cast<int32_t>(pointerAddress(symbol) - (jumpAddress(symbol) + 6));
      const uint8_t opcode[2] = {0xff, 0x25};
      std::memcpy(jump, opcode, 2);
      std::memcpy(jump + 2, &distance, 4);
      std::memset(jump + 6, 0xcc, 2);
    }
    return {};
  }

  /// S of the relocation formulas. An external's is its jump, when it has one.
  Result<uint64_t> symbolAddress(uint32_t index) const {
    const ElfFile::Symbol& symbol = file_.symbols[index];
    if (isGotBase(index))
      return address(pointerOffset_);
    if (isExternal(index))
      return jumps_.contains(index) ? jumpAddress(index) : reinterpret_cast<uint64_t>(externals_.at(index));
    if (symbol.entry.st_shndx == SHN_ABS)
      return uint64_t{symbol.entry.st_value};
    if (symbol.entry.st_shndx >= SHN_LORESERVE)
      return Error{concat("symbol '", symbol.name, "' is in the special section ", symbol.entry.st_shndx,
                          ", which is not supported")};
    const ElfFile::Section& section = file_.sections[symbol.entry.st_shndx];
    if (!section.loads)
      return Error{concat("symbol '", symbol.name, "' is in section '", section.name, "', which is not loaded")};
    if (symbol.entry.st_value > section.header.sh_size || ELF64_ST_TYPE(symbol.entry.st_info) == STT_GNU_IFUNC ||
        ELF64_ST_TYPE(symbol.entry.st_info) == STT_TLS)
      return Error{concat("malformed object: symbol '", symbol.name, "' at ", symbol.entry.st_value, " of section ",
                          section.name)};
    return address(offsets_[symbol.entry.st_shndx] + symbol.entry.st_value);
  }

  Result<void> relocate() {
    for (const ElfFile::Relocation& relocation : file_.relocations)
      if (Result<void> done = apply(relocation); !done)
        return done;
    return {};
  }

  /// The value of a relocation, and how it is stored.
  struct Patch {
    uint64_t value;
    enum { Bits64, Signed32, Unsigned32 } form;
  };

  /// Formulas of the x86-64 psABI, table "Relocation Types".
  std::optional<Patch> evaluate(const ElfFile::Relocation& relocation, uint64_t symbol, uint64_t place) const {
    const auto addend = static_cast<uint64_t>(relocation.addend);
    const uint64_t got = address(pointerOffset_);
    switch (relocation.type) {
    case R_X86_64_64: {
      const auto external = externals_.find(relocation.symbol);
      return Patch{(external != externals_.end() ? reinterpret_cast<uint64_t>(external->second) : symbol) + addend,
                   Patch::Bits64};
    }
    case R_X86_64_PC64: return Patch{symbol + addend - place, Patch::Bits64};
    case R_X86_64_PC32:
    case R_X86_64_PLT32: return Patch{symbol + addend - place, Patch::Signed32};
    case R_X86_64_32: return Patch{symbol + addend, Patch::Unsigned32};
    case R_X86_64_32S: return Patch{symbol + addend, Patch::Signed32};
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return Patch{pointerAddress(relocation.symbol) + addend - place, Patch::Signed32};
    case R_X86_64_GOTPCREL64: return Patch{pointerAddress(relocation.symbol) + addend - place, Patch::Bits64};
    case R_X86_64_GOT64: return Patch{pointerAddress(relocation.symbol) - got + addend, Patch::Bits64};
    case R_X86_64_GOTPC32: return Patch{got + addend - place, Patch::Signed32};
    case R_X86_64_GOTPC64: return Patch{got + addend - place, Patch::Bits64};
    case R_X86_64_GOTOFF64:
    case R_X86_64_PLTOFF64: return Patch{symbol - got + addend, Patch::Bits64};
    default: return std::nullopt;
    }
  }

  Result<void> apply(const ElfFile::Relocation& relocation) {
    const Result<uint64_t> symbol = symbolAddress(relocation.symbol);
    if (!symbol)
      return symbol.error();
    const uint64_t offset = offsets_[relocation.section] + relocation.offset;
    const ElfFile::Section& section = file_.sections[relocation.section];
    const std::optional<Patch> patch = evaluate(relocation, *symbol, address(offset));
    if (!patch)
      return Error{concat("section ", section.name, ": relocation type ", relocation.type, " is not supported")};
    uint8_t* target = object_->base_ + offset;
    if (patch->form == Patch::Bits64) {
      std::memcpy(target, &patch->value, 8);
      return {};
    }
    const bool fits = patch->form == Patch::Unsigned32
                          ? patch->value <= UINT32_MAX
                          : static_cast<int64_t>(patch->value) == static_cast<int32_t>(patch->value);
    if (!fits)
      return Error{concat("section ", section.name, ": relocation type ", relocation.type, " against '",
                          file_.symbols[relocation.symbol].name, "' needs the value ",
                          static_cast<int64_t>(patch->value), ", which does not fit 32 bits")};
    const auto low = static_cast<uint32_t>(patch->value);
    std::memcpy(target, &low, 4);
    return {};
  }

  Result<void> protect() {
    const int protections[kParts] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
    for (int part = 0; part < kParts; ++part) {
      const uint64_t begin = starts_[part], end = part + 1 < kParts ? starts_[part + 1] : total_;
      if (begin < end && ::mprotect(object_->base_ + begin, end - begin, protections[part]) != 0)
        return Error{concat("cannot protect ", end - begin, " bytes of kernel code: ", std::strerror(errno))};
    }
    return {};
  }

  void publish() {
    for (uint32_t i = 0; i < file_.symbols.size(); ++i) {
      const ElfFile::Symbol& symbol = file_.symbols[i];
      const uint16_t section = symbol.entry.st_shndx;
      const bool global =
          ELF64_ST_BIND(symbol.entry.st_info) == STB_GLOBAL || ELF64_ST_BIND(symbol.entry.st_info) == STB_WEAK;
      if (!global || section == SHN_UNDEF || section >= file_.sections.size() ||
          partOf(file_.sections[section]) != kCode)
        continue;
      if (const Result<uint64_t> address = symbolAddress(i))
        object_->functions_.emplace(symbol.name, reinterpret_cast<void*>(*address));
    }
  }

  ElfFile file_;
  LoadedObject::Resolver resolve_;
  std::unordered_map<uint32_t, void*> externals_;  ///< by symbol index, as the next two
  std::unordered_map<uint32_t, uint64_t> pointers_, jumps_;
  std::vector<uint64_t> offsets_;  ///< of each loaded section in the mapping
  uint64_t starts_[kParts] = {};
  uint64_t jumpOffset_ = 0, pointerOffset_ = 0, total_ = 0;
  bool low_ = false;
  std::unique_ptr<LoadedObject> object_;
};

Result<std::unique_ptr<LoadedObject>> LoadedObject::load(std::span<const uint8_t> bytes, Resolver resolve) {
#if defined(__x86_64__)
  Result<ElfFile> file = ElfFile::parse(bytes);
  if (!file)
    return file.takeError();
  return ObjectLoader(std::move(*file), resolve).run();
#else
  (void)bytes, (void)resolve;
  return Error{"kernels cannot be loaded on this host yet: the object loader supports x86-64 only"};
#endif
}

LoadedObject::~LoadedObject() { ::munmap(base_, bytes_); }

void* LoadedObject::find(const std::string& symbol) const {
  const auto found = functions_.find(symbol);
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace vortex::cpu
