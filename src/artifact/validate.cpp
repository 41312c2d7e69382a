#include "artifact/validate.h"

#include "base/text.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace vortex::artifact {

namespace {

using base::concat;

class Validation {
public:
  explicit Validation(const Kernel& kernel) : kernel_(kernel) {}

  Result<void> run() {
    checkParams(kernel_.params, "parameter", false);
    const uint32_t argumentSlots = nextSlot_;
    checkParams(kernel_.results, "result", true);
    knownSlots_ = nextSlot_;
    checkParams(kernel_.lets, "let", false);
    for (const Param& let : kernel_.lets)
      if (let.isTensor || let.type != ScalarType::U64)
        fail(concat("let '", let.name, "' is no u64"));
    checkParams(kernel_.temporaries, "temporary", true);
    checkOriginals();
    if (nextSlot_ != kernel_.slotCount)
      fail(concat("its parameters take ", nextSlot_, " slots, but slotCount is ", kernel_.slotCount));
    if (message_.empty())
      checkSizes();
    if (message_.empty())
      checkUses(argumentSlots);
    if (message_.empty())
      return {};
    return Error{concat("kernel '", kernel_.name, "' is not a valid artifact: ", message_)};
  }

private:
  void fail(std::string message) {
    if (message_.empty())
      message_ = std::move(message);
  }

  void checkUses(uint32_t argumentSlots) {
    for (const auto* list : {&kernel_.results, &kernel_.temporaries})
      for (const Param& param : *list)
        for (size::Id extent : param.extents)
          checkId(extent, param.firstSlot, "an extent of '" + param.name + "'");
    for (const Constraint& constraint : kernel_.constraints) {
      checkId(constraint.condition, argumentSlots, "a launch constraint");
      for (size::Id operand : constraint.operands)
        checkId(operand, argumentSlots, "a constraint's operand");
    }
    for (const Phase& phase : kernel_.phases)
      checkPhase(phase);
    checkAllSteps();
    checkAbsent();
    for (const SharedTensor& tensor : kernel_.sharedTensors)
      if (tensor.phase >= kernel_.phases.size())
        fail(concat("the tensor '", tensor.name, "' is of phase ", tensor.phase, " of ", kernel_.phases.size()));
    checkScalarResults();
  }

  /// Fills needed_.
  void checkSizes() {
    if (auto bad = kernel_.sizes.firstBadRow())
      return fail(concat("row ", *bad, " of its ", kernel_.sizes.rows().size(), " sizes is damaged"));
    for (const size::Row& row : kernel_.sizes.rows()) {
      uint32_t needed = 0;
      if (size::isArgument(row.op)) {
        const Param* param = findArgument(kernel_, row.operands[0]);
        const bool hasDim = size::operandCount(row.op) == 2;
        if (!param || (row.op != size::Op::Scalar) != param->isTensor || (hasDim && row.operands[1] >= param->rank))
          return fail(concat("row ", needed_.size(), " of its sizes reads argument ", row.operands[0], ", dimension ",
                             row.operands[1], ", which it does not have"));
        needed = slotOf(kernel_, row) + 1;
      } else {
        for (uint32_t i = 0; i < size::arity(row.op); ++i)
          needed = std::max(needed, needed_[row.operands[i]]);
      }
      needed_.push_back(needed);
    }
  }

  void checkId(size::Id id, uint32_t slotLimit, const std::string& what) {
    if (id.index >= needed_.size())
      return fail(concat(what, " is row ", id.index, " of ", needed_.size(), " sizes"));
    if (needed_[id.index] > slotLimit)
      fail(concat(what, " reads slot ", needed_[id.index] - 1, ", but only ", slotLimit, " are known there"));
  }

  void checkParams(const std::vector<Param>& params, const char* kind, bool allocated) {
    for (const Param& param : params) {
      checkField(params, static_cast<size_t>(&param - params.data()), kind);
      const std::string what = concat(kind, " '", param.name, "'");
      if (param.type > ScalarType::F64 || param.access > Access::ReadWrite)
        return fail(concat(what, " has an unknown type or access"));
      if (param.firstSlot != nextSlot_)
        fail(concat(what, " starts at slot ", param.firstSlot, " instead of ", nextSlot_));
      if (allocated && !param.isTensor)
        fail(concat(what, " is not a tensor"));
      if (!param.isTensor && param.rank != 0)
        fail(concat(what, " is a scalar of rank ", param.rank));
      if (param.extents.size() != (allocated ? param.rank : 0))
        fail(concat(what, " has rank ", param.rank, " and ", param.extents.size(), " extents"));
      const uint64_t next = nextSlot_ + (param.isTensor ? 1 + 2 * uint64_t{param.rank} : 1);
      if (next > UINT32_MAX)
        return fail(concat(what, " has rank ", param.rank));
      nextSlot_ = static_cast<uint32_t>(next);
    }
  }

  void checkOriginals() {
    for (const auto* list : {&kernel_.params, &kernel_.results, &kernel_.lets, &kernel_.temporaries})
      for (const Param& param : *list) {
        if (param.original == Param::kNoOriginal)
          continue;
        const Param* original = param.original < kernel_.params.size() ? &kernel_.params[param.original] : nullptr;
        if (list != &kernel_.temporaries || !original || !original->isTensor || original->access != Access::Read ||
            original->type != param.type || original->rank != param.rank)
          fail(concat("'", param.name, "' cannot stand for parameter ", param.original));
      }
  }

  /// Fields of structs lie inside them, aligned, and follow the field at offset 0.
  void checkField(const std::vector<Param>& params, size_t index, const char* kind) {
    const Param& param = params[index];
    if (param.structBytes == 0 && param.fieldOffset == 0)
      return;
    const uint64_t bytes = param.type <= ScalarType::F64 ? byteSize(param.type) : 1;
    const bool fits = param.structBytes != 0 && param.fieldOffset + bytes <= param.structBytes &&
                      param.fieldOffset % bytes == 0 && param.structBytes % bytes == 0;
    const Param* before = index ? &params[index - 1] : nullptr;
    const bool follows =
        param.fieldOffset == 0 || (before && before->structBytes == param.structBytes && before->rank == param.rank);
    if (!param.isTensor || !fits || !follows)
      fail(concat(kind, " '", param.name, "' is no field of structs of ", param.structBytes, " bytes at offset ",
                  param.fieldOffset));
  }

  void checkPhase(const Phase& phase) {
    const std::string what = concat("phase '", phase.name.empty() ? phase.symbol : phase.name, "'");
    if (phase.symbol.empty())
      fail(what + " has no entry symbol");
    for (int axis = 0; axis < 3; ++axis) {
      checkId(phase.grid[axis], kernel_.slotCount, "the grid of " + what);
      checkId(phase.block[axis], kernel_.slotCount, "the block of " + what);
    }
    checkId(phase.scratchBytes, kernel_.slotCount, "the scratch size of " + what);
    checkId(phase.sharedBytes, kernel_.slotCount, "the shared memory size of " + what);
    checkId(phase.hardwareThreads, kernel_.slotCount, "the hardware threads of " + what);
    for (const Version& version : phase.versions) {
      checkId(version.when, kernel_.slotCount, "the condition of a version of " + what);
      if (version.symbol.empty())
        fail("a version of " + what + " has no entry symbol");
    }
    for (uint32_t temporary : phase.written)
      if (temporary >= kernel_.temporaries.size())
        fail(concat(what, " writes temporary ", temporary, " of ", kernel_.temporaries.size()));
    for (size_t i = 0; i < phase.maps.size(); ++i)
      checkMap(phase.maps[i], concat("tensor map ", i, " of ", what));
    checkCluster(phase, what);
  }

  void checkMap(const TensorMap& map, const std::string& what) {
    if (const std::string error = shapeError(map); !error.empty())
      return fail(concat(what, " is impossible: ", error));
    checkId(map.address, kernel_.slotCount, "the address of " + what);
    for (uint32_t i = 0; i < kMaxMapRank; ++i) {
      checkId(map.extents[i], kernel_.slotCount, "an extent of " + what);
      if (i > 0)
        checkId(map.byteStrides[i - 1], kernel_.slotCount, "a stride of " + what);
    }
  }

  void checkCluster(const Phase& phase, const std::string& what) {
    uint64_t blocks = 1;
    for (uint32_t axis : phase.cluster)
      blocks *= std::min(axis, kMaxClusterBlocks + 1);
    if (blocks == 0 || blocks > kMaxClusterBlocks)
      fail(concat(what, " has clusters of ", base::join(phase.cluster, " x "), " blocks instead of 1 to ",
                  kMaxClusterBlocks));
    if (!message_.empty())
      return;
    const bool isOfGpu = kernel_.sizes.constantOf(phase.hardwareThreads) != 0;
    if (!isOfGpu && (blocks != 1 || !phase.maps.empty()))
      fail(what + " has clusters or tensor maps and no hardware threads");
  }

  void checkAllSteps() {
    isRun_.resize(kernel_.phases.size());
    checkSteps(kernel_.steps, 0);
    for (size_t phase = 0; phase < isRun_.size(); ++phase)
      if (!isRun_[phase])
        fail(concat("no step runs phase '", kernel_.phases[phase].symbol, "'"));
    if (setLets_ != kernel_.lets.size())
      fail(concat("its steps set ", setLets_, " of ", kernel_.lets.size(), " lets"));
  }

  void checkAbsent() {
    std::set<std::string_view> symbols;
    for (const Phase& phase : kernel_.phases) {
      symbols.insert(phase.symbol);
      for (const Version& version : phase.versions)
        symbols.insert(version.symbol);
    }
    for (const std::string& symbol : kernel_.absent)
      if (!symbols.contains(symbol))
        fail(concat("no phase has the absent entry point '", symbol, "'"));
    for (const Constraint& constraint : kernel_.coverage) {
      checkId(constraint.condition, kernel_.slotCount, "a condition of its coverage");
      for (size::Id operand : constraint.operands)
        checkId(operand, kernel_.slotCount, "an operand of its coverage");
    }
  }

  void checkSteps(const std::vector<Step>& steps, unsigned nesting) {
    if (nesting == kMostNesting)
      return fail(concat("its steps are nested more than ", kMostNesting, " deep"));
    for (const Step& step : steps)
      std::visit([&](const auto& what) { checkStep(what, nesting); }, step.what);
  }

  void checkStep(const Run& run, unsigned) {
    if (run.phase >= kernel_.phases.size())
      return fail(concat("a step runs phase ", run.phase, " of ", kernel_.phases.size()));
    if (isRun_[run.phase])
      fail(concat("two steps run phase '", kernel_.phases[run.phase].symbol, "'"));
    isRun_[run.phase] = true;
  }

  void checkStep(const Let& let, unsigned) {
    if (let.let != setLets_ || let.let >= kernel_.lets.size())
      return fail(concat("a step sets let ", let.let, " of ", kernel_.lets.size(), " where ", setLets_, " are set"));
    checkId(let.value, knownSlots_, "the value of let '" + kernel_.lets[let.let].name + "'");
    ++setLets_;
    ++knownSlots_;
  }

  void checkStep(const Read& read, unsigned) {
    if (read.let != setLets_ || read.let >= kernel_.lets.size())
      return fail(concat("a step sets let ", read.let, " of ", kernel_.lets.size(), " where ", setLets_, " are set"));
    const size_t count = kernel_.temporaries.size();
    const Param* source = read.temporary < count ? &kernel_.temporaries[read.temporary] : nullptr;
    if (!source || source->type != ScalarType::I64 || source->rank != 1 ||
        kernel_.sizes.constantOf(source->extents[0]) != 1)
      return fail(concat("let '", kernel_.lets[read.let].name, "' is read from temporary ", read.temporary, " of ",
                         count, ", which is not one i64"));
    ++setLets_;
    ++knownSlots_;
  }

  void checkStep(const Choose& choose, unsigned nesting) {
    if (choose.cases.empty())
      return fail("a choice has no cases");
    for (const Case& each : choose.cases) {
      const std::string what = concat(" of case '", each.name, "'");
      checkId(each.needs, knownSlots_, "the needs" + what);
      checkId(each.when, knownSlots_, "the condition" + what);
      if (message_.empty() && &each == &choose.cases.back() && (!isAlways(each.needs) || !isAlways(each.when)))
        fail(concat("the last case '", each.name, "' of a choice depends on the launch"));
      checkSteps(each.steps, nesting + 1);
    }
  }

  void checkStep(const Loop& loop, unsigned nesting) {
    const std::string what = concat(" of ", loop.name);
    const uint32_t firstLet =
        loop.first.empty() ? 0 : setLets_;  // of a loop that sets none: a condition that never holds
    if (loop.first.size() != loop.next.size() || loop.firstLet != firstLet ||
        loop.first.size() > kernel_.lets.size() - setLets_)
      return fail(concat(loop.name, " sets ", loop.first.size(), " lets first and ", loop.next.size(),
                         " next, from let ", loop.firstLet, " of ", kernel_.lets.size(), " where ", setLets_,
                         " are set"));
    for (size::Id id : loop.first)
      checkId(id, knownSlots_, "a first value" + what);
    setLets_ += static_cast<uint32_t>(loop.first.size());
    knownSlots_ += static_cast<uint32_t>(loop.first.size());
    checkId(loop.condition, knownSlots_, "the condition" + what);
    checkSteps(loop.steps, nesting + 1);
    for (size::Id id : loop.next)
      checkId(id, knownSlots_, "a next value" + what);
  }

  void checkStep(const Exchange& exchange, unsigned) {
    const size_t count = kernel_.temporaries.size();
    if (exchange.a >= count || exchange.b >= count || exchange.a == exchange.b)
      return fail(concat("a step exchanges temporaries ", exchange.a, " and ", exchange.b, " of ", count));
    const Param &a = kernel_.temporaries[exchange.a], &b = kernel_.temporaries[exchange.b];
    if (a.type != b.type || a.extents != b.extents)
      fail(concat("a step exchanges temporaries ", exchange.a, " and ", exchange.b,
                  ", which differ in type or extents"));
  }

  bool isAlways(size::Id id) const { return kernel_.sizes.constantOf(id).value_or(0) != 0; }

  void checkScalarResults() {
    for (uint32_t index : kernel_.scalarResults)
      if (index >= kernel_.results.size())
        fail(concat("scalar result ", index, " does not exist; the kernel has ", kernel_.results.size(), " results"));
  }

  const Kernel& kernel_;
  uint32_t nextSlot_ = 0;
  std::vector<uint32_t> needed_;  ///< per size: slots that must be known
  std::vector<bool> isRun_;       ///< per phase, in the steps so far
  uint32_t setLets_ = 0;          ///< in the steps so far
  uint32_t knownSlots_ = 0;       ///< to the next step
  std::string message_;
};

}  // namespace

Result<void> validate(const Kernel& kernel) { return Validation(kernel).run(); }

}  // namespace vortex::artifact
