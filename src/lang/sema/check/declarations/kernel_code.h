#pragma once

#include "lang/sema/check/names/scope.h"

namespace vortex::lang {

/// Which code a function that nothing calls is checked as first, by what its names mean: positions and operations of kernels, then
/// what only the host has; of the rest, functions of tensors are kernel code.
bool looksLikeKernelCode(const syn::FunctionItem& function, const ItemScope& scope);

}  // namespace vortex::lang
