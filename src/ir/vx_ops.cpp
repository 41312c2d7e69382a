// The generated definitions of all operations.
#include "ir/vx.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#define GET_OP_CLASSES
#include "ir/vx_ops.cpp.inc"
#pragma clang diagnostic pop
