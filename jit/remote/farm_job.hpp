// A job of the build farm: one model, one list of options and one version of Kiln. Its result is one file. Jobs are
// values. The hash of everything that the result depends on is the name of the job in the queue, so identical jobs run
// only once, whoever submits them.
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

// Bounds of a job in the queue: bytes of its text, number of inputs and options, bytes of one string.
inline constexpr std::size_t largest_job_bytes = std::size_t{1} << 20, most_inputs = 4096, most_options = 256,
                             longest_word = 4096;

struct farm_input {
  std::string name;  // relative to the job's folder; the first input is the model
  content_hash hash;
  std::uint64_t bytes = 0;
  std::string path;  // path of the file on storage that all machines share; empty: its bytes are stored as a blob
  friend bool operator==(const farm_input&, const farm_input&) = default;
};

struct farm_job {
  farm_kind kind{};
  std::vector<farm_input> inputs;
  std::vector<std::string> options;  // arguments of the command `kiln compile` or `kiln warm`
  std::string version;               // compiler_version() that the worker must have
  std::string label;                 // for messages only; not part of the identity

  std::string id() const;  // 64 hexadecimal digits
  friend bool operator==(const farm_job&, const farm_job&) = default;
};

// JSON text of a job. read_job throws error{corrupted} for text that is not a job and error{unsupported} for a kind
// that this version does not know. The names of the inputs of a job that was read are distinct relative paths that stay
// inside the job's folder, and the job is within the bounds above.
std::string write_job(const farm_job& job);
farm_job read_job(std::string_view text);

}  // namespace kiln
