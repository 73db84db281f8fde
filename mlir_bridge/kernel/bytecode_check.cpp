#include "mlir_bridge/kernel/bytecode_check.hpp"

#include <algorithm>

#include "mlir_bridge/kernel/bytecode_tables.hpp"

namespace kiln {
namespace {

constexpr std::string_view magic = "ML\xefR";
constexpr std::uint64_t format = 6;  // as kernel_bytecode.cpp writes

// Bits of the byte that follows an operation's name: which parts come next.
enum operation_parts : std::uint8_t {
  has_attributes = 1,
  has_results = 2,
  has_operands = 4,
  has_successors = 8,
  has_regions = 16,
  has_use_orders = 32,
  has_properties = 64
};

class operation_check {
 public:
  operation_check(const dialect_table& names, const entry_table& entries,
                  const std::vector<std::span<const std::byte>>& properties)
      : names_(names), entries_(entries), properties_(properties) {}

  // The section of operations: a block with one module, in it one kernel, in it operations without regions.
  void read(std::span<const std::byte> section) {
    bytecode_cursor from(section);
    const auto [operations, with_arguments] = from.number_with_flag();
    if (operations != 1 || with_arguments) refuse_bytecode("it is not one module");
    read_operation(from, level::top);
    from.expect_end("the module");
  }

 private:
  enum class level { top, in_module, in_kernel };

  // The order of a value's uses, where it is not the usual one.
  struct use_order {
    std::size_t value;
    bool pairs;
    std::vector<std::uint64_t> places;
  };

  void read_name(bytecode_cursor& from, level where) {
    const operation_name& name = names_.operations[from.index(names_.operations.size(), "the name of an operation")];
    if (where == level::top) {
      if (name.dialect != "builtin" || name.name != "module") refuse_bytecode("it is not one module");
      return;
    }
    if (name.dialect != "kiln")
      throw error(error_kind::unsupported,
                  "a kernel cannot hold '" + std::string(name.dialect) + "." + std::string(name.name) + "'");
    if ((name.name == "kernel") != (where == level::in_module)) refuse_bytecode("it must hold exactly one kiln.kernel");
  }

  void read_operation(bytecode_cursor& from, level where) {
    read_name(from, where);
    const std::uint8_t parts = from.byte();
    entries_.attribute(from, entry_table::kind::location, "a location");
    if (parts & has_attributes) entries_.attribute(from, entry_table::kind::dictionary, "a dictionary");
    if (parts & has_properties) read_properties(from, where);
    const bool inside = where == level::in_kernel;
    if (parts & has_successors || (!inside && parts & (has_results | has_operands | has_use_orders)) ||
        inside == ((parts & has_regions) != 0))
      refuse_bytecode("an operation has parts that it cannot have");
    std::uint64_t results = 0;
    if (parts & has_results) {
      results = from.count("results");
      for (std::uint64_t i = 0; i < results; ++i) entries_.type(from, entry_table::kind::tensor_type, "a tensor");
    }
    if (parts & has_operands)
      for (std::uint64_t left = from.count("operands"); left > 0; --left)
        ++uses_[from.index(uses_.size(), "value")];  // values of this operation and of later ones do not exist yet
    if (parts & has_use_orders) read_use_orders(from, results);
    uses_.resize(uses_.size() + results);
    if (inside) return;
    const auto [regions, isolated] = from.number_with_flag();
    if (regions != 1 || !isolated) refuse_bytecode("an operation has not one region");
    const auto [kind, bytes] = from.next_section();
    if (kind != bytecode_section::operations) refuse_bytecode("the section of a region is missing");
    read_region(bytes, where == level::top ? level::in_module : level::in_kernel);
  }

  void read_properties(bytecode_cursor& from, level where) {
    if (where != level::top) refuse_bytecode("an operation has properties");
    bytecode_cursor data(properties_[from.index(properties_.size(), "properties")]);
    for (int i = 0; i < 2; ++i)  // the name and visibility of a module
      if (const auto [index, present] = data.number_with_flag(); present)
        bytecode_cursor::checked_index(index, entries_.attributes(), "attribute");
    data.expect_end("properties");
  }

  void read_region(std::span<const std::byte> section, level where) {
    bytecode_cursor from(section);
    if (from.number() != 1) refuse_bytecode("a region has not one block");
    const std::uint64_t values = from.number();
    const auto [operations, with_arguments] = from.number_with_flag();
    if (with_arguments) {
      const std::uint64_t arguments = from.count("arguments");
      for (std::uint64_t i = 0; i < arguments; ++i) {
        const auto [type, located] = from.number_with_flag();
        entries_.type(type, entry_table::kind::tensor_type, "a tensor");
        if (located) entries_.attribute(from, entry_table::kind::location, "a location");
      }
      if (from.byte() != 0) read_use_orders(from, arguments);
      uses_.resize(arguments);
    }
    for (std::uint64_t i = 0; i < operations; ++i) read_operation(from, where);
    from.expect_end("a region");
    if (where == level::in_module) {
      if (operations != 1) refuse_bytecode("it must hold exactly one kiln.kernel");
      if (values != 0 || with_arguments) refuse_bytecode("a module has values");
      return;
    }
    if (uses_.size() != values) refuse_bytecode("it has not as many values as it says");
    for (const use_order& order : orders_) check(order);
  }

  // Reads the use-list orders of the next `values` values.
  void read_use_orders(bytecode_cursor& from, std::uint64_t values) {
    const std::size_t first = uses_.size();
    const std::uint64_t ordered = values > 1 ? from.count("orders of uses") : values;
    for (std::uint64_t i = 0; i < ordered; ++i) {
      const std::uint64_t at = values > 1 ? from.index(values, "value") : 0;
      const auto [size, pairs] = from.number_with_flag();
      use_order order{first + at, pairs, {}};
      order.places.resize(from.checked_count(size, "uses"));
      for (std::uint64_t& place : order.places) place = from.number();
      orders_.push_back(std::move(order));
    }
  }

  // The order must be a permutation: each use has exactly one place.
  void check(const use_order& order) const {
    const std::uint64_t uses = uses_[order.value];
    std::vector<std::uint64_t> places = order.places;
    if (order.pairs) {  // of a use and its place; the others stay where they are
      if (places.size() % 2 != 0 || places.size() / 2 > uses) refuse_bytecode("an order of uses is not one");
      std::vector<std::uint64_t> all(uses);
      for (std::uint64_t i = 0; i < uses; ++i) all[i] = i;
      for (std::size_t i = 0; i < places.size(); i += 2)
        all[bytecode_cursor::checked_index(places[i], uses, "use")] = places[i + 1];
      places = std::move(all);
    }
    std::vector<bool> taken(uses);
    if (places.size() != uses || uses < 2) refuse_bytecode("an order of uses is not one");
    for (std::uint64_t place : places) {
      if (place >= uses || taken[place]) refuse_bytecode("an order of uses is not one");
      taken[place] = true;
    }
  }

  const dialect_table& names_;
  const entry_table& entries_;
  const std::vector<std::span<const std::byte>>& properties_;
  std::vector<std::uint64_t> uses_;  // of each value of the kernel so far
  std::vector<use_order> orders_;
};

std::vector<std::span<const std::byte>> read_property_table(std::span<const std::byte> section) {
  bytecode_cursor from(section);
  std::vector<std::span<const std::byte>> properties;
  if (section.empty()) return properties;
  for (std::uint64_t left = from.count("properties"); left > 0; --left) properties.push_back(from.take(from.number()));
  from.expect_end("the properties");
  return properties;
}

}  // namespace

void check_kernel_bytecode(std::span<const std::byte> bytecode) {
  bytecode_cursor from(bytecode);
  if (bytecode.size() < magic.size() || std::memcmp(from.take(magic.size()).data(), magic.data(), magic.size()) != 0)
    refuse_bytecode("its bytes are not MLIR bytecode");
  const std::uint64_t version = from.number();
  if (version > format)
    throw error(error_kind::newer_version, "the kernel's bytecode version " + std::to_string(version) +
                                               " is newer than the current version " + std::to_string(format));
  if (version < format) refuse_bytecode("bytecode version " + std::to_string(version) + " was never Kiln's");
  from.text();  // who wrote it

  section_table sections;
  while (!from.empty()) {
    const auto [kind, bytes] = from.next_section();
    auto& place = sections[static_cast<std::size_t>(kind)];
    if (place) refuse_bytecode("it has a section twice");
    place = bytes;
  }
  const auto section = [&](bytecode_section kind) {
    const auto& found = sections[static_cast<std::size_t>(kind)];
    if (!found) refuse_bytecode("it lacks section " + std::to_string(static_cast<int>(kind)));
    return *found;
  };
  const std::vector<std::string_view> strings = read_bytecode_strings(section(bytecode_section::strings));
  const dialect_table names(section(bytecode_section::dialects), strings);
  // MLIR's writer says that there are none.
  bytecode_cursor resources(section(bytecode_section::resource_sizes));
  if (resources.number() != 0 || !resources.empty() || !section(bytecode_section::resources).empty() ||
      sections[static_cast<std::size_t>(bytecode_section::dialect_version)])
    refuse_bytecode("it has resources, which no kernel has");
  const auto properties = read_property_table(section(bytecode_section::properties));
  const entry_table entries(section(bytecode_section::entry_sizes), section(bytecode_section::entries), strings,
                            names.dialects);
  operation_check(names, entries, properties).read(section(bytecode_section::operations));
}

}  // namespace kiln
