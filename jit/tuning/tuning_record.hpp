// What tuning found for one kernel (payload and concrete shapes) on one class of devices: every candidate with its time
// or the reason why it has none. Plain values, and a text form (JSON) that a person can read. docs/tuning.md describes
// the fields.
//
// Records of the same kernel and class merge: merge() is commutative, associative and idempotent, so copies may meet in
// any order. A record holds a session for each version of the compiler, at most `most_sessions`; those of other
// versions are hints.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ir/enum_names.hpp"
#include "ir/hash.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/candidates.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"

namespace kiln {

inline constexpr int tuning_record_version = 1;
inline constexpr std::size_t most_sessions = 3;

enum class candidate_outcome : std::uint8_t {
  measured,
  duplicate,
  compile_failed,
  launch_failed,
  timed_out,
  wrong_numbers
};
template <>
struct enum_table<candidate_outcome> {
  static constexpr std::array<std::string_view, 6> names{"measured",      "duplicate", "compile failed",
                                                         "launch failed", "timed out", "wrong numbers"};
};

struct candidate_result {
  kernel_configuration configuration;  // empty: the default one
  candidate_outcome outcome = candidate_outcome::measured;
  double ms = 0, low_ms = 0,
         high_ms = 0;  // the median of its samples and a 95 % interval of that median; 0 where it was never timed
  int samples = 0;
  std::string reason;  // of a failure: the error; of a duplicate: whose code it is
  friend bool operator==(const candidate_result&, const candidate_result&) = default;
};

// The compiler that made the candidates.
struct compiler_identity {
  int pipeline = 0;
  std::string llvm;
  friend auto operator<=>(const compiler_identity&, const compiler_identity&) = default;
};

struct tuning_session {
  compiler_identity compiler;
  int generation = 1;  // counts how often this kernel was tuned again on purpose
  tuning_effort effort = tuning_effort::off;
  bool complete = true;                  // every candidate of that effort was tried; otherwise the budget ended first
  kernel_configuration winner;           // empty: the default one won
  double default_ms = 0, winner_ms = 0;  // of the final, in which both took turns
  double error = 0;                      // ‖winner - default‖ / ‖default‖ over the outputs, the largest
  std::vector<candidate_result> candidates;
  friend bool operator==(const tuning_session&, const tuning_session&) = default;
};

struct record_identity {
  std::string payload;                       // hex
  std::vector<std::string> inputs, outputs;  // shapes as text
  std::string device_class;
  content_hash hash() const;
  friend bool operator==(const record_identity&, const record_identity&) = default;
};
record_identity identify(const std::string& payload, const std::vector<shape>& inputs,
                         const std::vector<shape>& outputs, const std::string& device_class);

struct tuning_record {
  record_identity identity;
  std::vector<tuning_session> sessions;  // one for each compiler, the newest first

  const tuning_session* session_of(const compiler_identity& compiler) const;  // null: none
  friend bool operator==(const tuning_record&, const tuning_record&) = default;
};

// Both describe the same kernel and class. For each compiler the session of the higher generation, then of more timed
// candidates, then of more effort, then the complete one stays, and then the one whose text is greater; of the
// compilers, the newest.
tuning_record merge(const tuning_record& a, const tuning_record& b);

std::string to_text(const tuning_record& record);
// Throws error{newer_version} for a record of a later version, error{corrupted} for all else that is not one.
tuning_record parse_record(std::string_view text);
// The same for a record that is part of a larger document.
tuning_record read_record(const nlohmann::ordered_json& document);

}  // namespace kiln
