// Definitions as templates.
#pragma once

#include "hvm/frontier/net.h"

namespace vortex::hvm::frontier {

/// Number of words of a definition that is not defined.
inline constexpr uint64_t kUndefined = 0xffffffff;

/// Cells of one definition. Locations are relative, with SUB set.
struct Template {
  std::vector<Term> words = {};
  Term root = 0;
};

class Builder {
public:
  explicit Builder(const Program& program)
      : program_(program), cellOf_(program.binders.size()), labelOf_(program.binders.size()),
        isReached_(program.definitions.size()) {}

  /// @main and what it reaches; see buildNet.
  Result<Net> run(uint32_t definition, const Sharding& sharding);

private:
  void reach(uint32_t definition);
  /// Templates of what was reached. Those that the kernels have no rules for are refused by name.
  void fillBook(Net& net);
  Template define(NodeId root, bool keepsDups);
  Term build(NodeId id);
  Term fill(uint32_t tag, uint32_t ext, const std::vector<NodeId>& children);
  Term lambda(const Node& node);
  Term variable(const Node& node);
  Term relative(uint32_t tag, uint32_t ext, Loc loc) const { return makeTerm(tag, ext, loc) | kSub; }
  Loc allocate(size_t count) {
    Loc loc = template_.words.size();
    template_.words.resize(loc + count);
    return loc;
  }
  bool isEndless(uint32_t definition) const;

  const Program& program_;
  std::vector<Loc> cellOf_;        // by binder
  std::vector<uint32_t> labelOf_;  // by binder
  Template template_;
  bool keepsDups_ = false;
  std::vector<uint32_t> reached_;  // definitions, in order of appearance
  std::vector<bool> isReached_;
  uint64_t largest_ = 0;  // words of a definition
  std::string refused_;
  bool dropsOperands_ = false;
};

}  // namespace vortex::hvm::frontier
