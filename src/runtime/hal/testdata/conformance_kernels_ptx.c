// The conformance suite's kernels as PTX entry points, one thread a block; compiled by clang for nvptx64. The calling convention is
// device_report.h's; parameters and phases of each kernel are in conformance_kernels.cpp.
typedef unsigned char uint8_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long uint64_t;
typedef long int64_t;

struct Report {
  uint32_t fault, block[3], thread, printCapacity;
  uint64_t printWords;
};

// One type per number of slots: the report's address follows the last one.
#define SLOTS(count)                                                                                                   \
  struct Slots##count {                                                                                                \
    uint64_t slot[count];                                                                                              \
    uint64_t report;                                                                                                   \
  }
SLOTS(0);
SLOTS(1);
SLOTS(3);
SLOTS(5);
SLOTS(6);
SLOTS(7);
SLOTS(9);
SLOTS(10);
#define KERNEL(name, count) __attribute__((nvptx_kernel)) void name(struct Slots##count in)

extern __attribute__((address_space(3))) int64_t sharedWords[];

static uint32_t blockX(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }

static void fail(uint64_t address, uint32_t fault) {
  struct Report* report = (struct Report*)address;
  uint32_t none = 0;
  if (__atomic_compare_exchange_n(&report->fault, &none, fault, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    report->block[0] = blockX();
    report->block[1] = __nvvm_read_ptx_sreg_ctaid_y();
    report->block[2] = __nvvm_read_ptx_sreg_ctaid_z();
  }
}

// Slots: x 0..2, factor 3, y 4..6. 256 elements a block.
KERNEL(scale, 7) {
  const float* x = (const float*)in.slot[0];
  float* y = (float*)in.slot[4];
  union {
    uint32_t bits;
    float value;
  } factor = {(uint32_t)in.slot[3]};
  const int64_t n = (int64_t)in.slot[1], stride = (int64_t)in.slot[2], begin = (int64_t)blockX() * 256;
  for (int64_t i = begin; i < n && i < begin + 256; ++i)
    y[i] = x[i * stride] * factor.value;
}

// Slots: a 0..2, factor 3, addend 4. 64 a block.
KERNEL(update, 5) {
  int64_t* a = (int64_t*)in.slot[0];
  const int64_t n = (int64_t)in.slot[1], stride = (int64_t)in.slot[2], begin = (int64_t)blockX() * 64;
  for (int64_t i = begin; i < n && i < begin + 64; ++i)
    a[i * stride] = (int64_t)((uint64_t)a[i * stride] * in.slot[3] + in.slot[4]);
}

// Slots: x 0..2, sum 3, partial 4..6. Phase 0 goes through 1024 bytes of shared memory a block.
KERNEL(total_partial, 7) {
  const int32_t* x = (const int32_t*)in.slot[0];
  int64_t* partial = (int64_t*)in.slot[4];
  const int64_t n = (int64_t)in.slot[1], begin = (int64_t)blockX() * 128;
  for (int64_t i = 0; i < 128; ++i)
    sharedWords[i] = begin + i < n ? x[begin + i] : 0;
  for (int64_t width = 64; width > 0; width /= 2)
    for (int64_t i = 0; i < width; ++i)
      sharedWords[i] += sharedWords[i + width];
  partial[blockX()] = sharedWords[0];
}

KERNEL(total_final, 7) {
  int64_t* sum = (int64_t*)in.slot[3];
  const int64_t* partial = (const int64_t*)in.slot[4];
  for (int64_t i = 0; i < (int64_t)in.slot[5]; ++i)
    *sum += partial[i];  // starts at zero: the result asks for it
}

// One block an element: fault 1 below zero, fault 2 above 100. Slots: x 0..2, seen 3..5.
KERNEL(check, 6) {
  const int32_t value = ((const int32_t*)in.slot[0])[blockX()];
  ((int32_t*)in.slot[3])[blockX()] = 1;
  if (value < 0)
    fail(in.report, 1);
  else if (value > 100)
    fail(in.report, 2);
}

// Slots: a 0..2, limit 3, lets 4 and 5, goes_on 6..8. Fault 1 where a[0] is -1; 64 elements a block are doubled.
KERNEL(until_asks, 9) {
  const int64_t first = *(const int64_t*)in.slot[0];
  *(int64_t*)in.slot[6] = first < (int64_t)in.slot[3];
  if (first == -1)
    fail(in.report, 1);
}

KERNEL(until_doubles, 9) {
  int64_t* a = (int64_t*)in.slot[0];
  const int64_t n = (int64_t)in.slot[1], begin = (int64_t)blockX() * 64;
  for (int64_t i = begin; i < n && i < begin + 64; ++i)
    a[i] *= 2;
}

// Slots: 0, 1, 2, out 3..9.
KERNEL(coordinates, 10) {
  uint32_t* out = (uint32_t*)in.slot[3];
  const uint32_t x = blockX(), y = __nvvm_read_ptx_sreg_ctaid_y(), z = __nvvm_read_ptx_sreg_ctaid_z();
  const uint64_t width = __nvvm_read_ptx_sreg_nctaid_x(), height = __nvvm_read_ptx_sreg_nctaid_y();
  out[(z * height + y) * width + x] = x + 1000 * y + 1000000 * z + 0x10000000u;
}

// Slots: x 0..4, y 5..9. A block a row of y.
KERNEL(transpose, 10) {
  const float* x = (const float*)in.slot[0];
  float* y = (float*)in.slot[5];
  const int64_t m = (int64_t)in.slot[1], rowStride = (int64_t)in.slot[3], columnStride = (int64_t)in.slot[4];
  for (int64_t i = 0; i < m; ++i)
    y[blockX() * m + i] = x[i * rowStride + blockX() * columnStride];
}

// Each block prints format 1 with its index and twice the index.
KERNEL(talk, 1) {
  struct Report* report = (struct Report*)in.report;
  uint64_t* area = (uint64_t*)(report + 1);
  const uint64_t at = __atomic_fetch_add(&report->printWords, 3, __ATOMIC_RELAXED);
  if (at + 3 > report->printCapacity)
    return;
  area[at + 1] = blockX();
  area[at + 2] = 2 * (uint64_t)blockX();
  area[at] = 2 | (uint64_t)2 << 32;
}

// y is written nowhere.
KERNEL(sparse, 3) {}

// crash() stores outside every allocation.
KERNEL(crash, 0) { *(volatile int*)16 = 1; }
