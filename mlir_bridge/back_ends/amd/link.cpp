#include "mlir_bridge/back_ends/amd/link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "ir/error.hpp"
#include "lld/Common/Driver.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace kiln::gpu {
namespace {

[[noreturn]] void throw_system_error(const char* what) {
  throw error(error_kind::io, fmt::format("cannot link a code object: {}: {}", what, std::strerror(errno)));
}

class descriptor {
 public:
  descriptor(int number, const char* made_by) : number_(number) {
    if (number_ < 0) throw_system_error(made_by);
  }
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  ~descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }
  std::string path() const { return fmt::format("/proc/self/fd/{}", number_); }

 private:
  int number_;
};

descriptor memory_file(std::span<const std::byte> bytes) {
  descriptor file(memfd_create("kiln object", MFD_CLOEXEC), "memfd_create");
  while (!bytes.empty()) {
    ssize_t written = write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_system_error("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return file;
}

// A pipe that a thread reads until finish(). LLD writes an output that is not a regular file in one go from memory. For
// a regular file it would create a temporary file in the same folder, which is not possible in /proc/self/fd.
class output_pipe {
 public:
  output_pipe() : output_pipe(open_pipe()) {}
  ~output_pipe() {
    if (reader_.joinable()) stop();
  }

  std::string path() const { return write_end_.path(); }

  std::vector<std::byte> finish() {
    stop();
    drain();
    return std::move(bytes_);
  }

 private:
  static std::array<int, 2> open_pipe() {
    std::array<int, 2> ends;
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw_system_error("pipe2");
    return ends;
  }

  explicit output_pipe(std::array<int, 2> ends)
      : read_end_(ends[0], "pipe2"), write_end_(ends[1], "pipe2"), stop_(eventfd(0, EFD_CLOEXEC), "eventfd") {
    fcntl(read_end_.number(), F_SETFL, O_NONBLOCK);
    reader_ = std::thread([this] { read_until_stopped(); });
  }

  void stop() {
    eventfd_write(stop_.number(), 1);
    reader_.join();
  }

  // Do not read until end of file: LLD may leave its copy of the write end open after an error.
  void read_until_stopped() {
    std::array<pollfd, 2> wanted{pollfd{read_end_.number(), POLLIN, 0}, pollfd{stop_.number(), POLLIN, 0}};
    while (true) {
      if (poll(wanted.data(), wanted.size(), -1) < 0) continue;  // EINTR
      if (wanted[1].revents) return;
      drain();
    }
  }

  void drain() {
    std::array<std::byte, 1 << 16> part;
    for (ssize_t n; (n = read(read_end_.number(), part.data(), part.size())) > 0;)
      bytes_.insert(bytes_.end(), part.begin(), part.begin() + n);
  }

  descriptor read_end_, write_end_, stop_;
  std::vector<std::byte> bytes_;
  std::thread reader_;
};

// Refuses files for which LLD would report a fatal error, because LLD may not be usable after one.
llvm::Error check_tables(const llvm::object::ELF64LEFile& file) {
  auto sections = file.sections();
  if (!sections) return sections.takeError();
  for (const auto& section : *sections) {
    if (auto name = file.getSectionName(section); !name) return name.takeError();
    if (section.sh_type == llvm::ELF::SHT_NOBITS) continue;
    if (auto contents = file.getSectionContents(section); !contents) return contents.takeError();
    if (section.sh_type == llvm::ELF::SHT_RELA) {
      if (auto table = file.getSection(section.sh_link); !table) return table.takeError();
      if (auto target = file.getSection(section.sh_info); !target) return target.takeError();
      if (auto entries = file.relas(section); !entries) return entries.takeError();
    }
    if (section.sh_type != llvm::ELF::SHT_SYMTAB) continue;
    auto names = file.getStringTableForSymtab(section, *sections);
    if (!names) return names.takeError();
    auto symbols = file.symbols(&section);
    if (!symbols) return symbols.takeError();
    const llvm::ArrayRef<llvm::object::ELF64LE::Word> no_indices;  // of sections beyond the 65,279th
    for (const auto& symbol : *symbols) {
      if (auto name = symbol.getName(*names); !name) return name.takeError();
      if (auto home = file.getSection(symbol, *symbols, no_indices); !home) return home.takeError();
    }
  }
  return llvm::Error::success();
}

void check_relocatable(std::span<const std::byte> bytes) {
  auto refuse = [](const std::string& why) {
    throw error(error_kind::compile_failed, "cannot link a code object: " + why);
  };
  auto file = llvm::object::ELF64LEFile::create({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!file) refuse(llvm::toString(file.takeError()));
  const auto& header = file->getHeader();
  if (std::memcmp(header.e_ident, llvm::ELF::ElfMagic, 4) != 0 || header.e_machine != llvm::ELF::EM_AMDGPU ||
      header.e_type != llvm::ELF::ET_REL)
    refuse("the input is no AMDGPU relocatable object");
  if (llvm::Error problem = check_tables(*file)) refuse(llvm::toString(std::move(problem)));
}

// Enables crash recovery during a link, without which LLD ends the process on a fatal error. The signal handlers are
// removed after the link.
struct crash_recovery {
  crash_recovery() { llvm::CrashRecoveryContext::Enable(); }
  ~crash_recovery() { llvm::CrashRecoveryContext::Disable(); }
};

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::vector<std::byte> link_code_object(std::span<const std::byte> relocatable) {
  static std::mutex mutex;
  static bool usable = true;
  check_relocatable(relocatable);
  std::lock_guard lock(mutex);
  if (!usable)
    throw error(error_kind::compile_failed,
                "cannot link a code object: an earlier link damaged LLD's state; start a new process");

  descriptor input = memory_file(relocatable);
  output_pipe output;
  std::string in = input.path(), out = output.path(), words;
  // LLD uses only the calling thread, so no thread pool outlives the link.
  std::array<const char*, 7> arguments{"ld.lld",   "-shared", "--no-undefined", "--threads=1",
                                       in.c_str(), "-o",      out.c_str()};
  llvm::raw_string_ostream stream(words);
  lld::Result result;
  {
    crash_recovery recovery;
    result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  }
  usable = result.canRunAgain;
  std::vector<std::byte> linked = output.finish();
  if (result.retCode != 0 || linked.empty()) {
    while (!words.empty() && words.back() == '\n') words.pop_back();
    throw error(error_kind::compile_failed,
                "cannot link a code object: " + (words.empty() ? fmt::format("LLD returned {}", result.retCode)
                                                               : replace_all(words, in, "the object")));
  }
  return linked;
}

}  // namespace kiln::gpu
