// `kiln completion SHELL` and `kiln man-pages FOLDER`: from the tables of options of this program.
#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/container/container.hpp"
#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "tools/command.hpp"
#include "tools/shell_completion.hpp"

namespace kiln::tools {
namespace {

struct shell_row {
  const char* name;
  std::string (*script)(const command_description& top);
};
constexpr std::array shells{shell_row{"bash", bash_completion}, shell_row{"zsh", zsh_completion},
                            shell_row{"fish", fish_completion}};

void write_file(const std::filesystem::path& file, const std::string& text) {
  container::output_file out(file);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
}

}  // namespace

action declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const shell_row& row : shells) names.emplace_back(row.name);
  app.add_option("SHELL", *shell, "The script is printed: source it, or put it where the shell looks for completions")
      ->required()
      ->check(CLI::IsMember(names));
  return [shell, top = app.get_parent()](const output_options& output) {
    for (const shell_row& row : shells) {
      if (*shell != row.name) continue;
      const std::string script = row.script(describe(*top));
      output.print({{"shell", *shell}, {"script", script}}, [&] { print_lines(stdout, script); });
    }
    return 0;
  };
}

action declare_man_pages(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  app.group("");  // for those who pack Kiln: --help does not list it
  app.add_option("FOLDER", *folder, "Folder for kiln.1 and kiln-COMMAND.1")->required();
  return [folder, top = app.get_parent()](const output_options& output) {
    const command_description all = describe(*top);
    std::error_code problem;
    std::filesystem::create_directories(*folder, problem);
    if (problem) throw error(error_kind::io, *folder + ": " + problem.message());
    const std::string version(kiln_version());
    auto pages = nlohmann::ordered_json::array();
    auto write = [&](const command_description& command) {
      const std::string name = command.joined('-') + ".1";
      write_file(std::filesystem::path(*folder) / name, man_page(command, version));
      pages.push_back(name);
    };
    write(all);
    for (const command_description& command : all.commands) write(command);
    output.print({{"folder", *folder}, {"pages", pages}}, [&] { print("{} pages in {}\n", pages.size(), *folder); });
    return 0;
  };
}

}  // namespace kiln::tools
