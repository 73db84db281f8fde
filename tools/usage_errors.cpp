#include "tools/usage_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/nearest_name.hpp"

namespace kiln::tools {
namespace {

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent ? fmt::format("{} {}", path_of(*parent), app.get_name()) : "kiln";
}

// With those of the commands around it, which also take them (--json, --quiet).
std::vector<std::string_view> long_options(const CLI::App& app) {
  std::vector<std::string_view> names;
  for (const CLI::App* a = &app; a; a = a->get_parent())
    for (const CLI::Option* option : a->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

std::vector<std::string_view> commands_of(const CLI::App& app) {
  std::vector<std::string_view> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

// The first word that is no command where one has to stand, or no option of its command.
std::optional<std::string> unknown_word(const CLI::App& top, std::span<const char* const> words) {
  const CLI::App* app = &top;
  for (std::string_view word : words) {
    if (word == "--") return std::nullopt;
    if (word.starts_with("--")) {
      const std::string_view name = word.substr(2, word.find('=') - 2);
      const auto known = long_options(*app);
      if (std::ranges::find(known, name) == known.end()) {
        const std::string_view nearest = nearest_name(name, known);
        return fmt::format("--{}: {} has no such option{}", name, path_of(*app),
                           nearest.empty() ? "" : fmt::format("; did you mean '--{}'?", nearest));
      }
    } else if (!word.starts_with("-")) {
      const auto known = commands_of(*app);
      if (known.empty()) continue;  // a value
      if (std::ranges::find(known, word) == known.end()) {
        if (app == &top || app->get_require_subcommand_min() > 0)
          return fmt::format("{}: {} has no such command{}", word, path_of(*app), did_you_mean(word, known));
        continue;
      }
      app = app->get_subcommand(std::string(word));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string describe_usage_error(const CLI::App& app, std::span<const char* const> words,
                                 const CLI::ParseError& problem) {
  std::string text = problem.what();
  if (auto unknown = unknown_word(app, words)) text = *unknown;
  // CLI11 names a double's largest value where a range has no upper limit.
  if (auto range = text.find(" not in range ");
      range != std::string::npos && text.find(" to 17976931", range) != std::string::npos)
    text = text.substr(0, range) + " is too small";
  return text;
}

}  // namespace kiln::tools
