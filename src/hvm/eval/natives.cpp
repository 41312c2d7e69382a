// %log walks its string without recursion. Its frame: the characters so far, then (only while a character is read) the rest of the list, then
// the header. Header: value = number of characters, ext = what is awaited. The characters stay where they are from step to step.
#include "hvm/eval/natives.h"

#include "base/text.h"
#include "hvm/syntax/cursor.h"

#include <span>

namespace vortex::hvm {
namespace {

enum Awaited : uint32_t { AwaitList, AwaitCharacter, AwaitCode };

// Copies of characters are made between two safe points: few fit the heap's reserve, more must find room.
constexpr uint64_t kMostCopied = uint64_t(1) << 23, kCopiedWords = 6;  // of two lists, each #CON of #CHR

struct Log {
  Machine& machine;
  Term* heap;
  uint32_t awaited;
  uint64_t count;
  Term rest = 0;

  explicit Log(Machine& m) : machine(m), heap(m.heapWords()) {
    Term* top = m.stackTop();
    Term header = *--top;
    awaited = extOf(header) >> 8, count = locOf(header);
    if (awaited != AwaitList)
      rest = *--top;
    m.setStackTop(top);
  }

  void push(Term word) {
    *machine.stackTop() = word;
    machine.setStackTop(machine.stackTop() + 1);
  }
  void await(uint32_t what) {
    if (what != AwaitList)
      push(rest);
    push(makeTerm(OnLog, what << 8, count));
  }
  /// The characters leave the stack; they can be read until something is pushed.
  std::span<const Term> takeCharacters() {
    machine.setStackTop(machine.stackTop() - count);
    return {machine.stackTop(), count};
  }

  static Term character(Machine& machine, Term code) { return machine.node(C00 + 1, kChr, {code}); }
  /// %log of the characters so far followed by `list`.
  Term call(std::span<const Term> characters, Term list) {
    for (size_t i = characters.size(); i-- > 0;)
      list = machine.node(C00 + 2, kCon, {character(machine, characters[i]), list});
    return machine.node(Pri, 0, {list});
  }
  /// What was awaited turned out to be `part`; the list from there on, with `tail` as its rest.
  Term rebuild(Term part, Term tail) {
    if (awaited == AwaitList)
      return part;
    return machine.node(C00 + 2, kCon, {awaited == AwaitCode ? character(machine, part) : part, tail});
  }

  NativeStep distribute(Term& term) {
    if (count > kMostCopied && !machine.hasRoomFor(count * kCopiedWords)) {
      machine.fail(base::concat("Error: out of memory: %log met a superposition or mark after ", count,
                                " characters, and their copies do not fit (--memory)"));
      return NativeStep::Failed;
    }
    Loc at = locOf(term);
    std::span<const Term> characters = takeCharacters();
    if (tagOf(term) == Inc) {
      heap[at] = call(characters, rebuild(heap[at], rest));
      return NativeStep::Value;
    }
    std::pair<Term, Term> tails{0, 0};
    if (awaited != AwaitList)
      tails = machine.split(rest, extOf(term));
    heap[at] = call(characters, rebuild(heap[at], tails.first));
    heap[at + 1] = call(characters, rebuild(heap[at + 1], tails.second));
    return NativeStep::Value;
  }

  NativeStep finish(Term& term) {
    std::string text;
    for (Term one : takeCharacters())
      appendUtf8(text, numberOf(one));
    text += '\n';
    std::fwrite(text.data(), 1, text.size(), stdout);
    term = makeTerm(C00, kNil);
    return NativeStep::Value;
  }

  NativeStep step(Term& term) {
    Tag tag = tagOf(term);
    if (tag == Sup || tag == Inc)
      return distribute(term);
    if (tag == Era)
      return takeCharacters(), NativeStep::Value;
    if (awaited == AwaitList && tag == C00 && extOf(term) == kNil)
      return finish(term);
    if (awaited == AwaitList && tag == C00 + 2 && extOf(term) == kCon) {
      rest = heap[locOf(term) + 1];
      term = heap[locOf(term)];
      return await(AwaitCharacter), NativeStep::Reduce;
    }
    if (awaited == AwaitCharacter && tag == C00 + 1 && extOf(term) == kChr) {
      term = heap[locOf(term)];
      return await(AwaitCode), NativeStep::Reduce;
    }
    if (awaited == AwaitCode && tag == Num) {
      const uint32_t code = numberOf(term);
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        machine.fail(base::concat("RUNTIME_ERROR: %log expects characters, and #CHR{", code, "} is none"));
        return NativeStep::Failed;
      }
      push(number(code)), ++count;
      term = rest;
      return await(AwaitList), NativeStep::Reduce;
    }
    machine.fail("RUNTIME_ERROR: %log expects a list of #CHR{number}");
    return NativeStep::Failed;
  }
};

}  // namespace

NativeStep nativeStep(Machine& machine, Term& term) {
  if (tagOf(machine.stackTop()[-1]) == OnLog)
    return Log(machine).step(term);
  Term* header = machine.stackTop() - 1;
  const bool mayOffload = tagOf(*header) == OnGnf;
  if (mayOffload)
    term = *--header;
  machine.setStackTop(header);
  const World::Normal normal = machine.world().normalize(machine, term, mayOffload);
  if (normal == World::Normal::Open)  // what a device can do with it is done
    term = machine.node(Pri, kNfNative, {term});
  return normal == World::Normal::Failed ? NativeStep::Failed : NativeStep::Value;
}

}  // namespace vortex::hvm
