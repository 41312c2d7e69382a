// Any bytes through lexer, parser and formatter: no crash, no hang, diagnostics inside the file; what parses is formatted to the same
// tree, and formatting again changes nothing.
#include "base/check.h"
#include "diag/diagnostic.h"
#include "lang/syntax/ast_text.h"
#include "lang/syntax/format.h"
#include "lang/syntax/parser.h"

#include <cstddef>
#include <cstdint>

namespace {
using namespace vortex;

/// The trees of all functions.
std::string programOf(const lang::syntax::Module& module) {
  std::string out;
  for (const lang::syntax::Item* item : module.items)
    if (const auto* function = item->tryAs<lang::syntax::FunctionItem>())
      out += lang::syntax::printTree(function->body) + "\n";
  return out;
}

std::string formatAgain(const std::string& text, const std::string& tree) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const source::FileId file = sources.addText("formatted.vx", text);
  const auto module = lang::syntax::parse(file, sources, sink);
  VORTEX_CHECK(!sink.hasErrors(), "the formatted text does not parse:\n%s", text.c_str());
  VORTEX_CHECK(programOf(*module) == tree, "formatting changed the program:\n%s", text.c_str());
  return lang::syntax::format(file, sources, sink).value();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const source::FileId file = sources.addText("fuzz.vx", std::string(reinterpret_cast<const char*>(bytes), size));
  const auto module = lang::syntax::parse(file, sources, sink);
  for (const diag::Diagnostic& diagnostic : sink.all())
    for (const diag::Label& label : diagnostic.labels)
      VORTEX_CHECK(label.range.begin <= label.range.end && label.range.end <= size, "label of %s at %u..%u of %zu",
                   diagnostic.id.c_str(), label.range.begin, label.range.end, size);
  VORTEX_CHECK(!diag::renderJson(sink.all(), sources).empty());
  VORTEX_CHECK(diag::renderText(sink.all(), sources).empty() == sink.all().empty());
  if (sink.hasErrors())
    return 0;
  const std::string once = lang::syntax::format(file, sources, sink).value();
  const std::string twice = formatAgain(once, programOf(*module));
  VORTEX_CHECK(once == twice, "formatting twice differs:\n%s\n----\n%s", once.c_str(), twice.c_str());
  return 0;
}
