#include "msl/front/problems.h"

#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

namespace vortex::msl::front {

/// Clang's words for what the shim made of Metal's.
static std::string inMetalsWords(std::string message) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"const __global_device ", "constant "},
      {"__global_device ", "constant "},
      {"__global ", "device "},
      {"__local ", "threadgroup "},
      {"__attribute__((noderef)) ", "thread "},
      {"'__global_device'", "'constant'"},
      {"'__global'", "'device'"},
      {"'__local'", "'threadgroup'"},
      {"generic address space", "address space 'thread'"}};
  for (const auto& [word, metals] : kWords)
    for (size_t at = 0; (at = message.find(word, at)) != std::string::npos; at += metals.size())
      message.replace(at, word.size(), metals);
  if (message.starts_with("unknown attribute ") && message.ends_with(" ignored"))
    message.resize(message.size() - std::string_view(" ignored").size());  // it is an error here
  if (message.find("is an rvalue, but function has non-const lvalue ref-qualifier") != message.npos)
    return "this stores to part of a swizzle or to another value, which lies nowhere: store to a vector or to one "
           "swizzle of it";
  return message;
}

ProblemCollector::Place ProblemCollector::place(const clang::Diagnostic& diagnostic) const {
  if (!diagnostic.hasSourceManager() || diagnostic.getLocation().isInvalid())
    return {};
  const clang::SourceManager& sources = diagnostic.getSourceManager();
  clang::SourceLocation location = sources.getFileLoc(diagnostic.getLocation());
  auto [file, offset] = sources.getDecomposedLoc(location);
  auto name = sources.getNonBuiltinFilenameForID(file);
  const Rewritten* source = name ? files_.find(*name) : nullptr;
  if (!source)
    return {};
  unsigned length = clang::Lexer::MeasureTokenLength(location, sources, {});
  Place found{name->str(), source->sourceOffset(offset), source->sourceOffset(offset + length)};
  found.end = std::max(found.end, found.begin);
  return found;
}

/// The second range of the error is the cast's operand. One that is partly a macro's is left as it is.
void ProblemCollector::addRefusedCast(const clang::Diagnostic& diagnostic) {
  if (diagnostic.getNumRanges() < 2 || !diagnostic.hasSourceManager())
    return;
  const clang::SourceManager& sources = diagnostic.getSourceManager();
  const clang::CharSourceRange range = diagnostic.getRange(1);
  const clang::SourceLocation from = range.getBegin(), to = range.getEnd();
  if (from.isInvalid() || to.isInvalid() || from.isMacroID() != to.isMacroID() ||
      sources.isMacroArgExpansion(from) != sources.isMacroArgExpansion(to))
    return;
  auto [file, begin] = sources.getDecomposedSpellingLoc(from);
  auto [last, end] = sources.getDecomposedSpellingLoc(to);
  const auto name = sources.getNonBuiltinFilenameForID(file);
  const Rewritten* source = name ? files_.find(*name) : nullptr;
  if (!source || file != last || end < begin)
    return;
  end += clang::Lexer::MeasureTokenLength(sources.getSpellingLoc(to), sources, {});
  refused_[SourceFiles::key(*name)].push_back({source->sourceOffset(begin), source->sourceEnd(end)});
}

static bool isCastBetweenNarrowFloats(std::string_view message) {
  return message.ends_with(" is not allowed") && message.find("__bf16'") != message.npos &&
         message.find("_Float16'") != message.npos && message.find("cast from") != message.npos;
}

/// Whether the error is of what the shim refuses by name, or comes of it: a type that is refused has no members, either.
bool ProblemCollector::followsRefusal(llvm::StringRef message) {
  auto isOf = [&](const std::string& type) {
    return message.contains("'" + type + "<") || message.contains("::" + type + "<") ||
           message.contains("'" + type + "'") || message.contains("::" + type + "'");
  };
  const auto [subject, reason] = message.split(" is unavailable: ");
  if (reason.empty())
    return llvm::any_of(refusedTypes_, isOf);
  llvm::StringRef type = subject.trim('\'').split('<').first;
  refusedTypes_.push_back(type.substr(type.rfind(':') + 1).str());
  return false;
}

void ProblemCollector::HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& diagnostic) {
  DiagnosticConsumer::HandleDiagnostic(level, diagnostic);
  if (level != clang::DiagnosticsEngine::Note)
    isShown_ = level >= clang::DiagnosticsEngine::Error;
  if (!isShown_)
    return;
  llvm::SmallString<256> message;
  diagnostic.FormatDiagnostic(message);
  Place at = place(diagnostic);
  if (level >= clang::DiagnosticsEngine::Error) {
    if (isCastBetweenNarrowFloats(message.str()))
      addRefusedCast(diagnostic);
    isShown_ = !followsRefusal(message);
    if (!isShown_)
      return;
    problems_.push_back({"E0901", inMetalsWords(std::string(message)), at.file, at.begin, at.end, {}});
    return;
  }
  if (level != clang::DiagnosticsEngine::Note || problems_.empty() || at.file.empty())
    return;
  Problem& last = problems_.back();
  if (last.file.empty()) {
    last.file = at.file;
    last.begin = at.begin;
    last.end = at.end;
  } else if (last.notes.size() < 4) {
    last.notes.push_back({inMetalsWords(std::string(message)), at.file, at.begin});
  }
}

}  // namespace vortex::msl::front
