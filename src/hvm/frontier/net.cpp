#include "hvm/frontier/net.h"

#include "base/file.h"
#include "base/text.h"
#include "hvm/frontier/builder.h"

#include <deque>
#include <utility>

namespace vortex::hvm::frontier {
namespace {

/// What the kernels have no rule for, as a program spells it; nothing if they have.
std::string unsupported(const Node& node) {
  switch (node.kind) {
  case NodeKind::Wildcard: return "*";
  case NodeKind::Name: return "^" + decodeName(node.value);
  case NodeKind::DynamicDup: return "!x&(l)";
  case NodeKind::DynamicSup: return "&(l){…}";
  case NodeKind::Dry: return "^(f x)";
  case NodeKind::Equal: return "===";
  case NodeKind::And: return ".&.";
  case NodeKind::Or: return ".|.";
  case NodeKind::Unscoped: return "! f = λ x";
  case NodeKind::Priority: return "↑";
  case NodeKind::Native: return "%" + std::string(kNatives[node.value].name);
  default: return "";
  }
}

}  // namespace

Term Builder::fill(uint32_t tag, uint32_t ext, const std::vector<NodeId>& children) {
  if (children.empty())
    return makeTerm(tag, ext);
  Loc loc = allocate(children.size());
  for (size_t i = 0; i < children.size(); ++i) {
    Term term = build(children[i]);
    template_.words[loc + i] = term;
  }
  return relative(tag, ext, loc);
}

Term Builder::variable(const Node& node) {
  const Loc cell = cellOf_[node.binder];
  if (node.side == Side::None)
    return relative(Var, 0, cell);
  return relative(node.side == Side::Zero ? Dp0 : Dp1, labelOf_[node.binder], cell);
}

Term Builder::lambda(const Node& node) {
  const uint32_t* uses = program_.binders[node.binder].uses;
  const Loc cell = allocate(1);
  cellOf_[node.binder] = cell;
  Term body = build(node.children[0]);
  template_.words[cell] = body;
  return relative(Lam, uses[0] + uses[1] + uses[2] == 0 ? kErasing : 0, cell);
}

// The parser limits the depth.
Term Builder::build(NodeId id) {
  const Node& node = program_.nodes[id];
  if (std::string name = unsupported(node); !name.empty()) {
    refused_ = name;
    return makeTerm(Era);
  }
  switch (node.kind) {
  case NodeKind::Variable: return variable(node);
  case NodeKind::Number: return number(node.value);
  case NodeKind::Reference: reach(node.value); return makeTerm(Ref, node.value);
  case NodeKind::Erasure: return dropsOperands_ = true, makeTerm(Era);
  case NodeKind::Lambda: return lambda(node);
  case NodeKind::Apply: return fill(App, 0, node.children);
  case NodeKind::Sup: return fill(Sup, node.value, node.children);
  case NodeKind::Constructor: return fill(C00 + static_cast<uint32_t>(node.children.size()), node.value, node.children);
  case NodeKind::Match: return fill(Mat, node.value, node.children);
  case NodeKind::Use: return dropsOperands_ = true, fill(Use, 0, node.children);
  case NodeKind::Operator: return fill(Op2, node.value, node.children);
  case NodeKind::Switch: {
    const Loc loc = allocate(3);
    for (size_t i = 0; i < 2; ++i) {
      Term branch = build(node.children[i]);
      template_.words[loc + i] = branch;
    }
    template_.words[loc + 2] = number(node.value);
    return relative(Swi, 0, loc);
  }
  case NodeKind::Dup: {
    const Loc cell = allocate(keepsDups_ ? 2 : 1);
    cellOf_[node.binder] = cell;
    labelOf_[node.binder] = node.value;
    Term value = build(node.children[0]);
    template_.words[cell] = value;
    Term body = build(node.children[1]);
    if (!keepsDups_)
      return body;
    template_.words[cell + 1] = body;
    return relative(kDupNode, node.value, cell);
  }
  default: VORTEX_UNREACHABLE();
  }
}

Template Builder::define(NodeId root, bool keepsDups) {
  template_ = {};
  keepsDups_ = keepsDups;
  Term term = build(root);
  template_.root = term;
  return std::move(template_);
}

void Builder::reach(uint32_t definition) {
  if (!isReached_[definition]) {
    isReached_[definition] = true;
    reached_.push_back(definition);
  }
}

/// Is its value a name whose value is a name, and so on without end?
bool Builder::isEndless(uint32_t definition) const {
  for (size_t steps = 0; steps <= program_.definitions.size(); ++steps) {
    const NodeId root = program_.definitions[definition].root;
    if (root == 0 || program_.nodes[root].kind != NodeKind::Reference)
      return false;
    definition = program_.nodes[root].value;
  }
  return true;
}

namespace {

/// Gives the cells of @main their places: breadth first, so that the fields of a node are neighbours. With several blocks the fields of the
/// outermost constructor go to the blocks behind the first.
class Placement {
public:
  Placement(const Template& source, const Sharding& sharding, Net& net)
      : source_(source), sharding_(sharding), net_(net), placed_(source.words.size()) {}

  bool run() {
    net_.next.assign(sharding_.blocks, 0);
    const Loc root = allocate(0, 1);
    put(root, source_.root, 0);
    while (!open_.empty() && fits_) {
      auto [term, block] = open_.front();
      open_.pop_front();
      place(term, block);
    }
    // Only now all binders have their places.
    for (auto& [loc, term] : terms_)
      net_.heap[loc] = isSub(term) ? (term & ~(kSub | kValueMask)) | placed_[locOf(term)] : term;
    return fits_;
  }

private:
  struct Open {
    Term term;
    uint32_t block;
  };

  Loc allocate(uint32_t block, uint64_t count) {
    uint64_t& next = net_.next[block];
    const uint64_t size = sharding_.regionWords();
    if (count > size)
      fits_ = false;
    if ((next & (size - 1)) + count > size)
      next = (next | (size - 1)) + 1;
    const Loc loc = sharding_.locationOf(next, block);
    next += count;
    if (net_.heap.size() < loc + count)
      net_.heap.resize(loc + count);
    return loc;
  }

  void put(Loc loc, Term term, uint32_t block) {
    terms_.emplace_back(loc, term);
    open_.push_back({term, block});
  }

  void place(Term term, uint32_t block) {
    const uint32_t count = fieldsOf(term & ~kSub);
    if (count == 0)
      return;
    const bool isSpread = !hasSpread_ && sharding_.blocks > 1 && count > 1 && isConstructor(tagOf(term));
    hasSpread_ = hasSpread_ || isSpread;
    const Loc from = locOf(term), to = allocate(block, count);
    placed_[from] = to;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t target = isSpread ? (block + 1 + i) % sharding_.blocks : block;
      Loc cell = to + i;
      if (isSpread) {
        cell = allocate(target, 1);
        net_.heap[to + i] = makeTerm(kLink, 0, cell);
      }
      put(cell, source_.words[from + i], target);
    }
  }

  const Template& source_;
  const Sharding& sharding_;
  Net& net_;
  std::vector<Loc> placed_;  // by the first cell of a node
  std::vector<std::pair<Loc, Term>> terms_;
  std::deque<Open> open_;
  bool hasSpread_ = false, fits_ = true;
};

}  // namespace

void Builder::fillBook(Net& net) {
  for (size_t i = 0; i < reached_.size() && refused_.empty(); ++i) {
    const uint32_t one = reached_[i];
    if (program_.definitions[one].root == 0)
      continue;
    if (isEndless(one))
      refused_ = base::concat("@", program_.definitions[one].name, ", which stands for itself");
    Template made = define(program_.definitions[one].root, false);
    net.definitions[3 * one] = net.book.size();
    net.definitions[3 * one + 1] = made.words.size();
    net.definitions[3 * one + 2] = made.root;
    largest_ = std::max<uint64_t>(largest_, made.words.size());
    net.book.insert(net.book.end(), made.words.begin(), made.words.end());
  }
}

Result<Net> Builder::run(uint32_t definition, const Sharding& sharding) {
  NodeId root = program_.definitions[definition].root;
  // Nested calls of %gnf are no operation, and this one is the outermost.
  while (program_.nodes[root].kind == NodeKind::Native && kNatives[program_.nodes[root].value].kind == NativeKind::Gnf)
    root = program_.nodes[root].children[0];
  const Template main = define(root, true);
  Net net;
  net.definitions.assign(3 * program_.definitions.size(), 0);
  for (size_t i = 0; i < program_.definitions.size(); ++i)
    net.definitions[3 * i + 1] = kUndefined;
  fillBook(net);
  if (!refused_.empty())
    return Error{base::concat("the frontier engine has no rules for ", refused_)};
  if (largest_ > sharding.regionWords() || !Placement(main, sharding, net).run())
    return Error{
        base::concat("regions of ", sharding.regionWords(), " words are too small: a definition has ", largest_)};
  net.forks = !dropsOperands_;
  return net;
}

uint32_t fieldsOf(Term term) {
  switch (tagOf(term)) {
  case Lam:
  case Use: return 1;
  case App:
  case Sup:
  case Mat:
  case Op2: return 2;
  case Swi: return 3;
  default:
    if (static_cast<uint32_t>(tagOf(term)) == kDupNode)
      return 2;
    return isConstructor(tagOf(term)) ? tagOf(term) - C00 : 0;
  }
}

Result<void> writeNumbers(const std::vector<uint64_t>& numbers, const std::string& path) {
  std::string header = base::concat("{'descr': '<u8', 'fortran_order': False, 'shape': (", numbers.size(), ",), }");
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>((header.size() + 1) & 0xff);
  text += static_cast<char>((header.size() + 1) >> 8);
  text += header + "\n";
  text.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(uint64_t));
  return base::writeFileAtomic(path, text);
}

Result<void> writeNet(const Net& net, const Sharding& sharding, const std::string& path) {
  constexpr uint64_t kEntries = 64;
  const uint64_t stride = sharding.blocks * sharding.regionWords();
  const uint64_t cells = (net.heap.size() + 4096 + stride) / stride * stride;
  // The kernels take no empty tensors.
  std::vector<Term> book = net.book;
  book.resize(std::max<size_t>(book.size(), 1));
  std::vector<uint64_t> words = {sharding.blocks, sharding.shift,  kEntries,    cells,
                                 net.forks,       net.heap.size(), book.size(), net.definitions.size()};
  const std::vector<uint64_t>* const parts[] = {&net.heap, &book, &net.definitions, &net.next};
  for (const std::vector<uint64_t>* part : parts)
    words.insert(words.end(), part->begin(), part->end());
  return writeNumbers(words, path);
}

Result<Net> buildNet(const Program& program, uint32_t definition, const Sharding& sharding) {
  return Builder(program).run(definition, sharding);
}

}  // namespace vortex::hvm::frontier
