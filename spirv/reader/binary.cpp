#include "spirv/reader/binary.hpp"

#include <fmt/format.h>
#include <spirv-tools/libspirv.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>

#include "ir/error.hpp"
#include "spirv/reader/opcodes.hpp"

namespace kiln::spirv {
namespace {

using spv::Capability;
using spv::Op;

constexpr std::uint32_t newest_version = 0x00010600, most_ids = 1u << 20;
constexpr std::size_t header_words = 5;

// Names that SPIRV-Tools 2023.1 does not define.
constexpr auto bfloat16_type = static_cast<Capability>(5116);

constexpr std::array known_capabilities{Capability::Matrix,
                                        Capability::Kernel,
                                        Capability::Addresses,
                                        Capability::Linkage,
                                        Capability::Vector16,
                                        Capability::Float16Buffer,
                                        Capability::Float16,
                                        Capability::Float64,
                                        Capability::Int64,
                                        Capability::Int64Atomics,
                                        Capability::Int16,
                                        Capability::Int8,
                                        Capability::GenericPointer,
                                        Capability::Groups,
                                        Capability::GroupNonUniform,
                                        Capability::GroupNonUniformVote,
                                        Capability::GroupNonUniformBallot,
                                        Capability::GroupNonUniformShuffle,
                                        Capability::GroupNonUniformShuffleRelative,
                                        Capability::AtomicFloat32AddEXT,
                                        Capability::AtomicFloat64AddEXT,
                                        Capability::AtomicFloat16AddEXT,
                                        Capability::AtomicFloat32MinMaxEXT,
                                        Capability::AtomicFloat64MinMaxEXT,
                                        Capability::AtomicFloat16MinMaxEXT,
                                        Capability::KernelAttributesINTEL,
                                        Capability::ArbitraryPrecisionIntegersINTEL,
                                        Capability::FPFastMathModeINTEL,
                                        Capability::ExpectAssumeKHR,
                                        Capability::OptNoneINTEL,
                                        Capability::BitInstructions,
                                        Capability::DenormPreserve,
                                        Capability::SignedZeroInfNanPreserve,
                                        Capability::RoundingModeRTE,
                                        bfloat16_type};

constexpr std::array<std::string_view, 18> known_extensions{"SPV_KHR_no_integer_wrap_decoration",
                                                            "SPV_KHR_bfloat16",
                                                            "SPV_KHR_expect_assume",
                                                            "SPV_KHR_linkonce_odr",
                                                            "SPV_EXT_shader_atomic_float_add",
                                                            "SPV_EXT_shader_atomic_float16_add",
                                                            "SPV_EXT_shader_atomic_float_min_max",
                                                            "SPV_INTEL_kernel_attributes",
                                                            "SPV_INTEL_arbitrary_precision_integers",
                                                            "SPV_ALTERA_arbitrary_precision_integers",
                                                            "SPV_INTEL_fp_fast_math_mode",
                                                            "SPV_INTEL_optnone",
                                                            "SPV_EXT_optnone",
                                                            "SPV_KHR_bit_instructions",
                                                            "SPV_INTEL_memory_access_aliasing",
                                                            "SPV_KHR_non_semantic_info",
                                                            "SPV_KHR_float_controls",
                                                            "SPV_KHR_subgroup_rotate"};

// Disables the validator's rule that a type is declared only once. The validator sees bfloat16 as half, for example, so
// types may repeat.
constexpr std::string_view ignore_unique_types = "SPV_VALIDATOR_ignore_type_decl_unique";
constexpr std::string_view shown_as_ignoring[] = {"SPV_KHR_bfloat16", "SPV_INTEL_arbitrary_precision_integers",
                                                  "SPV_ALTERA_arbitrary_precision_integers"};

[[noreturn]] void corrupted(const std::string& what) { throw error(error_kind::corrupted, "SPIR-V: " + what); }
[[noreturn]] void unsupported(const std::string& what) { throw error(error_kind::unsupported, "SPIR-V: " + what); }

struct context_deleter {
  void operator()(spv_context_t* c) const { spvContextDestroy(c); }
};
using context = std::unique_ptr<spv_context_t, context_deleter>;

context make_context() {
  context result(spvContextCreate(SPV_ENV_UNIVERSAL_1_6));
  if (!result) throw error(error_kind::internal, "SPIRV-Tools has no universal environment");
  return result;
}

// Type and result ids come first, in this order, if an opcode has them.
struct id_words {
  bool type, result;
};
id_words ids_of(std::uint16_t opcode) {
  bool type = false, result = false;
  spv::HasResultAndType(static_cast<Op>(opcode), &result, &type);
  return {type, result};
}

// Returns the text of the last instruction of a module, as SPIRV-Tools disassembles it; empty on failure.
std::string text_of_last(std::span<const std::uint32_t> module) {
  context tools = make_context();
  spv_text text = nullptr;
  if (spvBinaryToText(tools.get(), module.data(), module.size(), SPV_BINARY_TO_TEXT_OPTION_NO_HEADER, &text, nullptr) !=
      SPV_SUCCESS)
    return "";
  std::string result(text->str, text->length);
  spvTextDestroy(text);
  while (result.ends_with(' ') || result.ends_with('\n')) result.pop_back();
  return result.substr(result.rfind('\n') + 1);
}

std::string capability_name(std::uint32_t number) {
  std::array<std::uint32_t, 7> module{
      spv::MagicNumber, newest_version, 0, 1, 0, 2u << 16 | static_cast<std::uint32_t>(Op::OpCapability), number};
  std::string name = text_of_last(module);
  return name.starts_with("OpCapability ") ? name.substr(13) : std::to_string(number);
}

void append_string_instruction(std::vector<std::uint32_t>& out, Op opcode, std::string_view text) {
  std::size_t count = text.size() / 4 + 1;
  out.push_back(static_cast<std::uint32_t>((count + 1) << 16 | static_cast<std::uint32_t>(opcode)));
  out.resize(out.size() + count);
  std::memcpy(out.data() + out.size() - count, text.data(), text.size());
}

}  // namespace

std::string opcode_name(std::uint32_t opcode) {
  std::string_view name = spvOpcodeString(opcode);
  return name == "unknown" ? fmt::format("instruction {}", opcode) : fmt::format("Op{}", name);
}

std::string extended_name(std::uint32_t number) {
  // SPIRV-Tools also knows the number of operands, so try all of them.
  for (std::uint32_t operands = 0; operands <= 6; ++operands) {
    std::vector<std::uint32_t> import, module{spv::MagicNumber, newest_version, 0, 4, 0};
    append_string_instruction(import, Op::OpExtInstImport, "OpenCL.std");
    // Insert the result id, %1, before the name.
    for (std::uint32_t word : {import[0] + (1u << 16), 1u}) module.push_back(word);
    std::copy(import.begin() + 1, import.end(), std::back_inserter(module));
    for (std::uint32_t word : {(5 + operands) << 16 | static_cast<std::uint32_t>(Op::OpExtInst), 2u, 3u, 1u, number})
      module.push_back(word);
    module.resize(module.size() + operands, 2);
    std::string text = text_of_last(module);
    auto at = text.find("OpExtInst ");
    if (at == std::string::npos) continue;
    for (int k = 0; k < 3; ++k) at = text.find(' ', at) + 1;
    return text.substr(at, text.find(' ', at) - at);
  }
  return std::to_string(number);
}

literal_string read_string(std::span<const std::uint32_t> words) {
  literal_string result;
  for (std::uint32_t word : words) {
    ++result.words;
    for (int shift = 0; shift < 32; shift += 8) {
      char c = static_cast<char>(word >> shift & 0xff);
      if (!c) return result;
      result.text.push_back(c);
    }
  }
  corrupted("an unterminated string");
}

binary::binary(std::span<const std::byte> bytes) : words_(bytes.size() / 4) {
  if (bytes.size() % 4) corrupted(fmt::format("{} bytes are not a whole number of words", bytes.size()));
  if (words_.size() < header_words) corrupted("shorter than its header");
  std::memcpy(words_.data(), bytes.data(), bytes.size());
  if (words_[0] == __builtin_bswap32(spv::MagicNumber)) unsupported("its words are big-endian");
  if (words_[0] != spv::MagicNumber) corrupted("it does not begin with SPIR-V's magic number");
  if (words_[1] > newest_version)
    unsupported(fmt::format("version {}.{} is newer than 1.6", words_[1] >> 16 & 0xff, words_[1] >> 8 & 0xff));
  if (words_[3] == 0 || words_[3] > most_ids)
    unsupported(fmt::format("{} ids; at most {} are read", words_[3], most_ids));
  split();
  check_known();
  validate();
}

bool binary::is_bfloat(std::uint32_t id) const { return std::ranges::find(bfloats_, id) != bfloats_.end(); }

void binary::split() {
  std::span<const std::uint32_t> all(words_);
  for (std::size_t at = header_words; at < all.size();) {
    std::size_t count = all[at] >> 16;
    auto opcode = static_cast<std::uint16_t>(all[at] & 0xffff);
    if (count == 0 || count > all.size() - at)
      corrupted(fmt::format("the instruction at word {} has an invalid length", at));
    instruction_words i{opcode, 0, 0, all.subspan(at + 1, count - 1)};
    auto take = [&] {
      if (i.operands.empty()) corrupted(opcode_name(opcode) + " is too short");
      std::uint32_t id = i.operands.front();
      if (id == 0 || id >= words_[3])
        corrupted(fmt::format("{} has the id {}, which is out of bounds", opcode_name(opcode), id));
      i.operands = i.operands.subspan(1);
      return id;
    };
    auto [type, result] = ids_of(opcode);
    if (type) i.type = take();
    if (result) i.result = take();
    instructions_.push_back(i);
    at += count;
  }
}

void binary::check_known() const {
  for (const instruction_words& i : instructions_) {
    if (!is_known(static_cast<Op>(i.opcode))) unsupported(opcode_name(i.opcode) + " is not supported");
    if (i.opcode == static_cast<std::uint16_t>(Op::OpCapability)) {
      if (i.operands.size() != 1) corrupted("OpCapability has one operand");
      if (std::ranges::find(known_capabilities, static_cast<Capability>(i.operands[0])) == known_capabilities.end())
        unsupported("capability " + capability_name(i.operands[0]) + " is not supported");
    }
    if (i.opcode == static_cast<std::uint16_t>(Op::OpExtension)) {
      std::string name = read_string(i.operands).text;
      if (std::ranges::find(known_extensions, name) == known_extensions.end())
        unsupported("extension " + name + " is not supported");
    }
  }
}

// SPIRV-Tools 2023.1 supports neither bfloat16 nor integers of other widths than 8, 16, 32 and 64 bits. It validates a
// modified module that is valid exactly if this one is: half replaces bfloat16, integers are widened to the next
// supported width, and conversions between types that now have the same width become bit casts.
void binary::validate() {
  std::vector<std::uint32_t> copy(words_.begin(), words_.begin() + header_words);
  // `widths`: the modified width by integer type. `types`: the type by result.
  std::map<std::uint32_t, std::uint32_t> widths, types;
  auto width_of = [&](std::uint32_t id) {
    auto found = widths.find(id);
    return found == widths.end() ? 0 : found->second;
  };
  for (const instruction_words& i : instructions_) {
    auto opcode = static_cast<Op>(i.opcode);
    const std::uint32_t* end = i.operands.data() + i.operands.size();
    const std::uint32_t* begin = i.operands.data() - (i.type != 0) - (i.result != 0) - 1;
    auto capability = [&](Capability c) {
      copy.insert(copy.end(), {2u << 16 | static_cast<std::uint32_t>(Op::OpCapability), static_cast<std::uint32_t>(c)});
    };
    if (i.type && i.result) types[i.result] = i.type;
    if (opcode == Op::OpCapability && static_cast<Capability>(i.operands[0]) == bfloat16_type) {
      capability(Capability::Float16);
    } else if (opcode == Op::OpCapability &&
               static_cast<Capability>(i.operands[0]) == Capability::ArbitraryPrecisionIntegersINTEL) {
      for (Capability c : {Capability::Int8, Capability::Int16, Capability::Int64}) capability(c);
    } else if (opcode == Op::OpExtension &&
               std::ranges::find(shown_as_ignoring, read_string(i.operands).text) != std::end(shown_as_ignoring)) {
      append_string_instruction(copy, Op::OpExtension, ignore_unique_types);
    } else if (opcode == Op::OpTypeFloat && i.operands.size() == 2) {
      if (i.operands[0] != 16 || i.operands[1] != 0)
        unsupported(fmt::format("a float of {} bits with encoding {}", i.operands[0], i.operands[1]));
      bfloats_.push_back(i.result);
      copy.insert(copy.end(), {3u << 16 | i.opcode, i.result, 16});
    } else if (opcode == Op::OpTypeInt && i.operands.size() == 2) {
      if (i.operands[0] == 0 || i.operands[0] > 64) unsupported(fmt::format("integers of {} bits", i.operands[0]));
      std::uint32_t shown = std::max(8u, std::bit_ceil(i.operands[0]));
      widths[i.result] = shown;
      copy.insert(copy.end(), {*begin, i.result, shown, i.operands[1]});
    } else if (opcode == Op::OpTypeVector && i.operands.size() == 2 && width_of(i.operands[0])) {
      widths[i.result] = width_of(i.operands[0]);
      copy.insert(copy.end(), begin, end);
    } else if ((opcode == Op::OpUConvert || opcode == Op::OpSConvert) && i.operands.size() == 1 && width_of(i.type) &&
               width_of(i.type) == width_of(types[i.operands[0]])) {
      copy.insert(copy.end(), {4u << 16 | static_cast<std::uint32_t>(Op::OpBitcast), i.type, i.result, i.operands[0]});
    } else {
      copy.insert(copy.end(), begin, end);
    }
  }
  context tools = make_context();
  spv_const_binary_t module{copy.data(), copy.size()};
  spv_diagnostic diagnostic = nullptr;
  spv_result_t result = spvValidate(tools.get(), &module, &diagnostic);
  std::string words = diagnostic ? diagnostic->error : "";
  spvDiagnosticDestroy(diagnostic);
  while (words.ends_with('\n')) words.pop_back();
  for (std::size_t at; (at = words.find('\n')) != std::string::npos;)
    words.replace(at, words.find_first_not_of(" \n", at) - at, ": ");
  if (result != SPV_SUCCESS) corrupted("not valid: " + words);
}

}  // namespace kiln::spirv
