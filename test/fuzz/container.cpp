// A `.kiln` file. Where the frame is readable, its hashes are made right again, so that mutants get past them.
#include <cstring>

#include "fuzz_target.hpp"
#include "ir/container/container.hpp"
#include "ir/container/format.hpp"
#include "ir/error.hpp"
#include "ir/trust/native_consent.hpp"

namespace kiln::fuzzing {
namespace {

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void put(std::span<std::byte> bytes, std::size_t at, const content_hash& hash) {
  std::memcpy(bytes.data() + at, hash.bytes.data(), hash.bytes.size());
}

void repair(std::span<std::byte> file) {
  using namespace container;
  if (file.size() < header_bytes) return;
  const std::uint64_t size = file.size();
  std::memcpy(file.data() + 16, &size, sizeof size);
  const auto rows = number_at<std::uint32_t>(file, 12);
  if (rows > max_sections || header_bytes + rows * table_row_bytes > file.size()) return;
  content_hash weights;
  for (int round = 0; round < 2; ++round)  // the row of the weights has the hash of their index
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t at = header_bytes + r * table_row_bytes;
      const auto kind = static_cast<section_kind>(number_at<std::uint32_t>(file, at));
      const auto offset = number_at<std::uint64_t>(file, at + 8), stored = number_at<std::uint64_t>(file, at + 16);
      if (kind == section_kind::weights) put(file, at + 32, weights);
      if (kind == section_kind::weights || offset > file.size() || stored > file.size() - offset) continue;
      const content_hash hash = blake3(file.subspan(offset, stored));
      put(file, at + 32, hash);
      if (kind == section_kind::weights_index) weights = hash;
    }
  std::vector<std::byte> covered(file.begin(), file.begin() + 32);
  const auto table = file.subspan(header_bytes, rows * table_row_bytes);
  covered.insert(covered.end(), table.begin(), table.end());
  put(file, 32, blake3(covered));
}

template <class Read>
void attempt(Read read) {
  try {
    read();
  } catch (const error& e) {
    require(e.kind() != error_kind::internal, e.what());
  }
}

}  // namespace

void read_input(std::span<const std::byte> input) {
  std::vector<std::byte> file(input.begin(), input.end());
  if (!file.empty() && (file.back() & std::byte{1}) == std::byte{0}) repair(file);
  const auto path = as_file(file);
  const native_consent nobody, anybody{.allow_unsigned = true};
  attempt([&] { read_program(path, nobody); });
  attempt([&] { read_extras(path); });
  attempt([&] { read_steps(path); });
  attempt([&] { inspect(path); });
  const program p = read_program(path, anybody);
  require(!p.str().empty(), "a program has a text");
}

}  // namespace kiln::fuzzing
