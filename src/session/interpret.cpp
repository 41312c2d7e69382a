#include "base/text.h"
#include "interpreter/interpreter.h"
#include "session/program_state.h"
#include "session/request.h"

#include <cstring>

namespace vortex {

using base::concat;

namespace {

std::vector<lang::Type> resultTypes(const lang::Function& kernel) {
  const lang::Type type = kernel.resultType;
  if (!type || type->kind == lang::TypeKind::Unit)
    return {};
  return type->kind == lang::TypeKind::Tuple ? type->elems : std::vector{type};
}

Result<HostResult> takeResult(lang::Type type, interpreter::Argument& made) {
  const lang::Type element = type->isTensor() ? type->elem : type;
  if (element->kind != lang::TypeKind::Scalar)
    return Error{"results of structs are not available from the interpreter here"};
  HostResult result;
  result.dtype = static_cast<DType>(session::toArtifact(element->scalar));
  result.extents = made.extents;
  result.bytes = std::move(made.storage);
  return result;
}

}  // namespace

Result<std::vector<HostResult>> Program::interpret(std::string_view kernel, std::span<const HostArgument> arguments,
                                                   const BuildRequest& request, const InterpretOptions& options) const {
  const std::scoped_lock lock(state_->mutex);
  const Result<const lang::Function*> found = state_->require(kernel);
  if (!found)
    return found.error();
  Result<irgen::Options> fixed = session::toIrgen(**found, request);
  if (!fixed)
    return fixed.takeError();
  fixed->forChecks = options.check;
  pipeline::Failure failure;
  auto module = state_->compiler("cpu", request.useCache).module(**found, *fixed, false, failure);
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
  auto findings = interpreter->run(values, run);
  if (!findings)
    return findings.takeError();
  if (!findings->empty())
    return Error{concat(interpreter::idOf(findings->front().kind), ": ", interpreter::toText(findings->front()))};
  std::vector<HostResult> results;
  size_t next = arguments.size();
  for (const lang::Type type : resultTypes(**found)) {
    Result<HostResult> result = takeResult(type, values[next++]);
    if (!result)
      return result.takeError();
    results.push_back(*std::move(result));
  }
  return results;
}

}  // namespace vortex
