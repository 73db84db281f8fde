#include "tools/farm_child.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "ir/error.hpp"
#include "ir/json.hpp"
#include "tools/command.hpp"
#include "tools/farm.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::json;

// Indexed by farm_kind.
const std::array<farm_command, 2>& table() {
  static const std::array<farm_command, 2> rows{{
      {"compile", "model.onnx", "result.kiln", ".kiln", {"--output", "result.kiln"}, {"--dim", "--fp16", "--bf16", "--int8", "--int4-weights"}},
      {"warm", "model.kiln", "result.tar.zst", ".tar.zst", {"--archive", "result.tar.zst", "--no-cache"}, {"--dim", "--target"}},
  }};
  return rows;
}

constexpr std::array<action (*)(CLI::App&), 2> declarations{declare_compile, declare_warm};

// The command's action, with the words of its command line. Throws error{usage}.
action parse_command(farm_kind kind, std::vector<std::string> words) {
  CLI::App app(command_of(kind).command);
  action act = declarations[static_cast<std::size_t>(kind)](app);
  std::ranges::reverse(words);  // as CLI11 takes them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    throw error(error_kind::usage, fmt::format("kiln {}: {}", command_of(kind).command, e.what()));
  }
  return act;
}

std::vector<std::string> words_of(farm_kind kind, const std::vector<std::string>& options) {
  const farm_command& c = command_of(kind);
  std::vector<std::string> words{c.model};
  words.insert(words.end(), c.result_options.begin(), c.result_options.end());
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

std::string read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> part;
  for (ssize_t n; (n = read(STDIN_FILENO, part.data(), part.size())) != 0;) {
    if (n < 0 && errno != EINTR) break;
    if (n > 0) text.append(part.data(), static_cast<std::size_t>(n));
  }
  return text;
}

json answer(const std::string& request) {
  try {
    const json document = parse_json(request);
    auto folder = document.at("folder").get<std::string>();
    farm_kind kind;
    if (!parse_enum(document.at("kind").get<std::string>(), kind)) throw error(error_kind::internal, "a farm job of an unknown kind");
    if (chdir(folder.c_str()) != 0) throw error(error_kind::io, fmt::format("{}: cannot be entered", folder));
    setenv("TMPDIR", folder.c_str(), 1);  // what is left there goes with the job's folder
    int code = parse_command(kind, words_of(kind, document.at("options").get<std::vector<std::string>>()))({.json = false, .quiet = true, .verbose = false});
    if (code != 0) throw error(error_kind::compile_failed, fmt::format("kiln {} ended with code {}", command_of(kind).command, code));
    return json::object();
  } catch (const error& e) {
    return {{"kind", name(e.kind())}, {"message", e.what()}};
  } catch (const std::bad_alloc&) {
    return {{"kind", name(error_kind::io)}, {"message", "the job needs more memory than its process may have"}};
  } catch (const std::exception& e) {
    return {{"kind", name(error_kind::internal)}, {"message", e.what()}};
  }
}

}  // namespace

const farm_command& command_of(farm_kind kind) { return table()[static_cast<std::size_t>(kind)]; }

void check_farm_options(farm_kind kind, const std::vector<std::string>& options) {
  const auto& allowed = command_of(kind).allowed;
  for (const std::string& word : options) {
    if (!word.starts_with('-')) continue;
    if (std::ranges::find(allowed, word.substr(0, word.find('='))) == allowed.end())
      throw error(error_kind::unsupported, fmt::format("option {} does not travel to a farm's workers; those that do: {}", word, fmt::join(allowed, " ")));
  }
  parse_command(kind, words_of(kind, options));
}

std::filesystem::path perform_in_child(const farm_job& job, const std::filesystem::path& folder, const child_limits& limits) {
  const farm_command& command = command_of(job.kind);
  std::string request = json{{"kind", enum_name(job.kind)}, {"folder", folder.string()}, {"options", job.options}}.dump();
  auto output = run_in_child({"/proc/self/exe", farm_child_argument}, std::as_bytes(std::span(request)), limits);
  json said;
  try {
    said = parse_json({reinterpret_cast<const char*>(output.data()), output.size()});
  } catch (const error&) {
    throw error(error_kind::compile_failed, fmt::format("the job's process answered with {} bytes that make no sense", output.size()));
  }
  if (said.contains("kind")) throw error(error_kind_named(said["kind"].get<std::string>()), said.value("message", ""));
  return folder / command.result;
}

int run_farm_child() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for the answer any more
  int output = dup(STDOUT_FILENO);
  if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 3;
  spdlog::set_level(spdlog::level::err);
  std::string text = answer(read_standard_input()).dump(-1, ' ', false, json::error_handler_t::replace);
  for (std::string_view left = text; !left.empty();) {
    ssize_t n = write(output, left.data(), left.size());
    if (n < 0 && errno != EINTR) return 3;
    if (n > 0) left.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace kiln::tools
