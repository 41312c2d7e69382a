// A per-thread value of one warp, kept in the cheapest form that describes it.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <optional>

namespace vortex::target::cpu::emit {

struct Lane {
  enum class Kind : uint8_t {
    Uniform,  ///< `value` in every lane
    Affine,   ///< integers: lane l has `value + l * stride`
    Varying,  ///< `value` is <W x T>
  };
  Kind kind = Kind::Uniform;
  llvm::Value* value = nullptr;
  llvm::Value* stride = nullptr;
  /// Varying i1 only, may be null: a scalar i1 that, when true, proves that all lanes are true. Cheaper than looking at the lanes.
  llvm::Value* allTrue = nullptr;
  /// The same for all lanes being false.
  llvm::Value* noneTrue = nullptr;
  /// Varying integers only, may be null: a scalar i1. Where it is true, lane l has `first + l * step`: narrow numbers that were extended, which
  /// may have wrapped between two lanes.
  llvm::Value* isSpaced = nullptr;
  llvm::Value *first = nullptr, *step = nullptr;
  /// Lane l has `origin + pitch * rows[l] + columns[l]`: places that the lanes take in a matrix.
  struct Places {
    llvm::Value *origin = nullptr, *pitch = nullptr;     ///< i64; pitch null: there are no rows
    llvm::Constant *rows = nullptr, *columns = nullptr;  ///< <W x i64>
  };
  /// Varying i64 only.
  std::optional<Places> places = std::nullopt;

  static Lane uniform(llvm::Value* value) { return {.kind = Kind::Uniform, .value = value}; }
  static Lane affine(llvm::Value* base, llvm::Value* stride) {
    return {.kind = Kind::Affine, .value = base, .stride = stride};
  }
  static Lane varying(llvm::Value* vector, llvm::Value* allTrue = nullptr) {
    return {.kind = Kind::Varying, .value = vector, .allTrue = allTrue};
  }
  /// What it is where `isSpaced`; uniform and affine values as they are.
  Lane spaced() const;
  bool mayBeSpaced() const { return kind != Kind::Varying || isSpaced; }
  /// Sums and products by uniform values keep something of what is known beside the vector.
  bool isTracked() const { return mayBeSpaced() || places || llvm::isa<llvm::Constant>(value); }
  bool isUniform() const { return kind == Kind::Uniform; }
  bool isAffine() const { return kind == Kind::Affine; }
  /// Lanes differ by this constant: 0 for uniform values, nothing for varying ones and unknown strides.
  std::optional<int64_t> constantStride() const;
};

/// Lane arithmetic for warps of `width` lanes. Width 1: every value is uniform.
class LaneMath {
public:
  LaneMath(llvm::IRBuilder<>& ir, unsigned width) : ir_(ir), width_(width) {}

  unsigned width() const { return width_; }
  void setWidth(unsigned width) { width_ = width; }
  /// <W x T>; scalars when the width is 1.
  llvm::Value* vector(const Lane& lane);
  /// Varying when the width is larger than 1, uniform otherwise.
  Lane fromVector(llvm::Value* value) { return width_ == 1 ? Lane::uniform(value) : Lane::varying(value); }
  /// 0, 1, …, W-1 of an integer type.
  llvm::Value* iota(llvm::Type* scalarType);

  // Integers of one type. Wrapping, exact in every form.
  Lane add(const Lane& a, const Lane& b);
  Lane sub(const Lane& a, const Lane& b);
  Lane mul(const Lane& a, const Lane& b);
  /// Nothing: the lanes are no constants, nor sums and products of constants and uniform values.
  std::optional<Lane::Places> places(const Lane& lane);
  /// The vector of these.
  llvm::Value* vector(const Lane::Places& places);
  /// `vector`: the extended lanes of an affine `narrow`.
  Lane extended(const Lane& narrow, llvm::Value* vector, bool isSigned);

  /// i1 masks; null stands for "all lanes" and the result is null when both are. Where `a` is false, `b` may even be poison.
  llvm::Value* andMask(llvm::Value* a, llvm::Value* b);

  /// predicate(a, b) per lane with the allTrue proof where it is cheap.
  Lane compare(llvm::CmpInst::Predicate predicate, const Lane& a, const Lane& b);
  /// index <u extent per lane; both i64, extents not negative.
  llvm::Value* insideMask(const Lane& index, const Lane& extent);
  Lane andLanes(const Lane& a, const Lane& b);

  /// The proof of `compare` alone: i1, null when there is no cheap one.
  llvm::Value* provesAll(llvm::CmpInst::Predicate predicate, const Lane& a, const Lane& b);

private:
  std::optional<Lane::Places> sumOfPlaces(const Lane& a, const Lane& b);
  std::optional<Lane::Places> timesPlaces(const Lane& a, const Lane& b);
  Lane combined(llvm::Value* vector, const Lane& a, const Lane& b,
                llvm::function_ref<Lane(const Lane&, const Lane&)> combine);

  llvm::IRBuilder<>& ir_;
  unsigned width_;
};

}  // namespace vortex::target::cpu::emit
