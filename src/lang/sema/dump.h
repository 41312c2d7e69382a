#pragma once

#include <string>

#include "lang/sema/program.h"

namespace vortex::lang {

struct DumpOptions {
  bool types = false;       ///< the type of every expression, `(x: f32)`
  bool uniformity = false;  ///< what kernel analysis found: `~` before per-thread variables, guards of accesses
};

/// The typed program as compact text: one function after the other, explicit conversions written out.
///   kernel scale(data: &Tensor<f32, [N]>) -> Tensor<f32, [N]> where N = data.0 {
///     return (*data * broadcast(2.0: f32))
///   }
std::string dump(const Program& program, const DumpOptions& options = {});
std::string dump(const Function& function, const DumpOptions& options = {});
std::string dump(const Expr& expr, const Function& function, const DumpOptions& options = {});

}  // namespace vortex::lang
