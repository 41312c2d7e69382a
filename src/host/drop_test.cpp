// When device memory is freed: a backend that counts what is alive, looked at by every `print`.

#include "host/evaluator.h"
#include "lang/flow/front.h"

#include "gtest/gtest.h"

#include <cstring>

namespace vortex::host {
namespace {

struct Counter {
  int live = 0;
  int64_t bytes = 0;
};

class CountedBuffer : public DeviceBuffer {
public:
  CountedBuffer(Counter& counter, size_t size) : counter_(counter), data_(size) {
    ++counter_.live;
    counter_.bytes += static_cast<int64_t>(size);
  }
  ~CountedBuffer() override {
    --counter_.live;
    counter_.bytes -= static_cast<int64_t>(data_.size());
  }
  size_t byteSize() const override { return data_.size(); }
  Result<void> read(size_t offset, std::span<uint8_t> to) override {
    std::memcpy(to.data(), data_.data() + offset, to.size());
    return {};
  }
  Result<void> write(size_t offset, std::span<const uint8_t> from) override {
    std::memcpy(data_.data() + offset, from.data(), from.size());
    return {};
  }

private:
  Counter& counter_;
  std::vector<uint8_t> data_;
};

/// Every kernel returns a new tensor of four numbers.
class CountingBackend : public Backend {
public:
  explicit CountingBackend(Counter& counter) : counter_(counter) {}
  Result<std::shared_ptr<DeviceBuffer>> allocate(size_t bytes) override {
    return std::shared_ptr<DeviceBuffer>(std::make_shared<CountedBuffer>(counter_, bytes));
  }
  LaunchOutcome launch(const lang::Function&, std::span<const LaunchArgument>, const LaunchSize&) override {
    TensorValue result;
    result.buffer = allocate(16).value();
    result.extents = {4};
    result.strides = {1};
    return std::vector<LaunchArgument>{result};
  }
  Result<void> synchronize() override { return {}; }

private:
  Counter& counter_;
};

constexpr const char* kItems = "struct Two {\n  a: Tensor<f32, [4]>,\n  b: Tensor<f32, [4]>,\n}\n"
                               "kernel lent(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x + 1.0 }\n"
                               "kernel taken(x: Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x + 1.0 }\n"
                               "fn make() -> Tensor<f32, [4]> { return zeros() }\n"
                               "fn drop(t: Tensor<f32, [4]>) { print(\"in\") }\n"
                               "fn same(t: Tensor<f32, [4]>) -> Tensor<f32, [4]> { return t }\n";

/// Live tensors at each `print` of the body, then after the program.
std::vector<int> liveAt(const std::string& body) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  auto program =
      lang::flow::analyze(sources.addText("test.vx", kItems + ("fn main() {\n" + body + "\n}\n")), sources, sink);
  EXPECT_EQ(sink.errorCount(), 0u) << diag::renderText(sink.all(), sources);
  if (sink.hasErrors() || !program->main)
    return {};
  Counter counter;
  CountingBackend backend(counter);
  std::vector<int> live;
  Options options;
  options.output = [&](std::string_view) { live.push_back(counter.live); };
  EXPECT_EQ(run(*program->main, backend, sink, options), 0) << diag::renderText(sink.all(), sources);
  live.push_back(counter.live);
  EXPECT_EQ(counter.bytes, 0);
  return live;
}

using Counts = std::vector<int>;

TEST(Drop, FreesAtTheEndOfTheScope) {
  EXPECT_EQ(liveAt("{\n  let t = make()\n  print(1)\n}\nprint(2)"), (Counts{1, 0, 0}));
  EXPECT_EQ(liveAt("let t = make()\nif args().len() == 0 {\n  let u = make()\n  print(1)\n}\nprint(2)"),
            (Counts{2, 1, 0}));
  EXPECT_EQ(liveAt("let n = {\n  let t = make()\n  t.to_host().len()\n}\nprint(n)"), (Counts{0, 0}));
}

TEST(Drop, FreesInEveryIteration) {
  EXPECT_EQ(liveAt("for i in 0..3 {\n  let t = make()\n  print(i)\n}\nprint(9)"), (Counts{1, 1, 1, 0, 0}));
  EXPECT_EQ(liveAt("for i in 0..3 {\n  let t = make()\n  if i == 1 { continue }\n  if i == 2 { break }\n  "
                   "print(i)\n}\nprint(9)"),
            (Counts{1, 0, 0}));
}

TEST(Drop, FreesTheOldValueOfAnAssignment) {
  EXPECT_EQ(liveAt("var t = make()\nt = lent(&t)\nprint(1)\nt = lent(&t)\nprint(2)"), (Counts{1, 1, 0}));
  EXPECT_EQ(liveAt("var p = Two { a: make(), b: make() }\np.a = make()\nprint(1)"), (Counts{2, 0}));
}

TEST(Drop, MovesTransferTheOwner) {
  EXPECT_EQ(liveAt("let t = make()\ndrop(t)\nprint(2)"), (Counts{1, 0, 0}));
  EXPECT_EQ(liveAt("let t = make()\nlet u = same(t)\nprint(1)"), (Counts{1, 0}));
  EXPECT_EQ(liveAt("let t = make()\nlet u = taken(t)\nprint(1)\nlet w = lent(&u)\nprint(2)"), (Counts{1, 2, 0}));
  EXPECT_EQ(liveAt("let t = make()\n{\n  let u = t\n  print(1)\n}\nprint(2)"), (Counts{1, 0, 0}));
  EXPECT_EQ(liveAt("let p = Two { a: make(), b: make() }\ndrop(p.a)\nprint(2)"), (Counts{2, 1, 0}));
  EXPECT_EQ(
      liveAt("var list = vec![make(), make()]\nlist.push(make())\ndrop(list.pop())\nprint(2)\nlist = vec![]\nprint(3)"),
      (Counts{3, 2, 0, 0}));
  EXPECT_EQ(liveAt("let t = make()\nif args().len() > 0 {\n  drop(t)\n}\nprint(2)"), (Counts{1, 0}));
}

TEST(Drop, FreesTemporariesAfterTheirUse) {
  EXPECT_EQ(liveAt("print(lent(&lent(&make())).to_host().len())\nprint(2)"), (Counts{0, 0, 0}));
  EXPECT_EQ(liveAt("let f = |x: f32| make()\nlet t = f(1.0)\nprint(1)"), (Counts{1, 0}));
}

TEST(Copies, ShareNothingWithTheOriginal) {
  EXPECT_EQ(liveAt("var a = [1, 2, 3]\nvar b = a\nb[0] = 9\nassert_eq(a[0], 1)\n"
                   "var p = (a, 1)\nvar q = p\nq.0[1] = 7\nassert_eq(p.0[1], 2)\n"
                   "var rows = vec![vec![0]; 3]\nrows[0].push(1)\nassert_eq(rows[1].len(), 1)\n"
                   "var copy = rows.copy()\ncopy[2].push(5)\nassert_eq(rows[2].len(), 1)\n"
                   "let t = make()\nlet u = t.copy()\nprint(1)"),
            (Counts{2, 0}));
}

}  // namespace
}  // namespace vortex::host
