#include "tools/vortex/launcher_writer.h"

#include "base/check.h"
#include "base/text.h"
#include "size/text.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace vortex::tools {

using artifact::Kernel;
using artifact::Param;
using artifact::ScalarType;

/// Keywords of C and C++, and the names that launchers use.
static bool isTaken(std::string_view name) {
  static constexpr std::string_view kTaken =
      " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
      "char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
      "constinit continue decltype default delete do double dynamic_cast else enum explicit export extern "
      "false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr "
      "operator or or_eq private protected public register reinterpret_cast requires restrict return short "
      "signed sizeof static static_assert static_cast struct switch template this thread_local throw true "
      "try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor "
      "xor_eq kernels main aligned_alloc free memcpy memset report Slice MTL NS NULL int8_t int16_t int32_t int64_t "
      "uint8_t uint16_t "
      "uint32_t uint64_t size_t ";
  if (kTaken.find(base::concat(" ", name, " ")) != std::string_view::npos)
    return true;
  constexpr std::string_view kResult = "result";
  return name.starts_with(kResult) && name.size() > kResult.size() &&
         std::ranges::all_of(name.substr(kResult.size()), [](unsigned char c) { return std::isdigit(c); });
}

std::string cIdentifier(const std::string& name) {
  std::string result;
  for (char c : name)
    result += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  while (!result.empty() && result.back() == '_' && name[result.size() - 1] != '_')
    result.pop_back();
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])))
    return "k_" + result;
  return isTaken(result) ? "vx_" + result : result;
}

const char* cType(ScalarType type) {
  switch (type) {
  case ScalarType::Bool:
  case ScalarType::U8:
  case ScalarType::F8E4M3:
  case ScalarType::F8E5M2: return "uint8_t";
  case ScalarType::U16:
  case ScalarType::F16:
  case ScalarType::BF16: return "uint16_t";
  case ScalarType::U32: return "uint32_t";
  case ScalarType::U64: return "uint64_t";
  case ScalarType::I8: return "int8_t";
  case ScalarType::I16: return "int16_t";
  case ScalarType::I32: return "int32_t";
  case ScalarType::I64: return "int64_t";
  case ScalarType::F32: return "float";
  case ScalarType::F64: return "double";
  }
  VORTEX_UNREACHABLE();
}

LauncherWriter::LauncherWriter(const Kernel& kernel)
    : kernel_(kernel), name_(cIdentifier(kernel.name)), takesGrid_(sizeProgram(kernel).takesGrid()) {}

/// The fields of an array of structs are consecutive and passed as one pointer to the structs, in place of the first field.
bool LauncherWriter::isLaterField(const Param& param) { return param.structBytes != 0 && param.fieldOffset != 0; }

std::span<const Param> LauncherWriter::fieldsFrom(const Param& first, const std::vector<Param>& all) {
  size_t begin = static_cast<size_t>(&first - all.data()), end = begin + 1;
  while (end < all.size() && isLaterField(all[end]))
    ++end;
  return std::span(all).subspan(begin, end - begin);
}

/// "p" for the fields "p.at.x", "p.at.y", "p.mass".
std::string LauncherWriter::structsName(std::span<const Param> fields) {
  std::string name = fields.front().name;
  name.resize(std::min(name.size(), name.rfind('.')));
  for (const Param& field : fields)
    while (!field.name.starts_with(name + ".") && name.find('.') != std::string::npos)
      name.resize(name.rfind('.'));
  return name;
}

std::string LauncherWriter::nameOf(const Param& param) const {
  if (!param.structBytes)
    return cIdentifier(param.name);
  const Param* first = &param;
  while (isLaterField(*first))
    --first;
  return cIdentifier(structsName(fieldsFrom(*first, kernel_.params)));
}

bool LauncherWriter::isWritten(std::span<const Param> fields) {
  bool written = false;
  for (const Param& field : fields)
    written = written || field.access != artifact::Access::Read;
  return written;
}

void LauncherWriter::writeStructs(const std::vector<Param>& all) {
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].structBytes || isLaterField(all[i]))
      continue;
    std::span<const Param> fields = fieldsFrom(all[i], all);
    std::string name = &all == &kernel_.results ? base::concat("result", i) : cIdentifier(structsName(fields));
    out_ += base::concat("/* `", name, "` points to structs of ", all[i].structBytes, " bytes:");
    for (const Param& field : fields)
      out_ += base::concat(&field == &fields[0] ? " " : ", ", field.name.substr(structsName(fields).size() + 1), " ",
                           artifact::name(field.type), " at ", field.fieldOffset);
    out_ += " */\n";
  }
}

std::string LauncherWriter::parameters(bool withResults) const {
  std::vector<std::string> list;
  for (const Param& param : kernel_.params) {
    if (isLaterField(param))
      continue;
    std::string name = nameOf(param);
    if (!param.isTensor) {
      list.push_back(base::concat(cType(param.type), " ", name));
      continue;
    }
    bool written =
        param.structBytes ? isWritten(fieldsFrom(param, kernel_.params)) : param.access != artifact::Access::Read;
    list.push_back(tensorParameter(written, param.structBytes != 0, param.type, name));
    for (uint32_t dim = 0; dim < param.rank; ++dim)
      list.push_back(base::concat("int64_t ", name, "_", dim));
  }
  if (takesGrid_)
    for (char axis : {'x', 'y', 'z'})
      list.push_back(base::concat("int64_t launch_grid_", axis));
  if (withResults)
    for (size_t i = 0; i < kernel_.results.size(); ++i)
      if (!isLaterField(kernel_.results[i]))
        list.push_back(tensorParameter(true, kernel_.results[i].structBytes != 0, kernel_.results[i].type,
                                       base::concat("result", i)));
  return list.empty() ? "void" : base::join(list, ", ");
}

void LauncherWriter::tensorSlots(const Param& param, const std::string& memory,
                                 const std::vector<std::string>& extents) {
  const uint32_t slot = param.firstSlot;
  placeTensor(param, memory);
  for (uint32_t dim = 0; dim < param.rank; ++dim)
    out_ += base::concat(indent_, "vx_slots[", slot + 1 + dim, "] = (uint64_t)(", extents[dim], ");\n");
  std::string stride = std::to_string(param.structBytes ? param.structBytes / artifact::byteSize(param.type) : 1);
  for (uint32_t dim = param.rank; dim-- > 0;) {
    out_ += base::concat(indent_, "vx_slots[", slot + 1 + param.rank + dim, "] = (uint64_t)(", stride, ");\n");
    stride =
        base::concat("(int64_t)vx_slots[", slot + 1 + param.rank + dim, "] * (int64_t)vx_slots[", slot + 1 + dim, "]");
  }
}

/// A size as C, after the statements that compute it.
std::string LauncherWriter::size(size::Id id) {
  const size::Row& row = kernel_.sizes.rows()[id.index];
  if (row.op == size::Op::Constant)
    return size::toC(row, {});
  if (row.op == size::Op::LaunchGrid)
    return base::concat("launch_grid_", "xyz"[row.operands[0]]);
  if (row.op == size::Op::Device) {
    if (row.operands[0] != 1)  // only NVIDIA has clusters
      return "INT64_C(0)";
    readsWorkers_ = true;
    return workers();
  }
  if (size::isArgument(row.op))
    return base::concat("((int64_t)vx_slots[", artifact::slotOf(kernel_, row), "])");
  std::string name = base::concat("vx_sizes[", id.index, "]");
  if (isComputed_[id.index])
    return name;
  std::array<std::string, 3> operands;
  for (uint32_t i = 0; i < size::arity(row.op); ++i)
    operands[i] = size({row.operands[i]});
  out_ += base::concat(indent_, name, " = ", size::toC(row, operands), ";\n");
  isComputed_[id.index] = true;
  return name;
}

/// Ends a function: declares what its sizes are made of and kept in.
void LauncherWriter::endFunction() {
  if (out_.find("vx_sizes[", sizesAt_) != std::string::npos)
    out_.insert(sizesAt_, base::concat("  int64_t vx_sizes[", isComputed_.size(), "];\n"));
  if (readsWorkers_)
    out_.insert(sizesAt_, declareWorkers());
  out_ += "}\n";
}

void LauncherWriter::parameterSlots() {
  sizesAt_ = out_.size();
  isComputed_.assign(kernel_.sizes.rows().size(), false);
  readsWorkers_ = false;
  out_ += base::concat("  uint64_t vx_slots[", kernel_.slotCount ? kernel_.slotCount : 1, "] = {0};\n");
  declareTensors();
  for (const Param& param : kernel_.params) {
    std::string name = nameOf(param);
    if (!param.isTensor) {
      bool isFloat = param.type == ScalarType::F32 || param.type == ScalarType::F64;
      out_ += isFloat ? base::concat("  memcpy(&vx_slots[", param.firstSlot, "], &", name, ", sizeof ", name, ");\n")
                      : base::concat("  vx_slots[", param.firstSlot, "] = (uint64_t)(int64_t)", name, ";\n");
      continue;
    }
    std::vector<std::string> extents;
    for (uint32_t dim = 0; dim < param.rank; ++dim)
      extents.push_back(base::concat(name, "_", dim));
    tensorSlots(param, name, extents);
  }
}

std::vector<std::string> LauncherWriter::extentsOf(const Param& param) {
  std::vector<std::string> extents;
  for (size::Id extent : param.extents)
    extents.push_back(size(extent));
  return extents;
}

void LauncherWriter::writeExtents(size_t result, const std::string& qualifiers) {
  for (uint32_t dim = 0; dim < kernel_.results[result].rank; ++dim) {
    out_ += base::concat(qualifiers, " int64_t ", name_, "_result", result, "_extent", dim, "(", parameters(false),
                         ") {\n");
    parameterSlots();
    out_ += base::concat("  return ", size(kernel_.results[result].extents[dim]), ";\n");
    endFunction();
  }
}

void LauncherWriter::writeBody() {
  parameterSlots();
  for (const Param& param : kernel_.params)
    if (param.isTensor && !isLaterField(param))
      checkTensor(param, nameOf(param));
  for (const artifact::Constraint& constraint : kernel_.constraints)
    out_ += base::concat("  if (!", size(constraint.condition), ") return -1; /* ", commentText(constraint.message),
                         " */\n");
  for (size_t i = 0; i < kernel_.results.size(); ++i) {
    const Param& result = kernel_.results[i];
    size_t storage = i;
    while (isLaterField(kernel_.results[storage]))
      --storage;
    tensorSlots(result, base::concat("result", storage), extentsOf(result));
    if (storage == i)
      checkTensor(result, base::concat("result", i));
    if (result.zeroFill && storage == i)
      writeZeros(base::concat("result", i),
                 base::concat("(size_t)(", elements(result), ") * ",
                              result.structBytes ? result.structBytes : artifact::byteSize(result.type)));
  }
  declareTemporaries();
  for (const Param& temporary : kernel_.temporaries)
    if (temporary.original != Param::kNoOriginal)
      standFor(temporary, kernel_.params[temporary.original]);
  out_ += "  int32_t vx_status = 0;\n";
  temporaries_.assign(kernel_.temporaries.size(), Storage::None);
  writeSteps(kernel_.steps);
  out_ += "vx_done:\n";
}

/// Until it has memory of its own.
void LauncherWriter::standFor(const Param& temporary, const Param& original) {
  out_ += base::concat(indent_, "memcpy(&vx_slots[", temporary.firstSlot, "], &vx_slots[", original.firstSlot, "], ",
                       (1 + 2 * temporary.rank) * sizeof(uint64_t), ");\n");
  placeOriginal(temporary, original);
}

std::string LauncherWriter::commentText(std::string text) {
  for (size_t at; (at = text.find("*/")) != std::string::npos;)
    text.replace(at, 2, "* /");
  return text;
}

std::string LauncherWriter::elements(const Param& param) {
  std::string product = "(int64_t)1";
  for (const std::string& extent : extentsOf(param))
    product += " * " + extent;
  return product;
}

void LauncherWriter::writeSteps(const std::vector<artifact::Step>& steps) {
  for (const artifact::Step& step : steps)
    std::visit([&](const auto& what) { writeStep(what); }, step.what);
}

void LauncherWriter::writeStep(const artifact::Let& let) {
  const std::string value = size(let.value);
  out_ += base::concat(indent_, "vx_slots[", kernel_.lets[let.let].firstSlot, "] = (uint64_t)", value, ";\n");
}

void LauncherWriter::writeStep(const artifact::Read& read) {
  writeRead(kernel_.lets[read.let], kernel_.temporaries[read.temporary]);
}

void LauncherWriter::writeStep(const artifact::Choose& choose) {
  std::vector<std::string> conditions;
  for (const artifact::Case& each : choose.cases)
    conditions.push_back(condition(each));
  const std::vector<bool> computed = isComputed_;
  const std::vector<Storage> before = temporaries_;
  std::vector<Storage> after = before;
  for (size_t i = 0; i < choose.cases.size(); ++i) {
    const bool isLast = i + 1 == choose.cases.size();
    out_ += base::concat(i ? " else " : indent_, isLast ? "" : base::concat("if (", conditions[i], ") "), "{ /* ",
                         commentText(choose.cases[i].name), " */\n");
    indent_ += "  ";
    writeSteps(choose.cases[i].steps);
    indent_.resize(indent_.size() - 2);
    out_ += indent_ + "}";
    isComputed_ = computed;
    for (size_t k = 0; k < before.size(); ++k)
      if (temporaries_[k] != before[k])
        after[k] = Storage::Maybe;
    temporaries_ = before;
  }
  temporaries_ = std::move(after);
  out_ += "\n";
}

/// Sizes are computed in every round, and after the loop again.
void LauncherWriter::writeStep(const artifact::Loop& loop) {
  auto setAll = [&](const std::vector<size::Id>& values) {
    std::vector<std::string> known;
    for (size::Id value : values)
      known.push_back(size(value));
    for (size_t i = 0; i < known.size(); ++i)
      out_ += base::concat(indent_, "const int64_t vx_next", i, " = ", known[i], ";\n");
    for (size_t i = 0; i < known.size(); ++i)
      out_ += base::concat(indent_, "vx_slots[", kernel_.lets[loop.firstLet + i].firstSlot, "] = (uint64_t)vx_next", i,
                           ";\n");
  };
  auto open = [&](const char* text) {
    out_ += base::concat(indent_, text, "{\n");
    indent_ += "  ";
  };
  auto close = [&] {
    indent_.resize(indent_.size() - 2);
    out_ += indent_ + "}\n";
  };
  const std::vector<bool> computed = isComputed_;
  const std::vector<Storage> before = temporaries_;
  for (Storage& storage : temporaries_)
    storage = storage == Storage::None ? Storage::Maybe : storage;
  open("");
  setAll(loop.first);
  close();
  isComputed_ = computed;
  open("for (;;) ");
  out_ += base::concat(indent_, "if (!", size(loop.condition), ") break;\n");
  writeSteps(loop.steps);
  setAll(loop.next);
  close();
  isComputed_ = computed;
  for (size_t i = 0; i < before.size(); ++i)
    temporaries_[i] = before[i] == Storage::Always ? Storage::Always : Storage::Maybe;
}

void LauncherWriter::writeStep(const artifact::Exchange& exchange) {
  writeExchange(kernel_.temporaries[exchange.a], kernel_.temporaries[exchange.b]);
}

std::string LauncherWriter::condition(const artifact::Case& each) {
  std::vector<std::string> parts;
  for (size::Id id : {each.needs, each.when})
    if (kernel_.sizes.constantOf(id).value_or(0) == 0)
      parts.push_back(size(id));
  return base::join(parts, " && ");
}

void LauncherWriter::writeStep(const artifact::Run& run) {
  for (uint32_t temporary : kernel_.phases[run.phase].written)
    allocate(temporary);
  writePhase(kernel_.phases[run.phase]);
}

/// Memory of a temporary, where the steps so far may have left it without.
void LauncherWriter::allocate(size_t index) {
  const Storage before = std::exchange(temporaries_[index], Storage::Always);
  if (before == Storage::Always)
    return;
  const Param& param = kernel_.temporaries[index];
  const std::string memory = base::concat("vx_temporaries[", index, "]");
  const std::string bytes =
      base::concat("(((size_t)(", elements(param), ") * ", artifact::byteSize(param.type), " + 127) & ~(size_t)63)");
  if (before == Storage::Maybe) {
    out_ += base::concat(indent_, "if (!", memory, memoryMember(), ") {\n");
    indent_ += "  ";
  }
  writeAllocation(memory, bytes);
  if (param.zeroFill)
    writeZeros(memory, bytes);
  tensorSlots(param, memory, extentsOf(param));
  if (before == Storage::Maybe) {
    indent_.resize(indent_.size() - 2);
    out_ += indent_ + "}\n";
  }
}

}  // namespace vortex::tools
