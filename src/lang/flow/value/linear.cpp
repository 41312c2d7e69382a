#include "lang/flow/value/linear.h"

namespace vortex::lang::flow {

constexpr __int128 kMostFactor = __int128(1) << 60;
constexpr __int128 kInfinite = __int128(1) << 100;

static bool isInfinite(__int128 number) { return number <= -kInfinite || number >= kInfinite; }

size_t LinearSystem::addVariable(const Interval& range) {
  bounds_.push_back({});
  if (!isInfinite(range.low))
    bounds_.back().low = range.low;
  if (!isInfinite(range.high))
    bounds_.back().high = range.high;
  return variables_++;
}

void LinearSystem::addAtLeast(const Row& row, __int128 least) {
  rows_.push_back(row);
  least_.push_back(least);
}

/// Variables are columns at first, at a bound; sums are lines.
bool LinearSystem::setUp() {
  for (size_t i = 0; i < variables_; ++i) {
    columns_.push_back(i);
    const Bounds& bounds = bounds_[i];
    values_.push_back(bounds.low ? *bounds.low : bounds.high.value_or(0));
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    Line line{variables_ + i, 1, std::vector<__int128>(variables_)};
    for (const auto& [variable, factor] : rows_[i]) {
      if (factor > kMostFactor || factor < -kMostFactor)
        return false;
      line.factors[variable] += factor;
    }
    lines_.push_back(std::move(line));
    bounds_.push_back({least_[i], std::nullopt});
  }
  return true;
}

std::optional<__int128> LinearSystem::scaledValue(const Line& line) const {
  __int128 sum = 0, product = 0;
  for (size_t i = 0; i < columns_.size(); ++i)
    if (line.factors[i] != 0 &&
        (__builtin_mul_overflow(line.factors[i], values_[i], &product) || __builtin_add_overflow(sum, product, &sum)))
      return std::nullopt;
  return sum;
}

bool LinearSystem::mayMove(size_t column, bool up) const {
  const Bounds& bounds = bounds_[columns_[column]];
  const auto& limit = up ? bounds.high : bounds.low;
  return !limit || *limit != values_[column];
}

/// By what all its numbers have in common. False: they are too large.
bool LinearSystem::shorten(Line& line) {
  __int128 most = line.scale;
  for (__int128 factor : line.factors)
    most = std::max(most, factor < 0 ? -factor : factor);
  if (most <= (1 << 16))
    return true;
  __int128 common = line.scale;
  for (size_t i = 0; i < line.factors.size() && common != 1; ++i)
    common = greatestDivisor(common, line.factors[i]);
  line.scale /= common;
  for (__int128& factor : line.factors)
    factor /= common;
  return most / common <= kMostFactor;
}

/// The line's owner becomes a column, at its lower or upper bound, and the column a line.
bool LinearSystem::pivot(size_t at, size_t column, bool toLow) {
  Line& line = lines_[at];
  const __int128 by = line.factors[column], sign = by < 0 ? -1 : 1;
  for (__int128& factor : line.factors)
    factor *= -sign;
  line.factors[column] = sign * line.scale;
  line.scale = sign * by;
  const Bounds& bounds = bounds_[line.owner];
  std::swap(line.owner, columns_[column]);
  values_[column] = toLow ? *bounds.low : *bounds.high;
  if (!shorten(line))
    return false;
  for (size_t i = 0; i < lines_.size(); ++i) {
    Line& other = lines_[i];
    const __int128 times = other.factors[column];
    if (i == at || times == 0)
      continue;
    other.factors[column] = 0;
    for (size_t j = 0; j < other.factors.size(); ++j)
      if (other.factors[j] != 0 || line.factors[j] != 0)
        other.factors[j] = other.factors[j] * line.scale + times * line.factors[j];
    other.scale *= line.scale;
    if (!shorten(other))
      return false;
  }
  return true;
}

/// Always the first line that is out of its bounds, and the first column that can mend it: so no state comes twice.
bool LinearSystem::isEmpty(uint64_t& steps) {
  if (!setUp())
    return false;
  for (; steps > 0; --steps) {
    size_t worst = lines_.size();
    bool isLow = false;
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      if (worst < lines_.size() && lines_[worst].owner < line.owner)
        continue;
      const auto value = scaledValue(line);
      if (!value)
        return false;
      const Bounds& bounds = bounds_[line.owner];
      __int128 limit = 0;
      if (bounds.low && __builtin_mul_overflow(*bounds.low, line.scale, &limit))
        return false;
      const bool isBelow = bounds.low && *value < limit;
      if (bounds.high && __builtin_mul_overflow(*bounds.high, line.scale, &limit))
        return false;
      if (!isBelow && !(bounds.high && *value > limit))
        continue;
      worst = i;
      isLow = isBelow;
    }
    if (worst == lines_.size())
      return false;
    size_t column = columns_.size();
    for (size_t j = 0; j < columns_.size(); ++j) {
      const __int128 factor = lines_[worst].factors[j];
      if (factor != 0 && mayMove(j, (factor > 0) == isLow) &&
          (column == columns_.size() || columns_[j] < columns_[column]))
        column = j;
    }
    if (column == columns_.size())
      return true;
    if (!pivot(worst, column, isLow))
      return false;
  }
  return false;
}

}  // namespace vortex::lang::flow
