#include "spirv/disassembly.hpp"

#include <spirv-tools/libspirv.h>

#include <cstring>
#include <memory>
#include <vector>

#include "ir/error.hpp"

namespace kiln::spirv {

std::string disassemble(std::span<const std::byte> words) {
  std::vector<std::uint32_t> code(words.size() / 4);
  std::memcpy(code.data(), words.data(), code.size() * 4);
  std::unique_ptr<spv_context_t, decltype(&spvContextDestroy)> context(spvContextCreate(SPV_ENV_UNIVERSAL_1_6),
                                                                       spvContextDestroy);
  spv_text text = nullptr;
  spv_diagnostic problem = nullptr;
  spv_result_t result =
      spvBinaryToText(context.get(), code.data(), code.size(),
                      SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES, &text, &problem);
  std::unique_ptr<spv_text_t, decltype(&spvTextDestroy)> owned_text(text, spvTextDestroy);
  std::unique_ptr<spv_diagnostic_t, decltype(&spvDiagnosticDestroy)> owned_problem(problem, spvDiagnosticDestroy);
  if (result != SPV_SUCCESS)
    throw error(error_kind::corrupted, std::string("the SPIR-V module cannot be disassembled: ") +
                                           (problem && problem->error ? problem->error : "unknown reason"));
  return std::string(text->str, text->length);
}

}  // namespace kiln::spirv
