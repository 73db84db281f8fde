#include "tools/usage_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/nearest_name.hpp"

namespace kiln::tools {
namespace {

// Words of other tools (docs/migrate.md), and what says the same here.
struct foreign_word {
  std::string_view word, here;
};
constexpr std::array foreign_words{
    foreign_word{"help", "kiln COMMAND --help"},
    foreign_word{"version", "kiln --version"},
    // trtexec
    foreign_word{"onnx", "the model is an argument without an option"},
    foreign_word{"saveEngine", "-o FILE of kiln compile"},
    foreign_word{"loadEngine", "the file is an argument without an option"},
    foreign_word{"minShapes", "--dim NAME=MIN:MAX:OPT of kiln compile"},
    foreign_word{"optShapes", "--dim NAME=MIN:MAX:OPT of kiln compile"},
    foreign_word{"maxShapes", "--dim NAME=MIN:MAX:OPT of kiln compile"},
    foreign_word{"shapes", "--shape INPUT:1x3x224x224"},
    foreign_word{"batch", "--dim NAME=SIZE or --shape INPUT:1x3x224x224"},
    foreign_word{"warmUp", "--warmup RUNS"},
    foreign_word{"infStreams", "--concurrency N"},
    foreign_word{"loadInputs", "--load-inputs FOLDER"},
    foreign_word{"dumpOutput", "--dump-output of kiln run"},
    foreign_word{"exportOutput", "--output-dir FOLDER"},
    foreign_word{"exportTimes", "--times FILE"},
    foreign_word{"exportProfile", "--trace FILE"},
    foreign_word{"dumpProfile", "--per-kernel"},
    foreign_word{"useCudaGraph", "--graph on"},
    foreign_word{"stripWeights", "--strip-weights of kiln compile"},
    foreign_word{"refitFromOnnx", "--weights MODEL.onnx"},
    // migraphx-driver
    foreign_word{"input-dim", "--shape INPUT:1x3x224x224"},
    foreign_word{"fill0", "--fill INPUT=0"},
    foreign_word{"fill1", "--fill INPUT=1"},
    foreign_word{"exhaustive-tune", "kiln tune --exhaustive"},
    // IREE
    foreign_word{"module", "the file is an argument without an option"},
    foreign_word{"benchmark_min_time", "--duration 1s"},
    foreign_word{"list_devices", "kiln devices"},
};

// "; here it is ...", or nothing.
std::string said_here(std::string_view word) {
  const auto found = std::ranges::find(foreign_words, word, &foreign_word::word);
  return found == foreign_words.end() ? "" : fmt::format("; here it is: {}", found->here);
}

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

bool has_short_option(const CLI::App& app, const std::string& letter) {
  for (const CLI::App* a = &app; a; a = a->get_parent())
    for (const CLI::Option* option : a->get_options())
      if (option->check_sname(letter)) return true;
  return false;
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
        std::string hint = said_here(name);
        if (hint.empty() && !nearest.empty()) hint = fmt::format("; did you mean '--{}'?", nearest);
        return fmt::format("--{}: {} has no such option{}", name, path_of(*app), hint);
      }
    } else if (word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1]))) {
      if (const std::string letter(1, word[1]); !has_short_option(*app, letter))
        return fmt::format("-{}: {} has no such option", letter, path_of(*app));
    } else if (!word.starts_with("-")) {
      const auto known = commands_of(*app);
      if (known.empty()) continue;  // a value
      if (std::ranges::find(known, word) == known.end()) {
        if (app == &top || app->get_require_subcommand_min() > 0) {
          const std::string hint = said_here(word);
          return fmt::format("{}: {} has no such command{}", word, path_of(*app),
                             hint.empty() ? did_you_mean(word, known) : hint);
        }
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
