// Folders, keys, a file system that fails on demand and a remote layer in memory, for the cache's tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "ir/error.hpp"
#include "jit/cache/entry.hpp"
#include "jit/cache/file_operations.hpp"
#include "jit/cache/kernel_cache.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {

inline kernel_key key_number(int n) {
  kernel_key key;
  key.payload = blake3("payload " + std::to_string(n)).hex();
  key.inputs = {{element_type::f32, {1, 3, 7}}};
  key.outputs = {{element_type::f16, {3}}};
  key.target = "x86-64-v4 +avx512f";
  key.code = "1";
  key.llvm = "22.1.0";
  return key;
}

// Returns incompressible bytes that differ for every n.
inline std::vector<std::byte> payload_number(int n, std::size_t size = 300) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(n + 1);
  for (std::byte& b : bytes) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    b = static_cast<std::byte>(state);
  }
  return bytes;
}

// Collects the cache's messages instead of logging them.
struct warnings {
  std::vector<std::string> lines;
  std::function<void(const std::string&)> sink() {
    return [this](const std::string& line) { lines.push_back(line); };
  }
};

inline std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// The real file system with injected failures: call number `fail_at` (counted from 1) fails with `code`, or transfers
// one byte in three if `code` is 0. With `and_all_later`, all later calls fail, too. Owners and the clock can be set.
class faulty_file_system final : public file_system {
 public:
  int fail_at = 0, code = EIO;
  bool and_all_later = false;
  // Like a read-only or full file system.
  bool all_writing_fails = false;
  // Reads and writes transfer one byte in three.
  bool short_transfers = false;
  // Like some network file systems.
  bool no_locks = false;
  std::optional<std::uint32_t> pretended_owner;
  std::optional<std::int64_t> pretended_now;
  std::atomic<int> calls{0}, synchronized{0};
  std::atomic<std::uint64_t> bytes_read{0};

  int open_to_read(const path& file, int& descriptor) override {
    return fails() ? code : real_.open_to_read(file, descriptor);
  }
  int create(const path& file, int& descriptor) override {
    return fails() || all_writing_fails ? code : real_.create(file, descriptor);
  }
  int open_to_lock(const path& file, int& descriptor) override {
    return fails() || all_writing_fails ? code : real_.open_to_lock(file, descriptor);
  }
  int lock(int descriptor) override { return fails() || no_locks ? code : real_.lock(descriptor); }
  int read(int descriptor, std::span<std::byte> into, std::size_t& done) override {
    if (fails()) return code;
    const int result = real_.read(descriptor, shortened(into), done);
    if (result == 0) bytes_read += done;
    return result;
  }
  int write(int descriptor, std::span<const std::byte> bytes, std::size_t& done) override {
    return fails() ? code : real_.write(descriptor, shortened(bytes), done);
  }
  int synchronize(int descriptor) override {
    ++synchronized;
    return fails() ? code : real_.synchronize(descriptor);
  }
  int close(int descriptor) override {
    // Like close(2): the descriptor is closed, but the data may be lost.
    bool failed = fails();
    int result = real_.close(descriptor);
    return failed ? code : result;
  }
  int map(int descriptor, std::size_t bytes, const std::byte*& at) override {
    return fails() ? code : real_.map(descriptor, bytes, at);
  }
  void unmap(const std::byte* at, std::size_t bytes) override { real_.unmap(at, bytes); }
  int status(int descriptor, file_status& out) override { return fails() ? code : real_.status(descriptor, out); }
  int status(const path& file, bool follow, file_status& out) override {
    if (fails()) return code;
    int result = real_.status(file, follow, out);
    if (pretended_owner) out.owner = *pretended_owner;
    return result;
  }
  int read_link(const path& link, path& target) override { return fails() ? code : real_.read_link(link, target); }
  int rename(const path& from, const path& to) override {
    return fails() || all_writing_fails ? code : real_.rename(from, to);
  }
  int remove(const path& file) override { return fails() || all_writing_fails ? code : real_.remove(file); }
  int list(const path& folder, std::vector<std::string>& names) override {
    return fails() ? code : real_.list(folder, names);
  }
  int make_folder(const path& folder) override {
    return fails() || all_writing_fails ? code : real_.make_folder(folder);
  }
  int touch(const path& file, std::int64_t modified) override {
    return fails() || all_writing_fails ? code : real_.touch(file, modified);
  }
  std::int64_t now() override { return pretended_now ? *pretended_now : real_.now(); }
  std::uint32_t user() override { return real_.user(); }

 private:
  bool fails() {
    int call = ++calls;
    chosen_ = call == fail_at || (and_all_later && fail_at > 0 && call > fail_at);
    return chosen_ && code != 0;
  }
  template <class Span>
  Span shortened(Span bytes) const {
    return (short_transfers || chosen_) && bytes.size() > 1 ? bytes.first(bytes.size() / 3 + 1) : bytes;
  }
  // Whether the current call fails. Tests that count calls use one thread.
  bool chosen_ = false;
  file_system& real_ = posix_file_system();
};

// A remote layer in this process, which can be made unavailable.
class memory_layer final : public remote_layer {
 public:
  std::map<std::string, std::vector<std::byte>> entries;
  int gets = 0, puts = 0;
  bool down = false;

  std::string name() const override { return "memory://here"; }
  std::optional<std::vector<std::byte>> get(const std::string& entry_name) override {
    ++gets;
    if (down) throw error(error_kind::io, "no route to host");
    auto found = entries.find(entry_name);
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }
  void put(const std::string& entry_name, std::span<const std::byte> entry) override {
    ++puts;
    if (down) throw error(error_kind::io, "no route to host");
    entries[entry_name].assign(entry.begin(), entry.end());
  }
};

}  // namespace kiln::testing
