#include "tools/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "ir/error.hpp"
#include "ir/printable.hpp"
#include "ir/temporary_file.hpp"

namespace kiln::tools {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t most_header = std::size_t{1} << 20, most_dims = 64;

struct row {
  element_type type;
  std::string_view descriptor;
};

constexpr std::array table{
    row{element_type::f64, "<f8"}, row{element_type::f32, "<f4"}, row{element_type::f16, "<f2"},
    row{element_type::i64, "<i8"}, row{element_type::i32, "<i4"}, row{element_type::i16, "<i2"},
    row{element_type::i8, "|i1"},  row{element_type::u64, "<u8"}, row{element_type::u32, "<u4"},
    row{element_type::u16, "<u2"}, row{element_type::u8, "|u1"},  row{element_type::boolean, "|b1"},
};

// Returns the element type that a file uses for `type`: the type itself if numpy has it, otherwise an integer type that
// holds a float's bits or a packed integer's value.
element_type carrier(element_type type) {
  if (type == element_type::bf16) return element_type::u16;
  if (storage_bits(type) > 8 || type == element_type::boolean) return type;
  return is_signed_integer(type) ? element_type::i8 : element_type::u8;
}

literal with_type(const literal& data, element_type type) {
  auto bytes = data.bytes();
  return literal(data.type().with_type(type), std::vector<std::byte>(bytes.begin(), bytes.end()));
}

// Returns the integer type through which packed elements are read and written. For a float, the integers are its codes.
element_type packed_integer(element_type type) { return type == element_type::f4e2m1 ? element_type::u4 : type; }

literal to_carrier(const literal& data) {
  const element_type type = data.type().type;
  if (storage_bits(type) >= 8) return with_type(data, carrier(type));
  return literal::from_doubles(data.type().with_type(carrier(type)),
                               with_type(data, packed_integer(type)).to_doubles());
}

literal from_carrier(const literal& data, element_type type) {
  if (storage_bits(type) >= 8) return with_type(data, type);
  const std::int64_t span = std::int64_t{1} << storage_bits(type), low = is_signed_integer(type) ? -span / 2 : 0;
  for (std::int64_t i = 0, n = data.type().element_count(); i < n; ++i)
    if (std::int64_t v = data.at_int(i); v < low || v >= low + span)
      throw error(error_kind::usage,
                  fmt::format("element {} is {}, but {} takes {} to {}", i, v, name(type), low, low + span - 1));
  return with_type(literal::from_doubles(data.type().with_type(packed_integer(type)), data.to_doubles()), type);
}

[[noreturn]] void fail(error_kind kind, const std::filesystem::path& file, std::string_view what) {
  throw error(kind, fmt::format("{}: {}", file.string(), what));
}

// The text after `'key':` in the header, which is a Python dictionary.
std::string_view field(std::string_view header, std::string_view key, const std::filesystem::path& file) {
  auto at = header.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) fail(error_kind::corrupted, file, fmt::format("its header has no '{}'", key));
  at = header.find(':', at);
  if (at == std::string_view::npos) fail(error_kind::corrupted, file, "malformed header");
  at = header.find_first_not_of(' ', at + 1);
  return at == std::string_view::npos ? std::string_view() : header.substr(at);
}

std::vector<dim> parse_shape(std::string_view text, const std::filesystem::path& file) {
  auto end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) fail(error_kind::corrupted, file, "malformed shape");
  text = text.substr(1, end - 1);
  std::vector<dim> dims;
  while (!text.empty()) {
    if (text.front() == ' ' || text.front() == ',') {
      text.remove_prefix(1);
      continue;
    }
    std::int64_t value = 0;
    auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || value < 0) fail(error_kind::corrupted, file, "malformed shape");
    if (dims.size() == most_dims)
      fail(error_kind::unsupported, file, fmt::format("has more than {} dimensions", most_dims));
    dims.emplace_back(value);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  }
  return dims;
}

std::size_t bytes_of(const shape& type, const std::filesystem::path& file) try {
  return type.bytes();
} catch (const error&) {  // the product of the dimensions overflows 64 bits
  fail(error_kind::corrupted, file, "malformed shape");
}

// The next bytes of a file, as many as it has.
std::string next(std::istream& in, std::size_t count) {
  std::string bytes(count, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

void write_array(const std::filesystem::path& file, std::string_view descriptor, const std::vector<dim>& shape,
                 std::span<const std::byte> bytes) {
  std::string dims;
  for (const dim& d : shape) dims += d.str() + ",";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor, dims);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const temporary_file unfinished(file);
  std::ofstream out(file, std::ios::binary);
  out << magic << '\x01' << '\x00' << static_cast<char>(header.size() & 255) << static_cast<char>(header.size() >> 8)
      << header;
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out) return;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) std::filesystem::remove(file, ignored);  // leave no partial file
  fail(error_kind::io, file, "cannot be written");
}

// The characters of a UTF-8 text.
std::u32string utf32(std::string_view text, const std::filesystem::path& file) {
  std::u32string result;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : 4;
    if (more > 3 || i + more >= text.size()) fail(error_kind::corrupted, file, "has a text that is no UTF-8");
    char32_t character = more == 0 ? lead : lead & (0x3fu >> more);
    for (std::size_t k = 1; k <= more; ++k)
      character = character << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
    result += character;
    i += more + 1;
  }
  return result;
}

}  // namespace

literal read_npy(const std::filesystem::path& file) {
  std::error_code code;
  if (std::filesystem::exists(file, code) && !std::filesystem::is_regular_file(file, code))
    fail(error_kind::missing_file, file, "is not a regular file");
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(error_kind::missing_file, file, "cannot be opened");
  const std::string start = next(in, 10);
  if (start.size() < 10 || !start.starts_with(magic)) fail(error_kind::corrupted, file, "is not a .npy file");
  const std::string more = start[6] >= 2 ? next(in, 2) : "";  // from version 2 on, the length has four bytes
  std::size_t length = 0, shift = 0;
  for (const char byte : start.substr(8) + more) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(byte)) << shift;
    shift += 8;
  }
  if (length > most_header)
    fail(error_kind::unsupported, file, fmt::format("has a header of {} bytes, {} are taken", length, most_header));
  const std::string header = next(in, length);
  if (header.size() < length || (start[6] >= 2 && more.size() < 2))
    fail(error_kind::truncated, file, "ends within its header");
  if (field(header, "fortran_order", file).starts_with("True"))
    fail(error_kind::unsupported, file, "is in Fortran order: save it with numpy.ascontiguousarray");
  std::string_view descriptor = field(header, "descr", file);
  for (const row& r : table) {
    if (descriptor.size() < 5 || descriptor.substr(1, 3) != r.descriptor) continue;
    shape type{r.type, parse_shape(field(header, "shape", file), file)};
    const std::size_t needed = bytes_of(type, file), begin = start.size() + more.size() + length;
    const std::uintmax_t size = std::filesystem::file_size(file, code);
    const std::uintmax_t held = code || size < begin ? 0 : size - begin;
    if (held < needed)
      fail(error_kind::truncated, file, fmt::format("holds {} bytes, {} needs {}", held, type.str(), needed));
    std::vector<std::byte> data(needed);
    in.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(needed));
    if (in.gcount() != static_cast<std::streamsize>(needed)) fail(error_kind::missing_file, file, "cannot be read");
    return literal(std::move(type), std::move(data));
  }
  fail(error_kind::unsupported, file,
       fmt::format("has elements of kind {}: numbers of 1 to 8 bytes, little-endian, are taken",
                   descriptor.substr(0, descriptor.find(','))));
}

literal as_type(literal data, element_type wanted) {
  return wanted == data.type().type || carrier(wanted) != data.type().type ? data : from_carrier(data, wanted);
}

void write_npy(const std::filesystem::path& file, const literal& value) {
  const literal data = to_carrier(value);
  const auto* found = std::ranges::find(table, data.type().type, &row::type);
  if (found == table.end()) fail(error_kind::internal, file, fmt::format("cannot hold {}", data.type().str()));
  write_array(file, found->descriptor, data.type().dims, data.bytes());
}

void write_npy(const std::filesystem::path& file, const literal& indices, std::span<const std::string> texts) {
  std::vector<std::u32string> wide;
  std::size_t width = 1;
  for (const std::string& text : texts) {
    wide.push_back(utf32(text, file));
    width = std::max(width, wide.back().size());
  }
  const std::vector<std::int64_t> places = indices.to_int64();
  constexpr std::size_t most_characters = std::size_t{1} << 30;
  if (width > most_characters / std::max<std::size_t>(places.size(), 1))
    fail(error_kind::unsupported, file, fmt::format("has {} texts of up to {} characters", places.size(), width));
  std::u32string characters(places.size() * width, U'\0');
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 || static_cast<std::size_t>(places[i]) >= wide.size())
      fail(error_kind::corrupted, file, fmt::format("text {} of {} does not exist", places[i], wide.size()));
    const std::u32string& text = wide[static_cast<std::size_t>(places[i])];
    std::ranges::copy(text, characters.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  write_array(file, fmt::format("<U{}", width), indices.type().dims, std::as_bytes(std::span(characters)));
}

std::string file_name(std::string_view name) {
  std::string result = printable_name(name);
  for (char& c : result)
    if (c == '/' || c == '\\' || c == ':') c = '_';
  if (result.empty() || result == "." || result == "..")
    result = std::string(std::max<std::size_t>(result.size(), 1), '_');
  return result;
}

}  // namespace kiln::tools
