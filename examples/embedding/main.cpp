// y = 2.5 * x + y and a threshold, on the device that the command line names.
#include "kernels.saxpy.hpp"
#include "kernels.threshold.hpp"

#include <cstdio>
#include <vector>

static int fail(const vortex::Error& error) {
  std::fprintf(stderr, "embedding: %s\n", error.message.c_str());
  return 1;
}

int main(int argc, char** argv) {
  vortex::Runtime runtime;
  auto device = runtime.open(argc > 1 ? argv[1] : "cpu");
  if (!device)
    return fail(device.error());
  auto stream = device->createStream();
  auto saxpy = kernels::saxpy::load(*device);
  auto threshold = kernels::threshold::load(*device);
  if (!stream || !saxpy || !threshold)
    return fail(!stream ? stream.error() : !saxpy ? saxpy.error() : threshold.error());

  std::vector<float> x(100003), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 1000);
    y[i] = static_cast<float>(i % 7);
  }
  const std::vector<int64_t> extents = {static_cast<int64_t>(x.size())};
  auto deviceX = device->upload(std::span<const float>(x), extents),
       deviceY = device->upload(std::span<const float>(y), extents);
  if (!deviceX || !deviceY)
    return fail(!deviceX ? deviceX.error() : deviceY.error());
  if (auto done = (*saxpy)(*stream, 2.5f, *deviceX, *deviceY); !done)
    return fail(done.error());
  auto above = (*threshold)(*stream, *deviceY, 1000.0f);
  if (!above)
    return fail(above.error());
  auto sums = stream->read<float>(*deviceY);
  auto marks = stream->read<uint8_t>(*above);
  if (!sums || !marks)
    return fail(!sums ? sums.error() : marks.error());

  size_t count = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if ((*sums)[i] != 2.5f * x[i] + y[i] || (*marks)[i] != ((*sums)[i] > 1000.0f)) {
      std::fprintf(stderr, "embedding: element %zu is wrong\n", i);
      return 1;
    }
    count += (*marks)[i];
  }
  std::printf("embedding: %zu elements on %s, %zu above 1000\n", x.size(), device->product().c_str(), count);
}
