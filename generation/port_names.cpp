#include "generation/port_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <span>
#include <vector>

namespace kiln {
namespace {

enum class count : std::uint8_t { one, any };

// The first row whose words are all in the name, and whose type and rank fit, decides.
struct role_row {
  input_role role;
  bool boolean, integer, floating;
  std::size_t least_rank, most_rank;
  count elements;
  std::array<std::string_view, 2> words;
};

constexpr std::array rows{
    role_row{input_role::cache_branch, true, true, false, 0, 1, count::one, {"branch", ""}},
    role_row{input_role::cache_branch, true, false, false, 0, 1, count::one, {"cache", ""}},
    role_row{input_role::encoder_mask, true, true, false, 2, 2, count::any, {"encoder", "mask"}},
    role_row{input_role::encoder_mask, true, true, false, 2, 2, count::any, {"cross", "mask"}},
    role_row{input_role::mask, true, true, false, 2, 2, count::any, {"mask", ""}},
    role_row{input_role::encoder_states, false, false, true, 3, 3, count::any, {"encoder", ""}},
    role_row{input_role::positions, false, true, false, 1, 3, count::any, {"pos", ""}},
    role_row{input_role::positions, false, true, false, 0, 1, count::one, {"pos", ""}},
    role_row{input_role::total_length, false, true, false, 0, 1, count::one, {"total", "len"}},
    role_row{input_role::past_length, false, true, false, 0, 1, count::one, {"past", "len"}},
    role_row{input_role::last_keys, false, true, false, 1, 2, count::any, {"seqlens", "k"}},
    role_row{input_role::tokens, false, true, false, 2, 2, count::any, {"input", "ids"}},
    role_row{input_role::tokens, false, true, false, 2, 2, count::any, {"token", ""}},
    role_row{input_role::tokens, false, true, false, 2, 2, count::any, {"ids", ""}},
};

constexpr std::array<std::string_view, 3> state_words{"past", "cache", "state"};
// Words by which exporters tell a state before a step from the state after it.
constexpr std::array<std::string_view, 12> versions{"past",   "present", "values",  "in",  "out",   "input",
                                                    "output", "new",     "updated", "old", "cache", "next"};
struct synonym {
  std::string_view word, meaning;
};
constexpr std::array synonyms{synonym{"k", "key"},         synonym{"keys", "key"},     synonym{"v", "value"},
                              synonym{"cross", "encoder"}, synonym{"self", "decoder"}, synonym{"states", "state"}};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool has_one_element(const shape& type) { return type.is_static() && type.element_count() == 1; }

bool fits(const role_row& row, const std::string& name, const shape& type) {
  const bool kind = (row.boolean && type.type == element_type::boolean) || (row.integer && is_integer(type.type)) ||
                    (row.floating && is_float(type.type));
  if (!kind || type.rank() < row.least_rank || type.rank() > row.most_rank) return false;
  if (row.elements == count::one && !has_one_element(type)) return false;
  return std::ranges::all_of(row.words, [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

// Words of letters and numbers of digits: "past_k0" gives past, k, 0.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words;
  int before = 0;  // 0: neither, 1: letter, 2: digit
  for (unsigned char c : name) {
    const int kind = std::isdigit(c) ? 2 : std::isalpha(c) ? 1 : 0;
    if (kind != 0 && kind != before) words.emplace_back();
    if (kind != 0) words.back() += static_cast<char>(c);
    before = kind;
  }
  return words;
}

}  // namespace

input_role role_of(std::string_view name, const shape& type) {
  const std::string text = lower(name);
  const auto found = std::ranges::find_if(rows, [&](const role_row& row) { return fits(row, text, type); });
  return found == rows.end() ? input_role::unknown : found->role;
}

std::string state_key(std::string_view name) {
  std::string text = lower(name);
  // The "key" of this prefix is not a word of the state.
  constexpr std::string_view both = "key_values";
  if (const auto at = text.find(both); at != std::string::npos) text.erase(at, both.size());
  std::multiset<std::string> kept;
  for (const std::string& word : words_of(text)) {
    if (std::ranges::find(versions, word) != versions.end()) continue;
    const auto same = std::ranges::find(synonyms, word, &synonym::word);
    kept.insert(same == synonyms.end() ? word : std::string(same->meaning));
  }
  std::string key;
  for (const std::string& word : kept) key += (key.empty() ? "" : ".") + word;
  return key;
}

bool names_state(std::string_view name) {
  const std::string text = lower(name);
  return std::ranges::any_of(state_words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

}  // namespace kiln
