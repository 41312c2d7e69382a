// Every function template of the public headers with every C++ type that has an element type, and what a line of print reads as.
#include <vortex/kernel_cache.h>
#include <vortex/mirror.h>
#include <vortex/runtime.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#define CHECK(condition)                                                                                               \
  if (!(condition)) {                                                                                                  \
    std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                       \
    std::exit(1);                                                                                                      \
  }

template <typename T> static vortex::DType checkType(const vortex::Device& device, vortex::Stream& stream) {
  constexpr size_t kCount = 3;
  const std::unique_ptr<T[]> values(new T[kCount]{T(1), T(0), T(1)});
  const std::span<T> all(values.get(), kCount);
  const vortex::Tensor uploaded = device.upload<T>(all, {3}).value();
  CHECK(uploaded.type == vortex::dtypeOf<T>() && vortex::byteSize(uploaded.type) == sizeof(T));
  const std::vector<T> read = stream.read<T>(uploaded).value();
  CHECK(read == std::vector<T>(all.begin(), all.end()));
  const vortex::Tensor wrapped = device.wrap(all).value();
  CHECK(wrapped.span<T>().value().data() == values.get());
  CHECK(wrapped.span<const T>().value().size() == kCount);
  CHECK(device.wrap(std::span<const T>(all)).value().type == device.wrap(all, {3, 1}).value().type);
  const vortex::Argument argument(T(1)), bits(uploaded.type, 1);
  const auto refused = stream.read<T>(
      device.empty(uploaded.type == vortex::DType::I8 ? vortex::DType::U8 : vortex::DType::I8, {3}).value());
  CHECK(!refused.ok());
  std::printf("%s\n", vortex::name(uploaded.type));
  return uploaded.type;
}

template <typename... T> static void checkTypes(const vortex::Device& device, vortex::Stream& stream) {
  (checkType<T>(device, stream), ...);
}

int main(int, char** words) {
  const vortex::Runtime runtime;
  const vortex::Device device = runtime.open("cpu").value();
  vortex::Stream stream = device.createStream().value();
  checkTypes<bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long,
             long long, unsigned long long, float, double, wchar_t, char8_t, char16_t, char32_t>(device, stream);
  const vortex::Kernel kernel = device.loadFile(words[1]).value();
  vortex::LaunchOptions options;
  options.print = [](const vortex::Print& print) { std::printf("%s\n", print.text().c_str()); };
  const vortex::Tensor x = device.upload<float>(std::vector<float>{0.5f, 3.0f}, {2}).value();
  const vortex::Tensor y = device.empty(vortex::DType::Bool, {2}).value();
  (void)stream.launch(kernel, {x, y, true}, options).value();
  CHECK(stream.read<bool>(y).value() == (std::vector<bool>{false, true}));
  vortex::Tensor wide = y;
  wide.extents = {INT64_MAX};
  CHECK(!stream.read<bool>(wide).ok());
  wide.extents = {-2};
  CHECK(!stream.read<bool>(wide).ok());
  CHECK(!stream.read<float>(vortex::Tensor{}).ok());
}
