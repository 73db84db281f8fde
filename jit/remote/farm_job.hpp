// What the build farm does: one job is one model, one list of options and one version of Kiln, and has one result, a
// file. Jobs are values; the hash of all that the result depends on is the job's name in the queue, so that the same
// job is done once whoever submits it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/enum_names.hpp"
#include "ir/hash.hpp"

namespace kiln {

enum class farm_kind : std::uint8_t { compile, warm };
template <>
struct enum_table<farm_kind> {
  static constexpr std::array<std::string_view, 2> names{"compile", "warm"};
};

// Bounds of a job as it lies in the queue.
inline constexpr std::size_t largest_job_bytes = std::size_t{1} << 20, most_inputs = 4096, most_options = 256,
                             longest_word = 4096;

struct farm_input {
  std::string name;  // relative to the job's folder; the first input is the model
  content_hash hash;
  std::uint64_t bytes = 0;
  std::string path;  // where every machine has the file; empty: its bytes are a blob
  friend bool operator==(const farm_input&, const farm_input&) = default;
};

struct farm_job {
  farm_kind kind{};
  std::vector<farm_input> inputs;
  std::vector<std::string> options;  // words of the command line of the job's kind
  std::string version;               // compiler_version() of whoever does it
  std::string label;                 // for people; not part of the identity

  std::string id() const;  // 64 hexadecimal digits
  friend bool operator==(const farm_job&, const farm_job&) = default;
};

// JSON. Reading throws error{corrupted} for text that is no job, error{unsupported} for a kind that this version does
// not know. Names of inputs differ and stay within their folder; everything is within the bounds above.
std::string write_job(const farm_job& job);
farm_job read_job(std::string_view text);

}  // namespace kiln
