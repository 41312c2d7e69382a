// What the Python function did when it was run once: operations in order, with loops as brackets. Text, one operation per line:
//
//   file gelu.py                         text of the file follows in the request; ids count from 0
//   kernel gelu @ 0 3 0 3 20             name, then file and position (line from 1, byte column from 0, end line, end column)
//   threads 256
//   axes i0 i1                           of the grid, which is 1 in the others; all if the line is missing
//   grid i37 i1 i1                       a kernel for that grid alone; others have the grid as arguments
//   ptr X f32 1 r                        name, element type, rank, r or w
//   int N / float scale                  numbers; `int N 781` is a kernel for that argument alone
//   %0 pid i0 @ …                        result, operation, operands: %id, i… integer, f… float, s… word
//   %3 index %1 @ …                      an integer of any type as one of 64 bits, as offsets are
//   %4 load p0 %3 %2 @ …                 p0: parameter, t%id: shared memory
//   %5 atomic_add p0 %3 %4 %2 @ …        memory, offset, value, mask; the result is what was there
//   %7 shared i64 sf32 i8 sscratch       elements, type, columns (0: it is no tile), and the name that the kernel gives it, if any
//   %8 tile_load p1 %3 i0 i16 i16 %4 %5  matrix, row, column, extents; of a part of the matrix its first row and how many it has
//   %9 positions i0 i16                  0 to 15 along a dimension: a tile of one column, of one row for i1
//   carry %6 f0.0 / loop %5 i0 %1 i256 / … / yield %6 %9 / end
//   draw %5 p1 i0 %1 … end: a loop over the numbers below %1 that the counter at p1 gives out
#pragma once

#include "base/result.h"
#include "source/source.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vortex::metile {

struct Operand {
  enum class Kind : uint8_t { None, Value, Int, Float, Word, Param, Shared } kind = Kind::None;
  int64_t number = 0;  ///< id, integer or index
  double real = 0;
  std::string word;
};

struct Op {
  std::string name;
  int32_t result = -1;
  std::vector<Operand> operands;
  source::SourceRange range;
};

struct Param {
  enum class Kind : uint8_t { Pointer, Int, Float } kind = Kind::Int;
  std::string name, element;
  uint32_t rank = 0;
  bool isWritten = false;
  std::optional<int64_t> known;  ///< of an int
};

struct Trace {
  std::string kernel;
  source::SourceRange range;
  int64_t threads = 1;
  std::array<bool, 3> axes{true, true, true};
  std::optional<std::array<int64_t, 3>> grid;
  std::vector<Param> params;
  std::vector<Op> ops;
  int32_t values = 0;  ///< ids are below this
};

/// Positions that the files do not have (edited since the import) are cut to them. Error: text of another form, with the line.
Result<Trace> parseTrace(std::string_view text, const std::vector<source::FileId>& files,
                         const source::SourceManager& sources);

/// Removes what nothing needs: values that no store, print or assertion depends on, and carried variables that are never read.
void prune(Trace& trace);

}  // namespace vortex::metile
