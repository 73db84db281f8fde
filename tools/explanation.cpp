#include "tools/explanation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace kiln::tools {
namespace {

nlohmann::ordered_json describe(const std::map<rewrite_log::key, rewrite_record>& records, const char* second) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [key, record] : records) {
    nlohmann::ordered_json entry{{"pass", key.first}, {second, key.second}, {"count", record.count}};
    entry["places"] = record.places;
    if (record.saved.flop != 0) entry["flop_saved"] = record.saved.flop;
    if (record.saved.bytes != 0) entry["bytes_saved"] = record.saved.bytes;
    list.push_back(std::move(entry));
  }
  return list;
}

std::string places(const rewrite_record& record) {
  if (record.places.empty()) return {};
  const bool more = record.count > record.places.size();
  return fmt::format(": {}{}", fmt::join(record.places, ", "), more ? ", ..." : "");
}

std::string savings(const estimated_work& saved) {
  if (saved.flop == 0 && saved.bytes == 0) return {};
  return fmt::format(", saves about {:.3g} MFLOP and {:.3g} MB in a run", saved.flop / 1e6, saved.bytes / 1e6);
}

// Groups boundaries of the same kind. Groups with the most bytes come first.
struct boundary_kind {
  const kernel_boundary* largest;
  std::size_t count = 0;
  double bytes = 0;
};

std::vector<boundary_kind> kinds_of(const std::vector<kernel_boundary>& boundaries) {
  std::map<std::tuple<std::string, std::string, std::string_view>, boundary_kind> found;
  for (const kernel_boundary& b : boundaries) {
    boundary_kind& kind = found.try_emplace({b.producer, b.consumer, b.reason}, boundary_kind{&b}).first->second;
    if (b.bytes > kind.largest->bytes) kind.largest = &b;
    ++kind.count;
    kind.bytes += b.bytes;
  }
  std::vector<boundary_kind> sorted;
  for (const auto& entry : found) sorted.push_back(entry.second);
  std::ranges::stable_sort(sorted, std::greater{}, &boundary_kind::bytes);
  return sorted;
}

}  // namespace

nlohmann::ordered_json describe(const explanation& e) {
  auto boundaries = nlohmann::ordered_json::array();
  for (const kernel_boundary& b : e.boundaries)
    boundaries.push_back({{"producer", b.producer},
                          {"producer_origin", b.producer_origin},
                          {"consumer", b.consumer},
                          {"consumer_origin", b.consumer_origin},
                          {"reason", b.reason},
                          {"bytes", b.bytes}});
  return {{"rewrites", describe(e.log.rewrites(), "rule")},
          {"refused", describe(e.log.refusals(), "reason")},
          {"not_fused", std::move(boundaries)}};
}

void print_explanation(const explanation& e) {
  print("\nrewrites\n");
  for (const auto& [key, record] : e.log.rewrites())
    print("  {:5} x {}/{}{}{}\n", record.count, key.first, key.second, savings(record.saved), places(record));
  print("\nrefused rewrites\n");
  for (const auto& [key, record] : e.log.refusals())
    print("  {:5} x {}: {}{}\n", record.count, key.first, key.second, places(record));
  print("\nnot fused\n");
  for (const boundary_kind& kind : kinds_of(e.boundaries))
    print("  {:5} x {} -> {} ({:.3g} MB): {}; the largest: {} -> {}\n", kind.count, kind.largest->producer,
          kind.largest->consumer, kind.bytes / 1e6, kind.largest->reason, kind.largest->producer_origin,
          kind.largest->consumer_origin);
}

}  // namespace kiln::tools
