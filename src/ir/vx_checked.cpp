#include "ir/vx_checked.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#define GET_OP_CLASSES
#include "ir/vx_checked_ops.cpp.inc"
#pragma clang diagnostic pop
