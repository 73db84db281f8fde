// What the optimizer did, for `kiln compile --explain`: which rewrites fired at which places with which estimated
// savings, and which were considered and refused. Passes get a pointer to the log, which may be null. Each log serves
// one program.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

// Estimated savings per run of the model.
struct estimated_work {
  double flop = 0, bytes = 0;
};

struct rewrite_record {
  std::size_t count = 0;
  // Origins of the first few instructions, without duplicates.
  std::vector<std::string> places;
  // The total over rewrites that estimate their savings.
  estimated_work saved;
};

class rewrite_log {
 public:
  static constexpr std::size_t most_places = 8;
  // (pass name, rule name).
  using key = std::pair<std::string, std::string>;

  void fired(std::string_view pass, std::string_view rule, const std::string& origin, estimated_work saved = {});
  // Counts a refusal once per place, however often a pass considers that place.
  void refused(std::string_view pass, std::string_view reason, const std::string& origin);

  const std::map<key, rewrite_record>& rewrites() const { return rewrites_; }
  // Keyed by (pass, reason).
  const std::map<key, rewrite_record>& refusals() const { return refusals_; }

 private:
  std::map<key, rewrite_record> rewrites_, refusals_;
  std::set<std::pair<key, std::string>> refused_places_;
};

}  // namespace kiln
