// Drives a fuzz target where there is no libFuzzer: every file of the corpus, and mutants of it by a fixed seed.
//
//     fuzz_NAME [--mutants N] [--seed N] FOLDER...
//
// An input that ends the process by a signal is written to crash-input in the current folder.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using bytes = std::vector<std::uint8_t>;

bytes read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class mutator {
 public:
  explicit mutator(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return n ? std::uniform_int_distribution<std::size_t>(0, n - 1)(random_) : 0; }

  void edit(bytes& data, const std::vector<bytes>& corpus) {
    const std::size_t at = below(data.size() + 1);
    const auto here = data.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(7)) {
      case 0:  // one bit
        if (at < data.size()) data[at] ^= static_cast<std::uint8_t>(1 << below(8));
        return;
      case 1:  // a byte, often an extreme one
        if (at < data.size()) data[at] = below(2) ? extreme() : static_cast<std::uint8_t>(below(256));
        return;
      case 2:  // a number of 4 or 8 bytes
        for (std::size_t i = 0, n = below(2) ? 4 : 8, b = extreme(); i < n && at + i < data.size(); ++i)
          data[at + i] = i == 0 ? static_cast<std::uint8_t>(below(256)) : static_cast<std::uint8_t>(b);
        return;
      case 3: data.erase(here, here + static_cast<std::ptrdiff_t>(below(data.size() - at + 1))); return;
      case 4: data.insert(here, 1 + below(16), extreme()); return;
      case 5: {  // a piece of another input
        const bytes& other = corpus[below(corpus.size())];
        const std::size_t from = below(other.size() + 1),
                          count = below(std::min<std::size_t>(other.size() - from, 256) + 1);
        data.insert(here, other.begin() + static_cast<std::ptrdiff_t>(from),
                    other.begin() + static_cast<std::ptrdiff_t>(from + count));
        return;
      }
      default:  // a piece of itself
        for (std::size_t i = 0, from = below(data.size() + 1), n = below(64); i < n; ++i)
          if (at + i < data.size() && from + i < data.size()) data[at + i] = data[from + i];
    }
  }

 private:
  std::uint8_t extreme() {
    constexpr std::uint8_t all[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe};
    return all[below(std::size(all))];
  }
  std::mt19937_64 random_;
};

const bytes* running = nullptr;

// Keeps the input that ends the process, and lets it end.
void keep_input(int signal) {
  const int file = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file >= 0 && running && ::write(file, running->data(), running->size()) >= 0) ::close(file);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void run(const bytes& input) {
  running = &input;
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int count, char** words) {
  std::size_t mutants = 0;
  std::uint64_t seed = 1;
  std::vector<bytes> corpus;
  const std::span<char*> arguments(words, static_cast<std::size_t>(count));
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string word = arguments[i];
    if (word == "--mutants" && i + 1 < arguments.size()) mutants = std::stoul(arguments[++i]);
    else if (word == "--seed" && i + 1 < arguments.size()) seed = std::stoul(arguments[++i]);
    else {
      std::vector<std::filesystem::path> files;
      for (const auto& entry : std::filesystem::directory_iterator(word)) files.push_back(entry.path());
      std::ranges::sort(files);
      for (const auto& file : files) corpus.push_back(read(file));
    }
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "no corpus\n");
    return 1;
  }
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(signal, keep_input);
  for (const bytes& input : corpus) run(input);
  run({});
  mutator change(seed);
  for (std::size_t i = 0; i < mutants; ++i) {
    bytes input = corpus[change.below(corpus.size())];
    for (std::size_t edits = 1 + change.below(4); edits > 0; --edits) change.edit(input, corpus);
    run(input);
  }
  std::printf("%zu inputs and %zu mutants\n", corpus.size(), mutants);
}
