#include "aot/rewrite_log.hpp"

#include <algorithm>

namespace kiln {
namespace {

void count_at(rewrite_record& record, const std::string& origin) {
  ++record.count;
  if (origin.empty() || record.places.size() >= rewrite_log::most_places) return;
  if (std::ranges::find(record.places, origin) == record.places.end()) record.places.push_back(origin);
}

}  // namespace

void rewrite_log::fired(std::string_view pass, std::string_view rule, const std::string& origin, estimated_work saved) {
  rewrite_record& record = rewrites_[{std::string(pass), std::string(rule)}];
  count_at(record, origin);
  record.saved.flop += saved.flop;
  record.saved.bytes += saved.bytes;
}

void rewrite_log::refused(std::string_view pass, std::string_view reason, const std::string& origin) {
  const key at{std::string(pass), std::string(reason)};
  if (refused_places_.emplace(at, origin).second) count_at(refusals_[at], origin);
}

}  // namespace kiln
