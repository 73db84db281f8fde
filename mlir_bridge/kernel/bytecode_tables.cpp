#include "mlir_bridge/kernel/bytecode_tables.hpp"

#include <algorithm>
#include <limits>

namespace kiln {
namespace {

// Attributes and types refer to each other: a tensor type to its dims, a function type to tensor types. MLIR reads them
// recursively.
constexpr int highest = 16;

// The codes of the builtin dialect (mlir/IR/BuiltinDialectBytecode.td) that Kiln's writer uses.
enum class attribute_code : std::uint64_t {
  array = 0,
  dictionary = 1,
  string = 2,
  type = 6,
  unit = 7,
  integer = 8,
  floating = 9,
  file_location = 11,  // in kernels that were made from text, as those of test/compat/v1
  unknown_location = 15,
  dense_array = 17,
  dense_elements = 18
};
enum class type_code : std::uint64_t {
  integer = 0,
  function = 2,
  bf16 = 3,
  f16 = 4,
  f32 = 5,
  f64 = 6,
  none = 12,
  tensor = 13,
  tensor_with_encoding = 14
};

// Types without a code are written as text.
struct named_float {
  std::string_view text;
  std::uint16_t bits;
};
constexpr named_float named_floats[] = {{"f8E4M3FN", 8},   {"f8E5M2", 8},    {"f8E4M3FNUZ", 8},
                                        {"f8E5M2FNUZ", 8}, {"f8E8M0FNU", 8}, {"f4E2M1FN", 4}};

constexpr std::int64_t open_dimension = std::numeric_limits<std::int64_t>::min();

std::size_t bytes_of(std::uint16_t bits) { return (bits + 7u) / 8; }

// An integer of `bits` bits. Up to 8 bits it is one byte; wider ones are zigzag-encoded numbers.
void read_bits(bytecode_cursor& from, std::uint16_t bits) {
  const std::uint64_t value = bits <= 8 ? from.byte() : static_cast<std::uint64_t>(from.signed_number());
  if (bits < 64 && value >> bits != 0) refuse_bytecode("a number has more than " + std::to_string(bits) + " bits");
}

}  // namespace

entry_table::entry_table(std::span<const std::byte> sizes, std::span<const std::byte> data,
                         const std::vector<std::string_view>& strings, const std::vector<std::string_view>& dialects)
    : strings_(strings) {
  bytecode_cursor from(sizes);
  attributes_.resize(from.count("attributes"));
  types_.resize(from.count("types"));
  read_sizes(from, attributes_, data, dialects);
  read_sizes(from, types_, data, dialects);
  from.expect_end("the table of attributes and types");
  if (!data.empty()) refuse_bytecode("attributes and types do not fill their section");
  for (entry& e : attributes_) read(e, false, 0);
  for (entry& e : types_) read(e, true, 0);
}

void entry_table::read_sizes(bytecode_cursor& from, list& of, std::span<const std::byte>& data,
                             const std::vector<std::string_view>& dialects) {
  for (std::size_t at = 0; at < of.size();) {
    const bool of_kiln = dialects[from.index(dialects.size(), "dialect")] == "kiln";
    const std::uint64_t group = from.number();
    if (group > of.size() - at) refuse_bytecode("a dialect has too many attributes or types");
    for (const std::size_t end = at + group; at < end; ++at) {
      const auto [size, custom] = from.number_with_flag();
      if (size > data.size()) refuse_bytecode("an attribute or type is longer than its section");
      of[at].bytes = data.first(size);
      of[at].of_kiln = of_kiln;
      of[at].custom = custom;
      data = data.subspan(size);
    }
  }
}

void entry_table::attribute(bytecode_cursor& from, kind expected, const char* of) const {
  if (attributes_[from.index(attributes_.size(), "attribute")].is != expected)
    refuse_bytecode(std::string("an attribute is not ") + of);
}

void entry_table::type(std::uint64_t index, kind expected, const char* of) const {
  if (types_[bytecode_cursor::checked_index(index, types_.size(), "type")].is != expected)
    refuse_bytecode(std::string("a type is not ") + of);
}

const entry_table::entry& entry_table::attribute_of(entry& parent, bytecode_cursor& from, int depth) {
  entry& e = attributes_[from.index(attributes_.size(), "attribute")];
  read(e, false, depth + 1);
  parent.height = std::max<std::uint8_t>(parent.height, e.height + 1);
  return e;
}

const entry_table::entry& entry_table::type_of(entry& parent, bytecode_cursor& from, int depth) {
  entry& e = types_[from.index(types_.size(), "type")];
  read(e, true, depth + 1);
  parent.height = std::max<std::uint8_t>(parent.height, e.height + 1);
  return e;
}

void entry_table::read(entry& e, bool is_type, int depth) {
  if (e.state == entry::read) return;
  if (e.state == entry::open) refuse_bytecode("attributes or types contain each other");
  if (depth > highest) refuse_bytecode("attributes or types are nested too deeply");
  e.state = entry::open;
  bytecode_cursor from(e.bytes);
  if (is_type) read_type(e, from, depth);
  else read_attribute(e, from, depth);
  from.expect_end("an attribute or type");
  if (e.height > highest) refuse_bytecode("attributes or types are nested too deeply");
  e.state = entry::read;
}

void entry_table::read_dims(entry& e, bytecode_cursor& from) {
  if (const std::uint64_t code = from.number(); code != 0)
    refuse_bytecode("kiln has no attribute " + std::to_string(code));
  e.is = kind::dims;
  e.rank = from.count("dimensions");
  for (std::uint64_t i = 0; i < e.rank; ++i) from.index(strings_.size(), "string");
}

void entry_table::read_dictionary(entry& e, bytecode_cursor& from, int depth) {
  e.is = kind::dictionary;
  std::vector<std::string_view> names(from.count("attributes"));
  for (std::string_view& name : names) {
    const entry& key = attribute_of(e, from, depth);
    if (key.is != kind::string || key.text.empty()) refuse_bytecode("an attribute has no name");
    name = key.text;
    attribute_of(e, from, depth);
  }
  std::ranges::sort(names);
  if (std::ranges::adjacent_find(names) != names.end()) refuse_bytecode("two attributes have the same name");
}

// A splat constant: one element, repeated for the whole tensor.
void entry_table::read_splat(entry& e, bytecode_cursor& from, int depth) {
  e.is = kind::splat;
  const entry& type = type_of(e, from, depth);
  if (type.is != kind::tensor_type || !type.fixed) refuse_bytecode("a constant has no static tensor type");
  const auto bytes = from.take(from.number());
  if (bytes.size() != bytes_of(type.bits)) refuse_bytecode("a constant does not have one element");
  const auto first = std::to_integer<unsigned>(bytes[0]);
  if (type.bits < 8 && first >> type.bits != 0 && !(type.bits == 1 && first == 0xff))
    refuse_bytecode("a constant has more than " + std::to_string(type.bits) + " bits");
}

void entry_table::read_attribute(entry& e, bytecode_cursor& from, int depth) {
  if (!e.custom) refuse_bytecode("an attribute is written as text");
  if (e.of_kiln) return read_dims(e, from);
  const std::uint64_t code = from.number();
  switch (static_cast<attribute_code>(code)) {
    case attribute_code::array:
      e.is = kind::array;
      for (std::uint64_t left = from.count("attributes"); left > 0; --left) attribute_of(e, from, depth);
      return;
    case attribute_code::dictionary: return read_dictionary(e, from, depth);
    case attribute_code::string:
      e.is = kind::string;
      e.text = strings_[from.index(strings_.size(), "string")];
      return;
    case attribute_code::type:
      e.is = kind::type;
      type_of(e, from, depth);
      return;
    case attribute_code::unit: e.is = kind::unit; return;
    case attribute_code::integer: {
      e.is = kind::integer;
      const entry& type = type_of(e, from, depth);
      if (type.is != kind::integer_type) refuse_bytecode("an integer has no integer type");
      return read_bits(from, type.bits);
    }
    case attribute_code::floating: {
      e.is = kind::floating;
      const entry& type = type_of(e, from, depth);
      if (type.is != kind::float_type) refuse_bytecode("a floating-point number has no type");
      return read_bits(from, type.bits);
    }
    case attribute_code::file_location:
      e.is = kind::location;
      if (attribute_of(e, from, depth).is != kind::string) refuse_bytecode("a location has no file");
      for (int i = 0; i < 2; ++i) from.number();  // line and column
      return;
    case attribute_code::unknown_location: e.is = kind::location; return;
    case attribute_code::dense_array: {
      e.is = kind::integers;
      const entry& type = type_of(e, from, depth);
      if (type.is != kind::integer_type && type.is != kind::float_type) refuse_bytecode("a list has no numbers");
      const std::uint64_t count = from.number();
      const auto bytes = from.take(from.number());
      if (bytes.size() % bytes_of(type.bits) != 0 || bytes.size() / bytes_of(type.bits) != count)
        refuse_bytecode("a list does not have as many numbers as it says");
      return;
    }
    case attribute_code::dense_elements: return read_splat(e, from, depth);
  }
  refuse_bytecode("it has an attribute of kind " + std::to_string(code));
}

void entry_table::read_tensor(entry& e, bytecode_cursor& from, bool encoded, int depth) {
  e.is = kind::tensor_type;
  e.fixed = !encoded;
  std::uint64_t named = 0;
  if (encoded) {
    const entry& dims = attribute_of(e, from, depth);
    if (dims.is != kind::dims) refuse_bytecode("a tensor type has an unknown encoding");
    named = dims.rank;
  }
  e.rank = from.count("dimensions");
  if (encoded && named != e.rank) refuse_bytecode("a tensor type has not as many names as dimensions");
  for (std::uint64_t i = 0; i < e.rank; ++i) {
    const std::int64_t size = from.signed_number();
    if (size < 0 && size != open_dimension) refuse_bytecode("a dimension is negative");
    e.fixed = e.fixed && size >= 0;
  }
  const entry& element = type_of(e, from, depth);
  if (element.is != kind::integer_type && element.is != kind::float_type)
    refuse_bytecode("the elements of a tensor are not numbers");
  e.bits = element.bits;
}

void entry_table::read_type(entry& e, bytecode_cursor& from, int depth) {
  if (e.of_kiln) refuse_bytecode("kiln has no types");
  const auto floating = [&](std::uint16_t bits) {
    e.is = kind::float_type;
    e.bits = bits;
  };
  if (!e.custom) {
    const auto* found = std::ranges::find(named_floats, from.text(), &named_float::text);
    if (found == std::end(named_floats)) refuse_bytecode("it has an unknown type");
    return floating(found->bits);
  }
  const std::uint64_t code = from.number();
  switch (static_cast<type_code>(code)) {
    case type_code::integer: {
      const std::uint64_t both = from.number(), bits = both >> 2, sign = both & 3;
      if (bits < 1 || bits > 64 || sign > 2) refuse_bytecode("it has an unknown integer type");
      e.is = kind::integer_type;
      e.bits = static_cast<std::uint16_t>(bits);
      return;
    }
    case type_code::function:
      e.is = kind::function_type;
      for (int list = 0; list < 2; ++list)
        for (std::uint64_t left = from.count("types"); left > 0; --left) type_of(e, from, depth);
      return;
    case type_code::bf16:
    case type_code::f16: return floating(16);
    case type_code::f32: return floating(32);
    case type_code::f64: return floating(64);
    case type_code::none: e.is = kind::none_type; return;
    case type_code::tensor: return read_tensor(e, from, false, depth);
    case type_code::tensor_with_encoding: return read_tensor(e, from, true, depth);
  }
  refuse_bytecode("it has a type of kind " + std::to_string(code));
}

}  // namespace kiln
