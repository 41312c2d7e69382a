// Writes the rules of the frontier engine from rules.def: frontier_rules_generator > table.vx.
//
// A row becomes the plan of a task: what its term is then, and what that needs. Rows of what the engine has no terms for are left out, and rows for
// heads that are stuck, since the node stays as it is.
#include "hvm/eval/rules_table.h"

#include <cstdio>

namespace vortex::hvm {
namespace {

// The vocabulary of rules.def. `held` is what the frame keeps, `cell` where that lies, `ext` its operator or label. Nothing is read after END.
#define VALUE(term) LINE return planned(SET, term, COUNTED) LINE
#define REDUCE(term) LINE return reduced(term, argument, COUNTED) LINE
#define FAIL(message) LINE return failure(net, cur) LINE
#define LET(x, term) LINE let x = term LINE
#define PUSH(...) LINE return awaiting(__VA_ARGS__) END
#define FRAME(header, x) LINE return awaiting(header, x) END
#define TERM(tag, ext, value) tag, number(value)
#define ARGUMENT(x) LINE let x = held LINE
#define OPERAND(x) LINE let x = held LINE
#define OPERANDS(x, y) LINE
#define TOP_OPERAND held
#define DISCARD LINE
#define HEADER(x, part) LINE let x = ext LINE
#define LEFT(x) LINE let x = held LINE
#define UNUSED(x) LINE
#define PUSH_ARGUMENT(x) LINE argument = x LINE
#define FIELD(i) net.heap[loc_of(cur) + (i)]
#define FIELD_OF(x, i) net.heap[loc_of(x) + (i)]
#define LABEL ext_of(cur)
#define CELL_LABEL ext
#define SPLIT(x) SPLIT_BY(x, LABEL)
#define SPLIT_BY(x, label)                                                                                             \
  LINE let x##_cell = net.place(cell) LINE let x##0 = term(DP0, label, x##_cell) LINE let x##1 =                       \
      term(DP1, label, x##_cell) LINE
#define AGAIN(...) LINE return distribution(LABEL, __VA_ARGS__) END
#define node(tag, ...) tag, __VA_ARGS__
#define app(x, y) term(APP, 0, 0), x, y
#define dry(x, y) x, y
#define op2(op, x, y) term(OP2, op, 0), x, y
#define use(x) (x) | SUB
#define tagOf(x) tag_of(x)
#define extOf(x) ext_of(x)
#define locOf(x) loc_of(x)
#define numberOf(x) number_of(x)
#define BIND(lambda, argument) LINE bind(net, out, slot, lambda, argument) LINE
#define EITHER(condition, first, second)                                                                               \
  LINE if condition { LINE first LINE }                                                                                \
  else {LINE second LINE} LINE
#define MATCH(x, isHit) LINE let is_hit = isHit LINE return selection(net, x, cur, is_hit) LINE
#define COPIES(x) LINE return planned(COPY_VALUE, x, COUNTED) LINE
#define SIDES_REDUCE(zero, one) LINE return copied_sides(zero, one) LINE
#define DUP_FIELDS(count, dups) LINE return copied_node(cur, ext, count, dups) LINE
#define DUP_FIELDS_REDUCE(count, dups) DUP_FIELDS(count, dups)
#define DUP_LAMBDA LINE return copied_lambda(cur, ext) LINE
#define STUCK_PROJECTION LINE
#define DOUBT_STUCK(x) LINE
#define FINAL_OR(x, ...) LINE
#define UNLESS_OPEN(x, ...) LINE
#define COMPARE(x) LINE

RuleTable readRules() {
  RuleTable table;
#include "hvm/eval/rules.def"
  return table;
}

struct Named {
  const char* name;
  uint32_t number;
};
#define VORTEX_NAMED(tag) {#tag, static_cast<uint32_t>(tag)}
constexpr Named kTags[] = {VORTEX_NAMED(Lam), VORTEX_NAMED(Sup), VORTEX_NAMED(Era), VORTEX_NAMED(Mat),
                           VORTEX_NAMED(C00), VORTEX_NAMED(C16), VORTEX_NAMED(Num), VORTEX_NAMED(Swi),
                           VORTEX_NAMED(Use), VORTEX_NAMED(Op2)};
constexpr Named kNodeFrames[] = {VORTEX_NAMED(OnArg), VORTEX_NAMED(OnMat), VORTEX_NAMED(OnUse), VORTEX_NAMED(OnOp2),
                                 VORTEX_NAMED(OnOp2Num)};
#undef VORTEX_NAMED

constexpr bool isKnown(uint32_t tag) {
  return tag == Lam || tag == Sup || tag == Era || (tag >= Mat && tag <= Use) || tag == Op2;
}

void put(unsigned depth, const std::string& line) {
  std::printf("%*s%s\n", static_cast<int>(4 * depth), "", line.c_str());
}

std::string nameOf(uint32_t number) {
  for (const Named& tag : kTags)
    if (tag.number == number)
      return tag.name;
  return std::to_string(number);
}

void writeAction(const RuleTable::Row& row, unsigned depth) {
  if (!row.names.empty())
    put(depth, "// " + row.names);
  for (std::string line : RuleTable::linesOf(row.action)) {
    const size_t end = line.find(" END");
    line.resize(std::min(line.size(), end));
    if (const size_t counted = line.find("COUNTED"); counted != std::string::npos)
      line.replace(counted, 7, row.isCounted ? "1" : "0");
    depth -= line.starts_with('}');
    put(depth, line);
    depth += line.ends_with('{');
    if (end != std::string::npos)
      return;
  }
}

/// Tags that lie side by side and have the same row are one case. A row for all others comes last.
void writeFrame(const RuleTable& table, uint32_t frame, unsigned depth) {
  const RuleTable::Row* other = nullptr;
  for (uint32_t first = 0, last = 0; first < RuleTable::kTags; first = last + 1) {
    const uint32_t number = table.rowOf(frame, first);
    for (last = first;
         last + 1 < RuleTable::kTags && isKnown(last + 1) == isKnown(first) && table.rowOf(frame, last + 1) == number;)
      ++last;
    const RuleTable::Row* row = number == 0 ? nullptr : &table.rows()[number - 1];
    if (row && row->isOther)
      other = row;
    if (!row || row->isOther || !isKnown(first))
      continue;
    const bool isOne = first == last;
    put(depth, isOne ? "if tag == " + nameOf(first) + " {"
                     : "if tag >= " + nameOf(first) + " && tag <= " + nameOf(last) + " {");
    writeAction(*row, depth + 1);
    put(depth, "}");
  }
  if (other && other->isCounted)
    writeAction(*other, depth);
  else
    put(depth, "return plan(FINISH_STUCK)");
}

void writeTable(const RuleTable& table) {
  put(0, "// Written by frontier_rules_generator from rules.def.");
  put(0, "import net { Net, Outbox, Plan, SET, FINISH_STUCK, COPY_VALUE, plan, planned }");
  put(0, "import plans { awaiting, reduced, failure, bind, selection, distribution, copied_sides, copied_node, "
         "copied_lambda }");
  put(0, "import words { SUB, APP, DP0, DP1, OP2, term, tag_of, ext_of, loc_of, number, number_of, compute }\n");
  for (const Named& tag : kTags)
    put(0, std::string("const ") + tag.name + ": u64 = " + std::to_string(tag.number));
  put(0, "");
  for (const Named& frame : kNodeFrames)
    put(0, std::string("pub const ") + frame.name + ": u64 = " + std::to_string(frame.number));
  put(0, "\n/// The rule for a node of which `frame` is to be done with the value `cur`. `tag` is that of `cur`, or "
         "none if it is "
         "stuck.");
  put(0, "pub fn meet_node(net: &mut Net, out: &mut Outbox, slot: usize, frame: u64, held: u64, cell: u64, ext: u64, "
         "cur: u64, tag: u64) -> Plan {");
  put(1, "var argument: u64 = 0");
  for (const Named& frame : kNodeFrames) {
    put(1, std::string("if frame == ") + frame.name + " {");
    writeFrame(table, frame.number, 2);
    put(1, "}");
  }
  put(1, "return plan(FINISH_STUCK)");
  put(0, "}\n");
  put(0, "/// The rule for a dup cell with the label `ext` and the value `cur`.");
  put(0, "pub fn meet_copy(net: &mut Net, ext: u64, cur: u64) -> Plan {");
  put(1, "let tag = tag_of(cur)");
  writeFrame(table, OnDp0, 1);
  put(0, "}");
}

}  // namespace
}  // namespace vortex::hvm

int main() { vortex::hvm::writeTable(vortex::hvm::readRules()); }
