#include "workgroup.hpp"

#include <algorithm>

namespace emulation {

namespace {

// Who read a byte when several waves did.
constexpr std::uint32_t several = 255;
constexpr std::uint32_t phase_of(std::uint32_t tag) { return tag >> 8; }
constexpr const char* race = "race in LDS: two waves access a byte between two barriers";

}  // namespace

void workgroup::start(std::size_t bytes) {
  shared.assign(bytes, 0xFF);  // NaN: LDS is not cleared on the device
  read.assign(bytes, 0);
  written.assign(bytes, 0);
  phase = 1;
}

void workgroup::report(const instruction& i, const char* what) {
  if (findings) findings->emplace(i.address, what);
}

void workgroup::check_place(const instruction& i, std::uint64_t at, std::uint32_t count) {
  if (at + count > shared.size())
    throw refusal("LDS access out of bounds: " + std::to_string(count) + " bytes at " + std::to_string(at) + " of " +
                  std::to_string(shared.size()));
  if (at % std::min(count, 4U)) report(i, "LDS access that is not aligned");
}

void workgroup::note_read(const wave& w, const instruction& i, std::uint64_t at, std::uint32_t count) {
  check_place(i, at, count);
  const std::uint32_t own = phase << 8 | static_cast<std::uint32_t>(w.number);
  for (std::uint64_t b = at; b < at + count; ++b) {
    if (phase_of(written[b]) == phase && written[b] != own) report(i, race);
    if (written[b] == 0) report(i, "LDS is read that was never written");
    read[b] = phase_of(read[b]) == phase && read[b] != own ? phase << 8 | several : own;
  }
}

void workgroup::note_write(const wave& w, const instruction& i, std::uint64_t at, std::uint32_t count,
                           const std::uint8_t* data) {
  check_place(i, at, count);
  const std::uint32_t own = phase << 8 | static_cast<std::uint32_t>(w.number);
  for (std::uint64_t b = at; b < at + count; ++b) {
    const bool is_same = phase_of(written[b]) == phase && shared[b] == data[b - at];
    if (phase_of(written[b]) == phase && written[b] != own && !is_same) report(i, race);
    if (phase_of(read[b]) == phase && read[b] != own && !is_same) report(i, race);
    written[b] = own;
  }
}

void workgroup::note_atomic(const wave& w, const instruction& i, std::uint64_t at, std::uint32_t count) {
  check_place(i, at, count);
  const std::uint32_t own = phase << 8 | static_cast<std::uint32_t>(w.number);
  for (std::uint64_t b = at; b < at + count; ++b) {
    if (phase_of(written[b]) == phase && written[b] != own && (written[b] & 255) != several) report(i, race);
    if (phase_of(read[b]) == phase && read[b] != own) report(i, race);
    if (written[b] == 0) report(i, "LDS is read that was never written");
    written[b] = phase << 8 | several;
  }
}

}  // namespace emulation
