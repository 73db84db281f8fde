#include "tools/command_description.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace kiln::tools {
namespace {

// CLI11 writes the values of IsMember into the name of the type: TEXT:{on,off,auto}.
std::vector<std::string> choices_of(std::string_view type) {
  const auto open = type.find(":{"), close = type.rfind('}');
  std::vector<std::string> choices;
  if (open == std::string_view::npos || close == std::string_view::npos) return choices;
  for (std::string_view rest = type.substr(open + 2, close - open - 2); !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    choices.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return choices;
}

option_description describe(const CLI::Option& option) {
  option_description d;
  d.text = option.get_description();
  d.repeated = option.get_expected_max() > 1;
  d.required = option.get_required();
  if (option.get_positional()) {
    d.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_lnames()) d.names.push_back("--" + name);
    for (const std::string& name : option.get_snames()) d.names.push_back("-" + name);
  }
  if (option.get_items_expected_max() == 0) return d;
  const std::string type = option.get_type_name();
  d.value = type.substr(0, type.find_first_of(": "));
  d.choices = choices_of(type);
  return d;
}

command_description describe(const CLI::App& app, std::vector<std::string> path) {
  command_description d;
  d.path = std::move(path);
  d.summary = app.get_description();
  d.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())
      (option->get_positional() ? d.positionals : d.options).push_back(describe(*option));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* s) { return !s->get_group().empty(); })) {
    std::vector<std::string> below = d.path;
    below.push_back(sub->get_name());
    d.commands.push_back(describe(*sub, std::move(below)));
  }
  return d;
}

void append(const command_description& command, std::vector<const command_description*>& to) {
  to.push_back(&command);
  for (const command_description& c : command.commands) append(c, to);
}

}  // namespace

std::string command_description::joined(char separator) const {
  std::string text;
  for (const std::string& word : path) text += (text.empty() ? "" : std::string(1, separator)) + word;
  return text;
}

command_description describe(const CLI::App& app) { return describe(app, {"kiln"}); }

std::vector<const command_description*> all_commands(const command_description& command) {
  std::vector<const command_description*> list;
  append(command, list);
  return list;
}

}  // namespace kiln::tools
