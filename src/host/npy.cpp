#include "host/npy.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace vortex::host {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> extents;
};

/// Reads the Python dict literal of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  std::optional<Header> parse() {
    Header header;
    bool seenDescr = false, seenOrder = false, seenShape = false;
    if (!take('{'))
      return std::nullopt;
    while (!take('}')) {
      auto key = string();
      if (!key || !take(':'))
        return std::nullopt;
      if (*key == "descr") {
        auto value = string();
        if (!value)
          return std::nullopt;
        header.descr = *value;
        seenDescr = true;
      } else if (*key == "fortran_order") {
        if (word("True"))
          header.fortran = true;
        else if (!word("False"))
          return std::nullopt;
        seenOrder = true;
      } else if (*key == "shape") {
        if (!shape(header.extents))
          return std::nullopt;
        seenShape = true;
      } else {
        return std::nullopt;
      }
      take(',');
    }
    return seenDescr && seenOrder && seenShape ? std::optional(header) : std::nullopt;
  }

private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  bool at(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool word(std::string_view expected) {
    skip();
    if (!text_.substr(at_).starts_with(expected))
      return false;
    at_ += expected.size();
    return true;
  }
  std::optional<std::string> string() {
    skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
      return std::nullopt;
    char quote = text_[at_++];
    size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  bool shape(std::vector<int64_t>& extents) {
    if (!take('('))
      return false;
    while (!take(')')) {
      skip();
      int64_t value = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0)
        return false;
      at_ = static_cast<size_t>(end - text_.data());
      extents.push_back(value);
      if ((!take(',') && !at(')')) || extents.size() > 64)
        return false;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct DType {
  std::string_view code;
  Scalar type;
};
constexpr DType kDTypes[] = {{"b1", Scalar::Bool}, {"u1", Scalar::U8},  {"u2", Scalar::U16}, {"u4", Scalar::U32},
                             {"u8", Scalar::U64},  {"i1", Scalar::I8},  {"i2", Scalar::I16}, {"i4", Scalar::I32},
                             {"i8", Scalar::I64},  {"f2", Scalar::F16}, {"f4", Scalar::F32}, {"f8", Scalar::F64}};

Error bad(std::string message) { return Error{std::move(message)}; }

void swapBytes(std::vector<uint8_t>& bytes, size_t width) {
  for (size_t i = 0; i + width <= bytes.size(); i += width)
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(i), bytes.begin() + static_cast<ptrdiff_t>(i + width));
}

/// Column-major to row-major.
std::vector<uint8_t> reorder(const std::vector<uint8_t>& from, const std::vector<int64_t>& extents, size_t width) {
  std::vector<uint8_t> to(from.size());
  std::vector<int64_t> index(extents.size(), 0);
  size_t count = width ? from.size() / width : 0;
  for (size_t i = 0; i < count; ++i) {
    size_t source = 0, stride = 1;
    for (size_t dim = 0; dim < extents.size(); ++dim) {
      source += static_cast<size_t>(index[dim]) * stride;
      stride *= static_cast<size_t>(extents[dim]);
    }
    std::memcpy(&to[i * width], &from[source * width], width);
    for (size_t dim = extents.size(); dim-- > 0;) {
      if (++index[dim] < extents[dim])
        break;
      index[dim] = 0;
    }
  }
  return to;
}

}  // namespace

Result<NpyArray> parseNpy(std::string_view file) {
  if (!file.starts_with(kMagic) || file.size() < 10)
    return bad("not an .npy file (it does not start with \\x93NUMPY)");
  int major = static_cast<uint8_t>(file[6]);
  if (major < 1 || major > 3)
    return bad(base::concat(".npy format version ", major, " is not known"));
  size_t lengthBytes = major == 1 ? 2 : 4;
  if (file.size() < 8 + lengthBytes)
    return bad("the .npy header is cut off");
  size_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= size_t{static_cast<uint8_t>(file[8 + i])} << (8 * i);
  size_t start = 8 + lengthBytes;
  if (length > file.size() - start)
    return bad(
        base::concat("the .npy header is cut off: ", length, " bytes announced, ", file.size() - start, " there"));
  auto header = HeaderParser(file.substr(start, length)).parse();
  if (!header || header->descr.size() < 2)
    return bad("the .npy header is malformed");
  char order = header->descr[0];
  auto dtype = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                            [&](const DType& d) { return d.code == header->descr.substr(1); });
  if (dtype == std::end(kDTypes) || (order != '<' && order != '>' && order != '|' && order != '='))
    return bad("the .npy holds elements of dtype '" + header->descr + "', which Vortex has no type for");
  NpyArray array{dtype->type, header->extents, {}};
  size_t width = byteSize(array.type), need = width;
  for (int64_t extent : array.extents)
    if (__builtin_mul_overflow(need, static_cast<size_t>(extent), &need))
      return bad("the .npy header announces more elements than memory can hold");
  std::string_view body = file.substr(start + length);
  if (body.size() < need)
    return bad(
        base::concat("the .npy is cut off: its shape needs ", need, " bytes of elements, ", body.size(), " are there"));
  array.bytes.assign(body.begin(), body.begin() + static_cast<ptrdiff_t>(need));
  if (array.type == Scalar::Bool) {
    auto other = std::find_if(array.bytes.begin(), array.bytes.end(), [](uint8_t byte) { return byte > 1; });
    if (other != array.bytes.end())
      return bad(base::concat("element ", other - array.bytes.begin(), " of the .npy of bool is the byte ", int(*other),
                              ", which is neither 0 nor 1"));
  }
  if (order == '>')
    swapBytes(array.bytes, width);
  if (header->fortran && array.extents.size() > 1)
    array.bytes = reorder(array.bytes, array.extents, width);
  return array;
}

std::string formatNpy(const NpyArray& array) {
  std::string_view code = "u1";
  for (const DType& dtype : kDTypes)
    if (dtype.type == array.type)
      code = dtype.code;
  if (array.type == Scalar::Usize)
    code = "u8";
  if (array.type == Scalar::BF16)
    code = "u2";
  std::string shape;
  for (int64_t extent : array.extents)
    shape += std::to_string(extent) + (array.extents.size() == 1 ? "," : ", ");
  if (array.extents.size() > 1)
    shape.resize(shape.size() - 2);
  std::string header = base::concat("{'descr': '", byteSize(array.type) == 1 ? "|" : "<", code,
                                    "', 'fortran_order': False, 'shape': (", shape, "), }");
  // The elements start at a multiple of 64 bytes.
  header.append(63 - (kMagic.size() + 4 + header.size()) % 64, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\x00';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return file;
}

}  // namespace vortex::host
