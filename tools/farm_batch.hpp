// What one `kiln farm submit` asks for: models × options (× targets for .kiln files), each a job with a name for its
// result; and the way of the models' bytes to the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "jit/remote/blob_store.hpp"
#include "jit/remote/farm_job.hpp"
#include "tools/model_list.hpp"

namespace kiln::tools {

struct batch_job {
  farm_job job;
  std::string id;
  std::string result_name;                             // file to fetch to, without its folder
  std::map<std::string, std::filesystem::path> files;  // where this machine has the inputs, by name
};

struct batch_options {
  std::vector<std::string> variants;  // option lists, each as one text; none: one without options
  std::vector<std::string> targets;   // of .kiln files
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
  bool shared = false;  // workers read the files where they lie
};

// Reads and hashes each file once. Throws error{usage, unsupported, missing_file}: options that do not travel, models
// that are too large, two results of one name.
std::vector<batch_job> make_batch(const std::vector<listed_model>& models, const batch_options& options);

// Stores what workers must fetch and the server does not have.
void upload_inputs(const batch_job& job, blob_store& blobs);

}  // namespace kiln::tools
