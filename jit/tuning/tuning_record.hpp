// The result of tuning one kernel (payload and concrete shapes) on one class of devices: every candidate with its time,
// or with the reason why it has none. Records are plain values with a text form (JSON) that people can read.
// docs/tuning.md describes the fields.
//
// Records of the same kernel and class can be merged. merge() is commutative, associative and idempotent, so copies may
// be merged in any order. A record holds one session per compiler; sessions of other compilers serve as hints. A file
// keeps the newest `most_sessions`.
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

// Version 2 names the compiler by a digest of its sources, where version 1 had a number.
inline constexpr int tuning_record_version = 2;
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
  // The median of the samples and its 95 % interval; 0 if the candidate was never timed.
  double ms = 0, low_ms = 0, high_ms = 0;
  int samples = 0;
  std::string reason;  // of a failure: the error; of a duplicate: the candidate with the same code
  friend bool operator==(const candidate_result&, const candidate_result&) = default;
};

// The compiler that produced the candidates: where a hint comes from.
struct compiler_identity {
  std::string code;  // compiler_code() of jit/code_digest.hpp; "pipeline 6" in records of version 1
  std::string llvm;
  friend auto operator<=>(const compiler_identity&, const compiler_identity&) = default;
};

struct tuning_session {
  compiler_identity compiler;
  std::int64_t tuned_at = 0;  // seconds since 1970, when this compiler tuned the kernel last; 0 in records of version 1
  int generation = 1;         // 1 for the first session of this compiler, one more each time the kernel is tuned again
  tuning_effort effort = tuning_effort::off;
  bool complete = true;                  // every candidate of that effort was tried; false if the budget ended first
  kernel_configuration winner;           // empty: the default won
  double default_ms = 0, winner_ms = 0;  // medians of the final comparison, in which both are sampled alternately
  double error = 0;                      // the largest ‖winner - default‖ / ‖default‖ of all outputs
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
  std::vector<tuning_session> sessions;  // one for each compiler, sorted by compiler, the newest first

  const tuning_session* session_of(const compiler_identity& compiler) const;  // null: none
  friend bool operator==(const tuning_record&, const tuning_record&) = default;
};

// Both records must describe the same kernel and class. If both have a session of the same compiler, one is kept: that
// of the higher generation, else the one with more timed candidates, else with more effort, else the complete one, else
// the one whose text compares greater; its tuned_at becomes the latest of both. The newest session comes first.
tuning_record merge(const tuning_record& a, const tuning_record& b);
// Without the sessions after the first `most_sessions`.
tuning_record newest_sessions(tuning_record record);

std::string to_text(const tuning_record& record);
// Throws error{newer_version} for a record of a later version of the format, error{corrupted} for anything else that is
// not a record.
tuning_record parse_record(std::string_view text);
// Like parse_record, for a record that is part of a larger document.
tuning_record read_record(const nlohmann::ordered_json& document);

}  // namespace kiln
