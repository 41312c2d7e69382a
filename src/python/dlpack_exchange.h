// DLPack for Python by functions for C: what a tensor is, and the stream its library works in, without objects of Python in between
// (dlpack.h 1.3, DLPackExchangeAPI). A library offers them by an attribute of its class.
#pragma once

#include "python/foreign_array.h"

#include <nanobind/ndarray.h>

#include <array>
#include <optional>

namespace vortex::python {

inline constexpr std::array kElementTypes = {DType::Bool,   DType::U8,  DType::U16,  DType::U32, DType::U64,
                                             DType::I8,     DType::I16, DType::I32,  DType::I64, DType::F8E4M3,
                                             DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::F64};

nanobind::dlpack::dtype toDlpack(DType type);
/// Nothing: kernels take no such elements.
std::optional<DType> fromDlpack(nanobind::dlpack::dtype type);

class DlpackExchange {
public:
  /// Null: the class offers none of version 1. What is returned lives as long as the process.
  static const DlpackExchange* of(PyObject* type);

  /// Fills in all but the owner. False: the object cannot be exported, or kernels take no such elements; no exception is left.
  bool read(nanobind::handle object, ForeignArray& into) const;

  /// The stream of CUDA in which the library works now. Nothing: it does not tell.
  std::optional<uint64_t> cudaStream(int gpu) const;

private:
  struct Table;
  explicit DlpackExchange(const Table& table) : table_(table) {}
  const Table& table_;
};

}  // namespace vortex::python
