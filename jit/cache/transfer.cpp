#include "jit/cache/transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ir/error.hpp"
#include "jit/cache/archive.hpp"
#include "jit/cache/eviction.hpp"
#include "jit/cache/file_operations.hpp"
#include "jit/cache/folder.hpp"

namespace kiln {
namespace {

constexpr std::string_view records_prefix = "records/";
constexpr std::uint64_t most_record_bytes = std::uint64_t{16} << 20;

// Whether the name is "records/NAME" with a NAME that is safe as a file name.
bool is_record_name(std::string_view name) {
  if (!name.starts_with(records_prefix)) return false;
  name.remove_prefix(records_prefix.size());
  auto harmless = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() < 200 && name.front() != '.' && std::ranges::all_of(name, harmless);
}

[[noreturn]] void cannot_write(const std::filesystem::path& file, const std::string& why) {
  throw error(error_kind::io, file.string() + ": cannot be written: " + why);
}

// The target of a copy. `find` returns the bytes that exist under a name, or nothing if there are none that can be
// read.
class target {
 public:
  virtual ~target() = default;
  virtual std::vector<std::byte> find(const std::string& name) = 0;
  virtual void put(const std::string& name, std::span<const std::byte> bytes) = 0;
  virtual void close() {}
};

class folder_target final : public target {
 public:
  folder_target(file_system& files, const std::filesystem::path& folder) : files_(files), folder_(folder) {
    if (auto why = prepare_cache_folder(files, std::filesystem::absolute(folder)); !why.empty())
      throw error(error_kind::io, folder.string() + ": " + why);
  }
  std::vector<std::byte> find(const std::string& name) override {
    mapping mapped;
    if (map_file(files_, folder_ / name, mapped, file_owner::this_user)) return {};
    return {mapped.bytes.begin(), mapped.bytes.end()};
  }
  void put(const std::string& name, std::span<const std::byte> bytes) override {
    std::filesystem::path file = folder_ / name;
    if (file.parent_path() != folder_)
      if (int code = files_.make_folder(file.parent_path()); code != 0 && code != EEXIST)
        cannot_write(file.parent_path(), std::strerror(code));
    if (auto failure = write_file(files_, file.parent_path(), file.filename().string(), bytes, {}))
      cannot_write(file, failure.text());
  }

 private:
  file_system& files_;
  std::filesystem::path folder_;
};

class archive_target final : public target {
 public:
  explicit archive_target(const std::filesystem::path& file) : writer_(file) {}
  std::vector<std::byte> find(const std::string&) override { return {}; }
  void put(const std::string& name, std::span<const std::byte> bytes) override { writer_.add(name, bytes); }
  void close() override { writer_.close(); }

 private:
  archive_writer writer_;
};

bool is_sound(std::span<const std::byte> entry, const std::string& name, entry_head& head) {
  try {
    head = verify_entry(entry);
    return name == entry_file_name(head.key, head.kind);
  } catch (const error&) {
    return false;
  }
}

// Takes the members one by one and copies, merges or skips each.
class transfer {
 public:
  transfer(target& to, const transfer_options& options) : to_(to), options_(options) {}

  void take_entry(const std::string& name, std::span<const std::byte> entry) {
    entry_head head, other;
    if (!is_sound(entry, name, head)) {
      ++done.damaged;
      return;
    }
    if (options_.wanted && !options_.wanted(head)) return;
    auto signer = signer_of(entry, head.file_bytes());
    if (options_.consent && !options_.consent->trusts(signer)) {
      ++done.untrusted;
      return;
    }
    const signing_key* key = options_.sign_with ? &*options_.sign_with : nullptr;
    if (!key && !signer && options_.sign_unsigned_with) key = &*options_.sign_unsigned_with;
    if (auto there = to_.find(name); is_sound(there, name, other)) {
      auto theirs = signer_of(there, other.file_bytes());
      if (!options_.sign_with || theirs == options_.sign_with->public_half()) {
        ++done.present;
        return;
      }
    }
    std::vector<std::byte> with_signature;
    if (key && signer != key->public_half()) entry = with_signature = signed_entry(entry, *key);
    to_.put(name, entry);
    ++done.copied;
    done.bytes += entry.size();
  }

  void take_record(const std::string& name, std::span<const std::byte> record) {
    auto there = to_.find(name);
    std::optional<std::vector<std::byte>> result;
    if (options_.merge_record) {
      try {
        result = options_.merge_record(std::filesystem::path(name).filename().string(), record, there);
      } catch (const error&) {
        ++done.damaged;
        return;
      }
    } else if (there.empty()) {
      result.emplace(record.begin(), record.end());
    }
    if (!result || *result == there) return;
    to_.put(name, *result);
    ++done.records;
  }

  cache_copy done;

 private:
  target& to_;
  const transfer_options& options_;
};

void take_folder(file_system& files, const std::filesystem::path& from, file_owner owner, transfer& work) {
  auto entries = list_entries(files, from);
  std::ranges::sort(entries, {}, &entry_file::name);
  for (const entry_file& e : entries) {
    mapping mapped;
    // An entry that cannot be read counts as damaged.
    if (map_file(files, from / e.name, mapped, owner).foreign) ++work.done.untrusted;
    else work.take_entry(e.name, mapped.bytes);
  }
  std::vector<std::string> records;
  if (int code = files.list(from / records_folder_name, records); code != 0 && code != ENOENT)
    throw error(error_kind::io, (from / records_folder_name).string() + ": cannot be listed: " + std::strerror(code));
  std::ranges::sort(records);
  for (const std::string& r : records) {
    std::string name = std::string(records_prefix) + r;
    std::vector<std::byte> bytes;
    if (is_record_name(name) && !read_file(files, from / name, most_record_bytes, bytes)) work.take_record(name, bytes);
  }
}

void take_archive(const std::filesystem::path& from, transfer& work) {
  read_archive(from, [&](const archive_member& m, const std::function<std::vector<std::byte>()>& read) {
    std::string name = m.name.starts_with("./") ? m.name.substr(2) : m.name;  // tar writes such names for a folder
    if (is_entry_name(name)) work.take_entry(name, read());
    else if (is_record_name(name) && m.bytes <= most_record_bytes) work.take_record(name, read());
    else ++work.done.other;
  });
}

}  // namespace

cache_copy copy_cache(const std::filesystem::path& from, const std::filesystem::path& to,
                      const transfer_options& options, file_system& files) {
  file_status status;
  int code = files.status(from, true, status);
  if (code != 0) throw error(error_kind::missing_file, from.string() + ": cannot be read: " + std::strerror(code));
  std::unique_ptr<target> into;
  if (is_archive_name(to)) into = std::make_unique<archive_target>(to);
  else into = std::make_unique<folder_target>(files, to);
  transfer work(*into, options);
  if (status.is_folder)
    take_folder(files, from, options.sign_unsigned_with ? file_owner::this_user : file_owner::anybody, work);
  else take_archive(from, work);
  into->close();
  return work.done;
}

}  // namespace kiln
