#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/text.h"

namespace vortex::lang {

static Type withCanonicalExtents(BodyState& body, Type type, size_t& next);

/// The type methods see as `Self`: a struct of tensors with extents of its own, not those of one value.
Type canonicalSelf(BodyState& body, Type type) {
  if (type->kind != TypeKind::Struct) {
    size_t next = 0;
    return bringsExtents(type) ? withCanonicalExtents(body, type, next) : type;
  }
  if (type->param)
    return type;
  auto* instance = const_cast<StructInstance*>(body.session.findStruct(type->decl));
  if (!instance)
    return type;
  if (!instance->canonical) {
    LocalScope hidden(body);
    instance->canonical = structType(body, instance, DimPolicy::Fresh);
  }
  return isError(instance->canonical) ? type : instance->canonical;
}

/// Tensors of one rank are one type to impls; extents that are constants stay.
static Type withCanonicalExtents(BodyState& body, Type type, size_t& next) {
  switch (type->kind) {
  case TypeKind::Tensor: {
    std::vector<DimExpr> shape;
    for (const DimExpr& extent : type->shape) {
      const DimExpr canonical = body.session.canonicalExtent(next++);
      shape.push_back(extent.asConstant() ? extent : canonical);
    }
    return body.types.tensor(type->elem, std::move(shape), type->space, type->layout, type->param);
  }
  case TypeKind::Vec: return body.types.vec(withCanonicalExtents(body, type->elem, next));
  case TypeKind::Array: return body.types.array(withCanonicalExtents(body, type->elem, next), type->count);
  case TypeKind::Ref: return body.types.ref(withCanonicalExtents(body, type->elem, next), type->isMutable);
  case TypeKind::Struct: return canonicalSelf(body, type);
  case TypeKind::Tuple: {
    std::vector<Type> elems;
    for (Type elem : type->elems)
      elems.push_back(withCanonicalExtents(body, elem, next));
    return body.types.tuple(std::move(elems));
  }
  default: return type;
  }
}

}  // namespace vortex::lang
