// opencl <kernels.cl> reduce|transpose <n> | opencl <kernels.cl> compile: the kernels on the first CPU device (PoCL).
// reduce: n floats in blocks of 256 to n/256 partial sums. transpose: n x n floats. compile: the time from source to a built kernel.
#define CL_TARGET_OPENCL_VERSION 120
#include "bench/peers/protocol.h"

#include <CL/cl.h>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

namespace {

void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS)
    return;
  std::fprintf(stderr, "opencl: %s failed with status %d\n", what, status);
  std::exit(1);
}

struct Session {
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
};

Session open() {
  cl_platform_id platforms[8];
  cl_uint count = 0;
  check(clGetPlatformIDs(8, platforms, &count), "clGetPlatformIDs");
  Session session{};
  for (cl_uint i = 0; i < count && !session.device; ++i)
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &session.device, nullptr) != CL_SUCCESS)
      session.device = nullptr;
  check(session.device ? CL_SUCCESS : CL_DEVICE_NOT_FOUND, "finding a CPU device");
  cl_int status;
  session.context = clCreateContext(nullptr, 1, &session.device, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  session.queue = clCreateCommandQueue(session.context, session.device, 0, &status);
  check(status, "clCreateCommandQueue");
  return session;
}

cl_program build(const Session& session, const std::string& source) {
  const char* text = source.c_str();
  cl_int status;
  cl_program program = clCreateProgramWithSource(session.context, 1, &text, nullptr, &status);
  check(status, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &session.device, "-cl-std=CL1.2", nullptr, nullptr), "clBuildProgram");
  return program;
}

cl_kernel makeKernel(cl_program program, const char* name) {
  cl_int status;
  cl_kernel kernel = clCreateKernel(program, name, &status);
  check(status, "clCreateKernel");
  return kernel;
}

cl_mem wrap(const Session& session, float* values, size_t count) {
  cl_int status;
  cl_mem memory =
      clCreateBuffer(session.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, count * sizeof(float), values, &status);
  check(status, "clCreateBuffer");
  return memory;
}

int runKernel(const Session& session, const std::string& source, const std::string& name, size_t n) {
  bool transpose = name == "transpose";
  size_t count = transpose ? n * n : n, outCount = transpose ? count : n / 256;
  float* in = bench::allocate(count);
  float* out = bench::allocate(outCount);
  bench::fill(in, count, 1);
  cl_mem inMemory = wrap(session, in, count), outMemory = wrap(session, out, outCount);
  cl_kernel kernel = makeKernel(build(session, source), name.c_str());
  check(clSetKernelArg(kernel, 0, sizeof(cl_mem), &inMemory), "clSetKernelArg");
  check(clSetKernelArg(kernel, 1, sizeof(cl_mem), &outMemory), "clSetKernelArg");
  cl_uint extent = static_cast<cl_uint>(n);
  if (transpose)
    check(clSetKernelArg(kernel, 2, sizeof(extent), &extent), "clSetKernelArg");
  size_t grid[2] = {n, n}, block[2] = {transpose ? 32u : 256u, 32};
  auto sample = [&] {
    check(clEnqueueNDRangeKernel(session.queue, kernel, transpose ? 2 : 1, nullptr, grid, block, 0, nullptr, nullptr),
          "launch");
    check(clFinish(session.queue), "clFinish");
  };
  auto digest = [&] {
    check(clEnqueueReadBuffer(session.queue, outMemory, CL_TRUE, 0, outCount * sizeof(float), out, 0, nullptr, nullptr),
          "read");
    bench::printDigest(out, outCount);
  };
  return bench::serve(sample, digest);
}

/// PoCL generates machine code at the first launch, so a launch of one block belongs to the measured time. Each sample changes
/// the source, so that no cache answers.
int runCompile(const Session& session, const std::string& source) {
  float* memory = bench::allocate(2048);
  cl_mem in = wrap(session, memory, 1024), out = wrap(session, memory + 1024, 1024);
  long long sampleNumber = std::chrono::steady_clock::now().time_since_epoch().count();
  auto sample = [&] {
    std::string number = std::to_string(sampleNumber++);
    std::string changed = source + "\n__constant long sample_" + number + " = " + number + ";\n";
    cl_kernel kernel = makeKernel(build(session, changed), "reduce");
    check(clSetKernelArg(kernel, 0, sizeof(cl_mem), &in), "clSetKernelArg");
    check(clSetKernelArg(kernel, 1, sizeof(cl_mem), &out), "clSetKernelArg");
    size_t grid = 256, block = 256;
    check(clEnqueueNDRangeKernel(session.queue, kernel, 1, nullptr, &grid, &block, 0, nullptr, nullptr), "launch");
    check(clFinish(session.queue), "clFinish");
  };
  return bench::serve(sample, [&] { bench::printDigest(memory, 0); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: opencl kernels.cl reduce|transpose|compile [n]\n");
    return 1;
  }
  std::ifstream file(argv[1]);
  std::stringstream source;
  source << file.rdbuf();
  Session session = open();
  if (std::strcmp(argv[2], "compile") == 0)
    return runCompile(session, source.str());
  return runKernel(session, source.str(), argv[2], static_cast<size_t>(argc > 3 ? std::atoll(argv[3]) : 1 << 24));
}
