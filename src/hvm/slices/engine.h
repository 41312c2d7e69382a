// Runs slices (reduce.vx) on a device.
#pragma once

#include "hvm/eval/term.h"
#include "hvm/slices/kernels.h"
#include "hvm/slices/tables.h"
#include "hvm/slices/words.h"
#include "hvm/workspace.h"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

namespace vortex::hvm::slices {

/// What the runs of a program did and took, in seconds.
struct Report {
  uint64_t slices = 0, collections = 0;
  double open = 0;    // the device
  double load = 0;    // the kernels
  double fill = 0;    // memory, allocated and filled
  double reduce = 0;  // slices, with what moves tasks and terms between them
  double fetch = 0;   // the result
};

class Clock {
public:
  /// Seconds since the last call.
  double lap() {
    const auto before = std::exchange(last_, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(last_ - before).count();
  }

private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// An open device with its kernels and heap, for one run after the other.
struct Session {
  Workspace workspace;
  Kernels kernels;
  Tensor heap = {};
  uint64_t cells = 0;  // of the heap
};

struct SliceOptions {
  std::string device = "cpu";
  uint32_t blocks = 4;
  uint64_t memoryBytes = 0;
  uint64_t fuel = ~uint64_t(0);
  uint64_t seed = 0;                    // the order in which blocks begin
  bool forks = true;                    // both operands of an operator at once, where they are always needed
  std::string file;                     // write what the run starts from there, for slices.vx
  uint32_t leastWidth = 0;              // slices that end with fewer tasks end the run: the evaluator is faster
  Report* report = nullptr;             // is added to
  uint32_t enoughWidth = ~uint32_t(0);  // slices that end with as many tasks end the run: another device is faster
  std::optional<Session>* session = nullptr;  // is opened by the first run
  /// Where the first tasks are made until there are `leastWidth`: the device, if it is not open yet, is opened only then. Null: on the device.
  std::optional<Session>* cpuSession = nullptr;
  Report* cpuReport = nullptr;  // of what was done there
};

/// A net before it goes to the device: nodes whose fields lie kStride words apart.
class Image {
public:
  Image() : next_(kStride, kStride) {
    for (uint32_t column = 0; column < kStride; ++column)
      next_[column] += column;
  }
  Loc allocate(uint64_t count);
  Term& field(Loc loc, uint64_t i) { return words_[loc + i * kStride]; }
  const std::vector<Term>& words() const { return words_; }

private:
  std::vector<Loc> next_;  // of each column
  uint32_t column_ = 0;
  std::vector<Term> words_;
};

class Engine {
public:
  /// `cells`: first one with the term whose normal form is wanted, then those that others refer to. Errors: those of the device.
  static Result<std::unique_ptr<Engine>> create(const Tables& tables, const Image& image, const std::vector<Loc>& cells,
                                                const SliceOptions& options);

  /// After run(): it ended because there were tasks enough.
  bool isWide() const { return isWide_; }
  /// Until nothing is left that the kernels can do. False: nothing of what was done counts.
  Result<bool> run();
  uint64_t interactions() const { return interactions_; }
  uint64_t usedWords() const { return usedWords_; }
  uint64_t slices() const { return slices_; }
  uint64_t collections() const { return collections_; }

  /// After run(): the heap, as it lies on the device.
  Term word(Loc loc, uint64_t i = 0);
  /// Where the cell lies: a collection that stopped leaves references to both places of those that it moved.
  Loc placeOf(Loc loc);
  void put(Loc cell, Term word) { written_[placeOf(cell)] = word; }
  /// Of what allocate() gave.
  void putField(Loc loc, uint64_t i, Term word) { written_[loc + i * kStride] = word; }
  Loc allocate(uint64_t count);
  /// Where the cells that were given lie now.
  std::vector<Loc> cells() { return read<uint64_t>(exports_); }
  /// Saved stacks that have not come to their end.
  std::vector<Loc> stacks();
  /// Of reading the heap.
  const Result<void>& state() const { return state_; }

private:
  struct Queue {
    Tensor tasks, heads, counts;
  };
  Engine(const Tables& tables, const SliceOptions& options, Session& session)
      : tables_(tables), options_(options), session_(session), workspace_(session.workspace) {}
  Result<void> makeHeap(uint64_t cells);
  Result<void> writeStart(const Image& image, const std::vector<Loc>& cells,
                          const std::array<std::vector<uint64_t>, 2>& begins,
                          const std::array<std::vector<uint64_t>, 2>& ends) const;
  Result<void> prepare(const Image& image, const std::vector<Loc>& cells);
  std::vector<Argument> netArguments() const;
  Result<PreparedLaunch> onNet(const Kernel& kernel, const std::vector<Argument>& more) const;
  Result<void> prepareSlices();
  Result<void> reduce(bool isShort);
  Result<void> spread();
  Result<void> tidy();
  Result<void> collect();
  /// What the kernels of the last slice reported; the next one begins anew.
  Result<std::vector<uint64_t>> takeReport();
  Result<bool> runSlices();
  Term raw(Loc loc);
  template <typename T> std::vector<T> read(const Tensor& tensor, uint64_t first, uint64_t count);
  template <typename T> std::vector<T> read(const Tensor& tensor) {
    return read<T>(tensor, 0, static_cast<uint64_t>(tensor.elements()));
  }

  const Tables& tables_;
  SliceOptions options_;
  Session& session_;
  Workspace& workspace_;
  uint64_t cells_ = 0;
  Tensor heap_, ops_, opWords_, items_, entries_, slots_, roots_, rows_, log_, logged_, next_, end_, report_, exports_;
  std::array<Tensor, 2> begins_, ends_;  // of the lanes' parts of each half of the heap
  size_t half_ = 0;
  uint64_t usedWords_ = 0, slices_ = 0, collections_ = 0;
  std::array<Queue, 2> queues_;
  std::array<std::vector<PreparedLaunch>, 2> reduce_;  // by `full_`, then by length
  std::vector<PreparedLaunch> spread_;
  size_t full_ = 0;
  uint64_t interactions_ = 0;
  bool isWide_ = false;
  Result<void> state_;
  std::unordered_map<uint64_t, std::vector<Term>> pages_;
  std::vector<Term>* page_ = nullptr;  // the last one that was asked for
  uint64_t pageNumber_ = 0;
  std::unordered_map<Loc, Term> written_;
  Loc fresh_ = 0;
};

}  // namespace vortex::hvm::slices
