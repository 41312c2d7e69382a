// Numbers in the order of the host, strings and lists after their length. One visitor describes the fields for both directions.
#include "msl/record.h"

#include <cstring>
#include <type_traits>

namespace vortex::msl {
namespace {

struct RecordWriter {
  std::vector<uint8_t> bytes;
  void raw(const void* from, size_t count) {
    const auto* first = static_cast<const uint8_t*>(from);
    bytes.insert(bytes.end(), first, first + count);
  }
  template <typename T> void length(const T& list) {
    const uint64_t count = list.size();
    raw(&count, sizeof count);
  }
};

struct RecordReader {
  std::span<const uint8_t> rest;
  bool isGood = true;
  void raw(void* into, size_t count) {
    isGood = isGood && count <= rest.size();
    if (!isGood || count == 0)
      return;
    std::memcpy(into, rest.data(), count);
    rest = rest.subspan(count);
  }
  /// Every element takes a byte at least: a larger count is damage.
  template <typename T> void length(T& list) {
    uint64_t count = 0;
    raw(&count, sizeof count);
    isGood = isGood && count <= rest.size();
    list.resize(isGood ? count : 0);
  }
};

template <typename A, typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
void visitRecord(A& archive, T& value) {
  archive.raw(&value, sizeof value);
}
template <typename A> void visitRecord(A& archive, std::string& text) {
  archive.length(text);
  archive.raw(text.data(), text.size());
}
template <typename A, typename T> void visitRecord(A& archive, std::vector<T>& list) {
  archive.length(list);
  for (T& each : list)
    visitRecord(archive, each);
}
template <typename A, typename... Fields> void visitAll(A& archive, Fields&... fields) {
  (visitRecord(archive, fields), ...);
}
template <typename A> void visitRecord(A& archive, Note& note) {
  visitAll(archive, note.message, note.file, note.offset);
}
template <typename A> void visitRecord(A& archive, Problem& problem) {
  visitAll(archive, problem.id, problem.message, problem.file, problem.begin, problem.end, problem.notes);
}
template <typename A> void visitRecord(A& archive, Place& place) { visitAll(archive, place.file, place.offset); }
template <typename A> void visitRecord(A& archive, Parameter& parameter) {
  visitAll(archive, parameter.kind, parameter.name, parameter.type, parameter.index, parameter.input,
           parameter.constant, parameter.leastBytes, parameter.place, parameter.elementBytes);
}
template <typename A> void visitRecord(A& archive, Kernel& kernel) {
  visitAll(archive, kernel.name, kernel.parameters, kernel.maxThreads, kernel.place);
}
template <typename A> void visitRecord(A& archive, Constant& constant) {
  visitAll(archive, constant.name, constant.index);
}
template <typename A> void visitRecord(A& archive, BufferUse& use) {
  uint8_t isWritten = use.isWritten;  // a bool that is neither must not be made
  visitAll(archive, use.index, use.elem, use.elemBytes, isWritten);
  use.isWritten = isWritten != 0;
}
template <typename A> void visitRecord(A& archive, Response& response) {
  visitAll(archive, response.problems, response.kernels, response.files, response.constants, response.buffers,
           response.staticThreadgroupBytes, response.module);
}

}  // namespace

std::vector<uint8_t> toBytes(const Response& response) {
  RecordWriter writer;
  Response copy = response;
  visitRecord(writer, copy);
  return std::move(writer.bytes);
}

std::optional<Response> fromBytes(std::span<const uint8_t> bytes) {
  RecordReader reader{bytes};
  Response response;
  visitRecord(reader, response);
  if (!reader.isGood || !reader.rest.empty())
    return std::nullopt;
  return response;
}

}  // namespace vortex::msl
