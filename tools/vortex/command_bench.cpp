// Times functions and kernels marked @bench. A kernel gets random tensors whose extents --dim gives; a function runs as it is.
#include "base/text.h"
#include "host/evaluator.h"
#include "tools/vortex/progress.h"
#include "tools/vortex/session.h"
#include "tools/vortex/settings.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

namespace vortex::tools {
namespace {

struct Measured {
  std::vector<double> seconds;
  double bytes = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double secondsOf(const std::function<bool()>& work, bool& ok) {
  auto start = std::chrono::steady_clock::now();
  ok = work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t dimValue(const Settings& settings, const lang::DimBinding& dim) {
  if (dim.constant)
    return *dim.constant;
  for (const auto& [name, value] : settings.dims)
    if (name == dim.name)
      return value;
  return 1024;
}

class KernelBench {
public:
  KernelBench(Session& session, const lang::Function& kernel) : session_(session), kernel_(kernel) {}

  bool prepare() {
    std::vector<std::optional<lang::DimExpr>> dims;
    for (const lang::DimBinding& dim : kernel_.dims)
      dims.push_back(lang::DimExpr::constant(dimValue(session_.settings(), dim)));
    for (const lang::Variable* param : kernel_.params) {
      lang::Type type = param->type;
      while (type->kind == lang::TypeKind::Ref)
        type = type->elem;
      if (type->kind == lang::TypeKind::Scalar) {
        uint8_t bits[8] = {};
        host::storeScalar(type->scalar, lang::isFloat(type->scalar) ? host::Value(1.0) : host::Value(int64_t{1}), bits);
        uint64_t word;
        std::copy_n(bits, 8, reinterpret_cast<uint8_t*>(&word));
        arguments_.emplace_back(word);
      } else if (!type->isTensor() || type->elem->kind != lang::TypeKind::Scalar || !addTensor(type, dims)) {
        return false;
      }
    }
    return true;
  }

  bool run() {
    auto outcome = session_.backend()->launch(kernel_, arguments_, {});
    if (auto* failure = std::get_if<host::LaunchFailure>(&outcome)) {
      failWith(session_.settings(), failure->id, failure->message);
      return false;
    }
    if (bytes_ == 0) {
      for (const auto* list : {&arguments_, &std::get<std::vector<host::LaunchArgument>>(outcome)})
        for (const host::LaunchArgument& argument : *list)
          if (auto* tensor = std::get_if<host::TensorValue>(&argument))
            bytes_ += static_cast<double>(tensor->elementCount()) * host::byteSize(tensor->type);
    }
    return true;
  }

  /// Every tensor argument and result touched once.
  double bytes() const { return bytes_; }

private:
  bool addTensor(lang::Type type, const std::vector<std::optional<lang::DimExpr>>& dims) {
    host::TensorValue tensor;
    tensor.type = type->elem->scalar;
    for (const lang::DimExpr& dim : type->shape) {
      auto extent = dim.substitute(dims).asConstant();
      if (!extent || *extent < 0)
        return false;
      tensor.extents.push_back(*extent);
    }
    tensor.strides.resize(tensor.extents.size());
    int64_t stride = 1;
    for (size_t dim = tensor.extents.size(); dim-- > 0; stride *= tensor.extents[dim])
      tensor.strides[dim] = stride;
    size_t width = host::byteSize(tensor.type);
    std::vector<uint8_t> bytes(static_cast<size_t>(tensor.elementCount()) * width);
    std::mt19937_64 random(std::random_device{}());
    for (size_t i = 0; i < bytes.size(); i += width) {
      double unit = static_cast<double>(random() >> 11) * 0x1p-53;
      host::storeScalar(tensor.type,
                        lang::isFloat(tensor.type) ? host::Value(2 * unit - 1) : host::Value(int64_t(unit * 100)),
                        &bytes[i]);
    }
    auto buffer = session_.backend()->allocate(bytes.size());
    if (!buffer || !buffer.value()->write(0, bytes)) {
      failWith(session_.settings(), "E0703", buffer ? "the device refused the data" : buffer.error().message);
      return false;
    }
    tensor.buffer = buffer.value();
    arguments_.emplace_back(std::move(tensor));
    return true;
  }

  Session& session_;
  const lang::Function& kernel_;
  std::vector<host::LaunchArgument> arguments_;
  double bytes_ = 0;
};

void print(const std::string& name, Measured& measured) {
  double middle = median(measured.seconds);
  auto [low, high] = std::minmax_element(measured.seconds.begin(), measured.seconds.end());
  std::string line = base::concat(name, ": median ", middle * 1e3, " ms, min ", *low * 1e3, ", max ", *high * 1e3);
  if (measured.bytes > 0)
    line += base::concat(", ", measured.bytes / middle * 1e-9, " GB/s (each tensor once)");
  writeOutput(line + "\n");
}

}  // namespace

int commandBench(const Settings& settings) {
  Session session(settings);
  if (!session.load(settings.files[0]) || !session.backend())
    return 1;
  size_t found = 0;
  for (const auto& function : session.program().functions) {
    if (!function->isBench || function->name.find(settings.filter) == std::string::npos)
      continue;
    ++found;
    Measured measured;
    KernelBench bench(session, *function);
    if (function->isKernel && !bench.prepare())
      return failWith(settings, "E0808",
                      "`" + function->name +
                          "` cannot be timed alone: give its dimensions with --dim, or mark a `fn` with @bench");
    auto once = [&] { return function->isKernel ? bench.run() : session.run(*function) == 0; };
    Progress progress("bench " + function->name);
    bool ok = once();  // compiles and warms up
    for (int i = 0; i < settings.samples && ok; ++i)
      measured.seconds.push_back(secondsOf(once, ok));
    progress.finish();
    if (!ok)
      return 1;
    measured.bytes = bench.bytes();
    print(function->name, measured);
  }
  if (found == 0)
    return failWith(settings, "E0808", nothingMarked(settings, "@bench"));
  return 0;
}

}  // namespace vortex::tools
