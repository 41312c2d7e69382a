// Types of the typed program. Interned: equal types are the same pointer; compare with ==.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lang/sema/dim.h"
#include "source/source.h"

namespace vortex::lang {

enum class Scalar : uint8_t { Bool, U8, U16, U32, U64, I8, I16, I32, I64, Usize, F8E4M3, F8E5M2, F16, BF16, F32, F64 };
bool isFloat(Scalar scalar);
bool isInteger(Scalar scalar);     ///< includes Usize, not Bool
bool isUnsigned(Scalar scalar);    ///< includes Usize
uint32_t bitWidth(Scalar scalar);  ///< Bool 1, Usize 64
std::string_view name(Scalar scalar);

enum class Space : uint8_t { Global, Shared, Local, Constant };

enum class SharedLayout : uint8_t { RowMajor, ColumnMajor, BankConflictFree };

struct StructDecl;
struct TypeNode;
using Type = const TypeNode*;

enum class TypeKind : uint8_t {
  Error,
  Unit,
  Never,
  Scalar,
  String,
  Tensor,
  Vec,
  Array,
  Tuple,
  Struct,
  Enum,
  Ref,
  Range,
  Closure
};

/// A generic parameter while the definition that declares it is checked by itself, against its bounds only. Types made from it
/// never leave that check.
struct TypeParam {
  std::string name;
  source::SourceRange range;
};

struct TypeNode {
  TypeKind kind = TypeKind::Error;
  Scalar scalar = Scalar::F32;  ///< Scalar
  Type elem = nullptr;          ///< Tensor (a scalar or struct), Vec, Array, Ref, Range; Closure: result
  std::vector<DimExpr> shape;   ///< Tensor
  Space space = Space::Global;  ///< Tensor
  SharedLayout layout = SharedLayout::RowMajor;
  /// Tensor: a value of a whole-tensor or tile expression that the compiler places (no memory space of its own yet).
  bool isValue = false;
  uint64_t count = 0;                ///< Array
  std::vector<Type> elems;           ///< Tuple; Closure: parameters; Struct: field types of this instance
  const StructDecl* decl = nullptr;  ///< Struct, Enum
  bool isMutable = false;            ///< Ref
  /// Scalar, Struct: a stand-in for this generic parameter, of a kind its bounds allow. Tensor: its space is this parameter.
  const TypeParam* param = nullptr;

  bool isScalar(Scalar s) const { return kind == TypeKind::Scalar && scalar == s; }
  bool isTensor() const { return kind == TypeKind::Tensor; }
  uint32_t rank() const { return static_cast<uint32_t>(shape.size()); }
};

struct StructDecl {
  std::string name;
  std::vector<std::string> fields;  ///< Struct; Enum: variant names
  std::vector<int64_t> enumValues;  ///< Enum (a value is its i32 discriminant)
  bool isEnum = false;
  bool arrayOfStructs = false;  ///< @layout(aos)
  source::SourceRange range;
};

/// Owns and interns types.
class TypeContext {
public:
  TypeContext();
  ~TypeContext();
  Type error(), unit(), never(), string();
  Type scalar(Scalar scalar);
  Type boolean() { return scalar(Scalar::Bool); }
  Type tensor(Type elem, std::vector<DimExpr> shape, Space space, SharedLayout layout = SharedLayout::RowMajor,
              const TypeParam* spaceParam = nullptr);
  Type tensorValue(Type elem, std::vector<DimExpr> shape);  ///< isValue
  Type vec(Type elem);
  Type array(Type elem, uint64_t count);
  Type tuple(std::vector<Type> elems);
  Type structure(const StructDecl* decl, std::vector<Type> fieldTypes);
  Type enumeration(const StructDecl* decl);
  /// A scalar that equals no other type: what a bounded generic parameter computes with while its definition is checked.
  Type paramScalar(Scalar scalar, const TypeParam* param);
  /// The same for a parameter whose bounds do not make it a number; `decl` has no fields.
  Type paramStruct(const StructDecl* decl, const TypeParam* param);
  Type ref(Type elem, bool isMutable);
  Type range(Type elem);
  Type closure(std::vector<Type> params, Type result);

private:
  Type intern(TypeNode node);
  struct Storage;
  Storage* storage_;
};

/// The type underneath references; null stays null.
Type stripRef(Type type);
/// `dims`: by DimVarId; what is not there stays.
Type substituteDims(Type type, TypeContext& types, const std::vector<std::optional<DimExpr>>& dims);

/// The user's spelling: "&mut Tensor<f32, [M, 3*D]> @shared". `dimNames` names the dimension variables.
std::string text(Type type, const std::vector<std::string>& dimNames);

}  // namespace vortex::lang
