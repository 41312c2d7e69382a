#include "python/dlpack_exchange.h"

#include <cstdint>

namespace vortex::python {

namespace nb = nanobind;

namespace {

constexpr uint8_t kFloat8E4M3Fn = 10, kFloat8E5M2 = 12;  // DLDataTypeCode, since DLPack 1.1

struct Version {
  uint32_t major, minor;
};

struct Header {
  Version version;
  const Header* previous;  ///< the table of an older version
};

}  // namespace

struct DlpackExchange::Table {
  Header header;
  void *allocate, *exportOwned, *import;
  int (*describe)(void* object, nb::dlpack::dltensor* out);
  int (*currentStream)(int32_t deviceType, int32_t deviceIndex, void** out);
};

nb::dlpack::dtype toDlpack(DType type) {
  const auto code = [&]() -> uint8_t {
    using enum nb::dlpack::dtype_code;
    switch (type) {
    case DType::Bool: return static_cast<uint8_t>(Bool);
    case DType::U8:
    case DType::U16:
    case DType::U32:
    case DType::U64: return static_cast<uint8_t>(UInt);
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64: return static_cast<uint8_t>(Int);
    case DType::F16:
    case DType::F32:
    case DType::F64: return static_cast<uint8_t>(Float);
    case DType::BF16: return static_cast<uint8_t>(Bfloat);
    case DType::F8E4M3: return kFloat8E4M3Fn;
    case DType::F8E5M2: return kFloat8E5M2;
    }
    return 0;
  };
  return {code(), static_cast<uint8_t>(8 * byteSize(type)), 1};
}

std::optional<DType> fromDlpack(nb::dlpack::dtype wanted) {
  for (const DType type : kElementTypes)
    if (toDlpack(type) == wanted)
      return type;
  return std::nullopt;
}

const DlpackExchange* DlpackExchange::of(PyObject* type) {
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  constexpr const char* kName = "dlpack_exchange_api";
  if (!PyCapsule_IsValid(capsule.ptr(), kName))
    return nullptr;
  const auto* header = static_cast<const Header*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  while (header && header->version.major != 1)
    header = header->previous;
  if (!header)
    return nullptr;
  const auto& table = *reinterpret_cast<const Table*>(header);
  return table.describe && table.currentStream ? new DlpackExchange(table) : nullptr;
}

bool DlpackExchange::read(nb::handle object, ForeignArray& into) const {
  nb::dlpack::dltensor tensor{};
  if (table_.describe(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  const std::optional<DType> type = fromDlpack(tensor.dtype);
  const bool isOnGpu = tensor.device.device_type == nb::device::cuda::value;
  if (!type || (!isOnGpu && tensor.device.device_type != nb::device::cpu::value &&
                tensor.device.device_type != nb::device::cuda_host::value))
    return false;
  into.type = *type;
  into.gpu = isOnGpu ? tensor.device.device_id : -1;
  into.address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  into.extents.assign(tensor.shape, tensor.shape + tensor.ndim);
  into.strides.assign(into.extents.size(), 1);
  for (size_t i = into.extents.size(); i-- > 0;)
    into.strides[i] = tensor.strides                ? tensor.strides[i]
                      : i + 1 < into.extents.size() ? into.strides[i + 1] * into.extents[i + 1]
                                                    : 1;
  return true;
}

std::optional<uint64_t> DlpackExchange::cudaStream(int gpu) const {
  void* stream = nullptr;
  if (table_.currentStream(nb::device::cuda::value, gpu, &stream) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  return reinterpret_cast<uintptr_t>(stream);
}

}  // namespace vortex::python
