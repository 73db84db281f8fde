#include <algorithm>

#include "mlir_bridge/dialect/version.hpp"
#include "mlir_bridge/kernel/bytecode_tables.hpp"

namespace kiln {
namespace {

void check_version(std::span<const std::byte> section) {
  bytecode_cursor from(section);
  const std::uint64_t number = from.number();
  if (number > dialect::current_version) throw error(error_kind::newer_version, dialect::newer_message(number));
  if (number == 0) refuse_bytecode("version 0 of the kernel dialect does not exist");
  from.expect_end("the version of the kernel dialect");
}

}  // namespace

std::vector<std::string_view> read_bytecode_strings(std::span<const std::byte> section) {
  bytecode_cursor from(section);
  std::vector<std::string_view> strings(from.count("strings"));
  // Their sizes come in reverse order, each with the zero at the string's end.
  std::size_t end = section.size();
  for (auto string = strings.rbegin(); string != strings.rend(); ++string) {
    const std::uint64_t size = from.number();
    if (size == 0 || size > end || section[end - 1] != std::byte{0}) refuse_bytecode("a string has a wrong size");
    end -= size;
    *string = {reinterpret_cast<const char*>(section.data()) + end, size - 1};
    if (string->find('\0') != std::string_view::npos) refuse_bytecode("a string holds a zero byte");
  }
  if (section.size() - from.left() != end) refuse_bytecode("the strings do not fill their section");
  return strings;
}

dialect_table::dialect_table(std::span<const std::byte> section, const std::vector<std::string_view>& strings) {
  bytecode_cursor from(section);
  for (std::uint64_t left = from.count("dialects"); left > 0; --left) {
    const auto [name, versioned] = from.number_with_flag();
    const std::string_view dialect = strings[bytecode_cursor::checked_index(name, strings.size(), "string")];
    if (dialect != "builtin" && dialect != "kiln")
      throw error(error_kind::unsupported, "a kernel cannot hold operations of '" + std::string(dialect) + "'");
    if (std::ranges::count(dialects, dialect)) refuse_bytecode("it names a dialect twice");
    if (versioned != (dialect == "kiln")) refuse_bytecode("the kernel dialect has a version, and no other has");
    if (versioned) {
      const auto [kind, bytes] = from.next_section();
      if (kind != bytecode_section::dialect_version) refuse_bytecode("the version of its dialect is missing");
      check_version(bytes);
    }
    dialects.push_back(dialect);
  }
  const std::uint64_t names = from.count("names of operations");
  while (!from.empty()) {
    const std::string_view dialect = dialects[from.index(dialects.size(), "dialect")];
    for (std::uint64_t left = from.count("names of operations"); left > 0; --left) {
      const auto [name, registered] = from.number_with_flag();
      const std::string_view text = strings[bytecode_cursor::checked_index(name, strings.size(), "string")];
      if (text.empty() || !registered) refuse_bytecode("an operation has no name or is not registered");
      operations.push_back({dialect, text});
    }
  }
  if (operations.size() != names) refuse_bytecode("it has not as many names of operations as it says");
}

}  // namespace kiln
