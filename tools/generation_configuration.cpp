#include "tools/generation_configuration.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "ir/error.hpp"
#include "ir/json.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::json;

// Keys of the same meaning; the first one that is there counts.
constexpr std::array context_keys{"context_length", "max_target_positions", "max_position_embeddings", "n_positions",
                                  "n_ctx"};

std::optional<std::int64_t> integer(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>())) return std::nullopt;
  return value.get<std::int64_t>();
}

void read_configuration(const json& document, generation_configuration& into) {
  if (auto found = document.find("eos_token_id"); found != document.end()) {
    if (const auto id = integer(*found)) into.stop_ids = {*id};
    if (found->is_array()) {
      into.stop_ids.clear();
      for (const json& id : *found)
        if (const auto value = integer(id)) into.stop_ids.push_back(*value);
    }
  }
  const auto number = [&](const char* key) -> std::optional<std::int64_t> {
    const auto found = document.find(key);
    return found == document.end() ? std::nullopt : integer(*found);
  };
  if (auto start = number("decoder_start_token_id")) into.decoder_start = start;
  // Relative positions have no end; the number is only that of the training.
  if (document.contains("relative_attention_num_buckets")) return;
  for (const char* key : context_keys)
    if (auto context = number(key)) {
      into.context = context;
      break;
    }
}

}  // namespace

void read_generation_configuration(std::string_view text, generation_configuration& into) {
  const json document = parse_json(text);
  if (!document.is_object()) throw error(error_kind::corrupted, "is not a JSON object");
  // Models of text and images keep what belongs to the text apart; genai keeps all in "model".
  for (const char* part : {"text_config", "model"})
    if (auto found = document.find(part); found != document.end() && found->is_object())
      read_configuration(*found, into);
  read_configuration(document, into);
  const auto name = json::json_pointer("/model/decoder/filename");
  if (!document.contains(name) || !document.at(name).is_string()) return;
  const auto file = document.at(name).get<std::string>();
  if (file.find('\0') == std::string::npos) into.decoder = file;
}

}  // namespace kiln::tools
