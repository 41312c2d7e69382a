#include "metal/states.h"

#include <algorithm>
#include <cstring>

namespace vortex::metal {

static std::string textOf(const NS::Object* object) {
  if (const auto* string = dynamic_cast<const NS::String*>(object))
    return string->utf8String();
  if (const auto* number = dynamic_cast<const NS::Number*>(object))
    return concat(number->doubleValue());
  return "";
}

/// Bytes of a scalar; 0: no type of function constants.
static NS::UInteger byteSizeOf(MTL::DataType type) {
  switch (type) {
  case MTL::DataTypeBool:
  case MTL::DataTypeChar:
  case MTL::DataTypeUChar: return 1;
  case MTL::DataTypeShort:
  case MTL::DataTypeUShort: return 2;
  case MTL::DataTypeInt:
  case MTL::DataTypeUInt:
  case MTL::DataTypeFloat: return 4;
  case MTL::DataTypeLong:
  case MTL::DataTypeULong: return 8;
  default: return 0;
  }
}

template <typename T> static double numberAt(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

static double numberAt(const void* from, MTL::DataType type) {
  switch (type) {
  case MTL::DataTypeBool: return numberAt<uint8_t>(from) != 0;
  case MTL::DataTypeChar: return numberAt<int8_t>(from);
  case MTL::DataTypeUChar: return numberAt<uint8_t>(from);
  case MTL::DataTypeShort: return numberAt<int16_t>(from);
  case MTL::DataTypeUShort: return numberAt<uint16_t>(from);
  case MTL::DataTypeInt: return numberAt<int32_t>(from);
  case MTL::DataTypeUInt: return numberAt<uint32_t>(from);
  case MTL::DataTypeLong: return numberAt<int64_t>(from);
  case MTL::DataTypeULong: return numberAt<uint64_t>(from);
  default: return numberAt<float>(from);
  }
}

/// Nothing, and the values' problem set: no number that can be given.
static std::optional<double> readConstant(State<MTL::FunctionConstantValues>& values, const void* from,
                                          MTL::DataType type) {
  constexpr double kMostExact = 9007199254740992.0;
  std::string& problem = values.problem;
  if (!from)
    problem = "MTL::FunctionConstantValues::setConstantValue: the value is null";
  else if (byteSizeOf(type) == 0)
    problem = concat("MTL::FunctionConstantValues::setConstantValue: values of type ", type, " are not supported");
  else if (const double value = numberAt(from, type);
           type == MTL::DataTypeFloat || (value >= -kMostExact && value <= kMostExact))
    return value;
  else
    problem = "MTL::FunctionConstantValues::setConstantValue: integers of more than 53 bits are not supported";
  return std::nullopt;
}

namespace MTL {

CompileOptions* CompileOptions::alloc() { return new CompileOptions(std::make_shared<State<CompileOptions>>()); }
void CompileOptions::setLanguageVersion(LanguageVersion version) { state().version = version; }
LanguageVersion CompileOptions::languageVersion() const { return state().version; }
void CompileOptions::setFastMathEnabled(bool) {}
void CompileOptions::setMathMode(MathMode) {}

void CompileOptions::setPreprocessorMacros(const NS::Dictionary* macros) {
  state().definitions.clear();
  for (NS::UInteger i = 0; macros && i < macros->count(); ++i)
    state().definitions.push_back(
        concat(textOf(macros->allKeys()->object(i)), "=", textOf(macros->allValues()->object(i))));
}

FunctionConstantValues* FunctionConstantValues::alloc() {
  return new FunctionConstantValues(std::make_shared<State<FunctionConstantValues>>());
}

void FunctionConstantValues::setConstantValue(const void* value, DataType type, NS::UInteger index) {
  if (const auto number = readConstant(state(), value, type))
    state().byIndex[static_cast<uint32_t>(index)] = *number;
}

void FunctionConstantValues::setConstantValue(const void* value, DataType type, const NS::String* name) {
  if (const auto number = readConstant(state(), value, type))
    state().byName[textOf(name)] = *number;
}

void FunctionConstantValues::setConstantValues(const void* values, DataType type, NS::Range range) {
  for (NS::UInteger i = 0; i < range.length; ++i)
    setConstantValue(values ? static_cast<const uint8_t*>(values) + i * byteSizeOf(type) : nullptr, type,
                     range.location + i);
}

void FunctionConstantValues::reset() { state() = {}; }

Library* Device::newLibrary(const NS::String* source, const CompileOptions* options, NS::Error** error) {
  if (!source)
    return fail(error, "MTL::Device::newLibrary: the source is null");
  const State<CompileOptions> chosen = options ? options->state() : State<CompileOptions>();
  const auto version = static_cast<uint64_t>(chosen.version), major = version >> 16, minor = version & 0xffff;
  if (chosen.version > LanguageVersion3_2)
    return fail(error, concat("MTL::Device::newLibrary: version ", major, ".", minor,
                              " of the language is not supported; 3.2 is"));
  MetalCompileOptions compile;
  compile.definitions = chosen.definitions;
  compile.definitions.push_back(concat("__METAL_VERSION__=", major * 100 + minor * 10));
  MetalProgram program = MetalProgram::compile("program_source", source->utf8String(), compile);
  if (!program.ok())
    return fail(error, "MTL::Device::newLibrary:\n" + program.report());
  return new Library(std::make_shared<State<Library>>(&state(), std::move(program)));
}

Function* Library::newFunction(const NS::String* name) const { return newFunction(name, nullptr, nullptr); }

Function* Library::newFunction(const NS::String* name, const FunctionConstantValues* values, NS::Error** error) const {
  const std::string wanted = textOf(name);
  const std::vector<MetalKernelInfo> kernels = state().program.kernels();
  const auto found = std::ranges::find(kernels, wanted, &MetalKernelInfo::name);
  if (found == kernels.end()) {
    std::string names;
    for (const MetalKernelInfo& kernel : kernels)
      names += (names.empty() ? "`" : ", `") + kernel.name + "`";
    return fail(error, concat("MTL::Library::newFunction: the library has no kernel `", wanted, "`",
                              names.empty() ? "" : "; it has ", names));
  }
  std::map<uint32_t, double> constants;
  if (values) {
    if (!values->state().problem.empty())
      return fail(error, values->state().problem);
    constants = values->state().byIndex;
    for (const MetalConstant& constant : state().program.constants())
      if (const auto given = values->state().byName.find(constant.name); given != values->state().byName.end())
        constants[constant.index] = given->second;
  }
  return new Function(std::make_shared<State<Function>>(shared(), *found, std::move(constants)));
}

NS::Array* Library::functionNames() const {
  std::vector<const NS::Object*> names;
  for (const MetalKernelInfo& kernel : state().program.kernels())
    names.push_back(NS::String::string(kernel.name.c_str(), NS::UTF8StringEncoding));
  return NS::Array::array(names.data(), names.size());
}

Device* Library::device() const { return state().device->object; }

NS::String* Function::name() const { return NS::String::string(state().kernel.name.c_str(), NS::UTF8StringEncoding); }
Device* Function::device() const { return state().library->device->object; }

}  // namespace MTL
}  // namespace vortex::metal
