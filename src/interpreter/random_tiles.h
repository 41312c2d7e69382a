// Random whole-tensor programs on i32, whose results are exact, with their expected values from loops over index functions.
#pragma once

#include "interpreter/test_program.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace vortex::interpreter::random_tiles {

using Index = std::vector<int64_t>;

/// A dense i32 array; the loops below are the oracle and share nothing with the interpreter.
struct Model {
  Index shape;
  std::vector<int32_t> data;

  explicit Model(Index extents) : shape(std::move(extents)) {
    data.resize(size_t(std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>())));
  }
  size_t position(const Index& index) const {
    size_t result = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      result = result * size_t(shape[dim]) + size_t(index[dim]);
    return result;
  }
  int32_t& at(const Index& index) { return data[position(index)]; }
  int32_t at(const Index& index) const { return data[position(index)]; }

  Index indexOf(size_t position) const {
    Index index(shape.size());
    for (size_t dim = shape.size(); dim-- > 0; position /= size_t(shape[dim]))
      index[dim] = int64_t(position % size_t(shape[dim]));
    return index;
  }
  template <typename F> static Model build(const Index& shape, F f) {
    Model model(shape);
    for (size_t i = 0; i < model.data.size(); ++i)
      model.data[i] = f(model.indexOf(i));
    return model;
  }
};

inline int32_t wrap(int64_t value) { return int32_t(uint32_t(uint64_t(value))); }

/// A reduction and its model.
struct Kind {
  const char* name;
  int32_t start;
  int32_t (*apply)(int32_t, int32_t);
};
inline const Kind kKinds[] = {
    {"addi", 0, [](int32_t a, int32_t b) { return wrap(int64_t(a) + b); }},
    {"muli", 1, [](int32_t a, int32_t b) { return wrap(int64_t(a) * b); }},
    {"maxs", INT32_MIN, [](int32_t a, int32_t b) { return std::max(a, b); }},
    {"minu", -1, [](int32_t a, int32_t b) { return int32_t(std::min(uint32_t(a), uint32_t(b))); }},
    {"xor", 0, [](int32_t a, int32_t b) { return a ^ b; }},
};

class Generator {
public:
  Generator(unsigned seed, bool dynamic) : random_(seed), dynamic_(dynamic) {}

  std::string type(const Index& shape, const char* element = "i32") {
    std::string text = "tensor<";
    for (int64_t extent : shape)
      text += (dynamic_ ? "?" : std::to_string(extent)) + "x";
    return text + element + ">";
  }
  std::string sizes(const Index& shape) {
    if (!dynamic_ || shape.empty())
      return "";
    std::string text;
    for (int64_t extent : shape)
      text += (text.empty() ? " sizes(" : ", ") + index(extent);
    return text + ")";
  }
  std::string index(int64_t value) {
    body += "%k" + std::to_string(constants_) + " = arith.constant " + std::to_string(value) + " : index\n";
    return "%k" + std::to_string(constants_++);
  }
  std::string list(const Index& values) {
    std::string text;
    for (int64_t value : values)
      text += (text.empty() ? "" : ", ") + std::to_string(value);
    return "[" + text + "]";
  }
  std::string indices(const Index& values) {
    std::string text;
    for (int64_t value : values)
      text += (text.empty() ? "" : ", ") + index(value);
    return "[" + text + "]";
  }

  void add(const std::string& text, Model model) {
    body += name() + " = " + text + "\n";
    values.push_back(std::move(model));
  }
  std::string name() { return "%v" + std::to_string(values.size()); }
  std::string nameOf(size_t value) { return "%v" + std::to_string(value); }
  size_t pick(size_t count) { return count ? random_() % count : 0; }

  void load(const Model& source) {
    Index shape, offsets;
    for (int64_t extent : source.shape) {
      shape.push_back(1 + int64_t(pick(6)));
      offsets.push_back(int64_t(pick(size_t(extent + 2))) - 2);  // may hang over either end
    }
    std::string text = "vx.tile_load %a" + indices(offsets) + sizes(shape) +
                       " other %other : i32 : !vx.view<?x?xi32, global> -> " + type(shape);
    add(text, Model::build(shape, [&](const Index& i) {
          int64_t y = i[0] + offsets[0], x = i[1] + offsets[1];
          bool inside = y >= 0 && x >= 0 && y < source.shape[0] && x < source.shape[1];
          return inside ? source.at({y, x}) : 77;
        }));
  }

  void pointwise(size_t v) {
    const Model a = values[v];
    size_t w = v;
    for (size_t other = 0; other < values.size(); ++other)
      if (values[other].shape == a.shape && pick(2))
        w = other;
    const Model b = values[w];
    std::string operands = " " + nameOf(v) + ", " + nameOf(w), suffix = " : " + type(a.shape);
    auto both = [&](auto f) { return Model::build(a.shape, [&](const Index& i) { return f(a.at(i), b.at(i)); }); };
    switch (pick(5)) {
    case 0:
      return add("arith.subi" + operands + suffix, both([](int32_t x, int32_t y) { return wrap(int64_t(x) - y); }));
    case 1:
      return add("arith.muli" + operands + suffix, both([](int32_t x, int32_t y) { return wrap(int64_t(x) * y); }));
    case 2: return add("arith.maxsi" + operands + suffix, both([](int32_t x, int32_t y) { return std::max(x, y); }));
    case 3:
      return add("vx.int divs" + operands + suffix,
                 both([](int32_t x, int32_t y) { return y == 0 ? 0 : wrap(int64_t(x) / y); }));
    default: {
      std::string condition = "%c" + std::to_string(values.size());
      body += condition + " = arith.cmpi slt," + operands + suffix + "\n";
      return add("arith.select " + condition + "," + operands + " : " + type(a.shape, "i1") + ", " + type(a.shape),
                 both([](int32_t x, int32_t y) { return x < y ? x : y; }));
    }
    }
  }

  void transpose(size_t v) {
    const Model a = values[v];
    Index permutation(a.shape.size()), shape;
    std::iota(permutation.begin(), permutation.end(), 0);
    std::shuffle(permutation.begin(), permutation.end(), random_);
    for (int64_t dim : permutation)
      shape.push_back(a.shape[size_t(dim)]);
    add("vx.transpose " + nameOf(v) + " " + list(permutation) + " : " + type(a.shape) + " -> " + type(shape),
        Model::build(shape, [&](const Index& i) {
          Index source(i.size());
          for (size_t dim = 0; dim < i.size(); ++dim)
            source[size_t(permutation[dim])] = i[dim];
          return a.at(source);
        }));
  }

  void broadcast(size_t v) {
    const Model a = values[v];
    if (a.shape.size() > 3)
      return;
    size_t added = pick(a.shape.size() + 1);
    Index shape = a.shape, dims;
    shape.insert(shape.begin() + long(added), 1 + int64_t(pick(3)));
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (dim != added)
        dims.push_back(int64_t(dim));
    add("vx.broadcast " + nameOf(v) + " dims " + list(dims) + sizes(shape) + " : " + type(a.shape) + " -> " +
            type(shape),
        Model::build(shape, [&](Index i) {
          i.erase(i.begin() + long(added));
          return a.at(i);
        }));
  }

  void reduce(size_t v) {
    const Model a = values[v];
    const Kind& kind = kKinds[pick(std::size(kKinds))];
    Index dims, kept, shape;
    for (size_t dim = 0; dim < a.shape.size(); ++dim)
      (pick(2) ? dims : kept).push_back(int64_t(dim));
    if (kept.empty() || dims.empty())
      return;
    for (int64_t dim : kept)
      shape.push_back(a.shape[size_t(dim)]);
    Model result = Model::build(shape, [&](const Index&) { return kind.start; });
    for (size_t i = 0; i < a.data.size(); ++i) {
      Index from = a.indexOf(i), to;
      for (int64_t dim : kept)
        to.push_back(from[size_t(dim)]);
      result.at(to) = kind.apply(result.at(to), a.data[i]);
    }
    add(std::string("vx.reduce ") + kind.name + " " + nameOf(v) + " dims " + list(dims) + " : " + type(a.shape) +
            " -> " + type(shape),
        std::move(result));
  }

  void scan(size_t v) {
    const Model a = values[v];
    const Kind& kind = kKinds[pick(std::size(kKinds))];
    size_t dim = pick(a.shape.size());
    bool exclusive = pick(2);
    add(std::string("vx.scan ") + kind.name + " " + nameOf(v) + " dim " + std::to_string(dim) +
            (exclusive ? " exclusive" : "") + " : " + type(a.shape),
        Model::build(a.shape, [&](const Index& i) {
          int32_t sum = kind.start;
          Index j = i;
          for (j[dim] = 0; j[dim] < i[dim] + !exclusive; ++j[dim])
            sum = kind.apply(sum, a.at(j));
          return sum;
        }));
  }

  void slice(size_t v) {
    const Model a = values[v];
    Index offsets, shape, dropped;
    for (size_t dim = 0; dim < a.shape.size(); ++dim) {
      offsets.push_back(int64_t(pick(size_t(a.shape[dim]))));
      if (dropped.size() + 1 < a.shape.size() && pick(3) == 0)
        dropped.push_back(int64_t(dim));
      else
        shape.push_back(1 + int64_t(pick(size_t(a.shape[dim] - offsets[dim]))));
    }
    add("vx.slice " + nameOf(v) + indices(offsets) + sizes(shape) +
            (dropped.empty() ? "" : " dropped " + list(dropped)) + " : " + type(a.shape) + " -> " + type(shape),
        Model::build(shape, [&](const Index& i) {
          Index source;
          size_t next = 0;
          for (size_t dim = 0; dim < a.shape.size(); ++dim) {
            bool isDropped = std::find(dropped.begin(), dropped.end(), int64_t(dim)) != dropped.end();
            source.push_back(offsets[dim] + (isDropped ? 0 : i[next++]));
          }
          return a.at(source);
        }));
  }

  void reshape(size_t v) {
    const Model a = values[v];
    Index shape{int64_t(a.data.size())};
    if (shape[0] % 2 == 0 && pick(2))
      shape = {2, shape[0] / 2};
    Model result(shape);
    result.data = a.data;
    add("vx.reshape " + nameOf(v) + sizes(shape) + " : " + type(a.shape) + " -> " + type(shape), std::move(result));
  }

  void dot(size_t v) {
    const Model a = values[v];
    if (a.shape.size() < 2)
      return;
    Index permutation(a.shape.size()), right = a.shape, shape = a.shape;
    std::iota(permutation.begin(), permutation.end(), 0);
    std::swap(permutation.back(), permutation[permutation.size() - 2]);
    std::swap(right.back(), right[right.size() - 2]);
    shape.back() = right.back();
    std::string flipped = "%t" + std::to_string(values.size()), zero = "%z" + std::to_string(values.size());
    body += flipped + " = vx.transpose " + nameOf(v) + " " + list(permutation) + " : " + type(a.shape) + " -> " +
            type(right) + "\n";
    std::string extents = sizes(shape);
    body += zero + " = vx.broadcast %other dims []" + extents + " : i32 -> " + type(shape) + "\n";
    add("vx.dot " + nameOf(v) + ", " + flipped + ", " + zero + " : " + type(a.shape) + ", " + type(right) + " -> " +
            type(shape),
        Model::build(shape, [&](Index i) {
          Index j = i;
          j[j.size() - 2] = i.back();  // the transposed row
          int32_t sum = 77;
          for (int64_t k = 0; k < a.shape.back(); ++k) {
            i.back() = j.back() = k;
            sum = wrap(sum + int64_t(a.at(i)) * a.at(j));
          }
          return sum;
        }));
  }

  void step() {
    size_t v = pick(3) ? values.size() - 1 : pick(values.size());
    using Step = void (Generator::*)(size_t);
    constexpr Step steps[] = {&Generator::pointwise, &Generator::pointwise, &Generator::transpose,
                              &Generator::broadcast, &Generator::reduce,    &Generator::scan,
                              &Generator::slice,     &Generator::reshape,   &Generator::dot};
    (this->*steps[pick(std::size(steps))])(v);
  }

  std::string body = "%other = arith.constant 77 : i32\n";
  std::vector<Model> values;

private:
  std::mt19937 random_;
  bool dynamic_;
  int constants_ = 0;
};

/// A program of `steps` operations after a load from a 5 x 7 input.
struct RandomProgram {
  RandomProgram(unsigned seed, int steps) : source({5, 7}) {
    Generator generator(seed, seed % 2);
    for (size_t i = 0; i < source.data.size(); ++i)
      source.data[i] = int32_t((seed * 2654435761u) * (i + 1)) >> (seed % 31);
    generator.load(source);
    for (int i = 0; i < steps; ++i)
      generator.pick(6) ? generator.step() : generator.load(source);
    const Model& last = generator.values.back();
    std::string view;
    std::vector<std::string> extents;
    for (int64_t extent : last.shape) {
      view += "?x";
      extents.push_back(std::to_string(extent));
    }
    std::string offsets = generator.indices(Index(last.shape.size(), 0));
    body = generator.body + "vx.tile_store " + generator.nameOf(generator.values.size() - 1) + ", %r" + offsets +
           " inbounds : " + generator.type(last.shape) + ", !vx.view<" + view + "i32, global>\n";
    program = std::make_unique<TestProgram>(std::vector{input("a", "?x?xi32"), result("r", view + "i32", extents)},
                                            std::vector{TestKernel{{}, {}, body}});
    expected = last.data;
  }

  /// The stored result; what stopped the run goes to `problem`.
  std::vector<int32_t> run(std::string& problem, const Options& options = {.check = true}) {
    std::vector<Argument> arguments{tensorOf(source.data, {5, 7})};
    problem = program->runText(arguments, options);
    if (!problem.empty())
      return {};
    const auto* data = dataOf<int32_t>(arguments[1]);
    return {data, data + expected.size()};
  }

  Model source;
  std::string body;
  std::vector<int32_t> expected;
  std::unique_ptr<TestProgram> program;
};

}  // namespace vortex::interpreter::random_tiles
