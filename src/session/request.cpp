#include "session/request.h"

#include "base/text.h"
#include "lang/sema/kernel/default_block.h"
#include "lang/sema/kernel/specialised_dims.h"
#include "pipeline/compiler.h"

#include <cstdlib>

namespace vortex::session {

using base::concat;

std::set<std::string> dimensionsOf(const lang::Program& program) {
  std::set<std::string> names = program.fixedDims;
  for (const lang::Function* kernel : program.kernels)
    for (const lang::DimBinding& dim : kernel->dims)
      names.insert(dim.name);
  return names;
}

artifact::ScalarType toArtifact(lang::Scalar type) {
  using artifact::ScalarType;
  using lang::Scalar;
  switch (type) {
  case Scalar::Bool: return ScalarType::Bool;
  case Scalar::U8: return ScalarType::U8;
  case Scalar::U16: return ScalarType::U16;
  case Scalar::U32: return ScalarType::U32;
  case Scalar::U64:
  case Scalar::Usize: return ScalarType::U64;
  case Scalar::I8: return ScalarType::I8;
  case Scalar::I16: return ScalarType::I16;
  case Scalar::I32: return ScalarType::I32;
  case Scalar::I64: return ScalarType::I64;
  case Scalar::F8E4M3: return ScalarType::F8E4M3;
  case Scalar::F8E5M2: return ScalarType::F8E5M2;
  case Scalar::F16: return ScalarType::F16;
  case Scalar::BF16: return ScalarType::BF16;
  case Scalar::F32: return ScalarType::F32;
  case Scalar::F64: return ScalarType::F64;
  }
  VORTEX_UNREACHABLE();
}

std::vector<std::pair<uint32_t, uint32_t>> fixedExtents(const lang::Function& kernel) {
  std::vector<std::pair<uint32_t, uint32_t>> fixed;
  for (const lang::DimVarId id : lang::specialisedDims(kernel))
    if (const lang::DimBinding& dim = kernel.dims[id]; dim.param)
      fixed.emplace_back(irgen::launchArgument(kernel, *dim.param, dim.fieldPath), dim.isScalarValue ? 0 : dim.dim);
  return fixed;
}

std::optional<std::array<int64_t, 3>> uncheckedBlock(const lang::Function& kernel, const BuildRequest& request) {
  const lang::KernelSpec& spec = *kernel.kernel;
  const bool isUsual = !request.block && spec.block.empty() && spec.gridKind == lang::GridKind::Explicit && !spec.tile;
  if ((!request.block && !isUsual) || spec.checkedBlocks.empty())
    return std::nullopt;
  const std::array<int64_t, 3> block = request.block.value_or(lang::defaultBlock(spec, {}));
  const bool isAny = spec.block.empty();  // what the kernel computes is the size of its own blocks alone
  const auto isLike = [&](const auto& checked) {
    return std::equal(block.begin(), block.end(), checked.begin(),
                      [&](int64_t threads, std::optional<int64_t> each) { return each ? each == threads : isAny; });
  };
  return std::ranges::any_of(spec.checkedBlocks, isLike) ? std::nullopt : std::optional(block);
}

Result<irgen::Options> toIrgen(const lang::Function& kernel, const BuildRequest& request) {
  irgen::Options options;
  options.isGridGiven = request.isGridGiven;
  options.block = request.block;
  options.dims.resize(kernel.dims.size());
  for (const lang::DimVarId id : lang::specialisedDims(kernel)) {
    const lang::DimBinding& dim = kernel.dims[id];
    if (!dim.param)
      continue;
    const uint32_t argument = irgen::launchArgument(kernel, *dim.param, dim.fieldPath);
    const bool isGiven = argument < request.extents.size() && request.extents[argument];
    const size_t position = dim.isScalarValue ? 0 : dim.dim;
    if (!isGiven || position >= request.extents[argument]->size())
      return Error{concat("kernel '", kernel.name, "' is compiled for one value of `", dim.name,
                          "`: shared or local memory depends on it")};
    options.dims[id] = (*request.extents[argument])[position];
  }
  std::vector<std::optional<lang::DimExpr>> known;
  for (const std::optional<int64_t>& dim : options.dims)
    known.push_back(dim ? std::optional(lang::DimExpr::constant(*dim)) : std::nullopt);
  for (size_t id = 0; id < kernel.dims.size(); ++id)
    if (const auto& factor = kernel.dims[id].factor; factor && options.dims[id]) {
      const int64_t times = factor->substitute(known).asConstant().value_or(0);
      options.dims[id] = times == 0 ? 0 : *options.dims[id] / times;
    }
  return options;
}

Result<std::string> compileTarget(std::string_view deviceTarget, std::string_view device) {
  if (deviceTarget.starts_with("metal"))
    return std::string(deviceTarget);
  if (!deviceTarget.starts_with("sm_"))
    return std::string("cpu");
  const auto number = [](std::string_view target) { return std::atoi(std::string(target.substr(3)).c_str()); };
  std::string best;
  for (const std::string& name : pipeline::targetNames())
    if (name.starts_with("sm_") && number(name) <= number(deviceTarget) &&
        (best.empty() || number(name) > number(best)))
      best = name;
  if (best.empty())
    return Error{concat(device, " is ", deviceTarget, ", older than every GPU that kernels can be compiled for: ",
                        base::join(pipeline::targetNames(), ", "))};
  return best;
}

}  // namespace vortex::session
