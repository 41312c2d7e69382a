#include "hvm/frontier/trace.h"

#include "base/text.h"
#include "hvm/frontier/words.h"

#include <algorithm>
#include <map>

namespace vortex::hvm::frontier {

bool Frontier::isEmpty() const {
  return std::ranges::all_of(byBlock, [](const std::vector<Message>& messages) {
    return std::ranges::all_of(messages, [](const Message& one) { return kindOf(one.head) == Store; });
  });
}

Frontier collect(std::span<const uint64_t> words, std::span<const uint32_t> used, std::span<const uint32_t> counts,
                 const Sharding& sharding, uint32_t capacity) {
  Frontier out;
  out.byBlock.resize(sharding.blocks);
  for (uint32_t sender = 0; sender < sharding.blocks; ++sender)
    for (size_t i = 0; i < counts[sender]; ++i) {
      const size_t slot = size_t(sender) * capacity + i;
      for (size_t k = 0; k < used[slot]; ++k) {
        const size_t at = 2 * (slot * kMessages + k);
        out.byBlock[(words[at] >> kOwnerShift) % sharding.blocks].push_back({words[at], words[at + 1]});
      }
    }
  return out;
}

static std::string joined(const std::vector<std::string>& parts, const char* separator = ", ") {
  std::string out;
  for (const std::string& part : parts)
    out += (out.empty() ? "" : separator) + part;
  return out;
}

static std::vector<std::string> texts(const std::vector<Loc>& locs) {
  std::vector<std::string> out;
  for (Loc loc : locs)
    out.push_back(std::to_string(loc));
  return out;
}

Loc Trace::follow(std::span<const Term> heap, Loc loc) const {
  while (static_cast<uint32_t>(tagOf(heap[loc])) == kLink)
    loc = locOf(heap[loc]);
  return loc;
}

std::string Trace::name(Term term) const {
  static constexpr const char* kNames[] = {"APP",  "VAR", "LAM", "DP0", "DP1", "SUP", "DUP",
                                           "LINK", "REF", "NAM", "DRY", "ERA", "MAT"};
  const uint32_t tag = tagOf(term);
  if (isConstructor(tagOf(term)))
    return options_.names->constructors[extOf(term)];
  if (tag < std::size(kNames))
    return kNames[tag];
  return tag == Num ? "NUM" : tag == Swi ? "SWI" : tag == Use ? "USE" : "OP2";
}

/// A node as the heap's listing shows it.
std::string Trace::node(std::span<const Term> heap, Term term) const {
  const uint32_t tag = tagOf(term);
  if (tag == Num)
    return (isSharded() ? "NUM " : "") + std::to_string(numberOf(term));
  if (tag == Ref)
    return "REF @" + options_.names->definitions[extOf(term)].name;
  if (tag == kDupNode)
    return base::concat("DUP (expr: ", locOf(term), ", body: ", follow(heap, locOf(term) + 1), ")");
  if (tag == Dp0 || tag == Dp1)
    return base::concat(name(term), " (expr: ", locOf(term), ")");
  std::vector<std::string> fields;
  for (uint32_t i = 0; i < fieldsOf(term); ++i) {
    const Loc loc = follow(heap, locOf(term) + i);
    const bool isInline = tag == Sup && tagOf(heap[loc]) == Num;
    fields.push_back(isInline ? std::to_string(numberOf(heap[loc]))
                              : (isSharded() ? "loc " : "loc") + std::to_string(loc));
  }
  if (tag == Var)
    fields.push_back("loc " + std::to_string(locOf(term)));
  return fields.empty() ? name(term) : base::concat(name(term), " (", joined(fields), ")");
}

void Trace::heap(const Net& net) {
  std::vector<bool> isHidden(net.heap.size());
  for (Term term : net.heap)
    for (uint32_t i = 0; tagOf(term) == Sup && i < 2; ++i)
      isHidden[locOf(term) + i] = tagOf(net.heap[locOf(term) + i]) == Num;
  say(isSharded() ? "Heap:" : "Conceptual heap:");
  for (uint32_t block = 0; block < options_.sharding.blocks; ++block)
    for (uint64_t word = 0; word < net.next[block]; ++word) {
      const Loc loc = options_.sharding.locationOf(word, block);
      if (static_cast<uint32_t>(tagOf(net.heap[loc])) != kLink && !isHidden[loc])
        say(base::concat("[", loc, "] := ", node(net.heap, net.heap[loc]),
                         isSharded() ? " : Block " + std::to_string(block) : ""));
    }
  say("");
}

/// What the term of a finished entry leads to.
std::vector<Loc> Trace::children(std::span<const Term> heap, Loc loc) const {
  std::vector<Loc> out;
  const Term term = heap[loc];
  for (uint32_t i = 0; i < fieldsOf(term) - (tagOf(term) == Swi); ++i)
    out.push_back(follow(heap, locOf(term) + i));
  return out;
}

std::string Trace::reduced(Term term) const { return tagOf(term) == Num ? std::to_string(numberOf(term)) : name(term); }

void Trace::single(const Frontier& taken, std::span<const Term> heap, std::span<const uint64_t> notes,
                   const Frontier& next) {
  auto list = [](const Frontier& frontier) {
    std::vector<Loc> locs;
    for (const Message& message : frontier.byBlock[0])
      if (kindOf(message.head) != Store)
        locs.push_back(targetOf(message.head));
    return base::concat("[", joined(texts(locs)), "]");
  };
  say(base::concat("Pass ", pass_, ":"));
  say("frontier = " + list(taken));
  if (next.isEmpty()) {
    say("kernel processes all, enqueue nothing, stops.");
    return;
  }
  for (size_t i = 0; i < taken.byBlock[0].size(); ++i) {
    const Message& message = taken.byBlock[0][i];
    const Loc loc = targetOf(message.head);
    const uint32_t note = notes[i] & 0xff;
    std::string what = base::concat("reduces ", name(heap[loc]));
    if (note == NoteValue || note == NoteBody)
      what = "enqueue children " + joined(texts(children(heap, loc)));
    else if (note == NoteDefer)
      what = base::concat("defer to the owner of loc ", notes[i] >> 8);
    else if (note == NoteTake || note == NoteRead)
      what = base::concat(note == NoteTake ? "try_take of loc " : "reads SUB of loc ", notes[i] >> 8);
    else if (note == NoteWait)
      what = base::concat("waits for loc ", notes[i] >> 8);
    if (kindOf(message.head) != Store)
      say(base::concat("kernel processes loc ", loc, ", ", what));
  }
  say("next frontier = " + list(next));
}

void Trace::frontiers(const Frontier& taken) const {
  std::map<uint64_t, std::vector<std::string>> byRegion;
  std::map<uint64_t, std::string> deferred;
  for (const std::vector<Message>& messages : taken.byBlock)
    for (const Message& message : messages) {
      if (kindOf(message.head) == Store)
        continue;
      const uint64_t region = message.head >> kOwnerShift;
      byRegion[region].push_back(std::to_string(targetOf(message.head)));
      if (kindOf(message.head) == Defer)
        deferred[region] += (deferred[region].empty() ? " // deferred " : ", ") + name(message.word);
    }
  if (pass_ == 0) {
    say(base::concat("Pass 0 (frontier = [", joined(byRegion[0]), "]):"));
    return;
  }
  say(base::concat("Pass ", pass_, ":"));
  for (const auto& [region, locs] : byRegion)
    say(base::concat("frontier_region_", region, " = [", joined(locs), "]", deferred[region]));
}

void Trace::entry(std::span<const Term> heap, uint32_t block, size_t thread, const Message& message, uint64_t note,
                  std::span<const uint64_t> sent, uint32_t used) const {
  const Loc loc = targetOf(message.head), place = note >> 8 & kValueMask;
  const std::string who = base::concat("- B", block, "/t", thread, " handles ");
  const Term term = heap[loc];
  // What came out of a dup cell lies in this cell, or its owner has still to store it.
  Term value = term;
  for (uint32_t k = 0; k < used; ++k)
    if (const Kind kind = kindOf(sent[2 * k]); kind == StoreTask || (kind == Store && targetOf(sent[2 * k]) == loc))
      value = sent[2 * k + 1];
  const char* projection = note >> 56 == Dp0 ? "DP0" : "DP1";
  switch (note & 0xff) {
  case NoteBody:
    say(base::concat(who, "DUP, WNF returns body loc ", place, "."));
    if (const std::vector<Loc> next = children(heap, loc); !next.empty())
      say(base::concat("  - Enqueue children of loc ", place, " (", joined(texts(next)), ")"));
    return;
  case NoteDefer: {
    const uint64_t region = place >> options_.sharding.shift;
    say(base::concat(who, "loc ", loc, " (", name(term), ")"));
    say(base::concat("  - expr loc ", place, " is owned by B", options_.sharding.ownerOf(place),
                     " and SUB is not present => defer loc ", loc, " to region ", region, "."));
    return;
  }
  case NoteTake: {
    say(base::concat(who, "loc ", loc));
    say(base::concat(options_.atomics ? "  - loc " : "  - owner of loc ", place, ", try_take succeeds, writes SUB and ",
                     projection, " reduces to ", reduced(value)));
    return;
  }
  case NoteRead: {
    say(base::concat(who, "loc ", loc));
    say(base::concat("  - reads expr slot loc ", place, ", SUB is there, ", projection, " reduces to ",
                     reduced(value)));
    return;
  }
  case NoteWait:
    say(base::concat(who, "loc ", loc));
    say(base::concat("  - expr loc ", place, " is not reduced yet => wait"));
    return;
  case NoteValue: {
    std::vector<std::string> next;
    for (Loc child : children(heap, loc))
      next.push_back(base::concat("loc ", child, " (", name(heap[child]), ")"));
    say(base::concat(who, "loc ", loc, " (", name(term), ")"));
    if (!next.empty())
      say("  - enqueue " + joined(next, " and "));
    return;
  }
  default: say(base::concat(who, "loc ", loc, " (", name(term), ")"));
  }
}

void Trace::pass(const Frontier& taken, std::span<const Term> heap, std::span<const uint64_t> notes, uint32_t capacity,
                 std::span<const uint64_t> sent, std::span<const uint32_t> used, const Frontier& next) {
  if (isSharded()) {
    frontiers(taken);
    for (uint32_t block = 0; block < taken.byBlock.size(); ++block) {
      size_t thread = 0;
      for (size_t i = 0; i < taken.byBlock[block].size(); ++i) {
        const size_t slot = size_t(block) * capacity + i;
        if (kindOf(taken.byBlock[block][i].head) != Store)
          entry(heap, block, thread++ % kLanes, taken.byBlock[block][i], notes[slot],
                sent.subspan(2 * slot * kMessages), used[slot]);
      }
    }
  } else {
    single(taken, heap, notes, next);
  }
  say("");
  ++pass_;
}

}  // namespace vortex::hvm::frontier
