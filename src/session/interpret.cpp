#include "base/text.h"
#include "interpreter/interpreter.h"
#include "lang/sema/element.h"
#include "session/program_state.h"
#include "session/request.h"

#include <cstring>
#include <span>

namespace vortex {

using base::concat;

namespace {

std::vector<lang::Type> resultTypes(const lang::Function& kernel) {
  const lang::Type type = kernel.resultType;
  if (!type || type->kind == lang::TypeKind::Unit)
    return {};
  return type->kind == lang::TypeKind::Tuple ? type->elems : std::vector{type};
}

/// The elements in row-major order: one scalar of a struct lies apart from that of the next.
std::vector<uint8_t> gather(const interpreter::Argument& from, size_t size) {
  size_t count = 1;
  for (const int64_t extent : from.extents)
    count *= static_cast<size_t>(extent);
  std::vector<uint8_t> bytes(count * size);
  for (size_t i = 0; i < count; ++i) {
    int64_t at = 0;
    size_t rest = i;
    for (size_t dim = from.extents.size(); dim-- > 0;) {
      const auto extent = static_cast<size_t>(from.extents[dim]);
      at += static_cast<int64_t>(rest % extent) * from.strides[dim];
      rest /= extent;
    }
    std::memcpy(bytes.data() + i * size, static_cast<const uint8_t*>(from.data) + at * static_cast<int64_t>(size),
                size);
  }
  return bytes;
}

HostResult takeResult(lang::Scalar type, bool isTensor, interpreter::Argument& made) {
  HostResult result;
  result.dtype = static_cast<DType>(session::toArtifact(type));
  result.extents = isTensor ? made.extents : std::vector<int64_t>();
  result.bytes = made.strides.empty() ? std::move(made.storage)
                                      : gather(made, (static_cast<size_t>(lang::bitWidth(type)) + 7) / 8);
  return result;
}

/// A tensor of structs comes as one result for each scalar in them. With `@layout(aos)` the first owns the memory of all.
void takeResults(lang::Type type, std::span<interpreter::Argument>& made, std::vector<HostResult>& results) {
  std::vector<lang::Scalar> scalars;
  if (type->isTensor())
    for (const lang::ElementLeaf& leaf : lang::elementLayout(type->elem).leaves)
      scalars.push_back(leaf.scalar);
  else
    scalars = {type->kind == lang::TypeKind::Enum ? lang::Scalar::I32 : type->scalar};
  for (size_t i = 0; i < scalars.size(); ++i)
    results.push_back(takeResult(scalars[i], type->isTensor(), made[i]));
  made = made.subspan(scalars.size());
}

ErrorKind kindOf(interpreter::Finding::Kind finding) {
  using Kind = interpreter::Finding::Kind;
  switch (finding) {
  case Kind::Memory: return ErrorKind::OutOfMemory;
  case Kind::Constraint:
  case Kind::Shape: return ErrorKind::Failed;
  default: return ErrorKind::Fault;
  }
}

}  // namespace

Result<std::vector<HostResult>> Program::interpret(std::string_view kernel, std::span<const HostArgument> arguments,
                                                   const BuildRequest& request, const InterpretOptions& options) const {
  const std::scoped_lock lock(state_->mutex);
  Result<State::Asked> asked = state_->ask(kernel, request);
  if (!asked)
    return asked.takeError();
  asked->options.forChecks = options.check;
  pipeline::Failure failure;
  auto module = asked->compiler.module(asked->kernel, asked->options, false, failure);
  if (!module)
    return Error{failure.message};
  auto interpreter = interpreter::Interpreter::create(*module);
  if (!interpreter)
    return interpreter.takeError();
  std::vector<interpreter::Argument> values;
  for (const HostArgument& argument : arguments)
    values.push_back(argument.extents.empty() && !argument.data
                         ? interpreter::Argument::bits(argument.bits)
                         : interpreter::Argument::tensor(argument.data, argument.extents, argument.strides));
  interpreter::Options run;
  run.check = run.overflow = options.check;
  run.seed = options.seed;
  run.print = options.print;
  run.grid = options.grid;
  if (options.started)
    options.started();
  auto findings = interpreter->run(values, run);
  if (!findings)
    return findings.takeError();
  if (!findings->empty()) {
    const interpreter::Finding& first = findings->front();
    if (options.stopped)
      options.stopped({std::string(kernel), interpreter::idOf(first), first.message, first.location.file,
                       first.location.line, first.location.column});
    return Error{concat(interpreter::idOf(first), ": ", interpreter::toText(first)), kindOf(first.kind)};
  }
  std::vector<HostResult> results;
  std::span<interpreter::Argument> made = std::span(values).subspan(arguments.size());
  for (const lang::Type type : resultTypes(asked->kernel))
    takeResults(type, made, results);
  return results;
}

}  // namespace vortex
