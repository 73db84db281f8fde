#include "onnxruntime/compiler.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "ir/trust/safe_path.hpp"
#include "onnxruntime/kept_files.hpp"
#include "onnxruntime/kiln_library.hpp"
#include "onnxruntime/own_folder.hpp"

extern "C" {
#include "blake3.h"
}

extern "C" char** environ;

namespace kiln::ort {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t most_kept_bytes = std::uintmax_t{8} << 30;  // of all files in the folder

struct finished {
  int status = 0;
  std::string words;
};

// Runs a program and returns what it wrote: to standard output, or to standard error.
finished run(std::vector<std::string> command, int which) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, which == 1 ? 2 : 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], which);
  std::vector<char*> arguments;
  for (std::string& s : command) arguments.push_back(s.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  finished result;
  std::array<char, 4096> buffer;
  for (ssize_t n = 0; !problem && (n = ::read(ends[0], buffer.data(), buffer.size())) != 0;)
    if (n > 0) result.words.append(buffer.data(), static_cast<std::size_t>(n));
    else if (errno != EINTR) break;
  ::close(ends[0]);
  if (problem)
    throw std::runtime_error("kiln: cannot start '" + command[0] +
                             "': give the option 'compiler' or set KILN_COMPILER (" +
                             std::generic_category().message(problem) + ")");
  while (::waitpid(child, &result.status, 0) < 0 && errno == EINTR) {}
  return result;
}

std::string find_program(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (const char* named = std::getenv("KILN_COMPILER"); named && *named) return named;
  for (const char* place : {"/kiln", "/../bin/kiln", "/../tools/kiln"})
    if (const std::string found = own_folder() + place; ::access(found.c_str(), X_OK) == 0 && !fs::is_directory(found))
      return found;
  return "kiln";
}

// As docs/cache.md has it, with a folder of our own in it.
std::string find_folder(const std::string& wanted) {
  const auto named = [](const char* variable) -> std::string {
    const char* value = std::getenv(variable);
    return value ? value : "";
  };
  std::string cache = wanted.empty() ? named("KILN_CACHE_DIR") : wanted;
  if (cache.empty()) {
    const std::string xdg = named("XDG_CACHE_HOME"), home = named("HOME");
    if (!xdg.starts_with('/') && home.empty())
      throw std::runtime_error("kiln: there is no home and so no cache folder; choose one with the option 'cache'");
    cache = (xdg.starts_with('/') ? xdg : home + "/.cache") + "/kiln";
  }
  return fs::absolute(cache + "/onnxruntime");
}

struct removed_at_end {
  fs::path what;
  ~removed_at_end() {
    std::error_code ignored;
    fs::remove_all(what, ignored);
  }
};

void write(const fs::path& to, const auto& parts) {
  std::ofstream out(to, std::ios::binary);
  for (std::string_view part : parts) out.write(part.data(), static_cast<std::streamsize>(part.size()));
  out.close();
  if (!out) throw std::runtime_error("kiln: " + to.string() + " cannot be written");
}

std::string name_of_contents(const std::vector<std::string_view>& parts) {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  for (std::string_view part : parts) {
    const std::uint64_t length = part.size();
    blake3_hasher_update(&hasher, &length, sizeof length);
    blake3_hasher_update(&hasher, part.data(), part.size());
  }
  std::array<std::uint8_t, 16> digest;
  blake3_hasher_finalize(&hasher, digest.data(), digest.size());
  std::string name;
  for (std::uint8_t byte : digest)
    for (int shift : {4, 0}) name += "0123456789abcdef"[byte >> shift & 15];
  return name;
}

// A file that was cut, by a full disk for example, is made again: an error while it is opened would end the session.
bool is_sound(const fs::path& file) {
  kiln_description* description = nullptr;
  if (!fs::exists(file) || library().description_open(file.c_str(), &description) != KILN_OK) return false;
  library().description_close(description);
  return true;
}

// Makes the cache folder, or checks the one that is there, by the rules of docs/cache.md. Whoever could change a file
// in it would decide what the session computes.
void prepare(const fs::path& folder) {
  make_private_folders(folder);
  std::string why = refuse_path(folder);
  if (why.empty() && !fs::is_directory(folder)) why = "is not a folder";
  if (!why.empty())
    throw std::runtime_error("kiln: the cache folder " + folder.string() + " " + why +
                             "; choose one of your own with the option 'cache'");
}

// A file of the cache that may be used as it is, and is from now on.
bool is_kept(const fs::path& file) {
  if (!refuse_path(file).empty() || !is_sound(file)) return false;
  mark_used(file);
  return true;
}

void keep_file(const fs::path& made, const fs::path& as) {
  fs::rename(made, as);
  mark_used(as);
  make_room(as.parent_path(), most_kept_bytes);
}

// A folder of its own for a file that is being made.
std::string make_work_folder(const fs::path& in) {
  std::string work = (in / "work.XXXXXX").string();
  if (!::mkdtemp(work.data())) throw std::runtime_error("kiln: " + in.string() + " cannot be written");
  return work;
}

// Returns a text that tells this program from another build of the same version, whose importer may differ.
std::string build_of(const std::string& program) {
  std::vector<fs::path> places;
  if (program.find('/') != std::string::npos) places.emplace_back(program);
  else if (const char* path = std::getenv("PATH"))
    for (std::istringstream all(path); all.good();)
      if (std::string folder; std::getline(all, folder, ':')) places.push_back(fs::path(folder) / program);
  for (const fs::path& p : places) {
    std::error_code absent;
    const auto bytes = fs::file_size(p, absent);
    if (absent) continue;
    return std::to_string(bytes) + " " + std::to_string(fs::last_write_time(p, absent).time_since_epoch().count());
  }
  return "";
}

}  // namespace

compiler::compiler(const provider_options& options)
    : program_(find_program(options.compiler)), folder_(find_folder(options.cache)) {
  if (!options.precision.empty()) options_.push_back(options.precision);
  const finished version = run({program_, "--version"}, 1);
  version_ = version.words + build_of(program_);
  const finished listed = run({program_, "ops", "--json"}, 1);
  if (listed.status != 0) {
    const std::string words = run({program_, "ops"}, 2).words;
    throw std::runtime_error("kiln: '" + program_ +
                             "' does not list its operators: it is no compiler of this kind, or cannot start (" +
                             words.substr(0, words.find('\n')) + ")");
  }
  const nlohmann::json operators = nlohmann::json::parse(listed.words).at("operators");
  for (const auto& op : operators)
    known_[{op.at("domain").get<std::string>(), op.at("name").get<std::string>()}] = {
        op.at("min_opset").get<std::int64_t>(), op.at("max_opset").get<std::int64_t>()};
}

std::pair<std::int64_t, std::int64_t> compiler::opsets(const std::string& domain, const std::string& name) const {
  const auto found = known_.find({domain == "ai.onnx" ? "" : domain, name});
  return found == known_.end() ? std::pair<std::int64_t, std::int64_t>(1, 0) : found->second;
}

std::string compiler::compile(const graph_model& model) const {
  std::vector<std::string_view> hashed{version_, model.bytes};
  hashed.insert(hashed.end(), options_.begin(), options_.end());
  hashed.insert(hashed.end(), model.data.begin(), model.data.end());
  const fs::path folder = folder_, result = folder / (name_of_contents(hashed) + ".kiln");
  prepare(folder.parent_path());
  prepare(folder);
  if (is_kept(result)) return result.string();

  const std::string work = make_work_folder(folder);
  const removed_at_end cleaned{work};
  const fs::path source = fs::path(work) / "model.onnx", made = fs::path(work) / "model.kiln";
  write(source, std::array{std::string_view(model.bytes)});
  if (!model.data.empty()) write(fs::path(work) / data_file, model.data);
  std::vector<std::string> command{program_, "compile", source.string(), "-o", made.string(), "--quiet"};
  command.insert(command.end(), options_.begin(), options_.end());
  const finished done = run(std::move(command), 2);
  if (done.status != 0) {
    std::string words = done.words.substr(0, done.words.find('\n'));
    if (words.empty()) words = "the compiler ended without a word";
    throw std::runtime_error(words);
  }
  keep_file(made, result);
  return result.string();
}

std::string compiler::keep(const std::string& contents) const {
  const fs::path folder = folder_, result = folder / (name_of_contents({contents}) + ".kiln");
  prepare(folder.parent_path());
  prepare(folder);
  if (is_kept(result)) return result.string();
  const std::string work = make_work_folder(folder);
  const removed_at_end cleaned{work};
  write(fs::path(work) / "model.kiln", std::array{std::string_view(contents)});
  keep_file(fs::path(work) / "model.kiln", result);
  return result.string();
}

}  // namespace kiln::ort
