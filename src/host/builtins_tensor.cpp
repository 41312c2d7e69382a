#include "base/file.h"
#include "base/memory.h"
#include "base/tensor_bytes.h"
#include "base/text.h"
#include "host/evaluator_state.h"
#include "host/npy.h"
#include "host/philox.h"
#include "lang/sema/integers.h"

#include <cmath>
#include <cstring>
#include <numbers>

namespace vortex::host {

using namespace lang;

std::optional<TensorValue> Evaluator::makeTensor(Scalar type, std::vector<int64_t> extents, const Expr& at) {
  const Result<uint64_t> bytes = base::tensorBytes("a tensor", extents, byteSize(type));
  if (!bytes) {
    fail("E0703", at, bytes.error().message);
    return std::nullopt;
  }
  auto buffer = backend_.allocate(*bytes);
  if (!buffer) {
    fail("E0703", at, buffer.error().message);
    return std::nullopt;
  }
  TensorValue tensor;
  tensor.type = type;
  tensor.buffer = buffer.value();
  tensor.extents = std::move(extents);
  tensor.strides.resize(tensor.extents.size());
  int64_t stride = 1;
  for (size_t dim = tensor.extents.size(); dim-- > 0;) {
    tensor.strides[dim] = stride;
    stride *= tensor.extents[dim];
  }
  return tensor;
}

bool Evaluator::fits(unsigned __int128 bytes, const Expr& at) {
  std::optional<std::string> problem = base::outOfMemory(bytes);
  if (problem)
    fail("E0703", at, *problem);
  return !problem;
}

std::optional<std::vector<uint8_t>> Evaluator::download(const TensorValue& tensor, const Expr& at) {
  size_t width = byteSize(tensor.type);
  size_t count = static_cast<size_t>(tensor.elementCount());
  // A view's elements are picked from the whole buffer.
  if (!fits(count * width + (tensor.isContiguous() ? 0 : tensor.buffer->byteSize()), at))
    return std::nullopt;
  std::vector<uint8_t> bytes(count * width);
  auto failed = [&](Result<void>& result) {
    fail("E0708", at, result.error().message);
    return std::nullopt;
  };
  if (tensor.isContiguous()) {
    if (auto read = tensor.buffer->read(static_cast<size_t>(tensor.offset) * width, bytes); !read)
      return failed(read);
    return bytes;
  }
  std::vector<uint8_t> whole(tensor.buffer->byteSize());
  if (auto read = tensor.buffer->read(0, whole); !read)
    return failed(read);
  std::vector<int64_t> index(tensor.extents.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    int64_t source = tensor.offset;
    for (size_t dim = 0; dim < index.size(); ++dim)
      source += index[dim] * tensor.strides[dim];
    std::memcpy(&bytes[i * width], &whole[static_cast<size_t>(source) * width], width);
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < tensor.extents[dim])
        break;
      index[dim] = 0;
    }
  }
  return bytes;
}

Value Evaluator::toHost(const Expr& expr) {
  Value value = deref(eval(*expr.args[0]), expr);
  if (interrupted())
    return {};
  if (value.asTensor().element) {
    auto elements = readElements(value.asTensor(), expr);
    return elements ? Value(VecValue{elements}) : Value();
  }
  auto bytes = download(value.asTensor(), expr);
  if (!bytes)
    return {};
  auto storage = std::make_shared<VecStorage>();
  storage->type = value.asTensor().type;
  storage->bytes = std::move(*bytes);
  return VecValue{storage};
}

/// The extents in a list, which must hold exactly `count` elements.
std::optional<std::vector<int64_t>> Evaluator::writtenShape(const Expr& list, size_t count) {
  Value value = eval(list);
  if (interrupted())
    return std::nullopt;
  std::vector<int64_t> extents;
  uint64_t total = 1;
  bool fits = true;
  for (size_t i = 0; i < value.asVec().size(); ++i) {
    extents.push_back(value.asVec().storage->at(i).asInt());
    fits = !__builtin_mul_overflow(total, static_cast<uint64_t>(extents.back()), &total) && fits;
  }
  if (fits && total == count)
    return extents;
  fail("E0705", list, base::concat(count, " elements do not fill a tensor of [", base::join(extents, ", "), "]"));
  return std::nullopt;
}

Value Evaluator::fromHost(const Expr& expr) {
  Value value = deref(eval(*expr.args[0]), expr);
  if (interrupted())
    return {};
  const VecValue& vec = value.asVec();
  auto shape = expr.args.size() > 1 ? writtenShape(*expr.args[1], vec.size())
                                    : shapeOf(stripRef(expr.type), static_cast<int64_t>(vec.size()), expr);
  Type element = stripRef(expr.type)->elem;
  auto tensor = shape ? makeTensorOf(element, std::move(*shape), expr) : std::nullopt;
  if (!tensor)
    return {};
  if (tensor->element) {
    auto elementAt = [&](size_t i) { return vec.storage->at(vec.begin + i); };
    return writeElements(*tensor, element, elementAt, expr) ? Value(*tensor) : Value();
  }
  size_t width = byteSize(vec.storage->type);
  std::span<const uint8_t> bytes(vec.storage->bytes.data() + vec.begin * width, vec.size() * width);
  if (auto written = tensor->buffer->write(0, bytes); !written)
    return fail("E0708", expr, written.error().message);
  return *tensor;
}

/// Element i comes from Philox counter i (f32 normal: Box–Muller on the words of one counter), so a prefix of a larger tensor is the
/// same numbers.
Value Evaluator::random(const Expr& expr) {
  auto args = evalArgs(expr);
  if (interrupted())
    return {};
  Scalar type = stripRef(expr.type)->elem->scalar;
  std::vector<int64_t> extents;
  for (size_t i = 0; i < args[0].asVec().size(); ++i)
    extents.push_back(args[0].asVec().storage->at(i).asInt());
  uint64_t seed = static_cast<uint64_t>(args[1].asInt());
  auto tensor = makeTensor(type, extents, expr);
  if (!tensor)
    return {};
  size_t count = static_cast<size_t>(tensor->elementCount()), width = byteSize(type);
  if (!fits(count * width, expr))
    return {};
  if (expr.builtin == Builtin::RandomInteger) {
    const int64_t low = args[2].asInt(), high = args[3].asInt();
    const bool isAny = isUnsigned(type) ? static_cast<uint64_t>(low) < static_cast<uint64_t>(high) : low < high;
    if (!isAny)
      return fail("E0707", expr, base::concat("no integer is at least `low`, ", low, ", and below `high`, ", high));
    const bool isWide = width == 8;  // whose bounds are of its type
    if (!isWide && (low < lang::lowest(type) || high > lang::highest(type) + 1))
      return fail(
          "E0707", expr,
          base::concat("`", name(type), "` does not hold all integers from `low`, ", low, ", below `high`, ", high));
  }
  std::vector<uint8_t> bytes(count * width);
  for (size_t i = 0; i < count; ++i) {
    auto words = philox(i, seed);
    Value element;
    if (expr.builtin == Builtin::RandomInteger) {
      uint64_t low = static_cast<uint64_t>(args[2].asInt()), span = static_cast<uint64_t>(args[3].asInt()) - low;
      uint64_t word = uint64_t{words[0]} << 32 | words[1];
      uint64_t within = span ? static_cast<uint64_t>((static_cast<unsigned __int128>(word) * span) >> 64) : word;
      element = static_cast<int64_t>(lang::wrapInteger(type, static_cast<__int128>(low + within)));
    } else {
      double a = type == Scalar::F64 ? unitDouble(words[0], words[1]) : unitFloat(words[0]);
      double b = type == Scalar::F64 ? unitDouble(words[2], words[3]) : unitFloat(words[1]);
      double unit = expr.builtin == Builtin::RandomNormal
                        ? std::sqrt(-2 * std::log(1 - a)) * std::cos(2 * std::numbers::pi * b)
                        : a;
      double first = args.size() > 2 ? args[2].asFloat() : 0, second = args.size() > 3 ? args[3].asFloat() : 1;
      element = lang::roundToFloat(type, expr.builtin == Builtin::RandomNormal ? first + second * unit
                                                                               : first + (second - first) * unit);
    }
    storeScalar(type, element, &bytes[i * width]);
  }
  if (auto written = tensor->buffer->write(0, bytes); !written)
    return fail("E0708", expr, written.error().message);
  return *tensor;
}

Value Evaluator::loadNpy(const Expr& expr) {
  Value path = deref(eval(*expr.args[0]), expr);
  if (interrupted())
    return {};
  auto file = base::readWholeFile(path.asText());
  if (!file)
    return fail("E0710", expr, file.error().message);
  auto array = parseNpy(file.value());
  if (!array)
    return fail("E0711", expr, "`" + path.asText() + "`: " + array.error().message);
  Type type = stripRef(expr.type);
  Scalar want = type->elem->scalar;
  bool bitPattern = (want == Scalar::BF16 && array->type == Scalar::U16) ||
                    (want == Scalar::Usize && array->type == Scalar::U64) ||
                    ((want == Scalar::F8E4M3 || want == Scalar::F8E5M2) && array->type == Scalar::U8);
  if (array->type != want && !bitPattern)
    return fail("E0711", expr,
                base::concat("`", path.asText(), "` holds ", name(array->type), " elements, not ", name(want)));
  if (array->extents.size() != type->shape.size())
    return fail("E0711", expr,
                base::concat("`", path.asText(), "` has rank ", array->extents.size(), ", not ", type->shape.size()));
  auto tensor = makeTensor(want, array->extents, expr);
  if (!tensor)
    return {};
  if (auto written = tensor->buffer->write(0, array->bytes); !written)
    return fail("E0708", expr, written.error().message);
  return *tensor;
}

Value Evaluator::saveNpy(const Expr& expr) {
  Value path = deref(eval(*expr.args[0]), expr);
  Value value = interrupted() ? Value() : deref(eval(*expr.args[1]), expr);
  if (interrupted())
    return {};
  NpyArray array;
  if (auto* vec = std::get_if<VecValue>(&value.data)) {
    array.type = vec->storage->type;
    array.extents = {static_cast<int64_t>(vec->size())};
    size_t width = byteSize(array.type);
    const uint8_t* begin = vec->storage->bytes.data() + vec->begin * width;
    array.bytes.assign(begin, begin + vec->size() * width);
  } else {
    auto bytes = download(value.asTensor(), expr);
    if (!bytes)
      return {};
    array = {value.asTensor().type, value.asTensor().extents, std::move(*bytes)};
  }
  if (auto written = base::writeFileAtomic(path.asText(), formatNpy(array)); !written)
    return fail("E0710", expr, written.error().message);
  return {};
}

std::optional<Value> Evaluator::tensorBuiltin(const Expr& expr) {
  switch (expr.builtin) {
  case Builtin::FromHost: return fromHost(expr);
  case Builtin::ToHost: return toHost(expr);
  case Builtin::LoadNpy: return loadNpy(expr);
  case Builtin::SaveNpy: return saveNpy(expr);
  case Builtin::RandomNormal:
  case Builtin::RandomUniform:
  case Builtin::RandomInteger: return random(expr);
  case Builtin::ToDevice: return deref(eval(*expr.args[0]), expr);
  case Builtin::Extent: {
    Value value = deref(eval(*expr.args[0]), expr);
    return interrupted() ? Value() : Value(value.asTensor().extents[static_cast<size_t>(expr.ints[0])]);
  }
  case Builtin::Zeros:
  case Builtin::Full: {
    auto args = evalArgs(expr);
    if (interrupted())
      return Value();
    Type element = stripRef(expr.type)->elem;
    Scalar type = element->scalar;
    std::vector<int64_t> extents;
    size_t shapeAt = expr.builtin == Builtin::Full ? 1 : 0;
    if (args.size() > shapeAt) {
      for (size_t i = 0; i < args[shapeAt].asVec().size(); ++i)
        extents.push_back(args[shapeAt].asVec().storage->at(i).asInt());
    } else if (auto shape = shapeOf(stripRef(expr.type), std::nullopt, expr)) {
      extents = *shape;
    } else {
      return Value();
    }
    auto tensor = makeTensorOf(element, std::move(extents), expr);
    if (!tensor)
      return Value();
    if (tensor->element && expr.builtin == Builtin::Full)
      return writeElements(*tensor, element, [&](size_t) { return args[0]; }, expr) ? Value(*tensor) : Value();
    for (const TensorValue& plane : tensor->planes) {
      if (!fits(plane.buffer->byteSize(), expr))
        return Value();
      std::vector<uint8_t> zeros(plane.buffer->byteSize());
      if (auto written = plane.buffer->write(0, zeros); !written)
        return fail("E0708", expr, written.error().message);
    }
    if (tensor->element)
      return Value(*tensor);
    size_t width = byteSize(type);
    if (!fits(tensor->buffer->byteSize(), expr))
      return Value();
    std::vector<uint8_t> bytes(static_cast<size_t>(tensor->elementCount()) * width);
    if (expr.builtin == Builtin::Full)
      for (size_t i = 0; i < bytes.size(); i += width)
        storeScalar(type, args[0], &bytes[i]);
    if (auto written = tensor->buffer->write(0, bytes); !written)
      return fail("E0708", expr, written.error().message);
    return Value(*tensor);
  }
  default: return std::nullopt;
  }
}

}  // namespace vortex::host
