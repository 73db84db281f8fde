#include "jit/cache/archive.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "ir/container/files.hpp"
#include "ir/container/format.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

// Kernel entries are already compressed. The archive's compression helps with packed weights and the fields.
constexpr const char* compression_level = "3";
constexpr std::size_t block_bytes = 1 << 20, member_header_bytes = 512;

struct descriptor {
  int number;
  ~descriptor() {
    if (number >= 0) ::close(number);
  }
};

using reader = std::unique_ptr<archive, decltype(&::archive_read_free)>;

[[noreturn]] void unreadable(const std::filesystem::path& file, archive* opened) {
  // libarchive reports truncation only in the text of its message.
  std::string why = ::archive_error_string(opened) ? ::archive_error_string(opened) : "not an archive";
  bool truncated = why.find("runcated") != std::string::npos;
  throw error(truncated ? error_kind::truncated : error_kind::corrupted, file.string() + ": " + why);
}

std::vector<std::byte> read_member(const std::filesystem::path& file, archive* opened, std::uint64_t bytes) {
  std::vector<std::byte> data;
  // Read in pieces, so that memory is allocated for the bytes that exist, not for the size that the archive claims.
  while (data.size() < bytes) {
    std::size_t have = data.size(), want = static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, bytes - have));
    data.resize(have + want);
    la_ssize_t count = ::archive_read_data(opened, data.data() + have, want);
    if (count < 0) unreadable(file, opened);
    data.resize(have + static_cast<std::size_t>(count));
    if (count == 0) throw error(error_kind::truncated, file.string() + ": ends within a member");
  }
  return data;
}

}  // namespace

bool is_archive_name(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  return name.ends_with(".tar.zst") || name.ends_with(".tzst");
}

struct archive_writer::handle {
  explicit handle(const std::filesystem::path& file) : file(file) {}
  // libarchive is C code, so an exception is kept here until its call has returned.
  static la_ssize_t write(archive* out, void* data, const void* bytes, std::size_t size) {
    auto& self = *static_cast<handle*>(data);
    try {
      self.file.write({static_cast<const std::byte*>(bytes), size});
      return static_cast<la_ssize_t>(size);
    } catch (const error&) {
      self.problem = std::current_exception();
      ::archive_set_error(out, EIO, "cannot be written");
      return -1;
    }
  }
  container::output_file file;
  std::exception_ptr problem;
  std::unique_ptr<archive, decltype(&::archive_write_free)> writer{::archive_write_new(), &::archive_write_free};
};

archive_writer::archive_writer(const std::filesystem::path& file)
    : handle_(std::make_unique<handle>(file)), file_(file) {
  archive* out = handle_->writer.get();
  if (!out) throw std::bad_alloc();
  bool opened = ::archive_write_set_format_ustar(out) == ARCHIVE_OK &&
                ::archive_write_add_filter_zstd(out) == ARCHIVE_OK &&
                ::archive_write_set_filter_option(out, "zstd", "compression-level", compression_level) == ARCHIVE_OK &&
                ::archive_write_set_bytes_in_last_block(out, 1) == ARCHIVE_OK &&
                ::archive_write_open(out, handle_.get(), nullptr, &handle::write, nullptr) == ARCHIVE_OK;
  if (!opened) failed();
}

archive_writer::~archive_writer() = default;

void archive_writer::failed() const {
  if (handle_->problem) std::rethrow_exception(handle_->problem);
  const char* why = ::archive_error_string(handle_->writer.get());
  throw error(error_kind::io, file_.string() + ": cannot be written: " + (why ? why : "unknown reason"));
}

void archive_writer::add(const std::string& name, std::span<const std::byte> bytes) {
  if (bytes.size() > max_member_bytes)
    throw error(error_kind::unsupported,
                file_.string() + ": " + name +
                    " is larger than 1 GiB, the limit for a member of an archive; export to a folder");
  archive* out = handle_->writer.get();
  std::unique_ptr<archive_entry, decltype(&::archive_entry_free)> entry(::archive_entry_new(), &::archive_entry_free);
  ::archive_entry_set_pathname(entry.get(), name.c_str());
  ::archive_entry_set_filetype(entry.get(), AE_IFREG);
  ::archive_entry_set_perm(entry.get(), 0644);
  ::archive_entry_set_mtime(entry.get(), 0, 0);
  ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
  if (::archive_write_header(out, entry.get()) != ARCHIVE_OK) failed();
  while (!bytes.empty()) {
    la_ssize_t count = ::archive_write_data(out, bytes.data(), std::min(bytes.size(), block_bytes));
    if (count <= 0) failed();
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void archive_writer::close() {
  if (::archive_write_close(handle_->writer.get()) != ARCHIVE_OK) failed();
  handle_->file.commit();
}

void read_archive(
    const std::filesystem::path& file,
    const std::function<void(const archive_member&, const std::function<std::vector<std::byte>()>&)>& take) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  const descriptor from{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status{};
  if (from.number < 0 || ::fstat(from.number, &status) != 0)
    throw error(error_kind::missing_file, file.string() + ": cannot be read: " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw error(error_kind::missing_file, file.string() + ": is not a regular file");
  reader opened(::archive_read_new(), &::archive_read_free);
  if (!opened) throw std::bad_alloc();
  archive* in = opened.get();
  if (::archive_read_support_format_tar(in) != ARCHIVE_OK || ::archive_read_support_filter_zstd(in) != ARCHIVE_OK ||
      ::archive_read_open_fd(in, from.number, block_bytes) != ARCHIVE_OK)
    unreadable(file, in);
  const std::uint64_t most = container::max_expansion(static_cast<std::uint64_t>(status.st_size)) + max_member_bytes;
  for (std::uint64_t total = 0;;) {
    archive_entry* entry = nullptr;
    int code = ::archive_read_next_header(in, &entry);
    if (code == ARCHIVE_EOF) return;
    if (code != ARCHIVE_OK) unreadable(file, in);
    // Check skipped members too, because they are decompressed as well.
    const auto bytes = static_cast<std::uint64_t>(std::max<la_int64_t>(0, ::archive_entry_size(entry)));
    const char* name = ::archive_entry_pathname(entry);
    if (bytes > max_member_bytes)
      throw error(error_kind::corrupted, file.string() + ": member " + (name ? name : "") + " of " +
                                             std::to_string(bytes) + " bytes; members have at most 1 GiB");
    total += bytes + member_header_bytes;
    if (total > most)
      throw error(error_kind::corrupted, file.string() + ": holds more than " + std::to_string(most >> 20) +
                                             " MiB, which is too much for its size");
    if (!name || ::archive_entry_filetype(entry) != AE_IFREG || ::archive_entry_hardlink(entry)) continue;
    take({name, bytes}, [&] { return read_member(file, in, bytes); });
  }
}

}  // namespace kiln
