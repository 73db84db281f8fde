// Damage for SPIR-V modules: single bits and words, whole instructions moved, repeated, dropped or mixed, ids and
// literals exchanged. The same seed gives the same damage. Half of it respects types (another value of the same type,
// another instruction with as many words), which the validator lets through more often. Used by
// test/long/fuzz_spirv.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include "spirv/reader/opcodes.hpp"

namespace kiln::spirv {

class mutator {
 public:
  explicit mutator(std::uint64_t seed) : random_(seed) {}

  std::vector<std::byte> damaged(std::span<const std::byte> module) {
    std::vector<std::uint32_t> words(module.size() / 4);
    std::memcpy(words.data(), module.data(), words.size() * 4);
    do below(2) ? damage(words) : damage_within_types(words);
    while (below(3) == 0);
    std::vector<std::byte> result(words.size() * 4);
    std::memcpy(result.data(), words.data(), result.size());
    if (below(50) == 0) result.resize(below(result.size() + 1));
    return result;
  }

 private:
  static constexpr std::size_t header = 5;
  std::size_t below(std::size_t n) { return n ? std::uniform_int_distribution<std::size_t>(0, n - 1)(random_) : 0; }

  struct part {
    std::size_t at, size;
  };
  static std::vector<part> instructions(const std::vector<std::uint32_t>& words) {
    std::vector<part> result;
    for (std::size_t at = header; at < words.size();) {
      std::size_t size = std::max<std::size_t>(1, words[at] >> 16);
      if (size > words.size() - at) break;
      result.push_back({at, size});
      at += size;
    }
    return result;
  }

  void damage_within_types(std::vector<std::uint32_t>& words) {
    auto parts = instructions(words);
    std::unordered_map<std::uint32_t, std::uint32_t> type_of;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> of_type;
    std::unordered_map<std::size_t, std::vector<part>> of_size;
    for (part p : parts) {
      bool result = false, type = false;
      spv::HasResultAndType(static_cast<spv::Op>(words[p.at] & 0xffffu), &result, &type);
      if (!type || !result || p.size < 3) continue;
      type_of[words[p.at + 2]] = words[p.at + 1];
      of_type[words[p.at + 1]].push_back(words[p.at + 2]);
      of_size[p.size].push_back(p);
    }
    if (of_size.empty()) return;
    auto group = std::next(of_size.begin(), static_cast<std::ptrdiff_t>(below(of_size.size())));
    part p = group->second[below(group->second.size())], q = group->second[below(group->second.size())];
    if (below(4) == 0) words[p.at] = words[q.at];
    std::uint32_t& operand = words[p.at + 2 + (p.size > 3 ? 1 + below(p.size - 3) : 0)];
    auto type = type_of.find(operand);
    if (p.size > 3 && type != type_of.end()) operand = of_type[type->second][below(of_type[type->second].size())];
  }

  void damage(std::vector<std::uint32_t>& words) {
    auto parts = instructions(words);
    if (parts.empty()) return;
    part p = parts[below(parts.size())], q = parts[below(parts.size())];
    std::size_t word = p.at + 1 + below(p.size - 1), bound = words.size() > 3 ? words[3] : 1;
    if (p.size == 1) word = p.at;
    switch (below(11)) {
      case 0: words[below(words.size())] ^= 1u << below(32); return;
      case 1: words[below(words.size())] = static_cast<std::uint32_t>(random_()); return;
      case 2: words[word] = static_cast<std::uint32_t>(below(bound)); return;  // another id
      case 3: words[word] = static_cast<std::uint32_t>(below(70)); return;     // another literal
      case 4:
        words[p.at] = (words[p.at] & 0xffff0000u) | (words[q.at] & 0xffffu);
        return;  // another opcode of this module
      case 5: words[p.at] = (words[p.at] & 0xffff0000u) | static_cast<std::uint32_t>(below(420)); return;
      case 6:
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(p.at),
                    words.begin() + static_cast<std::ptrdiff_t>(p.at + p.size));
        return;
      case 7: {
        std::vector<std::uint32_t> copy(words.begin() + static_cast<std::ptrdiff_t>(p.at),
                                        words.begin() + static_cast<std::ptrdiff_t>(p.at + p.size));
        words.insert(words.begin() + static_cast<std::ptrdiff_t>(q.at), copy.begin(), copy.end());
        return;
      }
      case 8:  // operands of two instructions change places
        for (std::size_t k = 1; k < std::min(p.size, q.size); ++k) std::swap(words[p.at + k], words[q.at + k]);
        return;
      case 9: std::swap(words[word], words[q.at + below(q.size)]); return;
      default:
        if (p.size == q.size)
          std::swap_ranges(words.begin() + static_cast<std::ptrdiff_t>(p.at),
                           words.begin() + static_cast<std::ptrdiff_t>(p.at + p.size),
                           words.begin() + static_cast<std::ptrdiff_t>(q.at));
    }
  }

  std::mt19937_64 random_;
};

}  // namespace kiln::spirv
