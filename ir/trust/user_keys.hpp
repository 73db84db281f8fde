// The keys of the user who runs Kiln, in $XDG_CONFIG_HOME/kiln or else in ~/.config/kiln:
//
//   key, key.pub    the user's own key pair, created on the first signing (mode 0600, in a folder of mode 0700)
//   trusted_keys    public keys of others, such as a build farm, or a root (trusted_keys.hpp); the user's own key is
//                   trusted unless it is revoked there
//
// A folder or file that another user can change is not used. Nothing here throws: without keys, nothing is signed and
// nobody is trusted. Any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ir/trust/trusted_keys.hpp"

namespace kiln {

class user_keys {
 public:
  // The keys of the user of this process, read on first use. Null if the configuration folder is unknown.
  static std::shared_ptr<user_keys> of_this_user();
  explicit user_keys(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The user's own key, created if it does not exist. Null if it cannot be read or created; why() gives the reason.
  const signing_key* own();
  bool trusts(const public_key& key);
  // The user's own key and those of trusted_keys. Does not create a key.
  trusted_keys trusted();

  const std::filesystem::path& folder() const { return folder_; }
  std::string why();  // why keys could not be used; "" if there was no problem

 private:
  void load();  // reads the existing files
  void make();  // creates a key; other processes may be doing the same
  void refuse(const std::string& what);
  std::filesystem::path folder_;
  std::mutex mutex_;
  bool loaded_ = false, tried_ = false;  // tried_: to create a key
  std::optional<signing_key> own_;
  trusted_keys trusted_;
  std::string why_;
};

}  // namespace kiln
