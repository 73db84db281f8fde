// The tables of a kernel's bytecode to which its operations refer: strings, dialects with their operations' names,
// attributes, types, properties. All are checked when they are constructed: whatever exists in them is sound. They
// refer to the caller's bytes. Throw as check_kernel_bytecode() does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "mlir_bridge/kernel/bytecode_cursor.hpp"

namespace kiln {

using section_table = std::array<std::optional<std::span<const std::byte>>, bytecode_sections>;

// Each text of the section of strings.
std::vector<std::string_view> read_bytecode_strings(std::span<const std::byte> section);

struct operation_name {
  std::string_view dialect, name;
};

// The names of operations. Throws error{newer_version} if a newer Kiln wrote the kernel.
struct dialect_table {
  dialect_table(std::span<const std::byte> section, const std::vector<std::string_view>& strings);
  std::vector<std::string_view> dialects;  // "builtin" or "kiln", each once
  std::vector<operation_name> operations;
};

// Attributes and types: each has a kind, and what others need to know about it to be checked.
class entry_table {
 public:
  enum class kind : std::uint8_t {
    // attributes
    array,
    dictionary,
    string,
    type,
    unit,
    integer,
    floating,
    location,
    integers,
    splat,
    dims,
    // types
    integer_type,
    float_type,
    function_type,
    tensor_type,
    none_type
  };

  entry_table(std::span<const std::byte> sizes, std::span<const std::byte> data,
              const std::vector<std::string_view>& strings, const std::vector<std::string_view>& dialects);

  std::size_t attributes() const { return attributes_.size(); }
  // Read an index; the attribute has this kind.
  void attribute(bytecode_cursor& from, kind expected, const char* of) const;
  void type(bytecode_cursor& from, kind expected, const char* of) const { type(from.number(), expected, of); }
  void type(std::uint64_t index, kind expected, const char* of) const;

 private:
  struct entry {
    std::span<const std::byte> bytes;
    bool of_kiln = false, custom = false;
    enum : std::uint8_t { unread, open, read } state = unread;
    kind is = kind::unit;
    std::uint8_t height = 0;  // of what it refers to
    std::uint16_t bits = 0;   // of a number type
    std::uint64_t rank = 0;   // of a tensor type or of dims
    bool fixed = false;       // a tensor type without open dimensions
    std::string_view text;    // of a string
  };
  using list = std::vector<entry>;

  void read_sizes(bytecode_cursor& from, list& of, std::span<const std::byte>& data,
                  const std::vector<std::string_view>& dialects);
  // Read the entry, unless that was done, and what it refers to. `parent` becomes higher than it.
  const entry& attribute_of(entry& parent, bytecode_cursor& from, int depth);
  const entry& type_of(entry& parent, bytecode_cursor& from, int depth);
  void read(entry& e, bool is_type, int depth);
  void read_attribute(entry& e, bytecode_cursor& from, int depth);
  void read_dims(entry& e, bytecode_cursor& from);
  void read_dictionary(entry& e, bytecode_cursor& from, int depth);
  void read_splat(entry& e, bytecode_cursor& from, int depth);
  void read_type(entry& e, bytecode_cursor& from, int depth);
  void read_tensor(entry& e, bytecode_cursor& from, bool encoded, int depth);

  const std::vector<std::string_view>& strings_;
  list attributes_, types_;
};

}  // namespace kiln
