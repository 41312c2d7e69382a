// What names of CUDA C++, OpenCL, GLSL, HLSL, WGSL, Metal, Triton, C, Rust, NumPy, PyTorch and JAX are here, for the help of messages about unknown names.
#pragma once

#include <string_view>

namespace vortex::diag {

/// Of a function, value, method or field: "`block.id`". Null for a name that is none of these.
const char* nameElsewhere(std::string_view name);
/// Of a type: "`f32`". Null for a name that is none of these.
const char* typeElsewhere(std::string_view name);
/// Of an attribute, without its `@`: "`@launch(block = 64)`". Null for a name that is none of these.
const char* attributeElsewhere(std::string_view name);
/// Of a function that takes in one list what others take one by one: "`x.reshape([M, N])`". Null for a name that is none of these.
const char* listElsewhere(std::string_view name);

}  // namespace vortex::diag
