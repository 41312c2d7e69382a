// What names of CUDA C++, OpenCL, GLSL, HLSL, WGSL, Metal, Triton, C, Rust, NumPy, PyTorch and JAX are here, for the help of messages about unknown names.
#pragma once

#include "diag/diagnostic.h"

namespace vortex::diag {

/// Of a function, value, method or field: "`block.id`". Null for a name that is none of these.
const char* nameElsewhere(std::string_view name);
/// A library of another language whose members `nameElsewhere` knows: `tl`, `np`.
bool isModuleElsewhere(std::string_view name);
/// Of a type: "`f32`". Null for a name that is none of these.
const char* typeElsewhere(std::string_view name);
/// Of an attribute, without its `@`: "`@launch(block = 64)`". Null for a name that is none of these.
const char* attributeElsewhere(std::string_view name);
/// Of a method of a list or text: "`x.len()`". Null for a name that is none of these.
const char* methodElsewhere(std::string_view name);
/// What to write instead of a statement or item that begins with this word, a name behind it. Null for a word that is none of these.
const char* declarationElsewhere(std::string_view word);
/// The same of a word with a `{` behind it.
const char* blockElsewhere(std::string_view word);
/// Of a function that takes in one list what others take one by one: "`x.reshape([M, N])`". Null for a name that is none of these.
const char* listElsewhere(std::string_view name);

/// The help of an unknown name: what it is here if `ours`, which may be null, says so; else the candidate that it is a slip of, behind `sign`
/// ("@" of attributes). False if there is neither.
bool suggest(DiagnosticBuilder& builder, const char* ours, std::string_view name,
             const std::vector<std::string>& candidates, std::string_view sign = "");

}  // namespace vortex::diag
