#include "jit/ptxas.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>

#include "ir/error.hpp"
#include "ir/temporary_file.hpp"
#include "jit/child_process.hpp"

namespace kiln {
namespace {

constexpr std::chrono::seconds longest_answer{5};

// Parses "12.8.93" to numbers that can be compared.
std::vector<int> numbers_of(std::string_view version) {
  std::vector<int> numbers;
  for (std::size_t at = 0; at < version.size();) {
    std::size_t end = std::min(version.find('.', at), version.size());
    numbers.push_back(std::atoi(std::string(version.substr(at, end - at)).c_str()));
    at = end + 1;
  }
  return numbers;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::string> version_of(const std::string& executable) {
  try {
    std::string said = text_of(run_in_child({executable, "--version"}, {}, {.time = longest_answer}));
    std::smatch found;
    if (std::regex_search(said, found, std::regex(R"(release \d+\.\d+, V(\d+\.\d+\.\d+))"))) return found[1].str();
  } catch (const error&) {}
  return std::nullopt;
}

// A temporary file that the destructor removes. ptxas opens its output by name, and run_in_child's standard output is a
// socket, which cannot be opened by name.
class output_file {
 public:
  output_file() : path_((std::filesystem::temp_directory_path() / "kiln-ptxas-XXXXXX").string()) {
    int made = mkstemp(path_.data());
    if (made < 0) throw error(error_kind::io, path_ + ": " + std::strerror(errno));
    close(made);
    registered_.emplace(path_);
  }
  ~output_file() { unlink(path_.c_str()); }
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  const std::string& path() const { return path_; }
  std::vector<std::byte> read() const {
    std::ifstream in(path_, std::ios::binary);
    std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
    auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::string path_;
  std::optional<temporary_file> registered_;
};

// The architecture in the .target directive, such as "sm_90a".
std::string architecture_of(const std::string& ptx) {
  std::smatch found;
  if (!std::regex_search(ptx, found, std::regex(R"(\.target\s+(sm_\w+))")))
    throw error(error_kind::compile_failed, "the PTX has no .target directive");
  return found[1].str();
}

}  // namespace

std::vector<std::filesystem::path> ptxas_folders() {
  std::vector<std::filesystem::path> folders;
  const char* variable = std::getenv("PATH");
  std::string path = variable ? variable : "";
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    // Skip empty entries. They mean the working directory, where anybody may have put an executable.
    if (end > at && path[at] == '/') folders.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  folders.emplace_back("/usr/local/cuda/bin");
  return folders;
}

std::optional<ptxas_tool> find_ptxas(std::string_view driver_version,
                                     const std::vector<std::filesystem::path>& folders) {
  for (const std::filesystem::path& folder : folders) {
    std::string executable = (folder / "ptxas").string();
    if (access(executable.c_str(), X_OK) != 0) continue;
    auto version = version_of(executable);
    if (!version) continue;
    std::vector<int> release = numbers_of(*version);
    release.resize(2);
    if (release <= numbers_of(driver_version)) return ptxas_tool{std::move(executable), std::move(*version)};
  }
  return std::nullopt;
}

std::vector<std::byte> assemble_ptx(const ptxas_tool& tool, std::span<const std::byte> object) {
  constexpr std::string_view elf = "\177ELF";
  if (object.size() >= elf.size() && text_of(object.first(elf.size())) == elf) return {object.begin(), object.end()};
  std::string ptx = text_of(object);
  ptx.resize(std::min(ptx.size(), ptx.find('\0')));
  output_file cubin;
  run_in_child({tool.executable, "-arch=" + architecture_of(ptx), "-", "-o", cubin.path()},
               std::as_bytes(std::span(ptx)));
  return cubin.read();
}

assembled_object assemble_ptx_or(const ptxas_tool& tool, std::span<const std::byte> object,
                                 const std::string& tool_name, const std::string& refused_name,
                                 const std::function<std::vector<std::byte>(std::span<const std::byte>)>& driver,
                                 const std::function<void(const std::string&)>& warn) {
  std::string by;
  try {
    return {assemble_ptx(tool, object), tool_name};
  } catch (const error& e) {
    warn(tool.executable + ": " + e.what() + "; the driver compiles it");
    if (e.kind() == error_kind::compile_failed) by = refused_name;
  }
  return {driver(object), std::move(by)};
}

}  // namespace kiln
