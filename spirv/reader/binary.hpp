// The words of a SPIR-V module, checked: SPIRV-Tools has parsed and validated them, and every capability, extension and
// instruction in them is one that the reader knows. Plain data over the caller's words.
//
// Errors: error{corrupted} with SPIRV-Tools' words for a damaged or invalid module, error{unsupported} naming the
// capability, extension, version or instruction that the reader does not know. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::spirv {

// One instruction: `operands` are its words without opcode, result type and result.
struct instruction_words {
  std::uint16_t opcode = 0;
  std::uint32_t type = 0, result = 0;  // ids; 0 where it has none
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

// The characters of a literal string that begins at `words`, and how many words it takes.
struct literal_string {
  std::string text;
  std::size_t words = 0;
};
literal_string read_string(std::span<const std::uint32_t> words);

// "OpIAdd", or "instruction 1234" for a number that SPIRV-Tools does not know.
std::string opcode_name(std::uint32_t opcode);

// "lgamma", or the number where SPIRV-Tools does not know it as an instruction of OpenCL.std.
std::string extended_name(std::uint32_t number);

}  // namespace kiln::spirv
