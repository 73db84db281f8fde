#include "aot/onnx/tensors.hpp"

#include <charconv>

#include "ir/error.hpp"
#include "ir/printable.hpp"

namespace kiln::onnx_import {
namespace {

// Indexed by TensorProto.DataType. Numbers from 17 on are newer than the schema that we compile against.
struct type_row {
  int data_type;
  element_type type;
};
constexpr type_row types[] = {
    {1, element_type::f32},     {2, element_type::u8},          {3, element_type::i8},
    {4, element_type::u16},     {5, element_type::i16},         {6, element_type::i32},
    {7, element_type::i64},     {9, element_type::boolean},     {10, element_type::f16},
    {11, element_type::f64},    {12, element_type::u32},        {13, element_type::u64},
    {16, element_type::bf16},   {17, element_type::f8e4m3},     {18, element_type::f8e4m3fnuz},
    {19, element_type::f8e5m2}, {20, element_type::f8e5m2fnuz}, {21, element_type::u4},
    {22, element_type::i4},     {23, element_type::f4e2m1},     {24, element_type::f8e8m0},
    {25, element_type::u2},     {26, element_type::i2},
};
constexpr std::pair<int, std::string_view> refused_types[] = {
    {8, "string"}, {14, "complex64"}, {15, "complex128"}, {27, "float6e2m3"}, {28, "float6e3m2"},
};

shape shape_of(const ::onnx::TensorProto& tensor, const std::string& what) {
  shape result{element_type_of(tensor.data_type(), what), {}};
  // Larger than any file, but small enough that a size in bytes cannot overflow.
  constexpr std::int64_t limit = std::int64_t{1} << 40;
  std::int64_t elements = 1;
  check_rank(tensor.dims_size(), what);
  for (std::int64_t d : tensor.dims()) {
    if (d < 0) throw error(error_kind::invalid_model, what + " has the negative dimension " + std::to_string(d));
    if (d > limit || elements > limit / std::max<std::int64_t>(d, 1))
      throw error(error_kind::invalid_model, what + " is too large, with a dimension of " + std::to_string(d));
    elements *= d;
    result.dims.emplace_back(d);
  }
  return result;
}

std::span<const std::byte> exactly(std::span<const std::byte> bytes, const shape& type, const std::string& what) {
  if (bytes.size() != type.bytes())
    throw error(error_kind::invalid_model, what + " is " + type.str() + ", which needs " +
                                               std::to_string(type.bytes()) + " bytes, but has " +
                                               std::to_string(bytes.size()));
  return bytes;
}

// TensorProto's typed fields store small types in wider entries, for example f16 as its bits in an int32. For types of
// fewer than 8 bits, an entry holds one packed byte.
template <class Field>
literal from_field(const Field& field, shape type, const std::string& what) {
  bool packed = storage_bits(type.type) < 8;
  auto wanted = static_cast<std::size_t>(type.element_count());
  if (static_cast<std::size_t>(field.size()) != (packed ? type.bytes() : wanted))
    throw error(error_kind::invalid_model,
                what + " is " + type.str() + " but has " + std::to_string(field.size()) + " elements");
  std::vector<std::byte> bytes(type.bytes());
  auto width = static_cast<std::size_t>(packed ? 8 : storage_bits(type.type)) / 8;
  for (int i = 0; i < field.size(); ++i) {
    auto element = field.Get(i);
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * width, &element, width);  // little-endian: the low bytes
  }
  return literal(std::move(type), std::move(bytes));
}

literal from_fields(const ::onnx::TensorProto& tensor, shape type, const std::string& what) {
  switch (type.type) {
    case element_type::f32: return from_field(tensor.float_data(), std::move(type), what);
    case element_type::f64: return from_field(tensor.double_data(), std::move(type), what);
    case element_type::i64: return from_field(tensor.int64_data(), std::move(type), what);
    case element_type::u32:
    case element_type::u64: return from_field(tensor.uint64_data(), std::move(type), what);
    default: return from_field(tensor.int32_data(), std::move(type), what);
  }
}

std::size_t offset_of(const std::string& text, std::string_view key, const std::string& what) {
  std::size_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size())
    throw error(error_kind::invalid_model, what + ": external data has " + std::string(key) + " '" + text + "'");
  return value;
}

literal from_file(const ::onnx::TensorProto& tensor, shape type, external_files& files, const std::string& what) {
  std::string location;
  std::size_t offset = 0, length = type.bytes();
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    else if (entry.key() == "offset") offset = offset_of(entry.value(), "offset", what);
    else if (entry.key() == "length") length = offset_of(entry.value(), "length", what);
  }
  auto file = files.open(location, what);
  auto bytes = file->bytes();
  if (offset > bytes.size() || length > bytes.size() - offset)
    throw error(error_kind::truncated, what + ": '" + location + "' has " + std::to_string(bytes.size()) +
                                           " bytes, the tensor is at [" + std::to_string(offset) + ", +" +
                                           std::to_string(length) + ")");
  bytes = exactly(bytes.subspan(offset, length), type, what);
  auto width = static_cast<std::size_t>(std::max(8, storage_bits(type.type))) / 8;
  // Literals are read through typed pointers, so unaligned data is copied.
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % width != 0)
    return literal(std::move(type), std::vector<std::byte>(bytes.begin(), bytes.end()));
  return literal(std::move(type), bytes, std::move(file));
}

}  // namespace

void check_rank(int rank, const std::string& what) {
  if (rank > max_rank)
    throw error(error_kind::unsupported, what + " has " + std::to_string(rank) + " dimensions; at most " +
                                             std::to_string(max_rank) + " are supported");
}

element_type element_type_of(std::int64_t data_type, const std::string& what) {
  for (const auto& row : types)
    if (row.data_type == data_type) return row.type;
  for (const auto& [number, name] : refused_types)
    if (number == data_type)
      throw error(error_kind::unsupported,
                  what + " has element type " + std::string(name) + ", which is not supported" +
                      (name == "string" ? "; leave text to code around the model: cut the model with "
                                          "onnx.utils.extract_model where the tensors are numbers"
                                        : ""));
  throw error(data_type > 22 ? error_kind::unsupported : error_kind::invalid_model,
              what + " has element type " + std::to_string(data_type) + ", which is unknown");
}

std::shared_ptr<const mapped_file> external_files::open(const std::string& location, const std::string& what) {
  if (auto found = files_.find(location); found != files_.end()) return found->second;
  if (folder_.empty())
    throw error(error_kind::missing_file, what + " is in the external file '" + printable(location) +
                                              "': a model in memory needs a folder for them");
  std::error_code code;
  if (std::filesystem::is_regular_file(folder_, code)) return files_[location] = mapped_file::open(folder_, what);
  std::filesystem::path relative(location);
  auto folder = std::filesystem::weakly_canonical(folder_, code);
  auto path = std::filesystem::weakly_canonical(folder / relative, code);
  auto inside = path.lexically_relative(folder);
  if (code || location.empty() || location.find('\0') != std::string::npos || relative.is_absolute() ||
      inside.empty() || *inside.begin() == ".." || inside == ".")
    throw error(error_kind::invalid_model, what + ": external data path '" + printable(location) +
                                               "' leaves the folder '" + folder.string() + "'");
  return files_[location] = mapped_file::open(path, what);
}

literal take_tensor(::onnx::TensorProto& tensor, external_files& files, const std::string& what) {
  shape type = shape_of(tensor, what);
  if (tensor.has_segment())
    throw error(error_kind::unsupported, what + " is stored in segments, which is not supported");
  if (tensor.data_location() == ::onnx::TensorProto::EXTERNAL) return from_file(tensor, std::move(type), files, what);
  if (!tensor.has_raw_data()) return from_fields(tensor, std::move(type), what);
  auto owner = std::make_shared<const std::string>(std::move(*tensor.mutable_raw_data()));
  auto bytes = exactly(std::as_bytes(std::span(owner->data(), owner->size())), type, what);
  return literal(std::move(type), bytes, owner);
}

}  // namespace kiln::onnx_import
