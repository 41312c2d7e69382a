// Writes what the kernels of slices share with the evaluator: rules_generator tags|rules|rows > FILE.
//   tags   tags.vx: the numbers of term.h and code.h
//   rules  rules.vx: a function of each action in rules.def, as the kernels' language
//   rows   rows.inc: which of them belongs to a frame and a tag
#include "hvm/eval/code.h"
#include "hvm/eval/rules_table.h"

#include <cstdio>

namespace vortex::hvm {
namespace {

void indent(unsigned depth) { std::printf("%*s", static_cast<int>(4 * depth), ""); }

void writeAction(const RuleTable::Row& row, unsigned depth) {
  if (!row.names.empty())
    indent(depth), std::printf("// %s\n", row.names.c_str());
  for (const std::string& line : RuleTable::linesOf(row.action + (row.isCounted ? " LINE lane.fired += 1" : "")))
    indent(depth), std::puts(line.c_str());
}

/// A search tree: a chain would test all numbers before the last.
void writeTree(const RuleTable& table, uint32_t first, uint32_t last, unsigned depth) {
  if (first == last)
    return writeAction(table.rows()[first - 1], depth);
  uint32_t middle = (first + last + 1) / 2;
  indent(depth), std::printf("if rule < %u {\n", middle);
  writeTree(table, first, middle - 1, depth + 1);
  indent(depth), std::puts("} else {");
  writeTree(table, middle, last, depth + 1);
  indent(depth), std::puts("}");
}

void writeRules(const RuleTable& table) {
  std::puts("// Written by rules_generator from rules.def.");
  std::puts("import lane { Lane, MEMORY, AT_TERM, AT_VALUE, AT_LEAVE }");
  std::puts("import net { Net }");
  std::puts(
      "import tags { App, Sup, Mat, C00, Num, Swi, Use, Op2, Dsu, Ddu, Eql, And, Or, Dry, Dp0, Dp1, OnMat, OnUse, "
      "OnOp2Num, OnEqlRight }");
  std::puts("import terms { SUB, make_term, tag_of, ext_of, loc_of, number_of, number, is_waiting }");
  std::puts("import words { compute }\n");
  std::puts("pub fn apply_rule(net: &mut Net, lane: &mut Lane, mem: &mut Tensor<u64, [MEMORY]> @local, rule: u32) {");
  writeTree(table, 1, static_cast<uint32_t>(table.rows().size()), 1);
  std::puts("}");
}

void writeRows(const RuleTable& table) {
  for (uint32_t frame = kFrames; frame < kFrames + RuleTable::kTags; ++frame) {
    for (uint32_t tag = 0; tag < RuleTable::kTags; ++tag)
      std::printf("%u,", table.rowOf(frame, tag));
    std::puts("");
  }
}

// The vocabulary of rules.def.
#define cur lane.cur
#define VALUE(term) LINE cur = term LINE lane.state = AT_VALUE LINE
#define REDUCE(term) LINE cur = term LINE lane.state = AT_TERM LINE
#define FAIL(message) LINE lane.state = AT_LEAVE LINE
#define LET(x, term) LINE let x = term LINE
#define PUSH(term) LINE lane.push(mem, term) LINE
#define ARGUMENT(x) LINE lane.sp -= 1 LINE let x = mem[lane.sp] ^ SUB LINE
#define OPERAND(x) LINE lane.sp -= 2 LINE let x = mem[lane.sp] LINE
#define OPERANDS(x, y) LINE lane.sp -= 3 LINE let x = mem[lane.sp] LINE let y = mem[lane.sp + 1] LINE
#define TOP_OPERAND mem[lane.sp - 2]
#define DISCARD LINE lane.sp -= 1 LINE
#define HEADER(x, part) LINE let x = part(mem[lane.sp - 1]) LINE
#define LEFT(x) LINE lane.sp -= 1 LINE let x = number(number_of(mem[lane.sp])) LINE
#define UNUSED(x) LINE
#define FRAME(header, x) LINE lane.push(mem, x) LINE lane.push(mem, make_term(header, 0, 0)) LINE
#define PUSH_ARGUMENT(x) LINE lane.push(mem, x | SUB) LINE
#define FIELD(i) net.field(loc_of(cur), i)
#define FIELD_OF(x, i) net.field(loc_of(x), i)
#define LABEL ext_of(cur)
#define CELL_LABEL ext_of(mem[lane.sp - 1])
#define SPLIT(x) SPLIT_BY(x, LABEL)
#define SPLIT_BY(x, label)                                                                                             \
  LINE let x##Label = label LINE let x##Cell = lane.cell_of(net, x) LINE let x##0 =                                    \
      make_term(Dp0, x##Label, x##Cell) LINE let x##1 = make_term(Dp1, x##Label, x##Cell) LINE
#define PICK(first, second, name, ...) name
#define AGAIN(...) PICK(__VA_ARGS__, AGAIN_2, AGAIN_1, )(__VA_ARGS__)
#define AGAIN_1(x) LINE let first = x LINE net.set(loc_of(cur), 0, first) LINE
#define AGAIN_2(x, y)                                                                                                  \
  LINE let first = x LINE let second = y LINE net.set(loc_of(cur), 0, first) LINE net.set(loc_of(cur), 1, second) LINE
#define PICK_NODE(first, second, third, name, ...) name
#define node(tag, ext, ...) PICK_NODE(__VA_ARGS__, NODE_3, NODE_2, )(tag, ext, __VA_ARGS__)
#define NODE_2(tag, ext, x, y) lane.node2(net, tag, ext, x, y)
#define NODE_3(tag, ext, x, y, z) lane.node3(net, tag, ext, x, y, z)
#define app(x, y) lane.node2(net, App, 0, x, y)
#define dry(x, y) lane.node2(net, Dry, 0, x, y)
#define op2(op, x, y) lane.node2(net, Op2, op, x, y)
#define use(x) lane.node1(net, Use, 0, x)
#define TERM(tag, ext, value) make_term(tag, ext, value)
#define tagOf(x) tag_of(x)
#define extOf(x) ext_of(x)
#define locOf(x) loc_of(x)
#define numberOf(x) number_of(x)
#define BIND(lambda, argument) LINE lane.bind(net, lambda, argument) LINE
#define EITHER(condition, first, second)                                                                               \
  LINE if condition { LINE first LINE }                                                                                \
  else {LINE second LINE} LINE
#define MATCH(x, isHit) LINE let is_hit = isHit LINE lane.select(net, mem, x, is_hit) LINE
#define COPIES(x) LINE lane.resolve(mem, x, x) LINE
#define SIDES_REDUCE(zero, one) LINE lane.resolve(mem, zero, one) LINE lane.state = AT_TERM LINE
#define DUP_FIELDS(count, dups) LINE lane.duplicate_fields(net, mem, count, dups) LINE
#define DUP_FIELDS_REDUCE(count, dups) LINE lane.duplicate_fields(net, mem, count, dups) LINE lane.state = AT_TERM LINE
#define DUP_LAMBDA LINE lane.duplicate_lambda(net, mem) LINE
#define DOUBT_STUCK(x) LINE if is_waiting (tag_of(x)){LINE lane.state = AT_LEAVE LINE return LINE} LINE
#define FINAL_OR(x, ...) DOUBT_STUCK(x)
#define UNLESS_OPEN(x, ...)
#define COMPARE(x) LINE lane.compare(net, x) LINE

RuleTable readRules() {
  RuleTable table;
#include "hvm/eval/rules.def"
  return table;
}
#undef cur

struct Named {
  const char* name;
  uint32_t number;
};
#define VORTEX_NAMED(tag) {#tag, static_cast<uint32_t>(tag)}
constexpr Named kNamedTags[] = {
    VORTEX_NAMED(App),         VORTEX_NAMED(Var),        VORTEX_NAMED(Lam),         VORTEX_NAMED(Dp0),
    VORTEX_NAMED(Dp1),         VORTEX_NAMED(Sup),        VORTEX_NAMED(Ref),         VORTEX_NAMED(Nam),
    VORTEX_NAMED(Dry),         VORTEX_NAMED(Era),        VORTEX_NAMED(Mat),         VORTEX_NAMED(C00),
    VORTEX_NAMED(C16),         VORTEX_NAMED(Num),        VORTEX_NAMED(Swi),         VORTEX_NAMED(Use),
    VORTEX_NAMED(Op2),         VORTEX_NAMED(Dsu),        VORTEX_NAMED(Ddu),         VORTEX_NAMED(Eql),
    VORTEX_NAMED(And),         VORTEX_NAMED(Or),         VORTEX_NAMED(Any),         VORTEX_NAMED(Inc),
    VORTEX_NAMED(Bjv),         VORTEX_NAMED(Bj1),        VORTEX_NAMED(Pri),         VORTEX_NAMED(Thk),
    VORTEX_NAMED(Fun),         VORTEX_NAMED(Busy),       VORTEX_NAMED(Slot),        VORTEX_NAMED(Fut),
    VORTEX_NAMED(OnArg),       VORTEX_NAMED(OnMat),      VORTEX_NAMED(OnMatCode),   VORTEX_NAMED(OnUse),
    VORTEX_NAMED(OnUseCode),   VORTEX_NAMED(OnOp2),      VORTEX_NAMED(OnOp2Code),   VORTEX_NAMED(OnOp2Num),
    VORTEX_NAMED(OnDp0),       VORTEX_NAMED(OnDp1),      VORTEX_NAMED(OnOp2Forked), VORTEX_NAMED(OnEqlLeft),
    VORTEX_NAMED(OnEqlForked), VORTEX_NAMED(OnEqlRight), VORTEX_NAMED(OnAnd),       VORTEX_NAMED(OnOr),
    VORTEX_NAMED(OnDsu),       VORTEX_NAMED(OnDdu),      VORTEX_NAMED(OnLog),       VORTEX_NAMED(OnNf),
    VORTEX_NAMED(OnGnf),
};
#undef VORTEX_NAMED
#define OPERATIONS(X) X(Slot) X(Word) X(Make) X(Call) X(Lam) X(Match) X(Use) X(Dup) X(Let) X(Push) X(Offload)

void writeTags() {
  std::puts("// Written by rules_generator from term.h and code.h.");
  for (const Named& tag : kNamedTags)
    std::printf("pub const %s: u64 = %u\n", tag.name, tag.number);
  std::printf("pub const CON: u64 = %u\npub const SUC: u64 = %u\n", kCon, kSuc);
  std::printf("pub const BUSY: u64 = %llu\n", static_cast<unsigned long long>(makeTerm(Busy)));
#define WRITE_OPERATION(kind) std::printf("pub const Op" #kind ": u32 = %u\n", static_cast<uint32_t>(OpKind::kind));
  OPERATIONS(WRITE_OPERATION)
}

}  // namespace
}  // namespace vortex::hvm

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  if (what == "tags")
    vortex::hvm::writeTags();
  else if (what == "rules")
    vortex::hvm::writeRules(vortex::hvm::readRules());
  else if (what == "rows")
    vortex::hvm::writeRows(vortex::hvm::readRules());
  else
    return std::fprintf(stderr, "rules_generator tags|rules|rows\n"), 2;
  return 0;
}
