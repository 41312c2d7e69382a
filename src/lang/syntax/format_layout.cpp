// Lines, their indentation, and where a long line is broken.

#include "lang/syntax/format_layout.h"
#include "source/utf8.h"

#include <algorithm>

namespace vortex::lang::syntax {
namespace {

constexpr uint32_t kIndent = 4;

uint32_t widthOf(std::string_view text) {
  uint32_t width = 0;
  while (!text.empty()) {
    text.remove_prefix(std::max<size_t>(1, source::utf8SequenceLength(text)));
    ++width;
  }
  return width;
}

/// How many brackets a piece closes (`>>` in generics closes two) and opens.
int closes(const Piece& piece) {
  if (piece.role == Role::GenericClose)
    return piece.tok == Tok::Shr ? 2 : 1;
  return isClosing(piece.tok) ? 1 : 0;
}
bool opens(const Piece& piece) { return piece.role == Role::GenericOpen || isOpening(piece.tok); }

/// True if the line starting at `index` continues the statement or element of the line before.
bool isContinuation(const std::vector<Piece>& pieces, size_t index) {
  if (index == 0 || pieces[index].role == Role::Comment)
    return false;
  size_t before = index - 1;
  while (before > 0 && pieces[before].role == Role::Comment)
    --before;
  const Piece &last = pieces[before], &first = pieces[index];
  if (last.role == Role::Binary || last.tok == Tok::Colon || last.tok == Tok::KwAs || last.tok == Tok::KwIn ||
      last.tok == Tok::DotDot)
    return true;
  if (first.tok == Tok::Dot && first.role == Role::Plain)
    return true;
  return first.tok == Tok::Arrow || (first.role == Role::Binary && !first.isSignificantBreak);
}

class Indenter {
public:
  explicit Indenter(const std::vector<Piece>& pieces) : pieces_(pieces) {}

  /// Indentation of the line [begin, end); updates the open brackets.
  uint32_t next(size_t begin, size_t end) {
    uint32_t indent = open_.empty() ? 0 : open_.back() + kIndent;
    size_t i = begin;
    if (closes(pieces_[begin]) > 0) {
      // The line aligns with the line that opened the outermost of its leading closing brackets.
      for (; i < end && closes(pieces_[i]) > 0; ++i)
        for (int count = closes(pieces_[i]); count > 0 && !open_.empty(); --count) {
          indent = open_.back();
          open_.pop_back();
        }
    } else if (isContinuation(pieces_, begin)) {
      indent += kIndent;
    }
    // What opens after a bracket of an earlier line was closed belongs to that line: the body after `…\n    b: f32) {`.
    uint32_t owner = indent;
    for (; i < end; ++i) {
      for (int count = closes(pieces_[i]); count > 0 && !open_.empty(); --count) {
        owner = open_.back();
        open_.pop_back();
      }
      if (opens(pieces_[i]))
        open_.push_back(owner);
    }
    return indent;
  }

private:
  const std::vector<Piece>& pieces_;
  /// For each open bracket the indentation of the line it stands on.
  std::vector<uint32_t> open_;
};

/// Strength of a binary operator as a place to break: the weakest breaks first. 0: not a place.
int breakRank(const Piece& piece) {
  if (piece.role != Role::Binary)
    return 0;
  switch (piece.tok) {
  case Tok::Arrow:
  case Tok::FatArrow:
  case Tok::Pipe: return 0;
  case Tok::Eq: return 1;  // after everything else failed on the right side
  case Tok::OrOr: return 10;
  case Tok::AndAnd: return 9;
  case Tok::EqEq:
  case Tok::NotEq:
  case Tok::Lt:
  case Tok::LtEq:
  case Tok::Gt:
  case Tok::GtEq: return 8;
  case Tok::Plus:
  case Tok::Minus: return 7;
  case Tok::Star:
  case Tok::Slash:
  case Tok::Percent:
  case Tok::At: return 6;
  case Tok::StarStar: return 2;
  default: return piece.tok >= Tok::PlusEq && piece.tok <= Tok::CaretEq ? 1 : 5;
  }
}

class LineBreaker {
public:
  LineBreaker(std::vector<Piece>& pieces, const Line& line) : pieces_(pieces), line_(line) {}

  bool run() { return breakGroup() || breakOperators(); }

private:
  struct Group {
    size_t open, close;
  };

  bool setBreak(size_t index) {
    if (pieces_[index].breaks > 0)
      return false;
    pieces_[index].breaks = 1;
    return true;
  }

  /// The bracket at the outermost level of the line with the most code inside; blocks with code count like lists.
  bool breakGroup() {
    Group best{0, 0};
    size_t bestSize = 0;
    std::vector<size_t> open;
    for (size_t i = line_.begin; i < line_.end; ++i) {
      if (isOpening(pieces_[i].tok)) {
        open.push_back(i);
      } else if (isClosing(pieces_[i].tok) && !open.empty()) {
        const size_t begin = open.back();
        open.pop_back();
        size_t size = 0;
        for (size_t k = begin + 1; k < i; ++k)
          size += pieces_[k].text.size() + 1;
        // Brackets left open by the line (`f(x, |y| {`) keep their contents' level outermost.
        if (isOutermost(begin, i) && size > bestSize && size > kIndent + 4) {
          best = {begin, i};
          bestSize = size;
        }
      }
    }
    return bestSize > 0 && breakInside(best);
  }

  bool isOutermost(size_t begin, size_t close) const {
    int depth = 0;
    for (size_t i = close + 1; i < line_.end; ++i) {
      if (isOpening(pieces_[i].tok))
        ++depth;
      else if (isClosing(pieces_[i].tok) && --depth < 0)
        return hasNoOpening(begin);
    }
    return true;
  }

  /// A closing bracket follows that was opened on an earlier line, not in this one.
  bool hasNoOpening(size_t begin) const {
    int depth = 0;
    for (size_t i = begin; i-- > line_.begin;) {
      if (isClosing(pieces_[i].tok))
        ++depth;
      else if (isOpening(pieces_[i].tok) && --depth < 0)
        return false;
    }
    return true;
  }

  bool breakInside(Group group) {
    const bool isList = pieces_[group.open].tok != Tok::LBrace;
    bool changed = setBreak(group.open + 1);
    changed |= setBreak(group.close);
    int depth = 0;
    bool inClosure = false;
    for (size_t i = group.open + 1; i < group.close; ++i) {
      depth += opens(pieces_[i]) ? 1 : -closes(pieces_[i]);
      if (pieces_[i].role == Role::ClosureOpen)
        inClosure = true;
      else if (pieces_[i].role == Role::ClosureClose)
        inClosure = false;
      const bool isSeparator = pieces_[i].tok == Tok::Comma || (!isList && pieces_[i].tok == Tok::Semicolon);
      if (depth == 0 && !inClosure && isSeparator && i + 1 < group.close && pieces_[i + 1].role != Role::Comment)
        changed |= setBreak(i + 1);
    }
    return changed;
  }

  /// After the weakest operator outside of brackets; all of the same rank, so that a sum becomes a column.
  bool breakOperators() {
    int best = 0;
    forEachOutside([&](size_t i) { best = std::max(best, breakRank(pieces_[i])); });
    bool changed = false;
    if (best > 0)
      forEachOutside([&](size_t i) {
        if (breakRank(pieces_[i]) == best && pieces_[i + 1].role != Role::Comment)
          changed |= setBreak(i + 1);
      });
    return changed;
  }

  /// Operators at the lowest bracket depth of the line, with an operand after them on the line.
  template <class Use> void forEachOutside(Use use) {
    int depth = 0, lowest = 0;
    for (size_t i = line_.begin; i < line_.end; ++i) {
      depth += (opens(pieces_[i]) ? 1 : 0) - closes(pieces_[i]);
      lowest = std::min(lowest, depth);
    }
    depth = 0;
    for (size_t i = line_.begin; i + 1 < line_.end; ++i) {
      depth += (opens(pieces_[i]) ? 1 : 0) - closes(pieces_[i]);
      if (depth == lowest && pieces_[i].role == Role::Binary)
        use(i);
    }
  }

  std::vector<Piece>& pieces_;
  const Line& line_;
};

}  // namespace

std::vector<Line> layoutLines(const std::vector<Piece>& pieces) {
  std::vector<Line> lines;
  Indenter indenter(pieces);
  for (size_t i = 0; i < pieces.size();) {
    Line line{.begin = i, .end = i + 1};
    while (line.end < pieces.size() && pieces[line.end].breaks == 0)
      ++line.end;
    line.indent = indenter.next(line.begin, line.end);
    line.width = line.indent;
    for (size_t k = line.begin; k < line.end; ++k) {
      if (pieces[k].role == Role::Comment && pieces[k].text.starts_with("//"))
        break;
      line.width += widthOf(pieces[k].text) + (k > line.begin && needsSpace(pieces, k) ? 1 : 0);
    }
    lines.push_back(line);
    i = line.end;
  }
  return lines;
}

bool breakLongLines(std::vector<Piece>& pieces, const std::vector<Line>& lines, uint32_t limit) {
  bool changed = false;
  for (const Line& line : lines)
    if (line.width > limit)
      changed |= LineBreaker(pieces, line).run();
  return changed;
}

}  // namespace vortex::lang::syntax
