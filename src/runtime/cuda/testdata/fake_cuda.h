// How a test talks to the stand-in for libcuda.
#pragma once

#include <cstdint>

extern "C" {
/// "devices", "capability" (90), "version" (12040), "memory" (bytes), "pools" (0 or 1), "cores" (4), "delay" (microseconds before each queued operation),
/// Programs that cannot call this set FAKE_CUDA_<key> in the environment.
/// "fail:<symbol>": the code that the next call of a function returns.
void fakeCudaSet(const char* key, int64_t value);
/// Calls of a function since the last fakeCudaReset; "live": bytes of device memory not freed yet; "in use": page-locked ranges that were
/// unlocked while a queued copy used them.
int64_t fakeCudaCount(const char* symbol);
/// Default settings, no calls counted, every context ended.
void fakeCudaReset();
}
