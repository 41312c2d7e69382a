#include "lang/flow/check/accesses.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "lang/flow/check/banks.h"
#include "lang/flow/check/sectors.h"

namespace vortex::lang::flow {
namespace {

using base::concat;

/// Places that one warning names besides its first.
constexpr size_t kMostFurther = 6;

std::string percent(unsigned part, unsigned whole) {
  const unsigned tenths = (part * 1000 + whole / 2) / whole;
  std::string text = std::to_string(tenths / 10);
  return tenths % 10 ? text + "." + std::to_string(tenths % 10) : text;
}

class Checks {
public:
  Checks(Function& kernel, AccessMap& map, diag::DiagnosticSink& sink) : kernel_(kernel), map_(map), sink_(sink) {}

  void run() {
    std::set<std::tuple<uint32_t, uint32_t, uint32_t>> verified;
    for (const ElementAccess& access : map_.accesses) {
      if (access.tensor->space != Space::Shared)
        continue;
      const BankAnswer answer = bankUse(map_, access);
      if (access.verify.isValid()) {
        verified.insert(key(access.verify));
        verify(access, answer);
      } else if (!answer.open && answer.worst.degree > 1 && answer.worst.isExact) {
        note(access,
             concat(answer.worst.degree, "-way bank conflict of `", map_.nameOf(access), "`", when(answer.worst)));
      }
    }
    for (const auto& [range, tile] : map_.verifiedTiles) {
      verified.insert(key(range));
      sink_.error("E0621", tile->range, "bank conflicts cannot be ruled out for a whole tensor")
          .primary("which threads access which of its elements is for the compiler to choose")
          .label(range, "to be verified because of this")
          .help("verify statements that access single elements");
    }
    for (const source::SourceRange& range : map_.verifications)
      if (!verified.contains(key(range)))
        sink_.error("E0622", range, "there is nothing to verify: no element of a shared tensor is accessed here")
            .primary("covers no access of shared memory")
            .help("put it on the statement or kernel that accesses a `@shared` tensor");
    checkGlobal();
  }

private:
  static std::tuple<uint32_t, uint32_t, uint32_t> key(source::SourceRange range) {
    return {range.file.value, range.begin, range.end};
  }
  static std::string when(const BankUse& use) { return use.when.empty() ? "" : " when " + use.when; }

  void note(const ElementAccess& access, std::string text) {
    auto& notes = kernel_.notes;
    if (std::none_of(notes.begin(), notes.end(),
                     [&](const BuildNote& other) { return other.range == access.element->range; }))
      notes.push_back({"access", access.element->range, std::move(text)});
  }

  //===-- banks ---------------------------------------------------------------------------------------------------===//

  void verify(const ElementAccess& access, const BankAnswer& answer) {
    const BankUse& worst = answer.worst;
    if (answer.open)
      return undecided(access, reason(*answer.open), causeOf(*answer.open));
    if (worst.degree < 2)
      return;
    const std::string lanes =
        concat("lanes ", worst.lanes[0], " and ", worst.lanes[1], " access bytes ", worst.bytes[0], " and ",
               worst.bytes[1], " of bank ", static_cast<int64_t>(floorModulo(worst.bytes[0] / 4, 32)), when(worst));
    if (!worst.isExact)
      return undecided(access, concat("if they take part, ", lanes), nullptr);
    sink_
        .error("E0620", access.element->range,
               concat("`", map_.nameOf(access), "` has a ", worst.degree, "-way bank conflict here"))
        .primary(lanes)
        .label(access.verify, "to be verified because of this")
        .help(access.tensor->shape.size() > 1
                  ? "add a column of padding to its shape, or declare it `@shared(layout = .bank_conflict_free)`"
                  : "let neighbouring threads access neighbouring words, or all of them the same");
  }

  void undecided(const ElementAccess& access, std::string why, const Expr* cause) {
    auto builder = sink_.error("E0621", access.element->range,
                               concat("bank conflicts of `", map_.nameOf(access), "` cannot be ruled out here"));
    builder.primary(std::move(why));
    if (cause && !(cause->range == access.element->range))
      builder.label(cause->range, "this differs between threads in an unknown way");
    builder.label(access.verify, "to be verified because of this");
    builder.help("use indices made of thread positions, constants and loop variables; without the attribute the report "
                 "lists known conflicts");
  }

  const Expr* causeOf(const Undecided& open) const {
    return open.isOfLanes && open.leaf != kNoValue ? map_.causeOf(open.leaf) : nullptr;
  }

  std::string reason(const Undecided& open) const {
    if (open.isOfLanes)
      return "the lanes' elements are not known when the kernel is compiled";
    if (const std::string name = open.leaf == kNoValue ? "" : map_.nameOf(open.leaf); !name.empty())
      return concat("the lanes' banks depend on `", name, "`, which may be any number");
    return "the index is too complicated to be followed";
  }

  //===-- coalescing ----------------------------------------------------------------------------------------------===//

  void checkGlobal() {
    std::vector<bool> done(map_.accesses.size());
    for (size_t i = 0; i < map_.accesses.size(); ++i) {
      const ElementAccess& access = map_.accesses[i];
      if (done[i] || access.tensor->space == Space::Shared)
        continue;
      std::vector<const ElementAccess*> group;
      for (size_t j = i; j < map_.accesses.size(); ++j) {
        const ElementAccess& other = map_.accesses[j];
        if (other.root == access.root && other.tensor == access.tensor && other.loop == access.loop &&
            other.conditions == access.conditions && (j == i || access.root != kNoLocal)) {
          group.push_back(&other);
          done[j] = true;
        }
      }
      checkGroup(group);
    }
    for (const Waste& waste : wastes_)
      warn(waste);
  }

  /// Each is judged alone, and with its neighbours where that is better: x[i, 0], x[i, 1], x[i, 2] count as what they are, and a strided access
  /// is not excused by another one that is none.
  void checkGroup(const std::vector<const ElementAccess*>& group) {
    for (const ElementAccess* access : group) {
      auto use = sectorUse(map_, {access});
      if (!use || !use->isPoor())
        continue;
      std::vector<const ElementAccess*> joined{access};
      std::copy_if(group.begin(), group.end(), std::back_inserter(joined),
                   [&](const ElementAccess* other) { return other != access; });
      const auto together = joined.size() > 1 ? sectorUse(map_, joined) : std::nullopt;
      if (together && together->usedBytes * use->sectors > use->usedBytes * together->sectors)
        use = together;
      if (use->isPoor())
        add(*access, *use);
    }
  }

  /// Accesses of one tensor that lanes walk in the same way.
  struct Waste {
    const ElementAccess* access = nullptr;  ///< the first
    SectorUse use;
    std::vector<const ElementAccess*> others;
  };

  static std::string shareOf(const SectorUse& use) { return percent(use.usedBytes, use.sectors * 32); }

  void add(const ElementAccess& access, const SectorUse& use) {
    if (access.isQuiet)
      return note(access, concat("uses ", shareOf(use), "% of the bytes it moves, as `@unchecked(coalescing)` allows"));
    for (Waste& waste : wastes_)
      if (access.root != kNoLocal && waste.access->root == access.root && waste.access->tensor == access.tensor &&
          waste.use.stride == use.stride && waste.use.structBytes == use.structBytes &&
          waste.use.sectors == use.sectors && waste.use.usedBytes == use.usedBytes) {
        waste.others.push_back(&access);
        return;
      }
    wastes_.push_back({&access, use, {}});
  }

  void warn(const Waste& waste) {
    const ElementAccess& access = *waste.access;
    const SectorUse& use = waste.use;
    const std::string share = shareOf(use);
    auto builder = sink_.warning("W0623", access.element->range,
                                 concat("this access uses ", share, "% of the memory bandwidth it moves"));
    const bool isNext = use.structBytes && use.stride == "1";
    builder.primary(
        isNext ? concat("neighbouring threads access parts of neighbouring structs of ", use.structBytes, " bytes")
        : use.stride.empty()
            ? concat("the lanes of a warp touch ", use.sectors, " sectors of 32 bytes for ", use.usedBytes, " bytes")
            : concat("neighbouring threads access elements ", use.stride, " apart"));
    const Variable* root = access.root == kNoLocal ? nullptr : map_.graph[access.root].variable;
    if (root && root->range.isValid() && !root->name.empty())
      builder.label(root->range,
                    concat("`", root->name, "` is stored ", use.structBytes ? "struct by struct" : "row by row"));
    for (size_t i = 0; i < std::min(waste.others.size(), kMostFurther); ++i)
      builder.label(waste.others[i]->element->range, "and here");
    if (waste.others.size() > kMostFurther)
      builder.note(concat("and ", waste.others.size() - kMostFurther, " more accesses"));
    const bool isExtent = use.stride.find('`') != std::string::npos;
    builder.help(
        isNext     ? "without `@layout(aos)` each field is stored by itself, next to the same field of the neighbours"
        : isExtent ? "let neighbouring threads run along the last dimension, or pass a tile through shared memory"
                   : "store together what neighbouring threads use (a tensor per field), or stage a row in shared "
                     "memory and pick from it");
    builder.help("`@unchecked(coalescing)` on the statement or kernel accepts it");
  }

  Function& kernel_;
  AccessMap& map_;
  diag::DiagnosticSink& sink_;
  std::vector<Waste> wastes_;  ///< in the order in which they were found
};

}  // namespace

void checkAccesses(Function& kernel, Graph& graph, const Structure& structure, const Uniformity& uniformity,
                   const LaunchShapes& shapes, diag::DiagnosticSink& sink) {
  const KernelSpec& spec = *kernel.kernel;
  if (spec.gridKind == GridKind::WholeTensor) {
    if (spec.verifyBanks.isValid())
      sink.error("E0622", spec.verifyBanks, "there is nothing to verify: the compiler schedules this kernel")
          .primary("no thread of this kernel accesses elements of shared memory");
    return;
  }
  for (const BlockShape& shape : shapes.blocks) {
    AccessMap map(graph, structure, uniformity, shapes, shape);
    Checks(kernel, map, sink).run();
  }
}

}  // namespace vortex::lang::flow
