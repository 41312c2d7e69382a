#include "lang/syntax/ast_text.h"
#include "lang/syntax/format.h"
#include "lang/syntax/lexer.h"
#include "lang/syntax/parser.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace vortex::lang::syntax {
namespace {

std::string formatted(const std::string& text) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const auto result = format(sources.addText("t.vx", text), sources, sink);
  EXPECT_TRUE(result.has_value()) << text << diag::renderText(sink.all(), sources);
  return result.value_or("");
}

/// The trees of all function bodies: line breaks decide statements, so equal tokens are not enough.
std::string programOf(const std::string& text) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const auto module = parse(sources.addText("t.vx", text), sources, sink);
  EXPECT_FALSE(sink.hasErrors()) << text << diag::renderText(sink.all(), sources);
  std::string out;
  for (const Item* item : module->items)
    if (const auto* function = item->tryAs<FunctionItem>())
      out += printTree(function->body) + "\n";
  return out;
}

void expectStable(const std::string& text) {
  const std::string once = formatted(text);
  EXPECT_EQ(formatted(once), once);
  EXPECT_EQ(programOf(once), programOf(text)) << once;
}

TEST(Format, NormalisesSpacesAndIndentation) {
  EXPECT_EQ(formatted("fn   f( a:f32,b :&mut T )->i32{\nlet x=a*-b+c [ 1 , 2.. ]\n\n\n\n  if x<3&&!y{return}\n}"),
            "fn f(a: f32, b: &mut T) -> i32 {\n    let x = a * -b + c[1, 2..]\n\n    if x < 3 && !y { return }\n}\n");
  EXPECT_EQ(formatted("type A<T>=Tensor<T,[N],Global>"), "type A<T> = Tensor<T, [N], Global>\n");
  EXPECT_EQ(formatted("fn f() { g(|x,y|x|y,||1 , .a,x as f32@y, k::<f32,256>( x )) }"),
            "fn f() { g(|x, y| x | y, || 1, .a, x as f32 @ y, k::<f32, 256>(x)) }\n");
  EXPECT_EQ(formatted("@launch( grid=[1],block = 2 )\nkernel k(a:Tensor<f32,[N]>@global){}"),
            "@launch(grid = [1], block = 2)\nkernel k(a: Tensor<f32, [N]> @global) {}\n");
  EXPECT_EQ(formatted("fn f() { t[ :,a .. + n,..n] }"), "fn f() { t[:, a..+n, ..n] }\n");
  EXPECT_EQ(formatted(""), "");
}

TEST(Format, KeepsIntegersApartFromDots) {
  expectStable("fn f() { let x = 10 . // a comment\n max(3) }");
  expectStable("fn f() { let x = 10 .e5 }");
  EXPECT_EQ(formatted("fn f() { let x = 10.max( 3 ) }"), "fn f() { let x = 10.max(3) }\n");
}

TEST(Format, JoinsBracesAndElse) {
  EXPECT_EQ(formatted("fn f()\n{\nif a\n{\nb\n}\nelse\n{\nc\n}\n}\n"),
            "fn f() {\n    if a {\n        b\n    } else {\n        c\n    }\n}\n");
}

TEST(Format, KeepsCommentsWhereTheyAre) {
  EXPECT_EQ(
      formatted(
          "// top\n\n/// doc\nfn f() {  // trailing\n\n// own\nlet x = /* in */ 3 // end\n/* a\n   b */\n}\n// last"),
      "// top\n\n/// doc\nfn f() {  // trailing\n    // own\n    let x = /* in */ 3  // end\n    /* a\n   b */\n}\n// "
      "last\n");
}

TEST(Format, BreaksLongLinesAtBracketsThenOperators) {
  const std::string name(30, 'a');
  const std::string text = "fn f() {\n    let x = g(" + name + ", " + name + ", " + name + ", " + name +
                           ")\n    y = " + name + " + " + name + " * " + name + " + " + name + "\n}\n";
  EXPECT_EQ(formatted(text), "fn f() {\n    let x = g(\n        " + name + ",\n        " + name + ",\n        " + name +
                                 ",\n        " + name + "\n    )\n    y = " + name + " +\n        " + name + " * " +
                                 name + " +\n        " + name + "\n}\n");
  expectStable(text);
}

TEST(Format, IndentsABodyFromTheLineThatOpenedItsParameters) {
  const std::string text = "kernel k(a: f32,\n         b: f32) {\nlet x = a\n}\n\nfn g() {}\n";
  EXPECT_EQ(formatted(text), "kernel k(a: f32,\n    b: f32) {\n    let x = a\n}\n\nfn g() {}\n");
  expectStable(text);
}

TEST(Format, RefusesFilesWithSyntaxErrors) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  EXPECT_FALSE(format(sources.addText("t.vx", "fn f( {"), sources, sink).has_value());
  EXPECT_TRUE(sink.hasErrors());
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  for (const char* folder : {"src/lang/syntax/testdata", "examples", "std", "bench/kernels"})
    if (std::filesystem::exists(folder))
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.path().extension() == ".vx") {
          std::ostringstream text;
          text << std::ifstream(entry.path()).rdbuf();
          source::SourceManager sources;
          diag::DiagnosticSink sink;
          parse(sources.addText("t.vx", text.str()), sources, sink);
          if (!sink.hasErrors())
            texts.push_back(text.str());
        }
  return texts;
}

TEST(Format, FormattingTwiceEqualsOnceAndKeepsThePrograms) {
  const auto texts = corpus();
  ASSERT_GE(texts.size(), 4u);
  for (const std::string& text : texts)
    expectStable(text);
}

/// Random whitespace between tokens; line breaks stay line breaks.
TEST(Format, HoldsForRandomWhitespace) {
  std::mt19937 random(7);
  for (const std::string& text : corpus()) {
    source::SourceManager sources;
    diag::DiagnosticSink sink;
    const TokenStream stream = lex(sources.addText("t.vx", text), sources, sink);
    for (int round = 0; round < 8; ++round) {
      std::string shaken;
      uint32_t end = 0;
      for (const Token& token : stream.tokens) {
        std::string gap = text.substr(end, token.begin - end);
        if (gap.find_first_not_of(" \t") == std::string::npos && !gap.empty())
          gap = std::string(1 + random() % 3, random() % 4 ? ' ' : '\t');
        else if (gap.find('/') == std::string::npos && gap.find('\n') != std::string::npos)
          gap = std::string(1 + random() % 3, '\n') + std::string(random() % 9, ' ');
        shaken += gap + text.substr(token.begin, token.end - token.begin);

        end = token.end;
      }
      expectStable(shaken);
      EXPECT_EQ(programOf(shaken), programOf(text));
    }
  }
}

/// Every statement on one line, as far as the language allows: all breaking is the formatter's.
TEST(Format, HoldsForJoinedLines) {
  for (const std::string& text : corpus()) {
    source::SourceManager sources;
    diag::DiagnosticSink sink;
    const source::FileId file = sources.addText("t.vx", text);
    TokenStream raw = lex(file, sources, sink), balanced = raw;
    balanceBrackets(balanced, file, sources, sink);
    std::string joined;
    uint32_t end = 0;
    size_t comment = 0;
    for (size_t i = 0; i < raw.tokens.size(); ++i) {
      const Token& token = raw.tokens[i];
      bool hasComment = false;
      for (; comment < raw.comments.size() && raw.comments[comment].tokenIndex == i; ++comment)
        hasComment = true;
      const std::string gap = text.substr(end, token.begin - end);
      joined += hasComment || balanced.tokens[i].newlineBefore ? gap : gap.empty() ? "" : " ";
      joined += text.substr(token.begin, token.end - token.begin);
      end = token.end;
    }
    expectStable(joined);
    EXPECT_EQ(programOf(joined), programOf(text));
  }
}

}  // namespace
}  // namespace vortex::lang::syntax
