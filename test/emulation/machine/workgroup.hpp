// A workgroup's shared memory (LDS), with a detector of races: between two barriers, no two waves may access the same
// byte if one of them writes it.
#pragma once
#include <map>
#include <vector>

#include "wave.hpp"

namespace emulation {

struct workgroup {
  std::vector<std::uint8_t> shared;
  // For each byte: when and by whom it was last read and written, as 256 * phase + number of the wave. A phase ends
  // with a barrier.
  std::vector<std::uint32_t> read, written;
  std::uint32_t phase = 1;
  // Faults by the instruction's address: the first one of each instruction.
  std::map<std::uint64_t, std::string>* findings = nullptr;

  void start(std::size_t bytes);

  // Check an access of `count` bytes of a wave for races, alignment and bytes that nobody has written, and note it.
  // Throw a refusal if it is out of bounds.
  void note_read(const wave& w, const instruction& i, std::uint64_t at, std::uint32_t count);
  // `data` is what will be written: several waves may write the same value to the same place.
  void note_write(const wave& w, const instruction& i, std::uint64_t at, std::uint32_t count, const std::uint8_t* data);
  void note_atomic(const wave& w, const instruction& i, std::uint64_t at, std::uint32_t count);

 private:
  void report(const instruction& i, const char* what);
  void check_place(const instruction& i, std::uint64_t at, std::uint32_t count);
};

}  // namespace emulation
