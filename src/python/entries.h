// Entry points that launches first need in this process: from disk, else from the compiler, which is loaded only then.
#pragma once

#include "python/threads.h"
#include "vortex/entry_source.h"
#include "vortex/kernel_cache.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace vortex::python {

/// The source of a kernel that `open` plans again: a Python function of no arguments that returns a capsule with an EntrySource and whether its code may
/// be kept in `cache`, under `key` and the entry point's name. `warn`: a Python function, told once that it cannot be kept.
/// The source takes Python's lock while it holds its own, so nobody may prepare a launch who holds Python's.
EntrySource keptEntries(std::optional<KernelCache> cache, std::string key, nb::handle open, nb::handle warn);

}  // namespace vortex::python
