#include "lang/flow/testing/random_copies.h"

#include <algorithm>
#include <random>
#include <vector>

namespace vortex::lang::flow::testing {
namespace {

class Pipeline {
public:
  explicit Pipeline(uint64_t seed) : random_(seed) {}

  std::string run() {
    buffers_ = 1 + pick(4);
    ahead_ = pick(8) == 0 ? pick(4) : buffers_ - 1;
    form_ = pick(6);
    const bool isNested = pick(6) == 0;
    std::string body = prologue() + loop() + (pick(3) ? "" : "sync_block()\n" + use("0")) + (pick(4) ? "" : loop());
    if (isNested)
      body = "for o in 0..2 {\n" + body + (pick(3) ? "sync_block()\n" : "") + "}\n";
    return "@launch(grid = [1], block = 4)\nkernel k(x: &mut Tensor<f32, [N]>, out: &mut Tensor<f32, [4]>, lim: usize) "
           "{\n"
           "let buf: [Tensor<f32, [4]> @shared; " +
           number(buffers_) + "]\nlet t = thread.local_id\n" + body + "}\n";
  }

private:
  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  static std::string number(uint32_t value) { return std::to_string(value); }

  static std::string stage(const std::string& from, const std::string& slot) {
    return "async_stage(&x[" + from + "..+4], &mut buf[" + slot + "])\n";
  }
  static std::string use(const std::string& slot) { return "out[t] += buf[" + slot + "][t]\n"; }

  std::string prologue() {
    std::string out;
    if (ahead_ > 1 && pick(4) == 0)
      return "for i in 0.." + number(std::min(ahead_, buffers_)) + " {\n" + stage("i * 4", "i") + "}\n";
    for (uint32_t i = 0; i < ahead_; ++i)
      if (pick(10))
        out += (pick(8) ? "" : "if " + number(4 * i) + " < N ") + std::string("{ ") +
               stage(number(4 * i), number(i % buffers_)) + "}\n";
    return out;
  }

  /// The slot that is used `by` iterations later.
  std::string slot(uint32_t by) const {
    const std::string added = by == 0 ? "" : " + " + number(by), count = number(buffers_);
    switch (form_) {
    case 0:
    case 1:
    case 3: return "(s" + added + ") % " + count;
    case 2: return "(b / 4" + added + ") % " + count;
    case 4: return by == 0 ? "r" : "(r" + added + ") % " + count;
    default: return "(b / 4" + added + ") % " + count;
    }
  }

  std::string condition() {
    const uint32_t by = pick(10) ? ahead_ : pick(4);
    if (form_ == 0)
      return "s + " + number(by) + " < N / 4";
    return pick(4) ? "b + " + number(4 * by) + " < N" : "!(N <= b + " + number(4 * by) + ")";
  }

  std::string jump() {
    const std::string position = form_ == 0 || form_ == 1 || form_ == 3 ? "s" : "b / 4";
    const bool mayContinue = form_ < 2 || form_ == 5;
    const std::string what = mayContinue && pick(2) ? "continue" : "break";
    return "if " + position + (pick(2) ? " == lim { " : " == 0 { ") + what + " }\n";
  }

  std::string body() {
    const std::string position = form_ == 0 ? "s * 4" : "b";
    const std::string copy = stage(position + " + " + number(4 * ahead_), slot(ahead_));
    const std::string sync = "sync_block()\n";
    std::string ahead = pick(6) ? "if " + condition() + " {\n" + copy + "}\n" : copy;
    if (pick(6) == 0)
      ahead = "if " + position + " == 0 {\n" + stage("0", slot(0)) + "}\n" + ahead;
    std::vector<std::string> parts = {ahead, sync, use(slot(0))};
    if (pick(8) == 0)
      std::swap(parts[pick(3)], parts[pick(3)]);
    if (pick(10) == 0)
      parts.erase(parts.begin() + pick(static_cast<uint32_t>(parts.size())));
    const auto insert = [&](const std::string& part) {
      parts.insert(parts.begin() + pick(static_cast<uint32_t>(parts.size()) + 1), part);
    };
    if (pick(5) == 0)
      insert(jump());
    if (pick(6) == 0)
      insert("buf[" + slot(pick(buffers_)) + "][t] = 1.0\n");
    if (pick(6) == 0)
      insert("x[t] = 2.0\n");
    if (pick(6) == 0)
      insert(sync);
    std::string out;
    for (const std::string& part : parts)
      out += part;
    return out;
  }

  std::string loop() {
    switch (form_) {
    case 0: return "for s in 0..N / 4 {\n" + body() + "}\n";
    case 1: return "for (b, s) in range(0, N, 4).enumerate() {\n" + body() + "}\n";
    case 2: return "if true {\nvar b = 0usize\nwhile b < N {\n" + body() + "b += 4\n}\n}\n";
    case 3: return "if true {\nvar s = 0usize\nfor b in range(0, N, 4) {\n" + body() + "s += 1\n}\n}\n";
    case 4:
      return "if true {\nvar r = 0\nfor b in range(0, N, 4) {\n" + body() + "r = (r + 1) % " + number(buffers_) +
             "\n}\n}\n";
    default: return "for b in range(0, N, 4) {\n" + body() + "}\n";
    }
  }

  std::mt19937_64 random_;
  uint32_t buffers_ = 1, ahead_ = 0, form_ = 0;
};

}  // namespace

std::string randomCopies(uint64_t seed) { return Pipeline(seed).run(); }

}  // namespace vortex::lang::flow::testing
