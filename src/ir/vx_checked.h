// Operations of programs under `--check`, generated from vx_checked_ops.td.
#pragma once

#include "ir/vx.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#define GET_OP_CLASSES
#include "ir/vx_checked_ops.h.inc"
#pragma clang diagnostic pop
