#include "ir/trust/user_keys.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "ir/error.hpp"
#include "ir/trust/safe_path.hpp"

namespace kiln {
namespace {

constexpr const char *key_name = "key", *public_name = "key.pub", *trusted_name = "trusted_keys";

bool is_there(const std::filesystem::path& path) {
  struct stat s{};
  return ::lstat(path.c_str(), &s) == 0;
}

// Writes `text` to a file with a unique name. Returns an empty path if that fails; errno tells why.
std::filesystem::path write_temporary(const std::filesystem::path& folder, const std::string& text, mode_t mode) {
  std::random_device random;
  for (int attempt = 0; attempt < 16; ++attempt) {
    auto name =
        folder / (".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(random()) + std::to_string(random()));
    int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return {};
    bool whole =
        ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(descriptor) == 0;
    int code = errno;
    if (::close(descriptor) == 0 && whole) return name;
    ::unlink(name.c_str());
    errno = code;
    return {};
  }
  return {};
}

// Gives the temporary the name `name` unless a file of that name exists. Returns 0 or an errno value such as EEXIST.
// The temporary name is gone afterwards in any case.
int name_once(const std::filesystem::path& temporary, const std::filesystem::path& name) {
  int code = ::link(temporary.c_str(), name.c_str()) == 0 ? 0 : errno;
  // The file system has no hard links.
  if (code != 0 && code != EEXIST)
    code = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, name.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
  ::unlink(temporary.c_str());
  return code;
}

const char* absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value == '/' ? value : nullptr;
}

}  // namespace

std::shared_ptr<user_keys> user_keys::of_this_user() {
  if (const char* folder = absolute_variable("XDG_CONFIG_HOME"))
    return std::make_shared<user_keys>(std::filesystem::path(folder) / "kiln");
  if (const char* home = absolute_variable("HOME"))
    return std::make_shared<user_keys>(std::filesystem::path(home) / ".config" / "kiln");
  return nullptr;
}

void user_keys::refuse(const std::string& what) {
  if (why_.empty()) why_ = what;
}

void user_keys::load() {
  if (std::exchange(loaded_, true) || !is_there(folder_)) return;
  auto usable = [&](const std::filesystem::path& path) {
    std::string why = refuse_path(path);
    if (!why.empty()) refuse(path.string() + " " + why);
    return why.empty();
  };
  if (!usable(folder_)) return;
  auto read = [&](const char* name, auto take) {
    auto file = folder_ / name;
    if (!is_there(file) || !usable(file)) return;
    try {
      take(file);
    } catch (const error& e) {
      refuse(e.what());
    }
  };
  read(key_name, [&](const auto& file) { own_ = signing_key::read(file); });
  read(trusted_name, [&](const auto& file) { trusted_ = trusted_keys::read(file); });
  if (own_) trusted_.insert(own_->public_half());
}

void user_keys::make() {
  if (is_there(folder_ / key_name)) {
    // Either another process has created the key since load(), or the key is unusable and the user must fix it.
    loaded_ = false;
    load();
    return;
  }
  make_private_folders(folder_);
  if (auto why = refuse_path(folder_); !why.empty()) return refuse(folder_.string() + " " + why);
  signing_key fresh = signing_key::generate();
  auto temporary = write_temporary(folder_, fresh.text(), 0600);
  if (temporary.empty()) return refuse((folder_ / key_name).string() + ": cannot be written: " + std::strerror(errno));
  int code = name_once(temporary, folder_ / key_name);
  if (code != 0 && code != EEXIST)
    return refuse((folder_ / key_name).string() + ": cannot be written: " + std::strerror(code));
  // Load the key: it is ours or that of a faster process.
  loaded_ = false;
  load();
  if (!own_) return;
  auto shown = write_temporary(folder_, own_->public_text(), 0644);
  if (!shown.empty()) name_once(shown, folder_ / public_name);
}

const signing_key* user_keys::own() {
  std::lock_guard lock(mutex_);
  load();
  if (!own_ && !std::exchange(tried_, true)) {
    try {
      make();
    } catch (const error& e) {
      refuse(e.what());
    }
  }
  return own_ ? &*own_ : nullptr;
}

bool user_keys::trusts(const public_key& key) {
  std::lock_guard lock(mutex_);
  load();
  return trusted_.contains(key);
}

trusted_keys user_keys::trusted() {
  std::lock_guard lock(mutex_);
  load();
  return trusted_;
}

std::string user_keys::why() {
  std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace kiln
