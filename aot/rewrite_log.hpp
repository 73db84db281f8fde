// What the optimizer did, for `kiln compile --explain`: which rewrites fired where and what they saved by estimate, and
// which ones were considered and refused. Passes get a pointer, which may be null. One program at a time.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

// Estimated savings of one run of the model.
struct estimated_work {
  double flop = 0, bytes = 0;
};

struct rewrite_record {
  std::size_t count = 0;
  std::vector<std::string> places;  // origins of the first instructions, each once
  estimated_work saved;             // only of rewrites that estimate it
};

class rewrite_log {
 public:
  static constexpr std::size_t most_places = 8;
  // (pass, rule)
  using key = std::pair<std::string, std::string>;

  void fired(std::string_view pass, std::string_view rule, const std::string& origin, estimated_work saved = {});
  // Each refusal counts once, however often a pass looks at the same place.
  void refused(std::string_view pass, std::string_view reason, const std::string& origin);

  const std::map<key, rewrite_record>& rewrites() const { return rewrites_; }
  // By (pass, reason).
  const std::map<key, rewrite_record>& refusals() const { return refusals_; }

 private:
  std::map<key, rewrite_record> rewrites_, refusals_;
  std::set<std::pair<key, std::string>> refused_places_;
};

}  // namespace kiln
