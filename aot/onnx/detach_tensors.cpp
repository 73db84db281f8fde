#include "aot/onnx/detach_tensors.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::onnx_import {
namespace {

constexpr std::size_t least_detached = std::size_t{64} << 10;
constexpr int max_depth = 64;                            // above the importer's own limit
constexpr std::size_t most_left = std::size_t{INT_MAX};  // bytes that protobuf reads

// Protobuf messages that can contain a tensor, and for each the fields that lead to one.
enum class message : std::uint8_t { model, graph, function, node, attribute, tensor, other };
struct field_row {
  message in;
  std::uint32_t number;
  message holds;
};
constexpr auto fields = std::to_array<field_row>({
    {message::model, 7, message::graph},
    {message::model, 25, message::function},
    {message::graph, 1, message::node},
    {message::graph, 5, message::tensor},
    {message::function, 7, message::node},
    {message::node, 5, message::attribute},
    {message::attribute, 5, message::tensor},
    {message::attribute, 6, message::graph},
    {message::attribute, 10, message::tensor},
    {message::attribute, 11, message::graph},
});
// Field numbers in TensorProto.
constexpr std::uint32_t raw_data = 9, external_data = 13, data_location = 14;

message held_by(message in, std::uint32_t number) {
  auto found = std::ranges::find_if(fields, [&](const field_row& f) { return f.in == in && f.number == number; });
  return found == fields.end() ? message::other : found->holds;
}

// Reads protobuf's wire format.
class reader {
 public:
  reader(std::span<const std::byte> bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  struct field {
    std::uint32_t number, wire;
    // Offset of the tag.
    std::size_t begin;
    // Offsets of a length-delimited field's content.
    std::size_t content, end;
  };
  bool done() const { return at_ == bytes_.size(); }
  std::optional<field> next() {
    field f{0, 0, at_, 0, 0};
    auto tag = varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > UINT32_MAX) return std::nullopt;  // no field has the number 0
    f.number = static_cast<std::uint32_t>(*tag >> 3);
    f.wire = static_cast<std::uint32_t>(*tag & 7);
    std::uint64_t length = f.wire == 1 ? 8 : f.wire == 5 ? 4 : 0;
    if (f.wire != 0 && f.wire != 1 && f.wire != 2 && f.wire != 5) return std::nullopt;
    if (f.wire == 0 || f.wire == 2) {
      auto value = varint();
      if (!value) return std::nullopt;
      if (f.wire == 2) length = *value;
    }
    if (length > bytes_.size() - at_) return std::nullopt;
    f.content = at_;
    f.end = at_ += length;
    return f;
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      auto byte = static_cast<std::uint64_t>(bytes_[at_++]);
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    return std::nullopt;
  }
  std::span<const std::byte> bytes_;
  std::size_t at_;
};

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void put_field(std::string& out, std::uint32_t number, std::string_view content) {
  put_varint(out, std::uint64_t{number} << 3 | 2);
  put_varint(out, content.size());
  out += content;
}

void put_entry(std::string& out, std::string_view key, std::string_view value) {
  std::string entry;
  put_field(entry, 1, key);
  put_field(entry, 2, value);
  put_field(out, external_data, entry);
}

bool is_detached(const reader::field& f) {
  return f.wire == 2 && f.number == raw_data && f.end - f.content >= least_detached;
}

// Returns true if the tensor in [begin, end) has data that is to be detached.
bool has_detached_data(std::span<const std::byte> model, std::size_t begin, std::size_t end) {
  reader fields_of(model.first(end), begin);
  while (!fields_of.done()) {
    auto f = fields_of.next();
    if (!f) return false;
    if (is_detached(*f)) return true;
  }
  return false;
}

// Appends the fields of the message in [begin, end), with large tensors detached. Returns false for malformed fields,
// and for more bytes than protobuf reads.
bool rewrite(std::span<const std::byte> model, std::size_t begin, std::size_t end, message kind, int depth,
             std::string& out) {
  if (depth > max_depth) return false;
  const bool detaches = kind == message::tensor && has_detached_data(model, begin, end);
  reader fields_of(model.first(end), begin);
  while (!fields_of.done()) {
    auto f = fields_of.next();
    if (!f) return false;
    message inner = f->wire == 2 ? held_by(kind, f->number) : message::other;
    // Drop an existing location (a tensor may state that its data is in the model). For repeated fields, protobuf uses
    // the last one.
    if (detaches && (f->number == external_data || f->number == data_location)) continue;
    if (detaches && is_detached(*f)) {
      put_entry(out, "location", own_file_location);
      put_entry(out, "offset", std::to_string(f->content));
      put_entry(out, "length", std::to_string(f->end - f->content));
      put_varint(out, std::uint64_t{data_location} << 3);
      put_varint(out, 1);  // EXTERNAL
    } else if (inner != message::other && f->end - f->content >= least_detached) {
      std::string content;
      if (!rewrite(model, f->content, f->end, inner, depth + 1, content)) return false;
      put_field(out, f->number, content);
    } else if (f->end - f->begin > most_left - out.size()) {
      return false;
    } else {
      out.append(reinterpret_cast<const char*>(model.data()) + f->begin, f->end - f->begin);
    }
    if (out.size() > most_left) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> detach_tensors(std::span<const std::byte> model) {
  std::string out;
  if (!rewrite(model, 0, model.size(), message::model, 0, out)) return std::nullopt;
  return out;
}

}  // namespace kiln::onnx_import
