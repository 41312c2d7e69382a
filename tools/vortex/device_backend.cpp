#include "tools/vortex/device_backend.h"

#include "artifact/device_report.h"
#include "artifact/print_text.h"
#include "base/text.h"
#include "diag/diagnostic.h"
#include "lang/sema/kernel/specialised_dims.h"
#include "pipeline/entry_source.h"
#include "session/request.h"

#include <algorithm>
#include <cstring>

namespace vortex::tools {

using artifact::ScalarType;
using lang::Scalar;
using session::toArtifact;

Scalar toLanguage(ScalarType type) {
  for (int i = 0; i <= static_cast<int>(Scalar::F64); ++i)
    if (auto scalar = static_cast<Scalar>(i); scalar != Scalar::Usize && toArtifact(scalar) == type)
      return scalar;
  VORTEX_UNREACHABLE();
}

irgen::Options launchRequest(const lang::Function& kernel, std::span<const host::LaunchArgument> arguments,
                             const host::LaunchSize& size) {
  irgen::Options request;
  request.isGridGiven = size.grid.has_value();
  request.block = size.block;
  request.dims.resize(kernel.dims.size());
  for (lang::DimVarId id : lang::specialisedDims(kernel)) {
    const lang::DimBinding& dim = kernel.dims[id];
    if (!dim.param)
      continue;
    const host::LaunchArgument& argument = arguments[irgen::launchArgument(kernel, *dim.param, dim.fieldPath)];
    if (auto* tensor = std::get_if<host::TensorValue>(&argument); tensor && dim.dim < tensor->extents.size())
      request.dims[id] = tensor->extents[dim.dim];
    else if (auto* bits = std::get_if<uint64_t>(&argument); bits && dim.isScalarValue)
      request.dims[id] = static_cast<int64_t>(*bits);
  }
  return request;
}

namespace {

class HalBuffer : public host::DeviceBuffer {
public:
  HalBuffer(hal::BufferRef buffer, hal::StreamRef stream) : buffer(std::move(buffer)), stream_(std::move(stream)) {}
  size_t byteSize() const override { return buffer->bytes(); }
  Result<void> read(size_t offset, std::span<uint8_t> to) override {
    return stream_->read(to.data(), buffer, offset, to.size());
  }
  Result<void> write(size_t offset, std::span<const uint8_t> from) override {
    return stream_->write(buffer, offset, from.data(), from.size());
  }
  hal::BufferRef buffer;

private:
  hal::StreamRef stream_;
};

/// Launch order of arguments: the kernel's parameters; types are the artifact's.
hal::Argument toHal(const host::LaunchArgument& argument, ScalarType type) {
  if (auto* bits = std::get_if<uint64_t>(&argument))
    return hal::Scalar{type, *bits};
  const auto& tensor = std::get<host::TensorValue>(argument);
  uint64_t offset = static_cast<uint64_t>(tensor.offset) * host::byteSize(tensor.type);
  return hal::Tensor{static_cast<HalBuffer&>(*tensor.buffer).buffer, offset, toArtifact(tensor.type), tensor.extents,
                     tensor.strides};
}

}  // namespace

Result<std::unique_ptr<DeviceBackend>> DeviceBackend::create(hal::DeviceRef device, pipeline::Compiler& compiler,
                                                             std::function<void(std::string_view)> output) {
  auto stream = device->createStream();
  if (!stream)
    return stream.takeError();
  return std::unique_ptr<DeviceBackend>(
      new DeviceBackend(std::move(device), std::move(stream).value(), compiler, std::move(output)));
}

Result<std::shared_ptr<host::DeviceBuffer>> DeviceBackend::allocate(size_t bytes) {
  auto buffer = device_->allocate(bytes);
  if (!buffer)
    return buffer.takeError();
  return std::shared_ptr<host::DeviceBuffer>(std::make_shared<HalBuffer>(std::move(buffer).value(), stream_));
}

Result<void> DeviceBackend::synchronize() { return stream_->synchronize(); }

hal::KernelRef DeviceBackend::loaded(const lang::Function& kernel, const irgen::Options& request,
                                     host::LaunchFailure& failure) {
  std::vector<int64_t> sizes;
  sizes.push_back(request.isGridGiven);
  for (int64_t extent : request.block.value_or(std::array<int64_t, 3>{-1, -1, -1}))
    sizes.push_back(extent);
  for (const auto& dim : request.dims)
    sizes.push_back(dim.value_or(-1));
  Key key{&kernel, std::move(sizes)};
  if (auto known = kernels_.find(key); known != kernels_.end())
    return known->second;
  pipeline::Failure problem;
  auto planned = compiler_.plan(kernel, request, problem);
  if (!planned.kernel) {
    failure = {"E0713", problem.message, problem.file, problem.line, problem.column, {}};
    return nullptr;
  }
  auto loaded = device_->load(std::move(planned.kernel), std::move(planned.entries));
  if (!loaded) {
    failure = {"E0708", loaded.error().message, {}, 0, 0, {}};
    return nullptr;
  }
  return kernels_[key] = std::move(loaded).value();
}

/// Machine code is made when a kernel is loaded, or when a launch first needs it.
void DeviceBackend::noteLoadTime(const hal::LoadedKernel& kernel) {
  int64_t& known = loadNanoseconds_[&kernel];
  int64_t now = kernel.loadNanoseconds();
  if (now != known)
    compiler_.addTime({kernel.artifact().name, "load", static_cast<double>(now - known) * 1e-6});
  known = now;
}

host::LaunchFailure DeviceBackend::faultOf(const Error& error) {
  auto fault = stream_->lastFault();
  if (!fault)
    return {"E0708", error.message, {}, 0, 0, {}};
  const artifact::Fault& raised = fault->fault;
  if (raised.id == artifact::kDeviceStopped)  // its place is that of the kernel, which every failed launch shows
    return {raised.id, raised.message, {}, 0, 0, {}};
  bool known = diag::findId(raised.id) != nullptr;
  return {known ? raised.id : "E0704", raised.message, raised.file, raised.line, raised.column, {}};
}

host::LaunchOutcome DeviceBackend::launch(const lang::Function& kernel, std::span<const host::LaunchArgument> arguments,
                                          const host::LaunchSize& size) {
  host::LaunchFailure failure;
  hal::KernelRef code = loaded(kernel, launchRequest(kernel, arguments, size), failure);
  if (!code)
    return failure;
  const artifact::Kernel& artifact = code->artifact();
  std::vector<hal::Argument> converted;
  for (size_t i = 0; i < arguments.size(); ++i)
    converted.push_back(toHal(arguments[i], i < artifact.params.size() ? artifact.params[i].type : ScalarType::I64));
  hal::LaunchOptions options;
  options.grid = size.grid;
  options.print = [this](const artifact::Fault& format, std::span<const uint64_t> values) {
    if (output_)
      output_(artifact::printText(format.message, artifact::printKinds(format), values) + "\n");
  };
  auto prepared = hal::prepare(*device_, code, converted, std::move(options));
  if (!prepared)
    return host::LaunchFailure{"E0712", prepared.error().message, {}, 0, 0, {}};
  noteLoadTime(*code);
  auto submitted = stream_->submit(*prepared);
  if (!submitted)
    return host::LaunchFailure{"E0708", submitted.error().message, {}, 0, 0, {}};
  if (auto done = stream_->synchronize(); !done)
    return faultOf(done.error());
  std::vector<host::LaunchArgument> outputs;
  for (size_t i = 0; i < prepared->results.size(); ++i) {
    hal::Tensor& tensor = prepared->results[i];
    bool scalar =
        std::find(artifact.scalarResults.begin(), artifact.scalarResults.end(), i) != artifact.scalarResults.end();
    if (scalar) {
      uint64_t bits = 0;
      uint64_t bytes = artifact::byteSize(tensor.type);
      if (auto read = stream_->read(&bits, tensor.buffer, tensor.byteOffset, bytes); !read)
        return faultOf(read.error());
      outputs.emplace_back(bits);
      continue;
    }
    host::TensorValue value;
    value.type = toLanguage(tensor.type);
    value.offset = static_cast<int64_t>(tensor.byteOffset / artifact::byteSize(tensor.type));
    value.extents = tensor.extents;
    value.strides = tensor.strides.empty() ? hal::contiguousStrides(tensor.extents) : tensor.strides;
    value.buffer = std::make_shared<HalBuffer>(std::move(tensor.buffer), stream_);
    outputs.emplace_back(std::move(value));
  }
  return outputs;
}

}  // namespace vortex::tools
