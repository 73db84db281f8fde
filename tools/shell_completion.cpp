#include "tools/shell_completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::tools {
namespace {

// Text between single quotes of a shell. fish takes \' inside, others do not.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text) result += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return result + "'";
}

// The first sentence of a description, for lists in which one line stands for an option.
std::string brief(const std::string& text) {
  const std::string first = text.substr(0, std::min(text.find(". "), text.find("; ")));
  return first.size() <= 90 ? first : first.substr(0, first.rfind(' ', 87)) + "...";
}

std::vector<std::string> option_names(const command_description& command) {
  std::vector<std::string> names;
  for (const option_description& o : command.options) names.insert(names.end(), o.names.begin(), o.names.end());
  return names;
}

std::vector<std::string> command_names(const command_description& command) {
  std::vector<std::string> names;
  for (const command_description& c : command.commands) names.push_back(c.path.back());
  return names;
}

// A specification of _arguments: special characters of its own syntax are escaped.
std::string zsh_text(std::string_view text, std::string_view special) {
  std::string result;
  for (char c : text) result += (special.find(c) == std::string_view::npos ? "" : "\\") + std::string(1, c);
  return result;
}

std::string zsh_value(const option_description& o) {
  if (o.value.empty()) return "";
  const std::string action = o.choices.empty() ? "_files" : fmt::format("({})", fmt::join(o.choices, " "));
  return fmt::format(":{}:{}", o.value, action);
}

void zsh_function(const command_description& command, std::string& text) {
  text += fmt::format("_{}() {{\n  local context state state_descr line\n  typeset -A opt_args\n  _arguments -C",
                      command.joined('_'));
  for (const option_description& o : command.options)
    for (const std::string& name : o.names) {
      const std::string others = o.repeated ? "*" : fmt::format("({})", fmt::join(o.names, " "));
      text += fmt::format(" \\\n    {}", shell_quoted(fmt::format("{}{}[{}]{}", others, name,
                                                                  zsh_text(brief(o.text), "[]\\"), zsh_value(o))));
    }
  if (command.commands.empty()) {
    text += " \\\n    '*:file:_files'\n}\n\n";
    return;
  }
  std::string list, cases;
  for (const command_description& c : command.commands) {
    list += fmt::format(" {}\\:{}", c.path.back(), shell_quoted(brief(c.summary)));
    cases += fmt::format("    {}) _{} ;;\n", c.path.back(), c.joined('_'));
  }
  // The list is inside single quotes already: its own quotes become '\''.
  text += fmt::format(" \\\n    {} \\\n    '*:: :->words'\n", shell_quoted(fmt::format("1:command:(({}))", list)));
  text += fmt::format("  [[ $state == words ]] && case $words[1] in\n{}  esac\n}}\n\n", cases);
}

}  // namespace

std::string bash_completion(const command_description& top) {
  std::string paths, options, values;
  for (const command_description* c : all_commands(top)) {
    const std::string path = c->joined(' ');
    if (c != &top) paths += fmt::format("{}\"{}\"", paths.empty() ? "" : "|", path);
    options += fmt::format("    \"{}\") options=\"{}\" commands=\"{}\" ;;\n", path, fmt::join(option_names(*c), " "),
                           fmt::join(command_names(*c), " "));
    for (const option_description& o : c->options) {
      if (o.value.empty()) continue;
      std::string patterns;
      for (const std::string& name : o.names)
        patterns += fmt::format("{}\"{} {}\"", patterns.empty() ? "" : "|", path, name);
      values += o.choices.empty() ? fmt::format("    {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", patterns)
                                  : fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n",
                                                patterns, fmt::join(o.choices, " "));
    }
  }
  return fmt::format(R"(# bash completion for kiln; made by `kiln completion bash`
_kiln() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} path=kiln options= commands= i
  # --option=value is three words for bash.
  [[ $previous == = ]] && previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  [[ $word == = ]] && previous=${{COMP_WORDS[COMP_CWORD - 1]}} word=
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
    {}) path+=" ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path" in
{}  esac
  case "$path $previous" in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $commands ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _kiln kiln
)",
                     paths, options, values);
}

std::string zsh_completion(const command_description& top) {
  std::string text = "#compdef kiln\n# zsh completion for kiln; made by `kiln completion zsh`\n\n";
  for (const command_description* c : all_commands(top)) zsh_function(*c, text);
  return text + "if [ \"$funcstack[1]\" = _kiln ]; then _kiln \"$@\"; else compdef _kiln kiln; fi\n";
}

std::string fish_completion(const command_description& top) {
  std::string paths, text;
  for (const command_description* c : all_commands(top)) {
    const std::string path = c->joined(' '), condition = fmt::format("-n \"__kiln_at '{}'\"", path);
    if (c != &top) paths += fmt::format(" '{}'", path);
    for (const command_description& below : c->commands)
      text += fmt::format("complete -c kiln {} -f -a {} -d {}\n", condition, below.path.back(),
                          fish_quoted(brief(below.summary)));
    for (const option_description& o : c->options) {
      text += fmt::format("complete -c kiln {}", condition);
      for (const std::string& name : o.names)
        text += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2)) : fmt::format(" -s {}", name.substr(1));
      if (!o.choices.empty()) text += fmt::format(" -x -a '{}'", fmt::join(o.choices, " "));
      else if (!o.value.empty()) text += " -r";
      text += fmt::format(" -d {}\n", fish_quoted(brief(o.text)));
    }
  }
  return fmt::format(R"(# fish completion for kiln; made by `kiln completion fish`
# Whether the words before the cursor name this command.
function __kiln_at
    set -l path kiln
    set -l words (commandline -opc)
    for word in $words[2..-1]
        contains -- "$path $word"{} && set path "$path $word"
    end
    test "$path" = "$argv[1]"
end
{})",
                     paths, text);
}

}  // namespace kiln::tools
