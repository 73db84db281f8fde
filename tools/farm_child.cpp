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

#include "ir/container/container.hpp"
#include "ir/error.hpp"
#include "ir/json.hpp"
#include "ir/trust/user_keys.hpp"
#include "jit/own_user.hpp"
#include "jit/sandbox.hpp"
#include "tools/command.hpp"
#include "tools/farm.hpp"
#include "tools/farm_options.hpp"
#include "tools/process_limits.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::json;

// Indexed by farm_kind.
constexpr std::array<action (*)(CLI::App&), 2> declarations{declare_compile, declare_warm};

// Parses the words of the command line and returns the command's action. Throws error{usage}.
action parse_command(farm_kind kind, std::vector<std::string> words) {
  CLI::App app(command_of(kind).command);
  action act = declarations[static_cast<std::size_t>(kind)](app);
  std::ranges::reverse(words);  // CLI11 expects them in reverse order
  try {
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    throw error(error_kind::usage, fmt::format("kiln {}: {}", command_of(kind).command, e.what()));
  }
  return act;
}

// The command line, built only from options that the table of farm_options.hpp accepts.
std::vector<std::string> words_of(farm_kind kind, const std::vector<std::string>& options) {
  const farm_command& c = command_of(kind);
  std::vector<std::string> words{c.model};
  words.insert(words.end(), c.result_options.begin(), c.result_options.end());
  for (const given_option& o : read_farm_options(kind, options)) {
    words.emplace_back(o.name);
    if (o.kind != farm_value::none) words.push_back(o.value);
  }
  return words;
}

// A file to warm comes from somebody else. Native code in it would be used as finished kernels, so it is refused.
void refuse_native_code(const char* file) {
  auto refuse = [&](const char* what) {
    throw error(error_kind::unsupported,
                fmt::format("{}: contains {}; a farm warms only portable files: compile the model again", file, what));
  };
  if (!read_extras(file).objects.empty()) refuse("embedded native kernels");
  program p = read_program(file);
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>(); c && c->format == code_format::native)
        refuse("native code objects");
}

// The key that signs results belongs to the worker's user and may have to be made. A job that will be another user gets
// a copy in its folder, which is removed with it.
void take_along(user_keys& keys, const std::filesystem::path& folder) {
  if (keys.own() == nullptr || geteuid() != 0) return;
  const std::filesystem::path configuration = folder / ".config", copy = configuration / "kiln";
  try {
    if (!std::filesystem::create_directory(configuration))
      throw error(error_kind::unsupported, "the job has an input of the name .config");
    std::filesystem::create_directory(copy);
    for (const std::filesystem::path& made : {configuration, copy})
      std::filesystem::permissions(made, std::filesystem::perms::owner_all);
    for (const char* file : {"key", "key.pub"}) std::filesystem::copy_file(keys.folder() / file, copy / file);
  } catch (const std::filesystem::filesystem_error& e) {
    throw error(error_kind::io, e.what());
  }
  setenv("XDG_CONFIG_HOME", configuration.c_str(), 1);
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
    if (!parse_enum(document.at("kind").get<std::string>(), kind))
      throw error(error_kind::internal, "a farm job of an unknown kind");
    if (chdir(folder.c_str()) != 0) throw error(error_kind::io, fmt::format("{}: cannot be entered", folder));
    if (const auto keys = user_keys::of_this_user(); keys && kind == farm_kind::warm) take_along(*keys, folder);
    enter_own_user(folder);
    enter_folder_sandbox(folder.c_str());
    if (kind == farm_kind::warm) refuse_native_code(command_of(kind).model);
    setenv("TMPDIR", folder.c_str(), 1);  // temporary files are removed together with the job's folder
    int code = parse_command(kind, words_of(kind, document.at("options").get<std::vector<std::string>>()))(
        {.json = false, .quiet = true, .verbose = false});
    if (code != 0)
      throw error(error_kind::compile_failed,
                  fmt::format("kiln {} ended with code {}", command_of(kind).command, code));
    return json::object();
  } catch (const error& e) {
    return {{"kind", name(e.kind())}, {"message", e.what()}};
  } catch (const std::filesystem::filesystem_error& e) {
    return {{"kind", name(error_kind::io)}, {"message", e.what()}};
  } catch (const std::bad_alloc&) {
    return {{"kind", name(error_kind::io)}, {"message", "the job needs more memory than its process may have"}};
  } catch (const std::exception& e) {
    return {{"kind", name(error_kind::internal)}, {"message", e.what()}};
  }
}

}  // namespace

std::filesystem::path perform_in_child(const farm_job& job, const std::filesystem::path& folder,
                                       const child_limits& limits) {
  const farm_command& command = command_of(job.kind);
  std::string request =
      json{{"kind", enum_name(job.kind)}, {"folder", folder.string()}, {"options", job.options}}.dump();
  auto output = run_in_child({"/proc/self/exe", farm_child_argument}, std::as_bytes(std::span(request)), limits);
  json said;
  try {
    said = parse_json({reinterpret_cast<const char*>(output.data()), output.size()});
  } catch (const error&) {
    throw error(error_kind::compile_failed,
                fmt::format("the job's process sent an invalid answer of {} bytes", output.size()));
  }
  if (said.contains("kind")) throw error(error_kind_named(said["kind"].get<std::string>()), said.value("message", ""));
  return folder / command.result;
}

int run_farm_child() {
  process_limits::report_exhausted_memory();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // end with the parent, because nobody would read the answer
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
