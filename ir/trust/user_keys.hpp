// The keys of the user who runs Kiln, in $XDG_CONFIG_HOME/kiln, else ~/.config/kiln:
//
//   key, key.pub    the user's own pair, made when something is signed for the first time (mode 0600, in a folder of
//   mode 0700) trusted_keys    public keys of others, as of a build farm; the user's own is trusted without being
//   listed
//
// A folder or file that somebody else can change is not used. Nothing here throws: without keys nothing is signed, and
// nobody is trusted. Any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ir/trust/keys.hpp"

namespace kiln {

class user_keys {
 public:
  // Those of this process's user; read when they are needed. Null where no folder can be named.
  static std::shared_ptr<user_keys> of_this_user();
  explicit user_keys(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The user's own key, made where there is none. Null where it cannot be had: why() says why.
  const signing_key* own();
  bool trusts(const public_key& key);
  // The user's own key and those of trusted_keys. Makes no key.
  trusted_keys trusted();

  const std::filesystem::path& folder() const { return folder_; }
  std::string why();  // keys could not be used; "" where all is well

 private:
  void load();  // what is there
  void make();  // a key, in a race with other processes that do the same
  void refuse(const std::string& what);
  std::filesystem::path folder_;
  std::mutex mutex_;
  bool loaded_ = false, tried_ = false;  // to make a key
  std::optional<signing_key> own_;
  trusted_keys trusted_;
  std::string why_;
};

}  // namespace kiln
