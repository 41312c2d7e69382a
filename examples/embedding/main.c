/* Runs an artifact on the CPU from C: embedding_c kernels.saxpy.vxk [device] */
#include <vortex/vortex.h>

#include <stdio.h>

enum { N = 1000 };

static int fail(void) {
  fprintf(stderr, "embedding_c: %s\n", vortex_last_error());
  return 1;
}

int main(int argc, char **argv) {
  static float x[N], y[N];
  const int64_t extents[] = {N};
  vortex_runtime *runtime = vortex_runtime_create();
  vortex_device *device = vortex_device_open(runtime, argc > 2 ? argv[2] : "cpu");
  vortex_kernel *kernel;
  vortex_stream *stream;
  vortex_tensor *tx, *ty;
  vortex_argument arguments[3];
  if (argc < 2 || !device)
    return fail();
  for (int i = 0; i < N; ++i) {
    x[i] = (float)i;
    y[i] = 1;
  }
  kernel = vortex_kernel_load_file(device, argv[1]);
  stream = vortex_stream_create(device);
  tx = vortex_tensor_create(device, VORTEX_F32, extents, 1);
  ty = vortex_tensor_create(device, VORTEX_F32, extents, 1);
  if (!kernel || !stream || !tx || !ty)
    return fail();
  arguments[0] = vortex_of_f32(3);
  arguments[1] = vortex_of_tensor(tx);
  arguments[2] = vortex_of_tensor(ty);
  if (vortex_stream_write(stream, tx, x, sizeof x) || vortex_stream_write(stream, ty, y, sizeof y) ||
      vortex_stream_launch(stream, kernel, arguments, 3, NULL, 0) < 0 || vortex_stream_read(stream, ty, y, sizeof y))
    return fail();
  for (int i = 0; i < N; ++i)
    if (y[i] != 3 * x[i] + 1) {
      fprintf(stderr, "embedding_c: element %d is %g\n", i, y[i]);
      return 1;
    }
  printf("embedding_c: %d elements on %s\n", N, vortex_device_product(device));
  vortex_tensor_destroy(tx);
  vortex_tensor_destroy(ty);
  vortex_stream_destroy(stream);
  vortex_kernel_destroy(kernel);
  vortex_device_destroy(device);
  vortex_runtime_destroy(runtime);
  return 0;
}
