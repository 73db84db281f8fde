// Random changes to the sections of well-formed files, signed again, and everything that looks at a program before code
// generation: reading, validating, printing, cloning, binding, writing again.
//
//     mutate_program [--seconds N | --trials N] [--seed N] [FILE.kiln...]
//
// Prints what was read and refused; exit 1 where an error is not a refusal or a program does not survive its own file.
// Worth most in a build with sanitizers. The file under trial lies in the folder it names first, and stays there after
// a crash.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <map>
#include <random>

#include "ir/invalid_shape.hpp"
#include "test/ir/container/forge.hpp"
#include "test/support/paths.hpp"

namespace {

using namespace kiln;
using namespace kiln::testing;
using container::section_kind;
using clock = std::chrono::steady_clock;

constexpr unsigned most_seconds = 20;  // for one file

// Numbers that turn lengths, offsets and dimensions into trouble.
constexpr std::int64_t numbers[] = {0,
                                    1,
                                    -1,
                                    2,
                                    7,
                                    8,
                                    63,
                                    64,
                                    65,
                                    127,
                                    128,
                                    255,
                                    256,
                                    4096,
                                    INT32_MAX,
                                    INT32_MIN,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MAX - 1,
                                    std::int64_t{1} << 32,
                                    std::int64_t{1} << 47,
                                    std::int64_t{1} << 62};

class mutator {
 public:
  explicit mutator(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void edit(std::vector<std::byte>& bytes) {
    if (bytes.empty()) return;
    std::size_t at = below(bytes.size());
    switch (below(8)) {
      case 0: bytes[at] = std::byte(random_()); break;
      case 1: bytes[at] ^= std::byte(1u << below(8)); break;
      case 2: bytes[at] = std::byte(static_cast<int>(bytes[at]) + static_cast<int>(below(9)) - 4); break;
      case 3: overwrite<std::int32_t>(bytes, at); break;
      case 4: overwrite<std::int64_t>(bytes, at); break;
      case 5: {  // a piece of the section over another: names, offsets and dims change places
        std::size_t from = below(bytes.size()),
                    size = std::min({1 + below(16), bytes.size() - at, bytes.size() - from});
        std::memmove(&bytes[at], &bytes[from], size);
        break;
      }
      case 6: std::swap(bytes[at], bytes[below(bytes.size())]); break;
      default:
        if (below(16) == 0) bytes.resize(at);
        else bytes[at] = std::byte("0123456789*+-/()nabm"[below(20)]);  // texts of dimensions
    }
  }

  section_kind choose() {
    constexpr section_kind table[] = {section_kind::program, section_kind::program, section_kind::program,
                                      section_kind::program, section_kind::program, section_kind::weights_index,
                                      section_kind::kernels, section_kind::objects, section_kind::steps};
    return table[below(std::size(table))];
  }

 private:
  template <class T>
  void overwrite(std::vector<std::byte>& bytes, std::size_t at) {
    if (bytes.size() < sizeof(T)) return;
    at = std::min(at, bytes.size() - sizeof(T)) & ~std::size_t{3};
    T number = static_cast<T>(numbers[below(std::size(numbers))]);
    std::memcpy(&bytes[at], &number, sizeof(T));
  }
  std::mt19937_64 random_;
};

bool is_refusal(error_kind kind) {
  return kind == error_kind::truncated || kind == error_kind::corrupted || kind == error_kind::newer_version ||
         kind == error_kind::unsupported || kind == error_kind::untrusted || kind == error_kind::invalid_model;
}

// Every open dimension at its least, at its greatest, and somewhere in between.
void bind_every_way(const program& p) {
  for (int way = 0; way < 3; ++way) {
    dim_bindings bindings;
    for (const auto& [name, range] : p.symbols)
      bindings[name] = way == 0 ? range.min : way == 1 ? range.max : range.min + (range.max - range.min) / 2;
    try {
      program bound = p.bind(bindings);
      bound.validate();
    } catch (const error& e) {
      if (e.kind() != error_kind::usage && e.kind() != invalid_shape && !is_refusal(e.kind())) throw;
    }
  }
}

// Throws whatever is wrong; a refusal of the file is one of its errors.
void look_at(const std::filesystem::path& file, const std::filesystem::path& again) {
  program p = read_program(file);
  read_extras(file);
  inspect(file);
  p.validate();
  std::string text = p.str();
  if (p.clone().str() != text) throw std::runtime_error("the clone is another program");
  bind_every_way(p);
  write_program(p, again);
  if (read_program(again).str() != text) throw std::runtime_error("written and read again it is another program");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Random changes to .kiln files, and what reads them."};
  int seconds = 60;
  std::uint64_t seed = 1;
  std::size_t most = 0;
  std::vector<std::string> files;
  app.add_option("--seconds", seconds, "How long");
  app.add_option("--trials", most, "So many instead, however long they take");
  app.add_option("--seed", seed, "Seed");
  app.add_option("FILE", files, "More .kiln files to start from");
  CLI11_PARSE(app, argc, argv);

  scratch_folder folder;
  fmt::print("seed {}, file under trial {}\n", seed, (folder / "trial.kiln").string());
  std::fflush(stdout);
  write_options extras;
  extras.extras.tuning_hints = "hint";
  extras.extras.objects.push_back({blake3("k"), {{"target", "x86-64-v3"}}, bytes_of("object")});
  write_program(rich_program(), folder / "rich.kiln", extras);
  write_program(small_program(), folder / "small.kiln");
  std::vector<forge> seeds;
  files.insert(files.end(),
               {(kiln::testing::source_folder() / "test/ir/container/golden_v1.bin").string(),
                (folder / "rich.kiln").string(), (folder / "rich.kiln").string(), (folder / "small.kiln").string()});
  for (const std::string& file : files) seeds.emplace_back(file);

  mutator mutate(seed);
  std::map<std::string, std::size_t> count;
  std::size_t trials = 0, failed = 0;
  double slowest = 0;
  auto end = clock::now() + std::chrono::seconds(seconds);
  while (most ? trials < most : clock::now() < end) {
    forge f = seeds[mutate.below(seeds.size())];
    section_kind kind = mutate.choose();
    auto found = std::ranges::find(f.sections, kind, &container::packed_section::kind);
    if (found == f.sections.end()) continue;
    for (std::size_t edits = 1 + mutate.below(4); edits > 0; --edits) mutate.edit(found->stored);
    f.write(folder / "trial.kiln");
    ++trials;
    ::alarm(most_seconds);  // ends the process: a hang must not pass
    auto begin = clock::now();
    try {
      look_at(folder / "trial.kiln", folder / "again.kiln");
      ++count["read"];
    } catch (const error& e) {
      ++count[std::string(name(e.kind()))];
      if (!is_refusal(e.kind())) fmt::print("trial {}: {}: {}\n", trials, name(e.kind()), e.what()), ++failed;
    } catch (const std::exception& e) {
      fmt::print("trial {}: {}\n", trials, e.what());
      ++failed;
    }
    slowest = std::max(slowest, std::chrono::duration<double>(clock::now() - begin).count());
    if (failed > 0) {
      std::filesystem::path kept =
          std::filesystem::temp_directory_path() / fmt::format("kiln-mutated-{}-{}.kiln", seed, trials);
      std::filesystem::copy_file(folder / "trial.kiln", kept, std::filesystem::copy_options::overwrite_existing);
      fmt::print("kept as {}\n", kept.string());
      break;
    }
  }
  ::alarm(0);
  for (const auto& [what, times] : count) fmt::print("{:>14} {}\n", what, times);
  fmt::print("{} passed, {} failed; the slowest took {:.2f} s\n", trials - failed, failed, slowest);
  return failed > 0 || count["read"] == 0;
}
