#include "tools/bisection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "tools/npy.hpp"

namespace kiln::tools {

scratch_folder::scratch_folder() : path_((std::filesystem::temp_directory_path() / "kiln-part-XXXXXX").string()) {
  if (!::mkdtemp(path_.data())) throw error(error_kind::io, fmt::format("{}: {}", path_, std::strerror(errno)));
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path inputs_of_part(const std::filesystem::path& file) {
  std::filesystem::path folder = file;
  return folder.has_extension() ? folder.replace_extension() : folder += "_inputs";
}

void write_part_inputs(const model_parts::part& part, const std::map<std::string, literal>& values,
                       const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw error(error_kind::io, fmt::format("{}: {}", folder.string(), failed.message()));
  for (const std::string& name : part.inputs) write_npy(folder / (file_name(name) + ".npy"), values.at(name));
}

nlohmann::ordered_json bisect(const model_parts& model, const std::map<std::string, literal>& values,
                              const part_differs& differs, const std::filesystem::path& file) {
  std::size_t begin = 0, end = model.node_count(), tried = 0;
  std::optional<model_parts::part> smallest;
  // A cancelled search and a lost device end the search. Other errors say that a part cannot be compiled or run.
  auto ends_the_search = [](const error& e) {
    return e.kind() == error_kind::io || e.kind() == error_kind::timed_out || e.kind() == error_kind::device_lost;
  };
  auto still = [&](std::size_t first, std::size_t last) {
    if (first >= last) return false;
    ++tried;
    // Small integers may be sizes, which have to be known. As constants they would let the compiler compute what it
    // should compile, so they stay inputs where that works.
    for (bool constant_sizes : {false, true}) try {
        model_parts::part part = model.cut(first, last, values, constant_sizes);
        // In a part of constants alone, the compiler computes everything.
        if (part.inputs.empty() || !differs(part)) return false;
        smallest = std::move(part);
        begin = first, end = last;
        return true;
      } catch (const error& e) {
        if (ends_the_search(e)) throw;
      }
    return false;
  };
  nlohmann::ordered_json result{{"nodes", nlohmann::ordered_json::array()}};
  if (still(begin, end)) {
    for (std::size_t step = (end - begin) / 2; step > 0;) {
      const bool smaller = still(begin, end - step) || still(begin + step, end);
      step = smaller ? std::min(step, (end - begin) / 2) : step / 2;
    }
  }
  result["parts_tried"] = tried;
  if (!smallest) return result;
  for (std::size_t n = begin; n < end; ++n) result["nodes"].push_back(model.node_name(n));
  container::output_file out(file);
  out.write(std::as_bytes(std::span(smallest->bytes)));
  out.commit();
  write_part_inputs(*smallest, values, inputs_of_part(file));
  result["file"] = file.string();
  result["inputs"] = inputs_of_part(file).string();
  return result;
}

}  // namespace kiln::tools
