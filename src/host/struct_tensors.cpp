// Tensors of structs: one plane per scalar, each a tensor of its own or a strided view of one buffer of structs.
#include "base/text.h"
#include "host/evaluator_state.h"
#include "lang/sema/element.h"

#include <cstring>

namespace vortex::host {

using namespace lang;

namespace {

/// The scalars of an element in the order of its layout, from an element's value.
void takeApart(Type type, const Value& value, std::vector<Value>& scalars) {
  switch (type->kind) {
  case TypeKind::Array: {
    const VecValue& vec = value.asVec();
    for (size_t i = 0; i < vec.size(); ++i)
      takeApart(type->elem, vec.storage->at(vec.begin + i), scalars);
    return;
  }
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (size_t i = 0; i < type->elems.size(); ++i)
      takeApart(type->elems[i], value.asAggregate().fields[i], scalars);
    return;
  default: scalars.push_back(value);
  }
}

/// The other way round; `next` runs over the scalars.
Value putTogether(Type type, std::span<const Value>& next) {
  switch (type->kind) {
  case TypeKind::Array: {
    auto storage = std::make_shared<VecStorage>();
    storage->packed = type->elem->kind == TypeKind::Scalar;
    storage->type = type->elem->scalar;
    for (uint64_t i = 0; i < type->count; ++i)
      storage->push(putTogether(type->elem, next));
    return VecValue{storage};
  }
  case TypeKind::Tuple:
  case TypeKind::Struct: {
    auto aggregate = std::make_shared<Aggregate>();
    for (Type elem : type->elems)
      aggregate->fields.push_back(putTogether(elem, next));
    return aggregate;
  }
  default: {
    Value scalar = next.front();
    next = next.subspan(1);
    return scalar;
  }
  }
}

std::vector<int64_t> rowMajor(std::span<const int64_t> extents, int64_t innermost) {
  std::vector<int64_t> strides(extents.size());
  for (size_t dim = extents.size(); dim-- > 0;) {
    strides[dim] = innermost;
    innermost *= extents[dim];
  }
  return strides;
}

}  // namespace

std::optional<TensorValue> Evaluator::makeTensorOf(Type element, std::vector<int64_t> extents, const Expr& at) {
  if (element->kind == TypeKind::Scalar)
    return makeTensor(element->scalar, std::move(extents), at);
  ElementLayout layout = elementLayout(element);
  TensorValue tensor;
  tensor.element = element;
  tensor.strides = rowMajor(extents, 1);
  std::optional<TensorValue> structs;
  if (layout.isInterleaved) {
    std::vector<int64_t> bytes = extents;
    bytes.push_back(layout.bytes);
    if (!(structs = makeTensor(Scalar::U8, bytes, at)))
      return std::nullopt;
  }
  for (const ElementLeaf& leaf : layout.leaves) {
    if (!structs) {
      auto plane = makeTensor(leaf.scalar, extents, at);
      if (!plane)
        return std::nullopt;
      tensor.planes.push_back(std::move(*plane));
      continue;
    }
    TensorValue plane;
    plane.type = leaf.scalar;
    plane.buffer = structs->buffer;
    plane.offset = leaf.offset / byteSize(leaf.scalar);
    plane.extents = extents;
    plane.strides = rowMajor(extents, layout.bytes / byteSize(leaf.scalar));
    tensor.planes.push_back(std::move(plane));
  }
  tensor.extents = std::move(extents);
  return tensor;
}

bool Evaluator::writeElements(const TensorValue& tensor, Type element, const std::function<Value(size_t)>& elementAt,
                              const Expr& at) {
  ElementLayout layout = elementLayout(element);
  const size_t count = static_cast<size_t>(tensor.elementCount());
  std::vector<std::vector<uint8_t>> bytes;  // of each buffer
  for (const ElementLeaf& leaf : layout.leaves)
    if (!layout.isInterleaved)
      bytes.emplace_back(count * byteSize(leaf.scalar));
  if (layout.isInterleaved)
    bytes.emplace_back(count * layout.bytes);
  std::vector<Value> scalars;
  for (size_t i = 0; i < count; ++i) {
    scalars.clear();
    takeApart(element, elementAt(i), scalars);
    for (size_t plane = 0; plane < scalars.size(); ++plane) {
      const ElementLeaf& leaf = layout.leaves[plane];
      storeScalar(leaf.scalar, scalars[plane],
                  layout.isInterleaved ? &bytes[0][i * layout.bytes + leaf.offset]
                                       : &bytes[plane][i * byteSize(leaf.scalar)]);
    }
  }
  for (size_t i = 0; i < bytes.size(); ++i)
    if (auto written = tensor.planes[i].buffer->write(0, bytes[i]); !written) {
      fail("E0708", at, written.error().message);
      return false;
    }
  return true;
}

std::shared_ptr<VecStorage> Evaluator::readElements(const TensorValue& tensor, const Expr& at) {
  std::vector<std::vector<uint8_t>> planes;
  for (const TensorValue& plane : tensor.planes) {
    auto bytes = download(plane, at);
    if (!bytes)
      return nullptr;
    planes.push_back(std::move(*bytes));
  }
  auto storage = makeList(tensor.element, tensor.elementCount(), at);
  std::vector<Value> scalars(planes.size());
  for (size_t i = 0; storage && i < storage->size(); ++i) {
    for (size_t plane = 0; plane < planes.size(); ++plane) {
      Scalar type = tensor.planes[plane].type;
      scalars[plane] = loadScalar(type, &planes[plane][i * byteSize(type)]);
    }
    std::span<const Value> next = scalars;
    storage->set(i, putTogether(tensor.element, next));
  }
  return storage;
}

Value Evaluator::resultValue(Type type, std::span<const LaunchArgument>& results) {
  auto take = [&]() -> const LaunchArgument& {
    const LaunchArgument& first = results.front();
    results = results.subspan(1);
    return first;
  };
  if (type->kind == TypeKind::Tuple) {
    auto tuple = std::make_shared<Aggregate>();
    for (Type elem : type->elems)
      tuple->fields.push_back(resultValue(elem, results));
    return tuple;
  }
  if (!isStructTensor(type)) {
    const LaunchArgument& result = take();
    if (auto* tensor = std::get_if<TensorValue>(&result))
      return *tensor;
    uint8_t bytes[8];
    std::memcpy(bytes, &std::get<uint64_t>(result), sizeof bytes);
    return loadScalar(type->scalar, bytes);
  }
  TensorValue tensor;
  tensor.element = type->elem;
  for (uint64_t plane = scalarCount(type->elem); plane-- > 0;)
    tensor.planes.push_back(std::get<TensorValue>(take()));
  tensor.extents = tensor.planes[0].extents;
  tensor.strides = rowMajor(tensor.extents, 1);
  return tensor;
}

}  // namespace vortex::host
