#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "tools/shell_completion.hpp"

namespace kiln::tools {
namespace {

// Escapes text for roff: backslashes and hyphens are printed as they are, and no line is read as a request.
std::string roff(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool line_begins = i == 0 || text[i - 1] == '\n';
    if (line_begins && (text[i] == '.' || text[i] == '\'')) result += "\\&";
    switch (text[i]) {
      case '\\': result += "\\e"; break;
      case '-': result += "\\-"; break;
      case '~': result += "\\(ti"; break;
      case '^': result += "\\(ha"; break;
      case '`': result += "\\(ga"; break;
      case '\'': result += "\\(aq"; break;
      default: result += text[i];
    }
  }
  return result;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

void add_options(const std::vector<option_description>& options, std::string& page) {
  for (const option_description& o : options) {
    std::vector<std::string> names;
    for (const std::string& name : o.names) names.push_back(fmt::format("\\fB{}\\fR", roff(name)));
    page += fmt::format(".TP\n{}", fmt::join(names, ", "));
    if (!o.choices.empty()) page += fmt::format(" {}", roff(fmt::format("{{{}}}", fmt::join(o.choices, ","))));
    else if (!o.value.empty() && o.names.front().starts_with('-')) page += fmt::format(" \\fI{}\\fR", roff(o.value));
    page += fmt::format("{}\n{}\n", o.repeated ? " ..." : "", roff(o.text));
    if (o.required && o.names.front().starts_with('-')) page += "It must be given.\n";
  }
}

std::string synopsis(const command_description& command) {
  std::string text = fmt::format("\\fB{}\\fR", roff(command.joined(' ')));
  text += " [\\fIOPTIONS\\fR]";
  for (const option_description& o : command.positionals)
    text += fmt::format(" {}\\fI{}\\fR{}{}", o.required ? "" : "[", roff(o.names.front()), o.required ? "" : "]",
                        o.repeated ? " ..." : "");
  if (!command.commands.empty()) text += " \\fICOMMAND\\fR";
  return text + "\n";
}

// "Example:\n  kiln run ..." as lines that are not filled.
void add_footer(const command_description& command, std::string& page) {
  constexpr std::string_view start = "Example:\n";
  if (!command.footer.starts_with(start)) return;
  page += fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", roff(command.footer.substr(start.size())));
}

}  // namespace

std::string man_page(const command_description& command, const std::string& version) {
  const std::string name = command.joined('-');
  std::string page = fmt::format(
      ".\\\" made by `kiln man-pages`\n.TH {} 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}",
      upper(roff(name)), roff(version), roff(name), roff(command.summary), synopsis(command));
  page += ".SH DESCRIPTION\n" + roff(command.summary) + ".\n";
  if (!command.positionals.empty()) page += ".SH ARGUMENTS\n";
  add_options(command.positionals, page);
  page += ".SH OPTIONS\n";
  add_options(command.options, page);
  if (!command.commands.empty()) page += ".SH COMMANDS\n";
  for (const command_description& c : command.commands) {
    if (command.path.size() == 1) {
      page += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(c.joined('-')), roff(c.summary));
      continue;
    }
    page += fmt::format(".SS {}", synopsis(c)) + roff(c.summary) + ".\n";
    add_options(c.positionals, page);
    add_options(c.options, page);
  }
  add_footer(command, page);
  page +=
      ".SH EXIT STATUS\n0: success. 1: what was checked does not hold. 2: wrong usage. 3: an input cannot be read. "
      "4: a device or component is missing, or a limit has passed. 5: the model does not take these sizes. 130: "
      "interrupted.\n";
  if (command.path.size() > 1) page += ".SH SEE ALSO\n\\fBkiln\\fR(1)\n";
  return page;
}

}  // namespace kiln::tools
