/* Running compiled kernels from C: devices, tensors, streams, launches. Link libvortex_runtime.
 *
 * Objects belong to the caller, who ends them with the matching _destroy in any order; NULL is allowed there. A function that fails returns
 * NULL, or a negative number where it returns int; vortex_last_error() then holds the message of the calling thread. Threads: as in
 * runtime.h, every function may be called from any thread; an object must not be destroyed while another call uses it. */
#ifndef VORTEX_VORTEX_H
#define VORTEX_VORTEX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vortex_runtime vortex_runtime;
typedef struct vortex_device vortex_device;
typedef struct vortex_kernel vortex_kernel;
typedef struct vortex_stream vortex_stream;
typedef struct vortex_tensor vortex_tensor;
typedef struct vortex_graph vortex_graph;

typedef enum vortex_dtype {
  VORTEX_BOOL,
  VORTEX_U8,
  VORTEX_U16,
  VORTEX_U32,
  VORTEX_U64,
  VORTEX_I8,
  VORTEX_I16,
  VORTEX_I32,
  VORTEX_I64,
  VORTEX_F8E4M3,
  VORTEX_F8E5M2,
  VORTEX_F16,
  VORTEX_BF16,
  VORTEX_F32,
  VORTEX_F64
} vortex_dtype;

/* A launch argument: a tensor, or, where that is NULL, a number by its bit pattern: integers extended to 64 bits, floats in the low
 * bits with zeros above. One that the type cannot hold is refused by the launch. */
typedef struct vortex_argument {
  const vortex_tensor* tensor;
  vortex_dtype type;
  uint64_t bits;
} vortex_argument;

/* Valid until the next failure in this thread; "" before the first. */
const char* vortex_last_error(void);

/* What the last failure in this thread was: ErrorKind of <vortex/result.h>. */
typedef enum vortex_error_kind { VORTEX_FAILED, VORTEX_OUT_OF_MEMORY, VORTEX_FAULT } vortex_error_kind;
/* VORTEX_FAILED before the first failure. */
vortex_error_kind vortex_last_error_kind(void);

vortex_runtime* vortex_runtime_create(void);
void vortex_runtime_destroy(vortex_runtime* runtime);

/* "cpu", "cuda:1", "cuda" for the first; NULL or "" is the most preferred device. The error lists the names there are. */
vortex_device* vortex_device_open(vortex_runtime* runtime, const char* name);
const char* vortex_device_name(const vortex_device* device);
const char* vortex_device_product(const vortex_device* device);
uint64_t vortex_device_memory_bytes(const vortex_device* device);
void vortex_device_destroy(vortex_device* device);

/* An artifact (.vxk) as `vortex build` writes it. Errors: damaged, another target than the device's, another format version. */
vortex_kernel* vortex_kernel_load(vortex_device* device, const void* artifact, size_t bytes);
vortex_kernel* vortex_kernel_load_file(vortex_device* device, const char* path);
const char* vortex_kernel_name(const vortex_kernel* kernel);
void vortex_kernel_destroy(vortex_kernel* kernel);

/* Row-major, uninitialised. */
vortex_tensor* vortex_tensor_create(vortex_device* device, vortex_dtype type, const int64_t* extents, size_t rank);
vortex_dtype vortex_tensor_type(const vortex_tensor* tensor);
size_t vortex_tensor_rank(const vortex_tensor* tensor);
int64_t vortex_tensor_extent(const vortex_tensor* tensor, size_t dim); /* -1: no such dimension */
size_t vortex_tensor_bytes(const vortex_tensor* tensor);               /* of its elements */
void vortex_tensor_destroy(vortex_tensor* tensor);

/* Operations of one stream take effect in the order of the calls. */
vortex_stream* vortex_stream_create(vortex_device* device);
/* `bytes` is the tensor's size in bytes. `from` may be reused when write returns; read waits for the elements. */
int vortex_stream_write(vortex_stream* stream, const vortex_tensor* target, const void* from, size_t bytes);
int vortex_stream_read(vortex_stream* stream, const vortex_tensor* source, void* into, size_t bytes);
/* Checks the arguments, allocates the results and queues the kernel. Returns the number of results; the first `capacity` of them are stored
 * and belong to the caller. A kernel's own failure is reported by synchronize or read. */
int vortex_stream_launch(vortex_stream* stream, const vortex_kernel* kernel, const vortex_argument* arguments,
                         size_t count, vortex_tensor** results, size_t capacity);
/* From begin to end launches and writes of the stream are checked and recorded, not run; reading and synchronizing are errors meanwhile. A
 * launch's results are written by every replay. */
int vortex_stream_begin_recording(vortex_stream* stream);
vortex_graph* vortex_stream_end_recording(vortex_stream* stream);
/* Queues everything recorded, for about the cost of one launch. The stream must be the one that recorded it. */
int vortex_stream_replay(vortex_stream* stream, const vortex_graph* graph);
/* Gives launch number `launch` (from 0, in recorded order) of the same kernel other arguments for later replays. Returns the number of results;
 * the first `capacity` of them are stored and belong to the caller. */
int vortex_graph_update(vortex_graph* graph, size_t launch, const vortex_kernel* kernel,
                        const vortex_argument* arguments, size_t count, vortex_tensor** results, size_t capacity);
void vortex_graph_destroy(vortex_graph* graph);
/* Waits for all work; reports a kernel's failure as "kernel 'k' stopped: E0701: message (file:line:column)". */
int vortex_stream_synchronize(vortex_stream* stream);
void vortex_stream_destroy(vortex_stream* stream);

static inline vortex_argument vortex_of_tensor(const vortex_tensor* tensor) {
  vortex_argument argument = {tensor, VORTEX_F32, 0};
  return argument;
}
static inline vortex_argument vortex_of_integer(vortex_dtype type, int64_t value) {
  vortex_argument argument = {NULL, type, (uint64_t)value};
  return argument;
}
static inline vortex_argument vortex_of_f32(float value) {
  vortex_argument argument = {NULL, VORTEX_F32, 0};
  memcpy(&argument.bits, &value, sizeof value);
  return argument;
}
static inline vortex_argument vortex_of_f64(double value) {
  vortex_argument argument = {NULL, VORTEX_F64, 0};
  memcpy(&argument.bits, &value, sizeof value);
  return argument;
}

#ifdef __cplusplus
}
#endif
#endif
