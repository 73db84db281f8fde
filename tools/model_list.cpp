#include "tools/model_list.hpp"

#include <fmt/format.h>

#include <sstream>

#include "ir/error.hpp"
#include "ir/json.hpp"
#include "ir/read_file.hpp"

namespace kiln::tools {
namespace {

constexpr std::string_view blank = " \t\r\n";

std::vector<listed_model> from_json(const std::string& text) try {
  std::vector<listed_model> models;
  for (const auto& m : parse_json(text))
    models.push_back({m.at("file").get<std::string>(), m.value("options", std::vector<std::string>())});
  return models;
} catch (const error& e) {
  throw error(error_kind::usage, fmt::format("not a list of models: {}", e.what()));
} catch (const nlohmann::json::exception& e) {
  throw error(error_kind::usage, fmt::format("not a list of models: {}", problem_of(e)));
}

std::vector<listed_model> from_lines(const std::string& text) {
  std::vector<listed_model> models;
  std::istringstream in(text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    auto begin = line.find_first_not_of(blank);
    if (begin == std::string::npos || line[begin] == '#') continue;
    try {
      auto words = split_words(line);
      models.push_back({words[0], {words.begin() + 1, words.end()}});
    } catch (const error& e) {
      throw error(error_kind::usage, fmt::format("line {}: {}", number, e.what()));
    }
  }
  return models;
}

}  // namespace

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    if (blank.find(text[i]) != std::string_view::npos) {
      ++i;
      continue;
    }
    std::string word;
    for (bool quoted = false; i < text.size() && (quoted || blank.find(text[i]) == std::string_view::npos); ++i) {
      if (text[i] != '"') word += text[i];
      else if (quoted = !quoted; quoted && text.find('"', i + 1) == std::string_view::npos)
        throw error(error_kind::usage, fmt::format("a quote is not closed: {}", text));
    }
    words.push_back(word);
  }
  return words;
}

std::vector<listed_model> read_model_list(const std::filesystem::path& list) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(list, code))
    throw error(error_kind::missing_file, fmt::format("{}: is not a file", list.string()));
  std::string text = read_file(list, json_limits().bytes);
  auto begin = text.find_first_not_of(blank);
  try {
    auto models = begin != std::string::npos && text[begin] == '[' ? from_json(text) : from_lines(text);
    for (listed_model& m : models) m.file = (list.parent_path() / m.file).string();
    return models;
  } catch (const error& e) {
    throw error(e.kind(), fmt::format("{}: {}", list.string(), e.what()));
  }
}

}  // namespace kiln::tools
