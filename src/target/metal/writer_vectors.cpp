// Operations of the vector dialect: which variable is which lane.
#include "target/metal/kernel_writer.h"

#include "base/text.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Vector/IR/VectorOps.h>
#include <mlir/IR/TypeUtilities.h>

namespace vortex::target::metal {

namespace mv = mlir::vector;
using base::concat;

/// Lowest bits first, as in memory.
Texts KernelWriter::bitcast(const Texts& from, mlir::Type fromType, mlir::Type toType) {
  llvm::Type *source = llvmType(fromType), *target = llvmType(toType);
  auto bitsOf = [](llvm::Type* type) { return unsigned(type->getPrimitiveSizeInBits()); };
  auto integer = [&](unsigned bits) { return typeName(llvm::Type::getIntNTy(context_, bits)); };
  unsigned in = bitsOf(source), out = bitsOf(target);
  auto asInteger = [&](const std::string& text) {
    return source->isIntegerTy() ? text : concat("as_type<", integer(in), ">(", text, ")");
  };
  auto fromInteger = [&](const std::string& text) {
    return declare(typeName(target),
                   target->isIntegerTy() ? text : concat("as_type<", typeName(target), ">(", text, ")"));
  };
  Texts result;
  if (in >= out) {
    for (const std::string& each : from) {
      std::string word = in == out ? asInteger(each) : declare(integer(in), asInteger(each));
      for (unsigned shift = 0; shift < in; shift += out)
        result.push_back(fromInteger(in == out ? word : concat(integer(out), "(", word, " >> ", shift, ")")));
    }
    return result;
  }
  for (size_t i = 0; i < from.size(); i += out / in) {
    std::string word;
    for (unsigned part = 0; part < out / in; ++part)
      word += concat(part ? " | " : "", "(", integer(out), "(", asInteger(from[i + part]), ") << ", part * in, ")");
    result.push_back(fromInteger(concat(integer(out), "(", word, ")")));
  }
  return result;
}

bool KernelWriter::writeVector(mlir::Operation* op) {
  if (op->getNumResults() != 1)
    return false;
  mlir::Value result = op->getResult(0);
  auto chosen = [&](mlir::Value vector, mlir::Value position) {
    const Texts from = lanes(vector);
    std::string all = from[0];
    for (size_t i = 1; i < from.size(); ++i)
      all = concat("(", text(position), " == ", i, " ? ", from[i], " : ", all, ")");
    return Texts{declare(typeOf(vector.getType()), all)};
  };
  auto replaced = [&](mlir::Value vector, mlir::Value element, mlir::Value position) {
    Texts all = lanes(vector);
    for (size_t i = 0; i < all.size(); ++i)
      all[i] =
          declare(typeOf(vector.getType()), concat(text(position), " == ", i, " ? ", text(element), " : ", all[i]));
    return all;
  };
  /// Where an extract or insert of one element reaches, if it is known; else its value.
  auto known = [](auto at) -> std::optional<int64_t> {
    auto attribute = llvm::dyn_cast<mlir::Attribute>(at.getMixedPosition()[0]);
    return attribute ? std::optional(mlir::cast<mlir::IntegerAttr>(attribute).getInt()) : std::nullopt;
  };
  auto dynamic = [](auto at) { return llvm::cast<mlir::Value>(at.getMixedPosition()[0]); };
  std::optional<Texts> texts =
      llvm::TypeSwitch<mlir::Operation*, std::optional<Texts>>(op)
          .Case([&](mv::ExtractElementOp extract) {
            return extract.getPosition() ? chosen(extract.getVector(), extract.getPosition())
                                         : Texts{text(extract.getVector())};
          })
          .Case([&](mv::InsertElementOp insert) {
            return insert.getPosition() ? replaced(insert.getDest(), insert.getSource(), insert.getPosition())
                                        : Texts{text(insert.getSource())};
          })
          .Case([&](mv::ExtractOp extract) -> std::optional<Texts> {
            if (extract.getNumIndices() != 1)
              return std::nullopt;
            if (auto lane = known(extract))
              return Texts{text(extract.getVector(), static_cast<unsigned>(*lane))};
            return chosen(extract.getVector(), dynamic(extract));
          })
          .Case([&](mv::InsertOp insert) -> std::optional<Texts> {
            if (insert.getNumIndices() != 1)
              return std::nullopt;
            if (auto lane = known(insert)) {
              Texts all = lanes(insert.getDest());
              all[static_cast<size_t>(*lane)] = text(insert.getSource());
              return all;
            }
            return replaced(insert.getDest(), insert.getSource(), dynamic(insert));
          })
          .Case<mv::SplatOp, mv::BroadcastOp>([&](auto splat) {
            mlir::Value source = splat->getOperand(0);
            return gpu::lanesOf(source.getType()) == 1 ? Texts(gpu::lanesOf(result.getType()), text(source))
                                                       : Texts(lanes(source));
          })
          .Case([&](mv::FromElementsOp from) {
            Texts all;
            for (mlir::Value each : from.getElements())
              all.push_back(text(each));
            return all;
          })
          .Case([&](mv::BitCastOp cast) {
            return bitcast(lanes(cast.getSource()), mlir::getElementTypeOrSelf(cast.getSource().getType()),
                           mlir::getElementTypeOrSelf(cast.getType()));
          })
          .Case([&](mv::ShapeCastOp cast) { return lanes(cast.getSource()); })
          .Case([&](mv::ExtractStridedSliceOp slice) {
            Texts all;
            auto first = static_cast<unsigned>(mlir::cast<mlir::IntegerAttr>(slice.getOffsets()[0]).getInt());
            for (unsigned i = 0; i < gpu::lanesOf(result.getType()); ++i)
              all.push_back(text(slice.getVector(), first + i));
            return all;
          })
          .Case([&](mv::ShuffleOp shuffle) {
            Texts both = lanes(shuffle.getV1()), all;
            both.append(lanes(shuffle.getV2()));
            for (mlir::Attribute index : shuffle.getMask())
              all.push_back(both[static_cast<size_t>(mlir::cast<mlir::IntegerAttr>(index).getInt())]);
            return all;
          })
          .Case([&](mlir::arith::ConstantOp constant) {  // elements that differ
            Texts all;
            for (mlir::Attribute each :
                 mlir::cast<mlir::DenseElementsAttr>(constant.getValue()).getValues<mlir::Attribute>())
              all.push_back(constantText(gpu::constantValue(context_, each)));
            return all;
          })
          .Default([](mlir::Operation*) { return std::nullopt; });
  if (!texts)
    return false;
  set(result, *texts);
  return true;
}

}  // namespace vortex::target::metal
