// One operator in amdgcnspirv: the content of the payload of a code object in that format (spirv/README.md). Launches
// are symbolic in the shapes until resolve(). A value type. It is serialized with FlatBuffers; equal objects give equal
// bytes. Reading verifies everything and throws error{corrupted}.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/enum_names.hpp"
#include "ir/shape.hpp"
#include "spirv/expression.hpp"

namespace kiln::spirv {

enum class parameter_kind : std::uint8_t { input, output, scratch, integer, real };

// The argument for one parameter of a kernel: a buffer, or a number of the parameter's type (i32, i64; f32, f64).
struct parameter {
  parameter_kind kind = parameter_kind::input;
  std::uint32_t index = 0;
  element_type type = element_type::i64;
  std::string expression = {};
  friend bool operator==(const parameter&, const parameter&) = default;
};

enum class launch_rule : std::uint8_t { per_element, per_row, per_tile, per_task };
}  // namespace kiln::spirv
template <>
struct kiln::enum_table<kiln::spirv::launch_rule> {
  static constexpr std::array<std::string_view, 4> names{"per_element", "per_row", "per_tile", "per_task"};
};
namespace kiln::spirv {

struct kernel_launch {
  std::string symbol;
  launch_rule rule = launch_rule::per_element;
  // per_element: elements; per_row: rows; per_task: tasks; per_tile: the grid's x, y, z.
  std::vector<std::string> count;
  // per_element: elements per thread (default 1); per_row: threads (default: the finalizer chooses); per_task: threads
  // on a GPU (a CPU has one thread for each task); per_tile: threads x, y, z.
  std::vector<std::string> block;
  std::string shared_bytes = {};     // dynamic shared memory; empty: none
  std::uint32_t max_threads = 1024;  // __launch_bounds__
  std::vector<parameter> parameters;
  friend bool operator==(const kernel_launch&, const kernel_launch&) = default;
};

struct result_rule {
  std::string type, dims;
  friend bool operator==(const result_rule&, const result_rule&) = default;
};

struct input_restriction {
  std::uint32_t input = 0;
  std::string type;
  friend bool operator==(const input_restriction&, const input_restriction&) = default;
};

struct object {
  std::string domain, name;
  std::vector<input_restriction> restrictions;
  std::vector<std::string> requirements;  // conditions on inputs and attributes, all of which must hold
  attribute_values attributes;            // defaults, or the values of one node
  std::vector<result_rule> results;       // shape rules of the outputs
  std::vector<std::string> scratch;       // bytes of each scratch buffer
  std::vector<kernel_launch> launches;
  std::vector<std::byte> words;  // the SPIR-V module
  friend bool operator==(const object&, const object&) = default;
};

// Limits that a reader enforces on each text and each list.
inline constexpr std::size_t longest_text = 4096, longest_list = 256;

// Throws error{unsupported} if a text or a list is too long.
std::vector<std::byte> serialize(const object& o);
object deserialize_object(std::span<const std::byte> bytes);

// Returns the shapes of the outputs for these inputs, which may have open dimensions. Throws error{invalid_model}.
std::vector<shape> infer(const object& o, std::span<const shape> inputs);

struct resolve_limits {
  std::int64_t max_threads = 1024;     // per workgroup, on the target
  std::int64_t preferred_block = 256;  // used if the rule does not specify a size
  bool lone_tasks = false;             // a task has one thread
};

// A parameter with its value: a buffer, or a constant as the bits of its type, or an integer that depends on open dims.
struct resolved_argument {
  parameter_kind kind = parameter_kind::input;
  std::uint32_t index = 0;
  element_type type = element_type::i64;
  std::uint64_t bits = 0;
  std::optional<dim> open = {};
};

struct resolved_launch {
  std::string symbol;
  std::array<dim, 3> grid{1, 1, 1};            // workgroups
  std::array<std::int64_t, 3> block{1, 1, 1};  // work items per workgroup
  std::int64_t shared_bytes = 0;
  std::vector<resolved_argument> arguments;  // in the order of the kernel's parameters
};

struct resolved_object {
  std::vector<dim> scratch;  // bytes of each buffer
  std::vector<resolved_launch> launches;
  // What must fit into 32 bits when the values of open dims are known: their grids and their arguments of that type.
  std::vector<dim> bounded;
};

// Evaluates all expressions for these shapes. With open shapes, grids, bytes of scratch memory and integers may be
// expressions of their dims. Launches that never have work are omitted. Throws error{invalid_model} if an expression
// fails, and error{unsupported} if a workgroup is larger than the kernel or the target allows, or if the size of a
// workgroup, its shared memory or a real number depends on an open dim.
resolved_object resolve(const object& o, std::span<const shape> inputs, std::span<const shape> outputs,
                        const resolve_limits& limits = {});

}  // namespace kiln::spirv
