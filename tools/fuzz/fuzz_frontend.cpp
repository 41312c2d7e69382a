// Any bytes through parser and analysis: no crash, no hang, and every diagnostic can be rendered and lies inside its file.
#include "base/check.h"
#include "diag/diagnostic.h"
#include "lang/flow/front.h"
#include "source/source.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace vortex;
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  source::FileId file = sources.addText("fuzz.vx", std::string(reinterpret_cast<const char*>(bytes), size));
  auto program = lang::flow::analyze(file, sources, sink);
  VORTEX_CHECK(program != nullptr);
  for (const diag::Diagnostic& diagnostic : sink.all())
    for (const diag::Label& label : diagnostic.labels)
      VORTEX_CHECK(!label.range.isValid() || label.range.end <= sources.file(label.range.file).text().size(),
                   "label of %s ends at %u", diagnostic.id.c_str(), label.range.end);
  sink.sortByPosition();
  VORTEX_CHECK(sink.all().empty() == diag::renderText(sink.all(), sources).empty());
  VORTEX_CHECK(!diag::renderJson(sink.all(), sources).empty());
  return 0;
}
