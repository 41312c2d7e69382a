// Do linear inequalities over integers exclude one another? The general simplex method (Dutertre and de Moura, 2006) in whole numbers: what it says is
// exact, and numbers that grow too large end it undecided.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lang/flow/value/polynomial.h"

namespace vortex::lang::flow {

class LinearSystem {
public:
  /// A variable within the interval; gives its number.
  size_t addVariable(const Interval& range);
  using Row = std::vector<std::pair<size_t, __int128>>;  ///< variables and their coefficients
  /// The sum of the row is at least this.
  void addAtLeast(const Row& row, __int128 least);

  /// No numbers for the variables satisfy all rows. False: some may, or `steps` did not tell.
  bool isEmpty(uint64_t& steps);

private:
  struct Bounds {
    std::optional<__int128> low, high;
  };
  /// scale · owner = Σ factors · columns, for a variable (or a row's sum) that is no column.
  struct Line {
    size_t owner = 0;
    __int128 scale = 1;
    std::vector<__int128> factors;
  };
  bool setUp();
  std::optional<__int128> scaledValue(const Line& line) const;
  bool mayMove(size_t column, bool up) const;
  bool pivot(size_t line, size_t column, bool toLow);
  static bool shorten(Line& line);

  std::vector<Bounds> bounds_;  ///< of variables, and then of sums
  std::vector<Row> rows_;
  std::vector<__int128> least_;
  size_t variables_ = 0;
  std::vector<size_t> columns_;
  std::vector<__int128> values_;  ///< of what is a column: one of its bounds
  std::vector<Line> lines_;
};

}  // namespace vortex::lang::flow
