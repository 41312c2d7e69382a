// How an EntrySource goes from the extension of the compiler to that of the runtime.
#pragma once

#include "vortex/entry_source.h"

#include <nanobind/nanobind.h>

namespace vortex::python {

inline constexpr const char* kEntryCapsule = "vortex.EntrySource";

/// None for an empty source.
inline nanobind::object capsuleOf(EntrySource source) {
  if (!source)
    return nanobind::none();
  return nanobind::capsule(new EntrySource(std::move(source)), kEntryCapsule,
                           [](void* kept) noexcept { delete static_cast<EntrySource*>(kept); });
}

/// Throws where the object is no such capsule.
inline EntrySource entriesOf(nanobind::handle object) {
  void* kept = PyCapsule_GetPointer(object.ptr(), kEntryCapsule);
  if (!kept)
    throw nanobind::python_error();
  return *static_cast<EntrySource*>(kept);
}

}  // namespace vortex::python
