#include "onnxruntime/own_folder.hpp"

#include <dlfcn.h>

#include <filesystem>

namespace kiln::ort {

std::string own_folder() {
  Dl_info info{};
  if (!::dladdr(reinterpret_cast<const void*>(&own_folder), &info) || !info.dli_fname) return ".";
  const std::filesystem::path file = std::filesystem::absolute(info.dli_fname);
  return file.parent_path().string();
}

}  // namespace kiln::ort
