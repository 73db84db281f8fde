#include "mlir_bridge/back_ends/nvidia/ptx_info.hpp"

#include <iterator>
#include <regex>
#include <utility>

#include "ir/error.hpp"

namespace kiln::gpu {
namespace {

std::int64_t count(const std::string& text, const std::regex& form) {
  return std::distance(std::sregex_iterator(text.begin(), text.end(), form), std::sregex_iterator());
}

}  // namespace

std::vector<ptx_entry_info> read_ptx(std::string_view text) {
  static const std::regex entry_form("\\.entry\\s+([\\w$]+)");
  static const std::regex matrix_form("[\\s}]mma\\.(sp(::\\w+)?\\.)?sync\\."), group_form("[\\s}]wgmma\\.mma_async\\.");
  static const std::regex local_form("\\.local\\s+(?:\\.align\\s+\\d+\\s+)?\\.b(\\d+)\\s+[\\w$]+(?:\\[(\\d+)\\])?");
  if (text.find(".version") == std::string_view::npos)
    throw error(error_kind::corrupted, "damaged PTX: it has no .version");
  std::string all(text);
  // Name of the entry, offset in the text.
  std::vector<std::pair<std::string, std::size_t>> entries;
  for (std::sregex_iterator i(all.begin(), all.end(), entry_form), end; i != end; ++i)
    entries.emplace_back((*i)[1], i->position());
  std::vector<ptx_entry_info> result;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::size_t stop = i + 1 < entries.size() ? entries[i + 1].second : all.size();
    std::string body = all.substr(entries[i].second, stop - entries[i].second);
    ptx_entry_info info{entries[i].first, count(body, matrix_form), count(body, group_form), 0};
    for (std::sregex_iterator l(body.begin(), body.end(), local_form), end; l != end; ++l)
      info.local_bytes += std::stoll((*l)[1]) / 8 * ((*l)[2].matched ? std::stoll((*l)[2]) : 1);
    result.push_back(std::move(info));
  }
  return result;
}

}  // namespace kiln::gpu
