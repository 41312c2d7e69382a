#include "tools/vortex/interpreter_backend.h"

#include "base/memory.h"
#include "base/text.h"
#include "lang/sema/element.h"
#include "tools/vortex/device_backend.h"

#include <algorithm>
#include <cstring>

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

host::LaunchFailure toFailure(const interpreter::Finding& finding) {
  host::LaunchFailure failure{interpreter::idOf(finding), finding.message,         finding.location.file,
                              finding.location.line,      finding.location.column, {}};
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
  if (std::optional<std::string> problem = base::outOfMemory(bytes))
    return Error{*problem};
  return std::shared_ptr<host::DeviceBuffer>(std::make_shared<HostBuffer>(std::vector<uint8_t>(bytes)));
}

host::LaunchOutcome InterpreterBackend::launch(const lang::Function& kernel,
                                               std::span<const host::LaunchArgument> arguments,
                                               const host::LaunchSize& size) {
  pipeline::Failure problem;
  irgen::Options request = launchRequest(kernel, arguments, size);
  request.forChecks = options_.check;
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
  options.trustsProofs = options_.trustsProofs;
  options.seed = options_.seed;
  options.grid = size.grid;
  options.maxSteps = options_.check ? options_.maxSteps : 0;
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
