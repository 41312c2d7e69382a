#include "hvm/frontier/transfer.h"

#include "hvm/frontier/builder.h"

namespace vortex::hvm::frontier {
namespace {

/// Variables and projections that were resolved.
template <typename Heap> Term resolve(const Heap& heap, Term term) {
  while ((tagOf(term) == Var || tagOf(term) == Dp0 || tagOf(term) == Dp1) && isSub(heap[locOf(term)]))
    term = heap[locOf(term)] & ~kSub;
  return term;
}

/// A term that still has to be copied to a place.
struct Open {
  Term term;
  Loc to;
};

/// From the evaluator's heap to a net.
class Departure {
public:
  Departure(const Program& program, const Machine& machine, const Sharding& sharding)
      : code_(machine.code()), heap_(machine.heapWords()), sharding_(sharding), builder_(program) {
    net.definitions.assign(3 * program.definitions.size(), 0);
    for (size_t i = 0; i < program.definitions.size(); ++i)
      net.definitions[3 * i + 1] = kUndefined;
    net.next.assign(sharding.blocks, 0);
    net.forks = !code_.dropsOperands;
  }

  void run(Term term) {
    firstLeft_ = static_cast<uint32_t>(net.definitions.size() / 3);
    store(allocate(1), term);
    while (!open_.empty()) {
      Open next = open_.back();
      open_.pop_back();
      Term word = copy(next.term);
      net.heap[next.to] = word;
    }
    builder_.fillBook(net, sharding_.regionWords(), true);
  }

  Net net;
  std::unordered_map<Loc, Loc> origin;  // of binder and dup cells in the net
  std::vector<Loc> dups;                // those of them that are dup cells
  std::vector<Loc> lambdas;             // and binders of lambdas that came along
  std::vector<Term> left;               // terms that stayed: the net has references to definitions from firstLeft() on
  uint32_t firstLeft() const { return firstLeft_; }

private:
  Loc allocate(uint64_t count) {
    uint64_t& next = net.next[0];
    const uint64_t size = sharding_.regionWords();
    if ((next & (size - 1)) + count > size)
      next = (next | (size - 1)) + 1;
    const Loc loc = sharding_.locationOf(next, 0);
    next += count;
    if (net.heap.size() < loc + count)
      net.heap.resize(loc + count);
    return loc;
  }
  void store(Loc to, Term term) { open_.push_back({term, to}); }

  /// The cell's place in the net. `isNew`: it had none.
  Loc cell(Loc at, bool& isNew) {
    auto [found, inserted] = cells_.try_emplace(at, 0);
    isNew = inserted;
    if (inserted) {
      found->second = allocate(1);
      net.heap[found->second] = number(0);
      origin[found->second] = at;
    }
    return found->second;
  }

  Term leave(Term term) {
    if (firstLeft_ + left.size() > kExtMask)
      return makeTerm(Ref, kExtMask);
    net.definitions.insert(net.definitions.end(), {0, kLeft, 0});
    left.push_back(term);
    return makeTerm(Ref, static_cast<uint32_t>(firstLeft_ + left.size() - 1));
  }

  Term copy(Term term) {
    term = resolve(heap_, term);
    bool isNew = false;
    switch (tagOf(term)) {
    case Num:
    case Era: return term;
    case Ref: return builder_.reach(extOf(term)), term;
    case Var: return makeTerm(Var, 0, cell(locOf(term), isNew));
    case Dp0:
    case Dp1: return projection(term);
    case Lam: {
      const Loc to = cell(locOf(term), isNew);
      store(to, heap_[locOf(term)]);
      lambdas.push_back(to);
      return makeTerm(Lam, extOf(term) & kErasing, to);
    }
    case Thk:
    case Fun: return closure(term);
    case App:
    case Sup:
    case Mat:
    case Swi:
    case Use:
    case Op2: return node(term);
    default: return isConstructor(tagOf(term)) ? node(term) : leave(term);
    }
  }

  Term projection(Term term) {
    const Term content = heap_[locOf(term)];
    if (tagOf(content) == Busy || tagOf(content) == Stk)
      return leave(term);
    bool isNew = false;
    const Loc to = cell(locOf(term), isNew);
    if (isNew) {
      dups.push_back(to);
      store(to, content);
    }
    return makeTerm(tagOf(term), extOf(term), to);
  }

  Term node(Term term) {
    const uint32_t count = fieldsOf(term);
    if (count == 0)
      return term;
    const Loc to = allocate(count);
    for (uint32_t i = 0; i < count; ++i)
      store(to + i, heap_[locOf(term) + i]);
    return (term & ~kValueMask) | to;
  }

  Term closure(Term term) {
    const Entry& entry = code_.entries[extOf(term)];
    auto [found, inserted] = templates_.try_emplace(extOf(term));
    if (inserted)
      found->second = builder_.closure(entry.node, std::span(code_.keys).subspan(entry.captures, entry.count));
    if (!found->second || found->second->words.size() > sharding_.regionWords())
      return leave(term);
    const Template& source = *found->second;
    const Loc to = allocate(source.words.size());
    auto place = [&](Term word) { return isSub(word) ? (word & ~kSub) + to : word; };
    for (size_t i = 0; i < source.words.size(); ++i)
      if (tagOf(source.words[i]) == Slot)
        store(to + i, heap_[locOf(term) + locOf(source.words[i])]);
      else
        net.heap[to + i] = place(source.words[i]);
    return tagOf(source.root) == Slot ? copy(heap_[locOf(term) + locOf(source.root)]) : place(source.root);
  }

  const Code& code_;
  const Term* heap_;
  const Sharding& sharding_;
  Builder builder_;
  uint32_t firstLeft_ = 0;
  std::unordered_map<Loc, Loc> cells_;
  std::unordered_map<uint32_t, std::optional<Template>> templates_;
  std::vector<Open> open_;
};

/// Back from what the passes left.
class Arrival {
public:
  Arrival(const Departure& from, const std::vector<Term>& net, Machine& machine)
      : from_(from), net_(net), machine_(machine), heap_(machine.heapWords()), cells_(from.origin) {}

  Term run() {
    const Term root = copy(net_[0]);
    for (Loc cell : from_.dups)
      restore(cell, isSub(net_[cell]));
    for (Loc cell : from_.lambdas)
      if (isSub(net_[cell]))
        restore(cell, true);
    while (!open_.empty()) {
      Open next = open_.back();
      open_.pop_back();
      Term word = copy(next.term);
      heap_[next.to] = word;
    }
    return root;
  }

private:
  void restore(Loc cell, bool isBound) {
    const Term word = copy(net_[cell] & ~kSub);
    heap_[from_.origin.at(cell)] = word | (isBound ? kSub : 0);
  }

  Loc cell(Loc at, bool& isNew) {
    auto [found, inserted] = cells_.try_emplace(at, 0);
    isNew = inserted;
    if (inserted) {
      found->second = machine_.allocate(1);
      heap_[found->second] = number(0);
    }
    return found->second;
  }

  Term copy(Term term) {
    term = resolve(net_, term);
    bool isNew = false;
    switch (tagOf(term)) {
    case Ref: return extOf(term) >= from_.firstLeft() ? from_.left[extOf(term) - from_.firstLeft()] : term;
    case Var: return makeTerm(Var, 0, cell(locOf(term), isNew));
    case Dp0:
    case Dp1: {
      const Loc to = cell(locOf(term), isNew);
      if (isNew)
        open_.push_back({net_[locOf(term)], to});
      return makeTerm(tagOf(term), extOf(term), to);
    }
    case Lam: {
      const Loc to = cell(locOf(term), isNew);
      open_.push_back({net_[locOf(term)], to});
      return makeTerm(Lam, extOf(term), to);
    }
    default: break;
    }
    const uint32_t count = fieldsOf(term);
    if (count == 0)
      return term;
    const Loc to = machine_.allocate(count);
    for (uint32_t i = 0; i < count; ++i) {
      heap_[to + i] = number(0);
      open_.push_back({net_[locOf(term) + i], to + i});
    }
    return (term & ~kValueMask) | to;
  }

  const Departure& from_;
  const std::vector<Term>& net_;
  Machine& machine_;
  Term* heap_;
  std::unordered_map<Loc, Loc> cells_;  // the evaluator's, by those of the net
  std::vector<Open> open_;
};

}  // namespace

Result<uint64_t> reduceOnDevice(const Program& program, const EngineOptions& options, Machine& machine, Term& term) {
  Departure departure(program, machine, options.sharding);
  departure.run(term);
  if (departure.firstLeft() + departure.left.size() > kExtMask)
    return uint64_t(0);
  Result<NormalForm> normal = normalize(departure.net, options);
  if (!normal) {
    const std::string& message = normal.error().message;
    const bool isOfProgram = message.starts_with("Error: ") || message.starts_with("RUNTIME_ERROR: ");
    return isOfProgram ? Result<uint64_t>(uint64_t(0)) : Result<uint64_t>(normal.takeError());
  }
  if (!machine.hasRoomFor(normal->words))
    return uint64_t(0);
  term = Arrival(departure, normal->heap, machine).run();
  return normal->interactions;
}

}  // namespace vortex::hvm::frontier
