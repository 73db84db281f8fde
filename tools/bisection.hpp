// The smallest part of a model that is computed wrongly: `kiln verify --bisect`. Nodes are taken away from both ends as
// long as what is left still differs from the reference, each part compiled and run on its own with the reference's
// values. A part has at least one input.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "aot/onnx/model_parts.hpp"
#include "ir/literal.hpp"

namespace kiln::tools {

// Whether the part differs from `values`; an error of a part that cannot be compiled or run counts as no.
using part_differs = std::function<bool(const model_parts::part& part)>;

// Returns the smallest part that differs, as JSON: `nodes`, `file`, `inputs`, `parts_tried`; `nodes` is empty if no
// part differs. The part is written to `file`, its inputs as NAME.npy into the folder of the same name without its
// ending. `values` has every tensor of the model. Throws error{io}.
nlohmann::ordered_json bisect(const model_parts& model, const std::map<std::string, literal>& values,
                              const part_differs& differs, const std::filesystem::path& file);

// A folder of this process that goes with the object. The constructor throws error{io}.
class scratch_folder {
 public:
  scratch_folder();
  ~scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The folder of the inputs.
std::filesystem::path inputs_of_part(const std::filesystem::path& file);
// Writes the inputs of a part as NAME.npy. Throws error{io}.
void write_part_inputs(const model_parts::part& part, const std::map<std::string, literal>& values,
                       const std::filesystem::path& folder);

}  // namespace kiln::tools
