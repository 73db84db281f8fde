#include "tools/prompt_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/sequence_errors.hpp"
#include "tools/npy.hpp"

namespace kiln::tools {
namespace {

literal read_integers(const std::string& file) {
  literal data = read_npy(file);
  const shape& type = data.type();
  if ((!is_integer(type.type) && type.type != element_type::boolean) || type.rank() < 1 || type.rank() > 2)
    throw error(error_kind::usage, fmt::format("{}: is {}, not integers [ids] or [prompts, ids]", file, type.str()));
  return data;
}

id_rows rows_of(const literal& data) {
  const auto dims = data.type().static_dims();
  const std::int64_t columns = dims.back(), rows = dims.size() == 1 ? 1 : dims[0];
  id_rows result(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows * columns; ++i)
    result[static_cast<std::size_t>(i / columns)].push_back(data.at_int(i));
  return result;
}

// The ids where the mask is 1.
std::vector<std::int64_t> unmasked(const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& mask,
                                   const std::string& file, std::size_t row) {
  if (std::ranges::any_of(mask, [](std::int64_t m) { return m != 0 && m != 1; }))
    throw error(invalid_sequence, fmt::format("{}: row {} has elements other than 0 and 1", file, row));
  const auto begin = std::ranges::find(mask, 1);
  const auto end = std::find(begin, mask.end(), 0);
  if (std::find(end, mask.end(), 1) != mask.end())
    throw error(invalid_sequence, fmt::format("{}: row {} has a 0 between ones; only padding before or after a prompt "
                                              "can be masked",
                                              file, row));
  const auto first = begin - mask.begin(), last = end - mask.begin();
  return {ids.begin() + first, ids.begin() + last};
}

}  // namespace

id_rows read_prompts(const std::vector<std::string>& files, const std::string& mask) {
  id_rows prompts;
  for (const std::string& file : files)
    for (auto& row : rows_of(read_integers(file))) prompts.push_back(std::move(row));
  if (mask.empty()) return prompts;
  if (files.size() != 1) throw error(error_kind::usage, "--prompt-mask: it belongs to one --prompt-ids");
  const id_rows masks = rows_of(read_integers(mask));
  if (masks.size() != prompts.size() || masks[0].size() != prompts[0].size())
    throw error(invalid_sequence, fmt::format("{}: has {} x {} elements, the prompt has {} x {} ids", mask,
                                              masks.size(), masks[0].size(), prompts.size(), prompts[0].size()));
  for (std::size_t r = 0; r < prompts.size(); ++r) prompts[r] = unmasked(prompts[r], masks[r], mask, r);
  return prompts;
}

}  // namespace kiln::tools
