// The checked words of a SPIR-V module: SPIRV-Tools has parsed and validated them, and the reader supports every
// capability, extension and instruction in them. Holds plain data and a copy of the words.
// Errors: error{corrupted} with SPIRV-Tools' message for an invalid module, error{unsupported} naming a capability,
// extension, version or instruction that the reader does not support. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::spirv {

// One instruction. `operands` are its words after opcode, result type and result.
struct instruction_words {
  std::uint16_t opcode = 0;
  std::uint32_t type = 0, result = 0;  // ids; 0 if the instruction has none
  std::span<const std::uint32_t> operands;
};

class binary {
 public:
  explicit binary(std::span<const std::byte> bytes);

  std::uint32_t id_bound() const { return words_[3]; }
  const std::vector<instruction_words>& instructions() const { return instructions_; }
  // Whether the type `id` (OpTypeFloat of 16 bits) is bfloat16.
  bool is_bfloat(std::uint32_t id) const;

 private:
  void split();
  void check_known() const;
  void validate();

  std::vector<std::uint32_t> words_;
  std::vector<instruction_words> instructions_;
  std::vector<std::uint32_t> bfloats_;
};

// A literal string, and the number of words that it occupies.
struct literal_string {
  std::string text;
  std::size_t words = 0;
};
literal_string read_string(std::span<const std::uint32_t> words);

// Returns "OpIAdd", or "instruction 1234" for a number that SPIRV-Tools does not know.
std::string opcode_name(std::uint32_t opcode);

// Returns "lgamma", or the number if SPIRV-Tools does not know it as an instruction of OpenCL.std.
std::string extended_name(std::uint32_t number);

}  // namespace kiln::spirv
