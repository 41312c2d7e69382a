#include "metal/states.h"

#include <algorithm>
#include <cstring>

namespace vortex::metal {

using ComputeState = State<MTL::ComputeCommandEncoder>;
using BlitState = State<MTL::BlitCommandEncoder>;

/// False, and an error of the command buffer: the encoder has ended.
template <class Encoder> static bool isAccepted(const Encoder& encoder, const char* call) {
  if (!encoder.isOpen)
    encoder.misuse(call, "the encoder has ended");
  return encoder.isOpen;
}

template <class Encoder> static void end(Encoder& encoder) {
  if (!encoder.accepts("endEncoding"))
    return;
  encoder.isOpen = false;
  encoder.buffer->state().hasOpenEncoder = false;
}

void ComputeState::misuse(const char* call, const std::string& text) const {
  buffer->state().misuse(concat("MTL::ComputeCommandEncoder::", call, ": ", text));
}
bool ComputeState::accepts(const char* call) const { return isAccepted(*this, call); }

void BlitState::misuse(const char* call, const std::string& text) const {
  buffer->state().misuse(concat("MTL::BlitCommandEncoder::", call, ": ", text));
}
bool BlitState::accepts(const char* call) const { return isAccepted(*this, call); }

Result<void> ComputeState::checkSizes(const std::array<uint64_t, 3>& grid, const MTL::Size& block) const {
  const auto* device = buffer->state().queue->device->object;
  constexpr uint64_t kMostExtent = INT32_MAX;
  for (const uint64_t extent : grid)
    if (extent == 0 || extent > kMostExtent)
      return Error{
          concat("a grid of ", grid[0], " by ", grid[1], " by ", grid[2], extent == 0 ? " is empty" : " is too large")};
  const NS::UInteger most = pipeline->maxThreads;
  const bool isEmpty = block.width == 0 || block.height == 0 || block.depth == 0;
  if (isEmpty || block.width > most || block.height > most || block.depth > most ||
      block.width * block.height * block.depth > most)
    return Error{concat("a threadgroup of ", block.width, " by ", block.height, " by ", block.depth,
                        " threads: the pipeline takes 1 to ", most)};
  uint64_t bytes = pipeline->interface.staticThreadgroupBytes;
  for (const MetalParameter& parameter : pipeline->function->kernel.parameters)
    if (parameter.kind == MetalParameterKind::Threadgroup) {
      const auto given = threadgroupBytes.find(parameter.index);
      if (given == threadgroupBytes.end())
        return Error{concat("`", parameter.name, "` is [[threadgroup(", parameter.index,
                            ")]], whose length setThreadgroupMemoryLength was not given")};
      bytes += given->second;
    }
  if (bytes > device->maxThreadgroupMemoryLength())
    return Error{concat("the kernel needs ", bytes, " bytes of threadgroup memory; the device has ",
                        device->maxThreadgroupMemoryLength())};
  return {};
}

/// Code takes two buffers, of which it writes one, for different memory: views of one buffer begin at different places.
Result<void> ComputeState::bind(Dispatch& dispatch) const {
  const auto& uses = dispatch.variant->buffers;
  for (const MetalBufferUse& use : uses) {
    if (use.index >= kMostIndices || !bindings[use.index].isSet())
      return Error{concat("[[buffer(", use.index, ")]] of `", dispatch.kernel, "` is not set")};
    const Binding& bound = bindings[use.index];
    uint64_t least = use.elemBytes;
    for (const MetalParameter& parameter : pipeline->function->kernel.parameters)
      if (parameter.kind == MetalParameterKind::Buffer && parameter.index == use.index)
        least = std::max<uint64_t>(least, parameter.leastBytes);
    if (bound.bytes() < least)
      return Error{concat("[[buffer(", use.index, ")]] of `", dispatch.kernel, "` has ", bound.bytes(),
                          " bytes; the kernel takes ", least, " at least")};
    if (bound.offset % use.elemBytes != 0)
      return Error{concat("the offset ", bound.offset, " of [[buffer(", use.index, ")]] is no multiple of ",
                          use.elemBytes, ", which `", dispatch.kernel, "` accesses at once")};
    dispatch.bindings.push_back(bound);
  }
  for (size_t i = 0; i < uses.size(); ++i)
    for (size_t j = i + 1; j < uses.size(); ++j) {
      const Binding &one = dispatch.bindings[i], &other = dispatch.bindings[j];
      if (!one.buffer || one.buffer != other.buffer || (!uses[i].isWritten && !uses[j].isWritten))
        continue;
      if (one.offset == other.offset)
        return Error{concat("[[buffer(", uses[i].index, ")]] and [[buffer(", uses[j].index, ")]] of `", dispatch.kernel,
                            "` are the same memory, and the kernel writes it")};
    }
  return {};
}

void ComputeState::dispatch(const char* call, const std::array<uint64_t, 3>& grid, const MTL::Size& block) {
  if (!accepts(call))
    return;
  if (!pipeline)
    return misuse(call, "no pipeline was set");
  if (const Result<void> checked = checkSizes(grid, block); !checked)
    return misuse(call, checked.error().message);
  Dispatch made;
  made.kernel = pipeline->function->kernel.name;
  std::map<uint32_t, uint64_t> lengths;
  for (const MetalParameter& parameter : pipeline->function->kernel.parameters)
    if (parameter.kind == MetalParameterKind::Threadgroup)
      lengths[parameter.index] = threadgroupBytes.at(parameter.index);
  for (size_t axis = 0; axis < 3; ++axis)
    made.grid[axis] = static_cast<int64_t>(grid[axis]);
  made.block = {static_cast<int64_t>(block.width), static_cast<int64_t>(block.height),
                static_cast<int64_t>(block.depth)};
  bool isWhole = true;
  for (size_t axis = 0; axis < 3; ++axis)
    isWhole &= made.grid[axis] % made.block[axis] == 0;
  auto variant = pipeline->variant(made.block, isWhole, lengths);
  if (!variant)
    return misuse(call, variant.error().message);
  made.variant = *std::move(variant);
  if (const Result<void> bound = bind(made); !bound)
    return misuse(call, bound.error().message);
  buffer->state().commands.emplace_back(std::move(made));
}

namespace MTL {

void ComputeCommandEncoder::setComputePipelineState(const ComputePipelineState* pipeline) {
  constexpr const char* kCall = "setComputePipelineState";
  if (!state().accepts(kCall))
    return;
  if (!pipeline)
    return state().misuse(kCall, "the pipeline is null");
  if (pipeline->state().device != state().buffer->state().queue->device)
    return state().misuse(kCall,
                          concat("`", pipeline->state().function->kernel.name, "` is a pipeline of another device"));
  state().pipeline = pipeline->shared();
}

void ComputeCommandEncoder::setBuffer(const Buffer* buffer, NS::UInteger offset, NS::UInteger index) {
  constexpr const char* kCall = "setBuffer";
  if (!state().accepts(kCall))
    return;
  if (index >= kMostIndices)
    return state().misuse(kCall, concat("the index ", index, " is larger than ", kMostIndices - 1));
  if (buffer && buffer->state().device != state().buffer->state().queue->device)
    return state().misuse(kCall, concat("the buffer for index ", index, " is of another device"));
  if (buffer && offset >= buffer->length())
    return state().misuse(kCall, concat("the offset ", offset, " for index ", index, " is not in the buffer's ",
                                        buffer->length(), " bytes"));
  state().bindings[index] = {};
  if (buffer)
    state().bindings[index] = {buffer->shared(), offset, nullptr, 0};
}

void ComputeCommandEncoder::setBufferOffset(NS::UInteger offset, NS::UInteger index) {
  constexpr const char* kCall = "setBufferOffset";
  if (!state().accepts(kCall))
    return;
  if (index >= kMostIndices || !state().bindings[index].buffer)
    return state().misuse(kCall, concat("there is no buffer at index ", index));
  const NS::UInteger length = state().bindings[index].buffer->length;
  if (offset >= length)
    return state().misuse(
        kCall, concat("the offset ", offset, " for index ", index, " is not in the buffer's ", length, " bytes"));
  state().bindings[index].offset = offset;
}

void ComputeCommandEncoder::setBytes(const void* bytes, NS::UInteger length, NS::UInteger index) {
  constexpr const char* kCall = "setBytes";
  if (!state().accepts(kCall))
    return;
  if (index >= kMostIndices)
    return state().misuse(kCall, concat("the index ", index, " is larger than ", kMostIndices - 1));
  if (!bytes || length == 0 || length > kMostInlineBytes)
    return state().misuse(kCall, !bytes ? "the bytes are null"
                                        : concat(length, " bytes for index ", index, ": 1 to ", kMostInlineBytes,
                                                 " can be set, more belong in a buffer"));
  auto copy = std::make_shared<std::vector<uint64_t>>((length + 7) / 8);
  std::memcpy(copy->data(), bytes, length);
  state().bindings[index] = {nullptr, 0, std::move(copy), length};
}

void ComputeCommandEncoder::setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index) {
  constexpr const char* kCall = "setThreadgroupMemoryLength";
  if (!state().accepts(kCall))
    return;
  if (index >= kMostIndices)
    return state().misuse(kCall, concat("the index ", index, " is larger than ", kMostIndices - 1));
  if (length % 16 != 0)
    return state().misuse(kCall, concat("the length ", length, " for index ", index, " is no multiple of 16"));
  if (length == 0)
    state().threadgroupBytes.erase(static_cast<uint32_t>(index));
  else
    state().threadgroupBytes[static_cast<uint32_t>(index)] = length;
}

void ComputeCommandEncoder::dispatchThreads(Size grid, Size block) {
  state().dispatch("dispatchThreads", {grid.width, grid.height, grid.depth}, block);
}

void ComputeCommandEncoder::dispatchThreadgroups(Size groups, Size block) {
  const auto times = [](uint64_t count, uint64_t size) { return count > UINT32_MAX ? count : count * size; };
  constexpr const char* kCall = "dispatchThreadgroups";
  if (state().accepts(kCall) && (block.width == 0 || block.height == 0 || block.depth == 0))
    return state().misuse(kCall, "a threadgroup without threads");
  state().dispatch(
      kCall, {times(groups.width, block.width), times(groups.height, block.height), times(groups.depth, block.depth)},
      block);
}

void ComputeCommandEncoder::endEncoding() { end(state()); }

/// Empty: the range lies in the buffer, which is of the encoder's device.
static std::string problemOf(const State<BlitCommandEncoder>& encoder, const char* what, const Buffer* buffer,
                             NS::UInteger offset, NS::UInteger size) {
  if (!buffer)
    return concat("the ", what, " is null");
  if (buffer->state().device != encoder.buffer->state().queue->device)
    return concat("the ", what, " is of another device");
  if (offset > buffer->length() || size > buffer->length() - offset)
    return concat(size, " bytes from ", offset, " on are not in the ", what, "'s ", buffer->length(), " bytes");
  return size == 0 ? "no bytes" : "";
}

void BlitCommandEncoder::copyFromBuffer(const Buffer* source, NS::UInteger sourceOffset, const Buffer* destination,
                                        NS::UInteger destinationOffset, NS::UInteger size) {
  constexpr const char* kCall = "copyFromBuffer";
  if (!state().accepts(kCall))
    return;
  std::string problem = problemOf(state(), "source", source, sourceOffset, size);
  if (problem.empty())
    problem = problemOf(state(), "destination", destination, destinationOffset, size);
  if (!problem.empty())
    return state().misuse(kCall, problem);
  state().buffer->state().commands.emplace_back(
      Copy{source->shared(), destination->shared(), sourceOffset, destinationOffset, size});
}

void BlitCommandEncoder::fillBuffer(const Buffer* buffer, NS::Range range, uint8_t value) {
  constexpr const char* kCall = "fillBuffer";
  if (!state().accepts(kCall))
    return;
  if (const std::string problem = problemOf(state(), "buffer", buffer, range.location, range.length); !problem.empty())
    return state().misuse(kCall, problem);
  state().buffer->state().commands.emplace_back(Fill{buffer->shared(), range.location, range.length, value});
}

void BlitCommandEncoder::endEncoding() { end(state()); }

}  // namespace MTL
}  // namespace vortex::metal
