#include "spirv/reader/fixed_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "ir/error.hpp"
#include "spirv/reader/binary.hpp"
#include "spirv/reader/opcodes.hpp"

namespace kiln::spirv {
namespace {

using spv::Op;

constexpr std::size_t header_words = 5, bound_at = 3;

[[noreturn]] void unfit(const std::string& symbol, const std::string& what) {
  throw error(error_kind::corrupted, fmt::format("kernel '{}' {}", symbol, what));
}

using words = std::vector<std::uint32_t>;

// Returns all words of an instruction, including opcode and length.
std::span<const std::uint32_t> whole(const instruction_words& i) {
  std::size_t before = 1u + (i.type != 0) + (i.result != 0);
  return {i.operands.data() - before, i.operands.size() + before};
}

void append(words& out, Op opcode, std::span<const std::uint32_t> operands) {
  out.push_back(static_cast<std::uint32_t>((operands.size() + 1) << 16 | static_cast<std::uint32_t>(opcode)));
  out.insert(out.end(), operands.begin(), operands.end());
}

// Collects what the module says about its kernels, and rewrites it.
class rewriting {
 public:
  rewriting(const binary& module, std::span<const fixed_kernel> kernels)
      : module_(module), next_id_(module.id_bound()) {
    for (const instruction_words& i : module_.instructions()) note(i);
    for (const fixed_kernel& k : kernels) plan(k);
  }

  words apply(std::span<const std::uint32_t> header) const {
    words result(header.begin(), header.end());
    result[bound_at] = next_id_;
    bool declared = false;
    for (const instruction_words& i : module_.instructions()) {
      auto opcode = static_cast<Op>(i.opcode);
      if (opcode == Op::OpFunction && !std::exchange(declared, true))
        result.insert(result.end(), declarations_.begin(), declarations_.end());
      if ((opcode == Op::OpDecorate || opcode == Op::OpDecorateId) && fixed_.contains(i.operands[0]))
        continue;  // decorates a removed parameter
      if (opcode == Op::OpFunctionParameter && fixed_.contains(i.result)) continue;
      std::size_t at = result.size();
      auto same = whole(i);
      result.insert(result.end(), same.begin(), same.end());
      if (auto type = function_types_.find(i.result); opcode == Op::OpFunction && type != function_types_.end())
        result[at + 4] = type->second;
    }
    return result;
  }

 private:
  void note(const instruction_words& i) {
    switch (static_cast<Op>(i.opcode)) {
      case Op::OpEntryPoint: entries_[read_string(i.operands.subspan(2)).text] = i.operands[1]; break;
      case Op::OpTypeInt:
      case Op::OpTypeFloat: widths_[i.result] = i.operands[0]; break;
      case Op::OpTypeFunction: signatures_.try_emplace(words(i.operands.begin(), i.operands.end()), i.result); break;
      case Op::OpFunction:
        function_ = i.result;
        returns_[function_] = i.type;
        break;
      case Op::OpFunctionParameter: parameters_[function_].push_back({i.result, i.type}); break;
      default: break;
    }
  }

  void plan(const fixed_kernel& k) {
    auto entry = entries_.find(k.symbol);
    if (entry == entries_.end()) unfit(k.symbol, "is not in the module");
    const auto& parameters = parameters_[entry->second];
    if (parameters.size() != k.parameters.size())
      unfit(k.symbol,
            fmt::format("takes {} parameters, and the launch gives {}", parameters.size(), k.parameters.size()));
    if (function_types_.contains(entry->second)) unfit(k.symbol, "is listed twice");
    words signature{returns_[entry->second]};
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const auto& [id, type] = parameters[p];
      auto width = widths_.find(type);
      if (k.parameters[p].has_value() != (width != widths_.end()))
        unfit(k.symbol, fmt::format("takes another kind of argument as parameter {}", p));
      if (!k.parameters[p]) {
        signature.push_back(type);
        continue;
      }
      if (width->second != 32 && width->second != 64)
        unfit(k.symbol, fmt::format("takes an unsupported width of {} bits as parameter {}", width->second, p));
      words constant{type, id, static_cast<std::uint32_t>(*k.parameters[p])};
      if (width->second == 64) constant.push_back(static_cast<std::uint32_t>(*k.parameters[p] >> 32));
      append(declarations_, Op::OpConstant, constant);
      fixed_.insert(id);
    }
    auto [known, fresh] = signatures_.try_emplace(signature, next_id_);
    if (fresh) {
      signature.insert(signature.begin(), next_id_++);
      append(declarations_, Op::OpTypeFunction, signature);
    }
    function_types_[entry->second] = known->second;
  }

  struct parameter_ids {
    std::uint32_t id, type;
  };
  const binary& module_;
  std::uint32_t next_id_, function_ = 0;
  std::map<std::string, std::uint32_t> entries_;  // by symbol
  // `widths_`: bits of a number type, by type. `returns_`: return type, by function.
  std::map<std::uint32_t, std::uint32_t> widths_, returns_;
  std::map<words, std::uint32_t> signatures_;                       // return type and parameters → OpTypeFunction
  std::map<std::uint32_t, std::vector<parameter_ids>> parameters_;  // by function
  std::map<std::uint32_t, std::uint32_t> function_types_;           // new types, by function
  std::set<std::uint32_t> fixed_;                                   // parameters that became constants
  words declarations_;                                              // inserted before the first function
};

}  // namespace

std::vector<std::byte> fix_parameters(std::span<const std::byte> module, std::span<const fixed_kernel> kernels) {
  binary parsed(module);
  words header(header_words);
  std::memcpy(header.data(), module.data(), header_words * 4);
  words made = rewriting(parsed, kernels).apply(header);
  std::vector<std::byte> result(made.size() * 4);
  std::memcpy(result.data(), made.data(), result.size());
  return result;
}

}  // namespace kiln::spirv
