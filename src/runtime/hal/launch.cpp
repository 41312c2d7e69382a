#include "runtime/hal/launch.h"

#include "artifact/steps.h"
#include "base/tensor_bytes.h"
#include "base/text.h"
#include "runtime/hal/overlap.h"
#include "runtime/hal/phase_maker.h"

#include <algorithm>

namespace vortex::hal {

using artifact::Access;
using artifact::Param;
using base::concat;

namespace {

std::string describe(const Argument& argument) {
  if (const Tensor* tensor = std::get_if<Tensor>(&argument))
    return concat("a tensor ", name(tensor->type), "[", base::join(tensor->extents, ", "), "]");
  return concat("a scalar ", name(std::get<Scalar>(argument).type));
}

std::string describe(const Param& param) {
  if (param.isTensor)
    return concat("a tensor of ", name(param.type), " and rank ", param.rank);
  return concat("a scalar ", name(param.type));
}

/// One launch being prepared. `check…` members return the first error; slots fill up in the order of the kernel's parameters.
class Preparation {
public:
  Preparation(Device& device, const KernelRef& kernel, std::span<const Argument> arguments, LaunchOptions& options,
              Stream* stream)
      : device_(device), stream_(stream), kernel_(kernel->artifact()),
        sizes_(kernel->sizes(),
               {.grid = options.grid.value_or(std::array<int64_t, 3>{}), .clusters = {device.info().workers}}),
        arguments_(arguments), options_(options) {
    launch_.kernel = kernel;
    launch_.print = std::move(options.print);
    launch_.slots.reserve(kernel_.slotCount);
    const size_t tensors = kernel_.params.size() + kernel_.results.size() + kernel_.temporaries.size();
    launch_.keepAlive.reserve(tensors);
    views_.reserve(tensors);
  }

  Result<Launch> run() {
    if (launch_.kernel->device() != &device_)
      return fail(concat("it was loaded on another device than '", device_.info().name, "'"));
    for (auto step : {&Preparation::checkGrid, &Preparation::countClusters, &Preparation::addArguments,
                      &Preparation::checkConstraints, &Preparation::addResults, &Preparation::checkAliasing,
                      &Preparation::takeSteps, &Preparation::addTemporaries, &Preparation::addPhases})
      if (Result<void> done = (this->*step)(); !done)
        return done.takeError();
    if (Result<void> bound = launch_.kernel->bind(launch_); !bound)
      return fail(bound.error());
    return std::move(launch_);
  }

private:
  Error fail(const Error& reason) const { return launchError(kernel_, reason); }
  Error fail(std::string reason) const { return launchError(kernel_, std::move(reason)); }

  Result<void> checkGrid() {
    const std::optional<std::array<int64_t, 3>>& grid = options_.grid;
    if (launch_.kernel->sizes().takesGrid() != grid.has_value())
      return fail(grid ? "it has a grid of its own, and its launch gives another"
                       : "its launch must give the numbers of blocks: `.launch(grid = …)`");
    for (int64_t blocks : grid.value_or(std::array<int64_t, 3>{}))
      if (blocks < 0 || blocks > INT32_MAX)
        return fail(concat("it has an impossible grid of ", base::join(*grid, " x ")));
    return {};
  }

  /// The device counts them only for kernels that want to know.
  Result<void> countClusters() {
    for (auto [row, blocks] : launch_.kernel->sizes().clusters()) {
      if (blocks == 1)
        continue;
      const Result<uint32_t> clusters = device_.residentClusters(blocks);
      if (!clusters)
        return fail(clusters.error());
      sizes_.setClusters(blocks, *clusters);
    }
    return {};
  }

  Result<void> addArguments() {
    if (arguments_.size() != kernel_.params.size())
      return fail(concat("it takes ", kernel_.params.size(), " arguments, ", arguments_.size(), " given"));
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const Param& param = kernel_.params[i];
      const std::string what = "argument '" + param.name + "'";
      const Tensor* tensor = std::get_if<Tensor>(&arguments_[i]);
      const Scalar* scalar = std::get_if<Scalar>(&arguments_[i]);
      const bool matches = param.isTensor ? tensor && tensor->type == param.type && tensor->extents.size() == param.rank
                                          : scalar && scalar->type == param.type;
      if (!matches)
        return fail(concat(what, " is ", describe(param), ", given ", describe(arguments_[i])));
      if (scalar) {
        launch_.slots.push_back(scalar->bits);
        continue;
      }
      if (Result<void> added = addTensor(what, param, *tensor); !added)
        return added;
    }
    return {};
  }

  /// Checks the view and appends its slots. Views are remembered for the aliasing check.
  Result<void> addTensor(const std::string& what, const Param& param, const Tensor& tensor) {
    if (!tensor.buffer)
      return fail(what + " has no buffer");
    if (tensor.buffer->device() != &device_)
      return fail(concat(what, " lives on another device than '", device_.info().name, "'"));
    if (param.access != Access::Read && tensor.buffer->isReadOnly())
      return fail(what + " is written, but its buffer wraps constant memory");
    for (int64_t extent : tensor.extents)
      if (extent < 0)
        return fail(concat(what, " has the negative extent ", extent));
    const bool rowMajor = tensor.strides.empty() && !tensor.extents.empty();
    if (!rowMajor && tensor.strides.size() != tensor.extents.size())
      return fail(concat(what, " has ", tensor.extents.size(), " extents and ", tensor.strides.size(), " strides"));
    View view{what,
              param.access != Access::Read,
              param.type,
              tensor.buffer->address() + tensor.byteOffset,
              tensor.extents.size(),
              std::vector<int64_t>(3 * tensor.extents.size())};
    std::copy(tensor.extents.begin(), tensor.extents.end(), view.numbers.begin());
    if (rowMajor)
      std::ranges::copy(contiguousStrides(tensor.extents), view.part(1).begin());
    else
      std::ranges::copy(tensor.strides, view.part(1).begin());
    if (Result<void> checked = checkBounds(view, tensor); !checked)
      return checked;
    launch_.slots.push_back(view.address);
    for (int64_t extent : view.extents())
      launch_.slots.push_back(static_cast<uint64_t>(extent));
    for (int64_t stride : view.strides())
      launch_.slots.push_back(static_cast<uint64_t>(stride));
    launch_.keepAlive.push_back(tensor.buffer);
    views_.push_back(std::move(view));
    return {};
  }

  struct View {
    std::string what;
    bool written;
    artifact::ScalarType type;
    uint64_t address;
    size_t rank;
    std::vector<int64_t> numbers;  ///< extents, strides, strides in bytes: one allocation on the way of every launch
    std::span<int64_t> part(size_t number) { return std::span(numbers).subspan(number * rank, rank); }
    std::span<const int64_t> part(size_t number) const { return std::span(numbers).subspan(number * rank, rank); }
    std::span<const int64_t> extents() const { return part(0); }
    std::span<const int64_t> strides() const { return part(1); }
    Footprint footprint() const { return {address, byteSize(type), extents(), part(2)}; }
  };

  Result<void> checkBounds(View& view, const Tensor& tensor) const {
    const uint32_t elementBytes = byteSize(view.type);
    if (view.address % elementBytes != 0)
      return fail(concat(view.what, " starts at byte offset ", tensor.byteOffset,
                         ", which is no multiple of its elements' ", elementBytes, " bytes"));
    const Result<uint64_t> count = base::tensorBytes(view.what, view.extents(), elementBytes);
    if (!count)
      return fail(count.error());
    __int128 first = tensor.byteOffset, last = first + (*count == 0 ? 0 : elementBytes);
    for (size_t k = 0; k < view.rank; ++k) {
      const __int128 reach = static_cast<__int128>(view.strides()[k]) * (view.extents()[k] - 1) * elementBytes;
      if (*count != 0)
        (reach < 0 ? first : last) += reach;
      view.part(2)[k] = static_cast<int64_t>(static_cast<uint64_t>(view.strides()[k]) * elementBytes);
    }
    if (*count == 0 || (first >= 0 && last <= static_cast<__int128>(tensor.buffer->bytes())))
      return {};
    return fail(concat(view.what, " with extents [", base::join(view.extents(), ", "), "] and strides [",
                       base::join(view.strides(), ", "), "] at byte offset ", tensor.byteOffset,
                       " leaves its buffer of ", tensor.buffer->bytes(), " bytes"));
  }

  Result<void> checkConstraints() {
    sizes_.advance(launch_.slots);
    for (const artifact::Constraint& constraint : kernel_.constraints) {
      if (sizes_[constraint.condition] != 0)
        continue;
      return fail(messageOf(constraint, sizes_));
    }
    return {};
  }

  Result<void> addResults() {
    if (options_.results.size() > kernel_.results.size())
      return fail(concat("storage for ", options_.results.size(), " results given, it has ", kernel_.results.size()));
    for (size_t i = 0; i < kernel_.results.size(); ++i) {
      const Param& param = kernel_.results[i];
      const std::optional<Tensor> given = i < options_.results.size() ? options_.results[i] : std::nullopt;
      Result<Tensor> result = given                                     ? checkResult(param, *given)
                              : options_.allocate && !param.structBytes ? makeResult(i, param)
                                                                        : allocate("result", param);
      if (!result)
        return result.takeError();
      if (param.fieldOffset == 0)
        structsBegin_ = result->byteOffset;
      if (Result<void> added = addTensor("result '" + param.name + "'", param, *result); !added)
        return added;
      if (param.zeroFill && param.fieldOffset == 0)  // structs whole, at their first field
        launch_.zeroFills.push_back({result->buffer, result->byteOffset, bytesFrom(*result, param)});
      launch_.results.push_back(std::move(*result));
    }
    return {};
  }

  static uint32_t pitch(const Param& param) { return param.structBytes ? param.structBytes : byteSize(param.type); }

  /// Fields of structs are `structBytes` apart.
  static std::vector<int64_t> stridesOf(const Param& param, std::span<const int64_t> extents) {
    std::vector<int64_t> strides = contiguousStrides(extents);
    for (int64_t& stride : strides)
      stride = static_cast<int64_t>(static_cast<uint64_t>(stride) * (pitch(param) / byteSize(param.type)));
    return strides;
  }

  /// Of the whole result; the last struct's padding may lie outside of the storage a caller gave.
  static uint64_t bytesFrom(const Tensor& result, const Param& param) {
    return std::min(product(result.extents, pitch(param)).value_or(0), result.buffer->bytes() - result.byteOffset);
  }

  Result<std::vector<int64_t>> extentsOf(const std::string& what, const Param& param) {
    sizes_.advance(launch_.slots);
    std::vector<int64_t> extents;
    for (size::Id id : param.extents) {
      const std::optional<int64_t> extent = sizes_.exactly(id);
      if (!extent)
        return fail(concat("extent ", extents.size(), " of ", what, " does not fit 63 bits"));
      extents.push_back(*extent);
    }
    return extents;
  }

  Result<Tensor> checkResult(const Param& param, const Tensor& given) {
    const Result<std::vector<int64_t>> extents = extentsOf("result '" + param.name + "'", param);
    if (!extents)
      return extents.error();
    const std::vector<int64_t> strides = stridesOf(param, *extents);
    if (given.type != param.type || given.extents != *extents)
      return fail(concat("the storage for result '", param.name, "' is ", describe(Argument(given)), ", needed is ",
                         name(param.type), "[", base::join(*extents, ", "), "]"));
    if (!given.strides.empty() && given.strides != strides)
      return fail(concat("the storage for result '", param.name, "' has strides [", base::join(given.strides, ", "),
                         "]; results are row-major and ",
                         param.structBytes ? concat("structs of ", param.structBytes, " bytes") : "contiguous"));
    Tensor tensor = given;
    tensor.strides = strides;
    return tensor;
  }

  Result<Tensor> makeResult(size_t number, const Param& param) {
    const Result<std::vector<int64_t>> extents = extentsOf("result '" + param.name + "'", param);
    if (!extents)
      return extents.error();
    const Result<Tensor> made = options_.allocate(number, param.type, *extents);
    if (!made)
      return fail(
          made.error().after(concat("result '", param.name, "' of shape [", base::join(*extents, ", "), "]: ")));
    return checkResult(param, *made);
  }

  /// Without a stream: this is on the way of every launch.
  static std::string named(const char* kind, const Param& param) {
    return param.name.empty() ? "an intermediate tensor" : std::string(kind) + " '" + param.name + "'";
  }

  Result<Tensor> allocate(const char* kind, const Param& param) {
    const std::string what = named(kind, param);
    Result<std::vector<int64_t>> extents = extentsOf(what, param);
    if (!extents)
      return extents.takeError();
    Tensor tensor{nullptr, 0, param.type, *std::move(extents), {}};
    if (param.fieldOffset != 0 && !launch_.results.empty()) {  // beside the field before it
      tensor.buffer = launch_.results.back().buffer;
      tensor.byteOffset = structsBegin_ + param.fieldOffset;
      tensor.strides = stridesOf(param, tensor.extents);
      return tensor;
    }
    Result<uint64_t> bytes = tensorBytes(what, param.type, tensor.extents);
    if (bytes && param.structBytes)
      bytes = base::tensorBytes(what, tensor.extents, param.structBytes);
    if (!bytes)
      return fail(bytes.error());
    Result<BufferRef> buffer = stream_ ? stream_->allocate(device_, *bytes) : device_.allocate(*bytes);
    if (!buffer)
      return fail(buffer.error().after(concat(what, " of shape [", base::join(tensor.extents, ", "), "]: ")));
    tensor.buffer = *std::move(buffer);
    tensor.strides = stridesOf(param, tensor.extents);
    return tensor;
  }

  /// Runs before temporaries are added: those are new memory and alias nothing.
  Result<void> checkAliasing() {
    for (size_t i = 0; i < views_.size(); ++i) {
      if (views_[i].written && mayOverlapItself(views_[i].footprint()))
        return fail(concat(views_[i].what, " is written, but its strides [", base::join(views_[i].strides(), ", "),
                           "] make elements share memory"));
      for (size_t j = 0; j < i && !options_.mayOverlap; ++j)
        if ((views_[i].written || views_[j].written) && mayOverlap(views_[i].footprint(), views_[j].footprint()))
          return fail(concat(views_[j].what, " and ", views_[i].what, " share memory, and the kernel writes ",
                             views_[i].written ? views_[i].what : views_[j].what));
    }
    return {};
  }

  Result<void> takeSteps() {
    if (launch_.kernel->readsBack()) {
      taken_.phases = artifact::possiblePhases(kernel_, sizes_, launch_.slots);
      return {};
    }
    Result<artifact::TakenSteps> taken = artifact::takeSteps(kernel_, sizes_, launch_.slots);
    if (!taken)
      return fail(taken.error());
    taken_ = *std::move(taken);
    return {};
  }

  Result<void> addTemporaries() {
    const std::vector<bool> written = writtenTemporaries(kernel_, taken_.phases);
    for (size_t i = 0; i < kernel_.temporaries.size(); ++i) {
      const Param& param = kernel_.temporaries[i];
      temporaries_.emplace_back();
      if (!written[i]) {  // only code that this launch does not reach reads it
        addUnwritten(param);
        continue;
      }
      Result<Tensor> tensor = allocate("temporary", param);
      if (!tensor)
        return tensor.takeError();
      if (Result<void> added = addTensor(named("temporary", param), param, *tensor); !added)
        return added;
      if (param.zeroFill)
        launch_.zeroFills.push_back({tensor->buffer, 0, tensor->buffer->bytes()});
      temporaries_.back() = std::move(tensor->buffer);
    }
    return {};
  }

  void addUnwritten(const Param& temporary) {
    const size_t count = 1 + 2 * size_t{temporary.rank}, end = launch_.slots.size();
    launch_.slots.resize(end + count);
    if (temporary.original != Param::kNoOriginal)
      std::copy_n(launch_.slots.begin() + kernel_.params[temporary.original].firstSlot, count,
                  launch_.slots.begin() + static_cast<ptrdiff_t>(end));
  }

  /// Which of them run is known later, when nothing may fail that could have failed now.
  Result<void> providePossible() {
    for (const uint32_t number : taken_.phases) {
      const artifact::Phase& phase = kernel_.phases[number];
      for (uint32_t version = 0; version <= phase.versions.size(); ++version)
        if (!launch_.kernel->lacks(phase, version))
          if (Result<void> provided = launch_.kernel->provide(phase, version); !provided)
            return fail(provided.error());
    }
    return {};
  }

  Result<void> addPhases() {
    if (launch_.kernel->readsBack()) {
      if (Result<void> provided = providePossible(); !provided)
        return provided;
      launch_.undecided = std::make_shared<Undecided>(Undecided{sizes_, device_.info(), std::move(temporaries_)});
      return {};
    }
    return PhaseMaker(device_.info(), sizes_, launch_).add(taken_);
  }

  Device& device_;
  Stream* stream_;
  const artifact::Kernel& kernel_;
  size::Values sizes_;  ///< of the slots so far
  std::span<const Argument> arguments_;
  LaunchOptions& options_;
  Launch launch_;
  std::vector<View> views_;
  artifact::TakenSteps taken_;
  std::vector<BufferRef> temporaries_;
  uint64_t structsBegin_ = 0;  ///< byte offset of the structs whose fields are being added
};

}  // namespace

std::vector<int64_t> contiguousStrides(std::span<const int64_t> extents) {
  std::vector<int64_t> strides(extents.size());
  uint64_t stride = 1;
  for (size_t k = extents.size(); k-- > 0;) {
    strides[k] = static_cast<int64_t>(stride);
    stride *= extents[k] > 0 ? static_cast<uint64_t>(extents[k]) : 1;  // wraps only if tensorBytes refuses the tensor
  }
  return strides;
}

Result<uint64_t> tensorBytes(const std::string& what, artifact::ScalarType type, std::span<const int64_t> extents) {
  if (type > artifact::ScalarType::F64)
    return Error{concat(what, " of an unknown element type: ", static_cast<unsigned>(type))};
  return base::tensorBytes(what, extents, byteSize(type));
}

Result<Launch> prepare(Device& device, const KernelRef& kernel, std::span<const Argument> arguments,
                       LaunchOptions options, Stream* stream) {
  return Preparation(device, kernel, arguments, options, stream).run();
}

Result<std::vector<Tensor>> launch(Device& device, Stream& stream, const KernelRef& kernel,
                                   std::span<const Argument> arguments, LaunchOptions options) {
  Result<Launch> prepared = prepare(device, kernel, arguments, std::move(options), &stream);
  if (!prepared)
    return prepared.takeError();
  if (Result<void> submitted = stream.submit(*prepared); !submitted)
    return submitted.takeError();
  return std::move(prepared->results);
}

Error launchError(const artifact::Kernel& kernel, const Error& reason) {
  return reason.after(concat("cannot launch kernel '", kernel.name, "': "));
}

}  // namespace vortex::hal
