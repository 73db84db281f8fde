#include "jit/cache/file_operations.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <utility>

#include "ir/temporary_file.hpp"

namespace kiln {
namespace {

// Give up on a call after this many interruptions (EINTR).
constexpr int max_interruptions = 100;

template <class Call>
int retried(Call call) {
  int code = EINTR;
  for (int attempt = 0; code == EINTR && attempt < max_interruptions; ++attempt) code = call();
  return code;
}

// Owns an open descriptor.
class opened_file {
 public:
  opened_file(file_system& files, int descriptor) : files_(files), descriptor_(descriptor) {}
  ~opened_file() { close(); }
  opened_file(const opened_file&) = delete;
  opened_file& operator=(const opened_file&) = delete;
  int descriptor() const { return descriptor_; }
  int close() {
    if (descriptor_ < 0) return 0;
    int code = files_.close(std::exchange(descriptor_, -1));
    return code == EINTR ? 0 : code;
  }

 private:
  file_system& files_;
  int descriptor_;
};

bool is_foreign(const file_status& status, std::uint32_t user) {
  return (status.owner != user && status.owner != 0) || (status.mode & 0022) != 0;
}

file_failure open_regular(file_system& files, const std::filesystem::path& file, file_owner owner, int& descriptor,
                          file_status& status) {
  if (int code = retried([&] { return files.open_to_read(file, descriptor); })) return {"open", code};
  int code = retried([&] { return files.status(descriptor, status); });
  if (code == 0 && !status.is_regular) code = EINVAL;
  bool foreign = code == 0 && owner == file_owner::this_user && is_foreign(status, files.user());
  if (code == 0 && !foreign) return {};
  files.close(descriptor);
  return foreign ? file_failure{"owner and mode", EPERM, true} : file_failure{"status", code};
}

file_failure write_all(file_system& files, int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t done = 0;
    if (int code = retried([&] { return files.write(descriptor, bytes, done); })) return {"write", code};
    if (done == 0 || done > bytes.size()) return {"write", ENOSPC};
    bytes = bytes.subspan(done);
  }
  return {};
}

file_failure write_temporary(file_system& files, int descriptor, std::span<const std::byte> head,
                             std::span<const std::byte> tail, durability lasting) {
  opened_file opened(files, descriptor);
  if (auto failure = write_all(files, descriptor, head)) return failure;
  if (auto failure = write_all(files, descriptor, tail)) return failure;
  if (lasting == durability::synchronized)
    if (int code = retried([&] { return files.synchronize(descriptor); })) return {"synchronize", code};
  if (int code = opened.close()) return {"close", code};
  return {};
}

}  // namespace

std::string file_failure::text() const { return std::string(call) + ": " + std::strerror(code); }

file_failure read_file(file_system& files, const std::filesystem::path& file, std::size_t limit,
                       std::vector<std::byte>& bytes, file_owner owner) {
  int descriptor = -1;
  file_status status;
  if (auto failure = open_regular(files, file, owner, descriptor, status)) return failure;
  opened_file opened(files, descriptor);
  std::vector<std::byte> data(std::min<std::uint64_t>(status.bytes, limit));
  std::size_t have = 0;
  while (have < data.size()) {
    std::size_t done = 0;
    if (int code = retried([&] { return files.read(descriptor, std::span(data).subspan(have), done); }))
      return {"read", code};
    if (done == 0) break;  // the file is shorter than its status said; the caller detects the truncation
    have += done;
  }
  data.resize(have);
  bytes = std::move(data);
  return {};
}

file_failure map_file(file_system& files, const std::filesystem::path& file, mapping& mapped, file_owner owner) {
  int descriptor = -1;
  file_status status;
  if (auto failure = open_regular(files, file, owner, descriptor, status)) return failure;
  opened_file opened(files, descriptor);
  if (status.bytes == 0) return {"map", ENODATA};
  const std::byte* at = nullptr;
  if (int code = retried([&] { return files.map(descriptor, status.bytes, at); })) return {"map", code};
  auto size = static_cast<std::size_t>(status.bytes);
  mapped.bytes = {at, size};
  mapped.owner = std::shared_ptr<const void>(
      at, [&files, size](const void* p) { files.unmap(static_cast<const std::byte*>(p), size); });
  return {};
}

file_failure copy_file(file_system& files, const std::filesystem::path& file, mapping& copied) {
  std::vector<std::byte> bytes;
  if (auto failure = read_file(files, file, SIZE_MAX, bytes)) return failure;
  if (bytes.empty()) return {"read", ENODATA};
  struct pages {
    explicit pages(std::size_t size) : at(static_cast<std::byte*>(::operator new(size, std::align_val_t{4096}))) {}
    ~pages() { ::operator delete(at, std::align_val_t{4096}); }
    std::byte* at;
  };
  auto owned = std::make_shared<pages>(bytes.size());
  std::memcpy(owned->at, bytes.data(), bytes.size());
  copied.bytes = {owned->at, bytes.size()};
  copied.owner = std::move(owned);
  return {};
}

file_failure write_file(file_system& files, const std::filesystem::path& folder, const std::string& name,
                        std::span<const std::byte> head, std::span<const std::byte> tail, durability lasting) {
  std::filesystem::path temporary;
  int descriptor = -1, code = EEXIST;
  std::random_device random;
  for (int attempt = 0; (code == EEXIST || code == EINTR) && attempt < 16; ++attempt) {
    temporary = folder / (std::string(temporary_prefix) + std::to_string(::getpid()) + "-" + std::to_string(random()) +
                          std::to_string(random()));
    code = files.create(temporary, descriptor);
  }
  if (code != 0) return {"create", code};
  const temporary_file registered(temporary);
  file_failure failure = write_temporary(files, descriptor, head, tail, lasting);
  if (!failure) {
    code = retried([&] { return files.rename(temporary, folder / name); });
    if (code != 0) failure = {"rename", code};
  }
  if (failure) retried([&] { return files.remove(temporary); });
  return failure;
}

}  // namespace kiln
