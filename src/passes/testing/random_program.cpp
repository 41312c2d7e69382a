#include "passes/testing/random_program.h"

#include <algorithm>
#include <map>

namespace vortex::passes::testing {

namespace {

using Shape = std::vector<std::string>;

struct Tile {
  std::string name;
  Shape shape;
  bool isFloat;
};

struct Generator {
  std::mt19937& random;
  RandomProgram program;
  std::vector<Tile> tiles;
  unsigned next = 0;

  unsigned pick(unsigned count) { return std::uniform_int_distribution<unsigned>(0, count - 1)(random); }
  const Tile& any() { return tiles[pick(tiles.size())]; }
  std::string fresh() { return "%v" + std::to_string(next++); }

  static std::string type(const Shape& shape, bool isFloat) {
    std::string text = "tensor<";
    for (size_t i = 0; i < shape.size(); ++i)
      text += "?x";
    return text + (isFloat ? "f32>" : "i32>");
  }
  static std::string viewType(const Shape& shape, bool isFloat) {
    std::string text = "!vx.view<";
    for (size_t i = 0; i < shape.size(); ++i)
      text += "?x";
    return text + (isFloat ? "f32, global>" : "i32, global>");
  }
  static std::string value(const std::string& symbol) {
    static const std::map<std::string, std::string> products{
        {"m*n", "%mn"}, {"n/2", "%nh"}, {"b*m", "%bm"}, {"b*m*n", "%bmn"}};
    auto found = products.find(symbol);
    return found == products.end() ? "%" + symbol : found->second;
  }
  static std::string list(const Shape& shape) {
    std::string text;
    for (const std::string& symbol : shape)
      text += (text.empty() ? "" : ", ") + value(symbol);
    return text;
  }
  static std::string numbers(const std::vector<unsigned>& values) {
    std::string text;
    for (unsigned number : values)
      text += (text.empty() ? "" : ", ") + std::to_string(number);
    return "[" + text + "]";
  }
  void line(const std::string& text) { program.body += "  " + text + "\n"; }
  Tile add(const Shape& shape, bool isFloat, const std::string& text) {
    Tile tile{fresh(), shape, isFloat};
    line(tile.name + " = " + text);
    tiles.push_back(tile);
    return tile;
  }

  void tensor(const std::string& name, const Shape& shape, bool isFloat = true) {
    program.tensors.push_back({name, shape, isFloat, false});
    std::string zeros;
    for (size_t i = 0; i < shape.size(); ++i)
      zeros += i ? ", %c0" : "%c0";
    pendingLoads.push_back([=, this] {
      add(shape, isFloat,
          "vx.tile_load %" + name + "[" + zeros + "] sizes(" + list(shape) +
              ") inbounds : " + viewType(shape, isFloat) + " -> " + type(shape, isFloat));
    });
  }
  std::vector<std::function<void()>> pendingLoads;

  void start() {
    tensor("x", {"m", "n"});
    tensor("y", {"m", "n"});
    tensor("v", {"n"});
    tensor("u", {"m"});
    tensor("t", {"b", "m", "n"});
    tensor("w", {"n", "p"});
    tensor("i", {"m", "n"}, false);
    line("%c0 = arith.constant 0 : index");
    line("%c1 = arith.constant 1 : index");
    line("%c2 = arith.constant 2 : index");
    line("%c3 = arith.constant 3 : index");
    line("%before = arith.constant -2 : index");
    line("%far = arith.constant 100000000000 : index");
    line("%tenth = arith.constant 0.1 : f32");
    line("%zero = arith.constant 0.0 : f32");
    line("%b = vx.dim %t, 0 : " + viewType({"b", "m", "n"}, true));
    line("%m = vx.dim %x, 0 : " + viewType({"m", "n"}, true));
    line("%n = vx.dim %x, 1 : " + viewType({"m", "n"}, true));
    line("%p = vx.dim %w, 1 : " + viewType({"n", "p"}, true));
    line("%mn = arith.muli %m, %n : index");
    line("%bm = arith.muli %b, %m : index");
    line("%bmn = arith.muli %bm, %n : index");
    line("%nh = vx.int divu %n, %c2 : index");
    for (auto& load : pendingLoads)
      load();
  }

  /// Keeps values small: sums of many elements, products of products.
  void bound(const Tile& tile) {
    if (!tile.isFloat)
      return;
    Tile scale{fresh(), tile.shape, true};
    line(scale.name + " = vx.broadcast %tenth dims [] sizes(" + list(tile.shape) + ") : f32 -> " +
         type(tile.shape, true));
    Tile scaled = add(tile.shape, true, "arith.mulf " + tile.name + ", " + scale.name + " : " + type(tile.shape, true));
    add(tile.shape, true, "math.tanh " + scaled.name + " : " + type(tile.shape, true));
    tiles.erase(std::find_if(tiles.begin(), tiles.end(), [&](const Tile& other) { return other.name == scaled.name; }));
    tiles.erase(std::find_if(tiles.begin(), tiles.end(), [&](const Tile& other) { return other.name == tile.name; }));
  }

  void elementwise() {
    Tile a = any();
    std::vector<Tile> alike;
    for (const Tile& tile : tiles)
      if (tile.shape == a.shape && tile.isFloat == a.isFloat)
        alike.push_back(tile);
    Tile b = alike[pick(alike.size())];
    std::string t = " : " + type(a.shape, a.isFloat);
    if (a.isFloat && pick(3) == 0) {
      const char* ops[] = {"math.absf", "math.tanh", "arith.negf", "math.sin", "math.floor"};
      add(a.shape, true, std::string(ops[pick(4)]) + " " + a.name + t);
    } else if (a.isFloat) {
      const char* ops[] = {"arith.addf", "arith.subf", "arith.mulf", "arith.maximumf", "arith.minimumf"};
      bound(add(a.shape, true, std::string(ops[pick(5)]) + " " + a.name + ", " + b.name + t));
    } else {
      const char* ops[] = {"arith.addi", "arith.subi",  "arith.muli", "arith.maxsi",
                           "arith.xori", "vx.int divs", "vx.int shl"};
      add(a.shape, false, std::string(ops[pick(7)]) + " " + a.name + ", " + b.name + t);
    }
  }

  void select() {
    Tile a = any();
    std::string t = type(a.shape, a.isFloat), bits = fresh();
    std::string boolean = t.substr(0, t.rfind(a.isFloat ? "f32" : "i32")) + "i1>";
    Tile b = a;
    for (const Tile& tile : tiles)
      if (tile.shape == a.shape && tile.isFloat == a.isFloat)
        b = tile;
    line(bits + " = " + (a.isFloat ? "arith.cmpf olt" : "arith.cmpi slt") + std::string(", ") + a.name + ", " + b.name +
         " : " + t);
    add(a.shape, a.isFloat, "arith.select " + bits + ", " + b.name + ", " + a.name + " : " + boolean + ", " + t);
  }

  void convert() {
    Tile a = any();
    if (a.isFloat)
      add(a.shape, false, "vx.float_to_int " + a.name + " : " + type(a.shape, true) + " -> " + type(a.shape, false));
    else
      bound(add(a.shape, true, "arith.sitofp " + a.name + " : " + type(a.shape, false) + " to " + type(a.shape, true)));
  }

  void reduce() {
    Tile a = any();
    if (a.shape.size() < 2)
      return;
    std::vector<unsigned> dims;
    Shape kept;
    for (unsigned dim = 0; dim < a.shape.size(); ++dim) {
      if (pick(2) && dims.size() + 1 < a.shape.size())
        dims.push_back(dim);
      else
        kept.push_back(a.shape[dim]);
    }
    if (dims.empty())
      return;
    const char *floats[] = {"addf", "maxf", "minf"}, *integers[] = {"addi", "maxs", "xor", "muli"};
    std::string kind = a.isFloat ? floats[pick(3)] : integers[pick(4)];
    // An empty extent would leave infinities behind, which are no input for the other operations.
    Tile result = add(kept, a.isFloat,
                      "vx.reduce " + kind + " " + a.name + " dims " + numbers(dims) + " : " + type(a.shape, a.isFloat) +
                          " -> " + type(kept, a.isFloat));
    bound(result);
  }

  void broadcast() {
    Tile a = any();
    static const std::vector<Shape> targets = {{"m", "n"}, {"b", "m", "n"}, {"n", "m"},
                                               {"m", "p"}, {"n", "p"},      {"b", "n", "m"}};
    for (unsigned trial = 0; trial < 4; ++trial) {
      const Shape& target = targets[pick(targets.size())];
      std::vector<unsigned> dims;
      unsigned at = 0;
      for (unsigned dim = 0; dim < target.size() && at < a.shape.size(); ++dim)
        if (target[dim] == a.shape[at])
          dims.push_back(dim), ++at;
      if (at != a.shape.size() || target.size() == a.shape.size())
        continue;
      add(target, a.isFloat,
          "vx.broadcast " + a.name + " dims " + numbers(dims) + " sizes(" + list(target) +
              ") : " + type(a.shape, a.isFloat) + " -> " + type(target, a.isFloat));
      return;
    }
  }

  void transpose() {
    Tile a = any();
    std::vector<unsigned> order(a.shape.size());
    for (unsigned i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    Shape shape;
    for (unsigned dim : order)
      shape.push_back(a.shape[dim]);
    if (!std::is_sorted(order.begin(), order.end()))
      add(shape, a.isFloat,
          "vx.transpose " + a.name + " " + numbers(order) + " : " + type(a.shape, a.isFloat) + " -> " +
              type(shape, a.isFloat));
  }

  void reshape() {
    Tile a = any();
    Shape to;
    if (a.shape == Shape{"m", "n"})
      to = {"m*n"};
    else if (a.shape == Shape{"m*n"})
      to = pick(2) ? Shape{"m", "n"} : Shape{"n", "m"};
    else if (a.shape == Shape{"b", "m", "n"})
      to = pick(3) == 0 ? Shape{"b", "m*n"} : pick(2) ? Shape{"b*m", "n"} : Shape{"b*m*n"};
    else if (a.shape == Shape{"b*m", "n"})
      to = pick(2) ? Shape{"b", "m", "n"} : Shape{"b*m*n"};
    else if (a.shape == Shape{"b*m*n"})
      to = pick(3) == 0 ? Shape{"b", "n", "m"} : pick(2) ? Shape{"b*m", "n"} : Shape{"b", "m", "n"};
    else if (a.shape == Shape{"b", "m*n"})
      to = {"b", "n", "m"};
    else
      return;
    add(to, a.isFloat,
        "vx.reshape " + a.name + " sizes(" + list(to) + ") : " + type(a.shape, a.isFloat) + " -> " +
            type(to, a.isFloat));
  }

  /// Parts that may reach over the edges of a tile, or lie outside.
  void guardedSlice() {
    Tile a = any();
    static const char* const begins[] = {"%c0", "%c0", "%c1", "%c3", "%nh", "%before", "%before", "%p", "%far"};
    static const char* const extents[] = {"m", "n", "n/2", "p", "b"};
    std::string offsets;
    Shape to;
    std::vector<unsigned> dropped, guarded;
    for (unsigned i = 0; i < a.shape.size(); ++i) {
      const bool isWhole = pick(3) == 0, isDropped = !isWhole && pick(4) == 0 && to.size() + a.shape.size() - 1 - i > 0;
      offsets += (i ? ", " : "") + std::string(isWhole ? "%c0" : begins[pick(9)]);
      if (!isWhole)
        guarded.push_back(i);
      if (isDropped)
        dropped.push_back(i);
      else
        to.push_back(isWhole || pick(2) ? a.shape[i] : extents[pick(5)]);
    }
    if (guarded.empty())
      return;
    add(to, a.isFloat,
        "vx.slice " + a.name + "[" + offsets + "] sizes(" + list(to) + ")" +
            (dropped.empty() ? "" : " dropped " + numbers(dropped)) +
            " {vx.guarded_dims = array<i64: " + numbers(guarded).substr(1, numbers(guarded).size() - 2) +
            ">} : " + type(a.shape, a.isFloat) + " -> " + type(to, a.isFloat));
  }

  void slice() {
    if (pick(2))
      return guardedSlice();
    Tile a = any();
    if (a.shape.empty() || a.shape.back() != "n")
      return;
    Shape to = a.shape;
    to.back() = "n/2";
    std::string offsets;
    for (size_t i = 0; i + 1 < a.shape.size(); ++i)
      offsets += "%c0, ";
    offsets += pick(2) ? "%c0" : "%nh";
    add(to, a.isFloat,
        "vx.slice " + a.name + "[" + offsets + "] sizes(" + list(to) + ") : " + type(a.shape, a.isFloat) + " -> " +
            type(to, a.isFloat));
  }

  void scan() {
    Tile a = any();
    unsigned dim = pick(a.shape.size());
    const char *floats[] = {"addf", "maxf"}, *integers[] = {"addi", "maxs", "xor"};
    bool exclusive = pick(3) == 0;
    std::string kind = a.isFloat ? (exclusive ? "addf" : floats[pick(2)]) : integers[pick(3)];
    bound(add(a.shape, a.isFloat,
              "vx.scan " + kind + " " + a.name + " dim " + std::to_string(dim) + (exclusive ? " exclusive" : "") +
                  " : " + type(a.shape, a.isFloat)));
  }

  void dot() {
    Tile a = any(), b = any();
    for (unsigned trial = 0; trial < 30; ++trial) {
      a = any(), b = any();
      size_t rank = a.shape.size();
      if (rank < 2 || b.shape.size() != rank || a.isFloat != b.isFloat || a.shape[rank - 1] != b.shape[rank - 2] ||
          (rank == 3 && a.shape[0] != b.shape[0]))
        continue;
      Shape shape = a.shape;
      shape.back() = b.shape.back();
      std::string acc = fresh(), element = a.isFloat ? "f32" : "i32";
      std::string start = "%zero";
      if (!a.isFloat) {
        start = fresh();
        line(start + " = arith.constant 5 : i32");
      } else if (pick(2)) {
        start = "%tenth";
      }
      line(acc + " = vx.broadcast " + start + " dims [] sizes(" + list(shape) + ") : " + element + " -> " +
           type(shape, a.isFloat));
      bound(add(shape, a.isFloat,
                "vx.dot " + a.name + ", " + b.name + ", " + acc + " : " + type(a.shape, a.isFloat) + ", " +
                    type(b.shape, a.isFloat) + " -> " + type(shape, a.isFloat)));
      return;
    }
  }

  void loop() {
    Tile a = any();
    if (!a.isFloat)
      return;
    std::string t = type(a.shape, true), carried = fresh(), sum = fresh(), bounded = fresh();
    Tile b = a;
    for (const Tile& tile : tiles)
      if (tile.shape == a.shape && tile.isFloat)
        b = tile;
    Tile result{fresh(), a.shape, true};
    line(result.name + " = scf.for %k" + carried.substr(1) + " = %c0 to %c3 step %c1 iter_args(" + carried + " = " +
         a.name + ") -> (" + t + ") {");
    line("  " + sum + " = arith.addf " + carried + ", " + b.name + " : " + t);
    line("  " + bounded + " = math.tanh " + sum + " : " + t);
    line("  scf.yield " + bounded + " : " + t);
    line("}");
    tiles.push_back(result);
  }

  void iota() {
    static const std::vector<Shape> shapes = {{"m", "n"}, {"n"}, {"m", "p"}};
    const Shape& shape = shapes[pick(shapes.size())];
    add(shape, false,
        "vx.iota " + std::to_string(pick(shape.size())) + " sizes(" + list(shape) + ") -> " + type(shape, false));
  }

  /// One tile along both dimensions of another: rows against columns, a product with its own transpose.
  void square() {
    Tile a = any();
    if (a.shape.size() > 2 || a.shape.empty() || a.shape[0].size() > 1)
      return;
    Shape both{a.shape[0], a.shape[0]}, turned{a.shape.back(), a.shape[0]};
    std::string t = type(both, a.isFloat);
    if (a.shape.size() == 2) {
      Tile other = a.shape == both ? a
                                   : add(turned, a.isFloat,
                                         "vx.transpose " + a.name + " [1, 0] : " + type(a.shape, a.isFloat) + " -> " +
                                             type(turned, a.isFloat));
      if (!a.isFloat)
        return;
      std::string acc = fresh();
      line(acc + " = vx.broadcast %zero dims [] sizes(" + list(both) + ") : f32 -> " + t);
      bound(add(both, true,
                "vx.dot " + a.name + ", " + other.name + ", " + acc + " : " + type(a.shape, true) + ", " +
                    type(other.shape, true) + " -> " + t));
      return;
    }
    std::string rows = fresh(), columns = fresh(), op = a.isFloat ? "arith.subf " : "arith.subi ";
    for (auto [name, dim] : {std::pair(rows, "0"), std::pair(columns, "1")})
      line(name + " = vx.broadcast " + a.name + " dims [" + dim + "] sizes(" + list(both) +
           ") : " + type(a.shape, a.isFloat) + " -> " + t);
    Tile difference = add(both, a.isFloat, op + rows + ", " + columns + " : " + t);
    Tile turnedBack = add(both, a.isFloat, "vx.transpose " + difference.name + " [1, 0] : " + t + " -> " + t);
    bound(add(both, a.isFloat, op + difference.name + ", " + turnedBack.name + " : " + t));
  }

  void step() {
    switch (pick(16)) {
    case 0:
    case 1:
    case 2: return elementwise();
    case 3: return select();
    case 4: return convert();
    case 5:
    case 6: return reduce();
    case 7:
    case 8: return broadcast();
    case 9: return pick(3) ? transpose() : square();
    case 10: return reshape();
    case 11: return slice();
    case 12: return scan();
    case 13: return dot();
    case 14: return loop();
    case 15: return iota();
    }
  }

  void store(unsigned number) {
    // The last tiles use the others.
    size_t window = std::min<size_t>(tiles.size(), 4);
    Tile tile = tiles[tiles.size() - 1 - pick(window)];
    std::string name = "o" + std::to_string(number), zeros;
    program.tensors.push_back({name, tile.shape, tile.isFloat, true});
    for (size_t i = 0; i < tile.shape.size(); ++i)
      zeros += i ? ", %c0" : "%c0";
    line("vx.tile_store " + tile.name + ", %" + name + "[" + zeros + "] inbounds : " + type(tile.shape, tile.isFloat) +
         ", " + viewType(tile.shape, tile.isFloat));
  }
};

}  // namespace

RandomProgram randomProgram(std::mt19937& random, unsigned size) {
  Generator generator{random, {}, {}, 0, {}};
  generator.start();
  for (unsigned i = 0; i < size; ++i)
    generator.step();
  unsigned stores = 1 + generator.pick(3);
  for (unsigned i = 0; i < stores; ++i)
    generator.store(i);
  return generator.program;
}

int64_t extentOf(const std::string& symbol, int64_t m, int64_t n, int64_t p, int64_t b) {
  std::map<std::string, int64_t> extents{{"m", m},       {"n", n},       {"p", p},       {"b", b},
                                         {"m*n", m * n}, {"n/2", n / 2}, {"b*m", b * m}, {"b*m*n", b * m * n}};
  return extents.at(symbol);
}

}  // namespace vortex::passes::testing
