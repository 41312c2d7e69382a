#include "tools/vortex/interpreter_backend.h"

#include "base/text.h"
#include "lang/sema/element.h"
#include "tools/vortex/device_backend.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace vortex::tools {
namespace {

class HostBuffer : public host::DeviceBuffer {
public:
  explicit HostBuffer(std::vector<uint8_t> bytes) : bytes(std::move(bytes)) {}
  size_t byteSize() const override { return bytes.size(); }
  Result<void> read(size_t offset, std::span<uint8_t> to) override {
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(offset), to.size(), to.begin());
    return {};
  }
  Result<void> write(size_t offset, std::span<const uint8_t> from) override {
    std::ranges::copy(from, bytes.begin() + static_cast<ptrdiff_t>(offset));
    return {};
  }
  std::vector<uint8_t> bytes;
};

const char* idOf(interpreter::Finding::Kind kind) {
  using Kind = interpreter::Finding::Kind;
  switch (kind) {
  case Kind::Assertion: return "E0704";
  case Kind::Bounds: return "E0601";
  case Kind::Uninitialised: return "E0602";
  case Kind::Race: return "E0603";
  case Kind::Divergence: return "E0604";
  case Kind::Overflow: return "E0605";
  case Kind::Constraint:
  case Kind::Shape: return "E0712";
  }
  VORTEX_UNREACHABLE();
}

host::LaunchFailure toFailure(const interpreter::Finding& finding) {
  host::LaunchFailure failure{idOf(finding.kind),    finding.message,         finding.location.file,
                              finding.location.line, finding.location.column, {}};
  for (const auto& note : finding.notes)
    failure.notes.push_back(note.location.file.empty()
                                ? note.message
                                : base::concat(note.message, " (", note.location.file, ":", note.location.line, ":",
                                               note.location.column, ")"));
  return failure;
}

/// The language's results, taken out of a tuple.
std::vector<lang::Type> resultTypes(const lang::Function& kernel) {
  lang::Type type = kernel.resultType;
  if (!type || type->kind == lang::TypeKind::Unit)
    return {};
  return type->kind == lang::TypeKind::Tuple ? type->elems : std::vector{type};
}

/// The planes of one result; the fields of an array of structs are views of the first one's storage.
void addResult(lang::Type type, std::span<interpreter::Argument> arguments,
               std::vector<host::LaunchArgument>& outputs) {
  lang::ElementLayout layout = lang::elementLayout(type->elem);
  std::shared_ptr<HostBuffer> structs;
  for (size_t plane = 0; plane < layout.leaves.size(); ++plane) {
    interpreter::Argument& value = arguments[plane];
    const lang::ElementLeaf& leaf = layout.leaves[plane];
    host::TensorValue tensor;
    tensor.type = leaf.scalar;
    tensor.extents = value.extents;
    tensor.strides = value.strides.empty() ? hal::contiguousStrides(value.extents) : value.strides;
    if (!structs || !layout.isInterleaved)
      structs = std::make_shared<HostBuffer>(std::move(value.storage));
    tensor.offset = layout.isInterleaved ? leaf.offset / host::byteSize(leaf.scalar) : 0;
    tensor.buffer = structs;
    outputs.emplace_back(std::move(tensor));
  }
}

}  // namespace

Result<std::shared_ptr<host::DeviceBuffer>> InterpreterBackend::allocate(size_t bytes) {
  uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  if (bytes > memory / 2)
    return Error{base::concat("out of memory: ", bytes, " bytes requested, the interpreter may use ", memory / 2)};
  return std::shared_ptr<host::DeviceBuffer>(std::make_shared<HostBuffer>(std::vector<uint8_t>(bytes)));
}

host::LaunchOutcome InterpreterBackend::launch(const lang::Function& kernel,
                                               std::span<const host::LaunchArgument> arguments,
                                               const host::LaunchSize& size) {
  pipeline::Failure problem;
  irgen::Options request = launchRequest(kernel, arguments, size);
  request.reportsOverflow = options_.check;
  auto module = compiler_.module(kernel, request, false, problem);
  if (!module)
    return host::LaunchFailure{"E0713", problem.message, problem.file, problem.line, problem.column, {}};
  auto interpreter = interpreter::Interpreter::create(*module);
  if (!interpreter)
    return host::LaunchFailure{"E0713", interpreter.error().message, {}, 0, 0, {}};

  std::vector<interpreter::Argument> values;
  for (const host::LaunchArgument& argument : arguments) {
    if (auto* bits = std::get_if<uint64_t>(&argument)) {
      values.push_back(interpreter::Argument::bits(*bits));
      continue;
    }
    const auto& tensor = std::get<host::TensorValue>(argument);
    auto* data = static_cast<HostBuffer&>(*tensor.buffer).bytes.data();
    values.push_back(interpreter::Argument::tensor(data + tensor.offset * host::byteSize(tensor.type), tensor.extents,
                                                   tensor.strides));
  }
  interpreter::Options options;
  options.check = options.overflow = options_.check;
  options.seed = options_.seed;
  options.print = [this](std::string_view text) {
    if (options_.output)
      options_.output(std::string(text) + "\n");
  };
  auto findings = interpreter->run(values, options);
  if (!findings)
    return host::LaunchFailure{"E0712", findings.error().message, {}, 0, 0, {}};
  if (!findings->empty())
    return toFailure(findings->front());

  std::vector<host::LaunchArgument> outputs;
  std::span<interpreter::Argument> made = std::span(values).subspan(arguments.size());
  for (lang::Type type : resultTypes(kernel)) {
    if (type->isTensor()) {
      size_t planes = lang::scalarCount(type->elem);
      addResult(type, made.first(planes), outputs);
      made = made.subspan(planes);
      continue;
    }
    uint64_t bits = 0;
    std::memcpy(&bits, made[0].data, host::byteSize(type->scalar));
    outputs.emplace_back(bits);
    made = made.subspan(1);
  }
  return outputs;
}

}  // namespace vortex::tools
