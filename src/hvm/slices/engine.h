// Runs slices (reduce.vx) on a device.
#pragma once

#include "hvm/eval/term.h"
#include "hvm/slices/kernels.h"
#include "hvm/slices/tables.h"

#include <array>
#include <memory>
#include <unordered_map>

namespace vortex::hvm::slices {

struct SliceOptions {
  std::string device = "cpu";
  uint32_t blocks = 4;
  uint64_t memoryBytes = 0;
  uint64_t fuel = ~uint64_t(0);
  uint64_t seed = 0;        // the order in which blocks begin
  std::string file;         // write what the run starts from there, for slices.vx
  uint32_t leastWidth = 0;  // slices that end with fewer tasks end the run: the evaluator is faster
};

/// A net before it goes to the device: nodes whose fields lie `stride` words apart.
class Image {
public:
  explicit Image(uint32_t stride) : stride_(stride), next_(stride, stride) {
    for (uint32_t column = 0; column < stride; ++column)
      next_[column] += column;
  }
  Loc allocate(uint64_t count);
  Term& field(Loc loc, uint64_t i) { return words_[loc + i * stride_]; }
  uint32_t stride() const { return stride_; }
  const std::vector<Term>& words() const { return words_; }

private:
  uint32_t stride_;
  std::vector<Loc> next_;  // of each column
  uint32_t column_ = 0;
  std::vector<Term> words_;
};

class Engine {
public:
  /// `cells`: first one with the term whose normal form is wanted, then those that others refer to. Errors: those of the device.
  static Result<std::unique_ptr<Engine>> create(const Tables& tables, const Image& image, const std::vector<Loc>& cells,
                                                const SliceOptions& options);

  /// Until nothing is left that the kernels can do. False: nothing of what was done counts.
  Result<bool> run();
  uint64_t interactions() const { return interactions_; }
  uint64_t usedWords() const { return usedWords_; }
  uint64_t collections() const { return collections_; }

  /// After run(): the heap, as it lies on the device.
  Term word(Loc loc, uint64_t i = 0);
  void put(Loc cell, Term word) { written_[placeOf(cell)] = word; }
  /// Of what allocate() gave.
  void putField(Loc loc, uint64_t i, Term word) { written_[loc + i * stride_] = word; }
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
  Engine(const Tables& tables, uint32_t stride, const SliceOptions& options, Device device, Stream stream)
      : tables_(tables), stride_(stride), options_(options), device_(std::move(device)), stream_(std::move(stream)) {}
  Result<void> writeStart(const Image& image, const std::vector<Loc>& cells,
                          const std::array<std::vector<uint64_t>, 2>& begins,
                          const std::array<std::vector<uint64_t>, 2>& ends) const;
  Result<void> prepare(const Image& image, const std::vector<Loc>& cells);
  Result<Tensor> make(DType type, uint64_t elements, bool clears = true);
  template <typename T> Result<void> copy(Tensor& tensor, const std::vector<T>& values, uint64_t elements = 0);
  std::vector<Argument> netArguments() const;
  Result<void> launch(const Kernel& kernel, const std::vector<Argument>& arguments);
  Result<void> reduce(uint32_t phases, uint32_t fuel);
  Result<void> spread();
  Result<void> collect();
  Term raw(Loc loc);
  Loc placeOf(Loc loc);
  template <typename T> std::vector<T> read(const Tensor& tensor);

  const Tables& tables_;
  uint32_t stride_;
  SliceOptions options_;
  Device device_;
  Stream stream_;
  std::optional<Kernels> kernels_;
  uint64_t cells_ = 0;
  Tensor heap_, ops_, opWords_, items_, entries_, slots_, roots_, rows_, log_, logged_, next_, end_, fired_, status_,
      exports_;
  std::array<Tensor, 2> begins_, ends_;  // of the lanes' parts of each half of the heap
  size_t half_ = 0;
  uint64_t usedWords_ = 0, collections_ = 0;
  std::array<Queue, 2> queues_;
  size_t full_ = 0;
  uint64_t interactions_ = 0;
  Result<void> state_;
  std::unordered_map<uint64_t, std::vector<Term>> pages_;
  std::unordered_map<Loc, Term> written_;
  Loc fresh_ = 0;
};

}  // namespace vortex::hvm::slices
