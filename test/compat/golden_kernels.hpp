// What the golden files of test/compat hold: kernels by name, for each version of the kernel dialect.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/literal.hpp"

namespace kiln::test {

// Bytecode of this text, labelled as `version` whatever it holds: nothing is verified, so a text may be in an older
// version's form.
std::vector<std::byte> bytecode_of_version(const std::string& text, std::uint64_t version);

// Name → bytecode, as that version's Kiln would write them. Versions before the current one are frozen.
std::map<std::string, std::vector<std::byte>> golden_kernels(int version);

// The shapes that a golden kernel runs with; its own where it is static.
std::vector<shape> golden_input_shapes(const std::vector<shape>& declared);

// {"type": "f32", "dims": [2], "values": [1, "nan"]}, and back. As text that nlohmann::json reads.
std::string to_json(const literal& data);

}  // namespace kiln::test
