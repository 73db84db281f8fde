#include "spirv/hip/confined_files.hpp"

#include <llvm/ADT/SmallString.h>
#include <llvm/Support/Path.h>

#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace kiln::spirv {
namespace {

const std::error_code not_there = std::make_error_code(std::errc::no_such_file_or_directory);

class folder_files final : public llvm::vfs::ProxyFileSystem {
 public:
  folder_files(const std::filesystem::path& root, std::set<std::string>& opened)
      : ProxyFileSystem(llvm::vfs::getRealFileSystem()), opened_(opened) {
    llvm::SmallString<256> real;
    if (!ProxyFileSystem::getRealPath(root.string(), real)) root_ = real.str().rtrim('/').str();
    resolved_ = !real.empty();
  }

  llvm::ErrorOr<llvm::vfs::Status> status(const llvm::Twine& path) override {
    auto real = resolved(path);
    if (!real) return not_there;
    auto found = ProxyFileSystem::status(*real);
    if (!found) return not_there;
    // Opening a pipe would wait for its writer.
    if (!found->isRegularFile() && !found->isDirectory()) return not_there;
    return llvm::vfs::Status::copyWithNewName(*found, path);
  }
  bool exists(const llvm::Twine& path) override { return static_cast<bool>(status(path)); }
  llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> openFileForRead(const llvm::Twine& path) override {
    auto found = status(path);
    if (!found || !found->isRegularFile()) return not_there;
    const std::string real = *resolved(path);
    opened_.insert(real.substr(root_.size() + 1));
    return llvm::vfs::File::getWithPath(ProxyFileSystem::openFileForRead(real), path);
  }
  llvm::vfs::directory_iterator dir_begin(const llvm::Twine& path, std::error_code& failed) override {
    failed = not_there;
    return {};
  }
  std::error_code getRealPath(const llvm::Twine& path, llvm::SmallVectorImpl<char>& output) override {
    auto real = resolved(path);
    if (!real) return not_there;
    output.assign(real->begin(), real->end());
    return {};
  }

 private:
  // Returns the path with all links resolved, if it is inside the folder.
  std::optional<std::string> resolved(const llvm::Twine& path) {
    llvm::SmallString<256> real;
    if (!resolved_ || ProxyFileSystem::getRealPath(path, real)) return std::nullopt;
    llvm::StringRef rest = real;
    if (!rest.consume_front(root_) || !(rest.empty() || rest.front() == '/')) return std::nullopt;
    return real.str().str();
  }

  std::string root_;  // without a trailing slash
  bool resolved_ = false;
  std::set<std::string>& opened_;
};

}  // namespace

llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> confined_files(
    const std::filesystem::path& root, llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> memory,
    std::set<std::string>& opened) {
  auto files =
      llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(llvm::makeIntrusiveRefCnt<folder_files>(root, opened));
  files->pushOverlay(std::move(memory));
  return files;
}

}  // namespace kiln::spirv
