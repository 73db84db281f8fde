#include "ir/code_object.hpp"

#include "ir/error.hpp"

namespace kiln {

code_object code_object::make(std::string symbol, code_format format, const content_hash& payload, std::string target,
                              const std::vector<shape>& outputs) {
  code_object result{std::move(symbol), format, payload.hex(), std::move(target), {}, {}, {}};
  for (const shape& s : outputs) {
    result.types.emplace_back(kiln::name(s.type));
    result.ranks.push_back(static_cast<std::int64_t>(s.rank()));
    result.dims.insert(result.dims.end(), s.dims.begin(), s.dims.end());
  }
  return result;
}

std::vector<shape> code_object::infer(std::span<const shape>) const {
  std::vector<shape> outputs;
  std::size_t at = 0;
  if (types.size() != ranks.size())
    throw error(error_kind::corrupted, "code object '" + symbol + "' has a malformed list of outputs");
  for (std::size_t i = 0; i < types.size(); ++i) {
    auto type = parse_element_type(types[i]);
    if (!type || ranks[i] < 0 || static_cast<std::size_t>(ranks[i]) > dims.size() - at)
      throw error(error_kind::corrupted, "code object '" + symbol + "' has a malformed list of outputs");
    auto rank = static_cast<std::size_t>(ranks[i]);
    outputs.push_back(
        {*type,
         {dims.begin() + static_cast<std::ptrdiff_t>(at), dims.begin() + static_cast<std::ptrdiff_t>(at + rank)}});
    at += rank;
  }
  if (at != dims.size())
    throw error(error_kind::corrupted, "code object '" + symbol + "' has a malformed list of outputs");
  return outputs;
}

std::vector<literal> code_object::evaluate(std::span<const literal>) const {
  if (format != code_format::native)
    throw error(error_kind::not_native, "code object '" + symbol + "' is " + std::string(enum_name(format)) +
                                            ", not native: finalize it for a device first");
  throw error(error_kind::internal,
              "native code object '" + symbol + "' runs on a device, not in the reference interpreter");
}

}  // namespace kiln
