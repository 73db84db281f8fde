#include "tools/supplied_tensors.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "aot/onnx/read_tensor.hpp"
#include "ir/error.hpp"
#include "tools/npy.hpp"

namespace kiln::tools {

std::optional<literal> find_supplied(const std::string& folder, const std::string& name, const char* role,
                                     std::size_t index) {
  std::filesystem::path npy = std::filesystem::path(folder) / (file_name(name) + ".npy");
  if (std::filesystem::exists(npy)) return read_npy(npy);
  std::filesystem::path pb = std::filesystem::path(folder) / fmt::format("{}_{}.pb", role, index);
  if (std::filesystem::exists(pb)) return read_onnx_tensor(pb);
  return std::nullopt;
}

std::map<std::string, literal> read_inputs_of_folder(const module& m, const std::string& folder,
                                                     const std::map<std::string, literal>& given) {
  if (std::error_code code; !std::filesystem::is_directory(folder, code))
    throw error(error_kind::missing_file, fmt::format("{}: is not a folder", folder));
  std::map<std::string, literal> result;
  auto parameters = m.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string name(module::parameter_name(parameters[i]));
    if (given.contains(name)) continue;
    auto data = find_supplied(folder, name, "input", i);
    if (!data)
      throw error(error_kind::missing_file,
                  fmt::format("{}: lacks input '{}': put {}.npy or input_{}.pb there, or give --input {}=FILE", folder,
                              name, file_name(name), i, name));
    result.emplace(name, as_type(*data, parameters[i].type().type));
  }
  return result;
}

}  // namespace kiln::tools
