// Layout, little endian: 8 bytes magic, u32 version, u64 payload length, payload, 16 bytes checksum of everything before.
// Strings, arrays: u64 count, then the elements. One visitor describes the fields for writing and for reading, so the two
// cannot disagree; after changing a field, raise kVersion.
#include "artifact/artifact.h"
#include "artifact/checksum.h"
#include "artifact/validate.h"
#include "base/text.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace vortex::artifact {

namespace {

static_assert(std::endian::native == std::endian::little, "a big-endian host needs byte swaps here");

constexpr char kMagic[8] = {'v', 'o', 'r', 't', 'e', 'x', 'K', '\n'};
constexpr uint32_t kVersion = 16;
constexpr size_t kHeaderBytes = sizeof kMagic + sizeof(uint32_t) + sizeof(uint64_t);

class Writer {
public:
  void raw(const void* bytes, size_t count) {
    const auto* begin = static_cast<const uint8_t*>(bytes);
    bytes_.insert(bytes_.end(), begin, begin + count);
  }
  template <typename T> void scalar(const T& value) { raw(&value, sizeof value); }
  template <typename T> void count(const T& container) { scalar(static_cast<uint64_t>(container.size())); }
  static constexpr bool kIsReader = false;
  std::vector<uint8_t>& bytes() { return bytes_; }

private:
  std::vector<uint8_t> bytes_;
};

class Reader {
public:
  explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {}
  void raw(void* into, size_t count) {
    if (count > rest_.size())
      return fail();
    if (count != 0)
      std::memcpy(into, rest_.data(), count);
    rest_ = rest_.subspan(count);
  }
  template <typename T> void scalar(T& value) { raw(&value, sizeof value); }
  /// Every element takes at least one byte, so a count beyond the rest is damage and must not become an allocation.
  template <typename T> void count(T& container) {
    uint64_t elements = 0;
    scalar(elements);
    if (failed_ || elements > rest_.size())
      failed_ = true;
    else
      container.resize(elements);
  }
  bool complete() const { return !failed_ && rest_.empty(); }
  static constexpr bool kIsReader = true;
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  unsigned nesting = 0;  ///< of the steps being read

private:
  std::span<const uint8_t> rest_;
  bool failed_ = false;
};

template <typename A> void visit(A& archive, std::string& text) {
  archive.count(text);
  archive.raw(text.data(), text.size());
}

template <typename A> void visit(A& archive, bool& value) {
  uint8_t byte = value;
  archive.scalar(byte);
  if (byte > 1)
    byte = 1;
  value = byte != 0;
}

template <typename A, typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
void visit(A& archive, T& value) {
  archive.scalar(value);
}

/// Enumerations outside their range are left to validate(), which names the culprit.
template <typename A> void visit(A& archive, size::Row& row) {
  visit(archive, row.op);
  if (row.op == size::Op::Constant)
    visit(archive, row.value);
  for (uint32_t i = 0; i < size::operandCount(row.op); ++i)
    visit(archive, row.operands[i]);
}

template <typename A, typename T> void visit(A& archive, std::vector<T>& elements);
template <typename A> void visit(A& archive, size::Id& id) { visit(archive, id.index); }
template <typename A> void visit(A& archive, size::Table& table) {
  std::vector<size::Row> rows = table.rows();
  visit(archive, rows);
  table = size::Table(std::move(rows));
}

template <typename A> void visit(A& archive, Param& param) {
  visit(archive, param.name);
  visit(archive, param.type);
  visit(archive, param.isTensor);
  visit(archive, param.rank);
  visit(archive, param.access);
  visit(archive, param.firstSlot);
  visit(archive, param.extents);
  visit(archive, param.zeroFill);
  visit(archive, param.structBytes);
  visit(archive, param.fieldOffset);
  visit(archive, param.original);
}

template <typename A> void visit(A& archive, Constraint& constraint) {
  visit(archive, constraint.condition);
  visit(archive, constraint.message);
  visit(archive, constraint.operands);
}

template <typename A> void visit(A& archive, Version& version) {
  visit(archive, version.when);
  visit(archive, version.symbol);
}

template <typename A> void visit(A& archive, TensorMap& map) {
  visit(archive, map.type);
  visit(archive, map.roundToTf32);
  visit(archive, map.rank);
  visit(archive, map.address);
  for (size::Id& extent : map.extents)
    visit(archive, extent);
  for (size::Id& stride : map.byteStrides)
    visit(archive, stride);
  for (uint32_t& box : map.box)
    visit(archive, box);
  visit(archive, map.swizzleBytes);
}

template <typename A> void visit(A& archive, Phase& phase) {
  visit(archive, phase.symbol);
  for (int axis = 0; axis < 3; ++axis) {
    visit(archive, phase.grid[axis]);
    visit(archive, phase.block[axis]);
  }
  visit(archive, phase.scratchBytes);
  visit(archive, phase.sharedBytes);
  visit(archive, phase.hardwareThreads);
  visit(archive, phase.versions);
  visit(archive, phase.maps);
  for (uint32_t& blocks : phase.cluster)
    visit(archive, blocks);
  visit(archive, phase.isCooperative);
  visit(archive, phase.written);
  visit(archive, phase.name);
}

template <typename A> void visit(A& archive, Run& run) { visit(archive, run.phase); }
template <typename A> void visit(A& archive, Let& let) {
  visit(archive, let.let);
  visit(archive, let.value);
}
template <typename A> void visit(A& archive, Read& read) {
  visit(archive, read.let);
  visit(archive, read.temporary);
}
template <typename A> void visit(A& archive, Case& each) {
  visit(archive, each.name);
  visit(archive, each.needs);
  visit(archive, each.when);
  visit(archive, each.steps);
}
template <typename A> void visit(A& archive, Choose& choose) { visit(archive, choose.cases); }
template <typename A> void visit(A& archive, Loop& loop) {
  visit(archive, loop.name);
  visit(archive, loop.firstLet);
  visit(archive, loop.first);
  visit(archive, loop.next);
  visit(archive, loop.condition);
  visit(archive, loop.steps);
}
template <typename A> void visit(A& archive, Exchange& exchange) {
  visit(archive, exchange.a);
  visit(archive, exchange.b);
}

/// The kind, then its fields. Damage may nest without end, so reading stops where no kernel goes.
template <typename A> void visit(A& archive, Step& step) {
  auto kind = static_cast<uint8_t>(step.what.index());
  visit(archive, kind);
  if constexpr (A::kIsReader) {
    if (kind >= std::variant_size_v<decltype(step.what)> || archive.nesting == kMostNesting)
      return archive.fail();
    [&]<size_t... I>(std::index_sequence<I...>) {
      ((kind == I ? void(step.what.emplace<I>()) : void()), ...);
    }(std::make_index_sequence<std::variant_size_v<decltype(step.what)>>());
    ++archive.nesting;
  }
  std::visit([&](auto& what) { visit(archive, what); }, step.what);
  if constexpr (A::kIsReader)
    --archive.nesting;
}

template <typename A> void visit(A& archive, Fact& fact) {
  visit(archive, fact.key);
  visit(archive, fact.value);
  visit(archive, fact.estimated);
}

template <typename A> void visit(A& archive, SharedTensor& tensor) {
  visit(archive, tensor.name);
  visit(archive, tensor.type);
  visit(archive, tensor.file);
  visit(archive, tensor.line);
  visit(archive, tensor.firstLine);
  visit(archive, tensor.lastLine);
  visit(archive, tensor.bytes);
  visit(archive, tensor.offset);
  visit(archive, tensor.phase);
  visit(archive, tensor.isCompilers);
}

template <typename A> void visit(A& archive, Fault& fault) {
  visit(archive, fault.id);
  visit(archive, fault.message);
  visit(archive, fault.file);
  visit(archive, fault.line);
  visit(archive, fault.column);
}

template <typename A, typename T> void visit(A& archive, std::vector<T>& elements) {
  archive.count(elements);
  if constexpr (std::is_same_v<T, uint8_t>)
    archive.raw(elements.data(), elements.size());
  else
    for (T& element : elements)
      visit(archive, element);
}

template <typename A> void visit(A& archive, Kernel& kernel) {
  visit(archive, kernel.name);
  visit(archive, kernel.target);
  visit(archive, kernel.sizes);
  visit(archive, kernel.params);
  visit(archive, kernel.results);
  visit(archive, kernel.lets);
  visit(archive, kernel.temporaries);
  visit(archive, kernel.constraints);
  visit(archive, kernel.phases);
  visit(archive, kernel.steps);
  visit(archive, kernel.scalarResults);
  visit(archive, kernel.faults);
  visit(archive, kernel.notes);
  visit(archive, kernel.facts);
  visit(archive, kernel.sharedTensors);
  visit(archive, kernel.code);
  visit(archive, kernel.absent);
  visit(archive, kernel.coverage);
  visit(archive, kernel.slotCount);
}

}  // namespace

std::vector<uint8_t> serialize(const Kernel& kernel) {
  Writer writer;
  writer.raw(kMagic, sizeof kMagic);
  writer.scalar(kVersion);
  writer.scalar(uint64_t{0});
  Kernel& fields = const_cast<Kernel&>(kernel);  // the writer only reads; sharing the visitor is worth the cast
  visit(writer, fields);
  std::vector<uint8_t> bytes = std::move(writer.bytes());
  const uint64_t payload = bytes.size() - kHeaderBytes;
  std::memcpy(bytes.data() + kHeaderBytes - sizeof payload, &payload, sizeof payload);
  const Checksum sum = checksum(bytes);
  bytes.insert(bytes.end(), sum.begin(), sum.end());
  return bytes;
}

Result<Kernel> deserialize(const std::vector<uint8_t>& bytes) {
  using base::concat;
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return Error{concat("not a Vortex kernel: ", bytes.size(), " bytes without the expected signature")};
  uint32_t version = 0;
  uint64_t payload = 0;
  std::memcpy(&version, bytes.data() + sizeof kMagic, sizeof version);
  std::memcpy(&payload, bytes.data() + sizeof kMagic + sizeof version, sizeof payload);
  if (version != kVersion)
    return Error{
        concat("the kernel has format version ", version, ", this build reads version ", kVersion, ": build it again")};
  const uint64_t present = bytes.size() - kHeaderBytes;
  if (present < sizeof(Checksum) || payload != present - sizeof(Checksum))
    return Error{concat("the kernel file has another length than it announces: ", payload, " bytes, and it holds ",
                        present < sizeof(Checksum) ? 0 : present - sizeof(Checksum))};
  const std::span<const uint8_t> covered(bytes.data(), bytes.size() - sizeof(Checksum));
  const Checksum sum = checksum(covered);
  if (!std::equal(sum.begin(), sum.end(), bytes.end() - sizeof(Checksum)))
    return Error{concat("the kernel file is damaged: the checksum over ", covered.size(), " bytes does not match")};
  Reader reader(covered.subspan(kHeaderBytes));
  Kernel kernel;
  visit(reader, kernel);
  if (!reader.complete())
    return Error{concat("the kernel file is damaged: ", payload, " bytes do not hold the expected fields")};
  if (Result<void> valid = validate(kernel); !valid)
    return valid.takeError();
  return kernel;
}

}  // namespace vortex::artifact
