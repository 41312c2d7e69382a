#include "hvm/slices/transfer.h"

#include "hvm/eval/lifted.h"
#include "hvm/slices/words.h"

#include <algorithm>

namespace vortex::hvm::slices {
namespace {

bool isCellReference(Tag tag) { return tag == Var || tag == Dp0 || tag == Dp1 || tag == Fut; }

Term at(Term term, Loc loc) { return (term & ~(kValueMask | kSub)) | loc; }

/// A term that still has to be copied to a place.
struct Open {
  Term term;
  Loc to;
  uint64_t field;
};

/// From the evaluator's heap.
class Departure {
public:
  explicit Departure(const Machine& machine) : code_(machine.code()), heap_(machine.heapWords()) {}

  void run(Term term) {
    const Loc root = cells[0] = image.allocate(1);
    open_.push_back({term, root, 0});
    while (!open_.empty()) {
      const Open next = open_.back();
      open_.pop_back();
      const Term word = copy(next.term);
      image.field(next.to, next.field) = word;
    }
  }

  Image image;
  std::vector<Loc> cells = {0};       // the root, then binder and dup cells
  std::vector<Loc> origins = {0};     // where those were
  std::vector<size_t> dups, lambdas;  // which of them are dup cells, and binders of lambdas that went along
  std::vector<Term> left;             // terms that stayed

  /// A cell has two references. If both went along, nothing that stayed can ask for it.
  bool isInside(size_t cell) const { return references_[cell] == 2; }

private:
  Loc cell(Loc from, bool& isNew) {
    auto [found, inserted] = indices_.try_emplace(from, cells.size());
    isNew = inserted;
    if (inserted) {
      cells.push_back(image.allocate(1));
      image.field(cells.back(), 0) = number(0);
      origins.push_back(from);
      references_.push_back(0);
    }
    ++references_[found->second];
    return cells[found->second];
  }

  Term leave(Term term) {
    left.push_back(term);
    return makeTerm(kLeft, 0, left.size() - 1);
  }

  Term copy(Term term) {
    while (isCellReference(tagOf(term)) && isSub(heap_[locOf(term)]))
      term = heap_[locOf(term)] & ~kSub;
    bool isNew = false;
    switch (tagOf(term)) {
    case Var: return at(term, cell(locOf(term), isNew));
    case Lam: {
      const Loc to = cell(locOf(term), isNew);
      open_.push_back({heap_[locOf(term)], to, 0});
      lambdas.push_back(indices_.at(locOf(term)));
      return at(term, to);
    }
    case Lm0:
    case Lm1: {
      const Loc to = image.allocate(1);
      open_.push_back({projectionIn(term), to, 0});
      return makeTerm(Lam, kErasing, to);
    }
    case Svr: {
      const Loc to = image.allocate(2);
      for (uint32_t i = 0; i < 2; ++i)
        open_.push_back({makeTerm(Var, 0, locOf(term) + i), to, i});
      return makeTerm(Sup, extOf(term), to);
    }
    case Lf0:
    case Lf1: {
      const LiftedNode node = nodeOfLifted(heap_, term);
      const Loc to = image.allocate(2);
      for (uint32_t i = 0; i < 2; ++i)
        open_.push_back({node.fields[i], to, i});
      return at(node.head, to);
    }
    case Fut:
    case Dp0:
    case Dp1: {
      const Term content = heap_[locOf(term)];
      if (tagOf(content) == Busy || tagOf(content) == Stk)
        return leave(term);
      if (tagOf(term) == Fut)
        return copy(content);
      const Loc to = cell(locOf(term), isNew);
      if (isNew) {
        dups.push_back(indices_.at(locOf(term)));
        open_.push_back({content, to, 0});
      }
      return at(term, to);
    }
    default: break;
    }
    const uint32_t count = wordsOf(term, code_);
    if (count == 0)
      return term;
    const Loc to = image.allocate(count);
    for (uint32_t i = 0; i < count; ++i)
      open_.push_back({heap_[locOf(term) + i], to, i});
    return at(term, to);
  }

  const Code& code_;
  const Term* heap_;
  std::unordered_map<Loc, size_t> indices_;  // in `cells`, by where they were
  std::vector<uint8_t> references_ = {0};    // to each of `cells`, from what went along
  std::vector<Open> open_;
};

/// Makes a saved stack a term again, in the cell that its value was for: every frame becomes a node around what it waits for.
class Folding {
public:
  Folding(Engine& engine, const Code& code) : engine_(engine), code_(code) {}

  void run(Loc stack) {
    push(stack, 1);
    Term value = engine_.word(stack, 1);
    while (!words_.empty())
      value = fold(value);
  }

private:
  void push(Loc stack, uint64_t skipped) {
    const uint64_t count = locOf(engine_.word(stack));
    for (uint64_t i = 1 + skipped; i <= count; ++i)
      words_.push_back(engine_.word(stack, i));
  }
  Term pop() {
    const Term word = words_.back();
    words_.pop_back();
    return word;
  }
  Term node(uint32_t tag, uint32_t ext, std::initializer_list<Term> fields) {
    const Loc to = engine_.allocate(fields.size());
    uint64_t i = 0;
    for (Term field : fields)
      engine_.putField(to, i++, field);
    return makeTerm(tag, ext, to);
  }
  Term closure(uint32_t tag, uint32_t entry) {
    const uint32_t count = code_.entries[entry].count;
    const Loc to = count ? engine_.allocate(count) : 0;
    for (uint32_t i = count; i-- > 0;)
      engine_.putField(to, i, pop());
    return makeTerm(tag, entry, to);
  }

  Term fold(Term value) {
    const Term header = pop();
    const uint32_t ext = extOf(header);
    const Loc loc = locOf(header);
    if (isSub(header))
      return node(App, 0, {value, header & ~kSub});
    switch (static_cast<uint32_t>(tagOf(header))) {
    case OnMat: return node(App, 0, {pop(), value});
    case OnMatCode:
    case OnUseCode: return node(App, 0, {closure(Fun, ext), value});
    case OnUse: return node(App, 0, {node(Use, 0, {pop()}), value});
    case OnOp2: return node(Op2, static_cast<uint32_t>(loc), {value, pop()});
    case OnOp2Code: return node(Op2, static_cast<uint32_t>(loc), {value, closure(Thk, ext)});
    case OnOp2Num: return node(Op2, ext, {number(numberOf(header)), value});
    case OnOp2Forked: return node(Op2, ext, {value, makeTerm(Fut, 0, loc)});
    case OnEqlForked: return node(Eql, 0, {value, makeTerm(Fut, 0, loc)});
    case OnEqlLeft: return node(Eql, 0, {value, pop()});
    case OnEqlRight: return node(Eql, 0, {pop(), value});
    case OnAnd: return node(And, 0, {value, pop()});
    case OnOr: return node(Or, 0, {value, pop()});
    case OnDsu:
    case OnDdu: {
      const Term second = pop(), first = pop();
      return node(tagOf(header) == OnDsu ? Dsu : Ddu, 0, {value, first, second});
    }
    case OnLog:
    case OnNf: return node(Pri, ext, {value});
    case OnDp0:
    case OnDp1: engine_.put(loc, value); return makeTerm(tagOf(header) == OnDp0 ? Dp0 : Dp1, ext, loc);
    case kOnCell: return engine_.put(loc, value), value;
    case kOnTodo: return value;
    case kOnSpilled: return push(loc, 0), value;
    default: VORTEX_UNREACHABLE("no frame with tag %u", static_cast<uint32_t>(tagOf(header)));
    }
  }

  Engine& engine_;
  const Code& code_;
  std::vector<Term> words_;
};

/// Back from what the slices left.
class Arrival {
public:
  Arrival(const Departure& from, Engine& engine, Machine& machine)
      : from_(from), engine_(engine), machine_(machine), heap_(machine.heapWords()), places_(engine.cells()) {
    for (size_t i = 1; i < places_.size(); ++i)
      if (!from.isInside(i))
        cells_[engine.placeOf(places_[i])] = from.origins[i];
  }

  Term run() {
    const Term term = copy(makeTerm(Fut, 0, places_[0]));
    for (size_t cell : from_.dups)
      if (!from_.isInside(cell))
        restore(cell, isSub(engine_.word(places_[cell])));
    for (size_t cell : from_.lambdas)
      if (!from_.isInside(cell) && isSub(engine_.word(places_[cell])))
        restore(cell, true);
    while (!open_.empty()) {
      const Open next = open_.back();
      open_.pop_back();
      const Term word = copy(next.term);
      heap_[next.to] = word;
    }
    return term;
  }

private:
  void restore(size_t cell, bool isBound) {
    const Term word = copy(engine_.word(places_[cell]) & ~kSub);
    heap_[from_.origins[cell]] = word | (isBound ? kSub : 0);
  }

  Loc cell(Loc from, bool& isNew) {
    auto [found, inserted] = cells_.try_emplace(engine_.placeOf(from), 0);
    isNew = inserted;
    if (inserted) {
      found->second = machine_.allocate(1);
      heap_[found->second] = number(0);
    }
    return found->second;
  }

  Term copy(Term term) {
    while (isCellReference(tagOf(term))) {
      const Term content = engine_.word(locOf(term));
      if (!isSub(content) && tagOf(term) != Fut)
        break;
      term = content & ~kSub;
    }
    bool isNew = false;
    switch (static_cast<uint32_t>(tagOf(term))) {
    case kLeft: return from_.left[locOf(term)];
    case Var: return at(term, cell(locOf(term), isNew));
    case Dp0:
    case Dp1: {
      const Loc to = cell(locOf(term), isNew);
      if (isNew)
        open_.push_back({engine_.word(locOf(term)), to, 0});
      return at(term, to);
    }
    case Lam: {
      const Loc to = cell(locOf(term), isNew);
      open_.push_back({engine_.word(locOf(term)), to, 0});
      return at(term, to);
    }
    default: break;
    }
    const uint32_t count = wordsOf(term, machine_.code());
    if (count == 0)
      return term;
    const Loc to = machine_.allocate(count);
    for (uint32_t i = 0; i < count; ++i) {
      heap_[to + i] = number(0);
      open_.push_back({engine_.word(locOf(term), i), to + i, 0});
    }
    return at(term, to);
  }

  const Departure& from_;
  Engine& engine_;
  Machine& machine_;
  Term* heap_;
  std::vector<Loc> places_;             // of the cells that went along, where they lie now
  std::unordered_map<Loc, Loc> cells_;  // the evaluator's, by those of the device
  std::vector<Open> open_;
};

struct Outcome {
  uint64_t interactions = 0;
  bool isWide = false;
};

Result<Outcome> reduceOn(const Tables& tables, const SliceOptions& options, Machine& machine, Term& term) {
  Departure departure(machine);
  departure.run(term);
  auto engine = Engine::create(tables, departure.image, departure.cells, options);
  if (!engine)
    return engine.takeError();
  Result<bool> done = (*engine)->run();
  if (!done)
    return done.takeError();
  if (!*done)
    return Outcome{};
  if (!machine.hasRoomFor((*engine)->usedWords()))
    return Outcome{};
  Clock clock;
  Folding folding(**engine, machine.code());
  for (Loc stack : (*engine)->stacks())
    folding.run(stack);
  const Term normal = Arrival(departure, **engine, machine).run();
  if (!(*engine)->state())
    return (*engine)->state().error();
  term = normal;
  if (options.report)
    options.report->fetch += clock.lap();
  return Outcome{(*engine)->interactions(), (*engine)->isWide()};
}

constexpr uint32_t kFirstBlocks = 4;  // on the CPU: room for as many tasks as a GPU is opened for

}  // namespace

Result<uint64_t> reduceOnDevice(const SliceOptions& options, Machine& machine, Term& term) {
  const std::optional<Tables> tables = tabulate(machine.code());
  if (!tables)
    return uint64_t(0);
  Outcome first;
  if (options.cpuSession && !*options.session) {
    SliceOptions onCpu = options;
    onCpu.device = "cpu", onCpu.blocks = kFirstBlocks, onCpu.enoughWidth = options.leastWidth;
    onCpu.session = options.cpuSession, onCpu.report = options.cpuReport;
    Result<Outcome> made = reduceOn(*tables, onCpu, machine, term);
    if (!made)
      return made.takeError();
    if (!made->isWide)
      return made->interactions;
    first = *made;
  }
  SliceOptions rest = options;
  rest.fuel -= std::min(rest.fuel, first.interactions);
  Result<Outcome> done = reduceOn(*tables, rest, machine, term);
  if (!done)
    return done.takeError();
  return first.interactions + done->interactions;
}

}  // namespace vortex::hvm::slices
