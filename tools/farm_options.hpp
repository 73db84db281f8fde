// Which jobs a farm does: for each kind the command it runs and the options that may travel, with what their values may
// be. Submitters and workers ask the same table, so a worker does nothing for an item of the queue that `kiln farm
// submit` would not have sent.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/remote/farm_job.hpp"

namespace kiln::tools {

// What an option's value may be. None names a file or folder outside of the job, or a device.
enum class farm_value {
  none,        // the option is a flag
  dim_range,   // NAME=VALUE or NAME=MIN:MAX[:OPT,...]
  dim_values,  // NAME=VALUE[,VALUE...]
  target,      // a row of `kiln targets`: native is another one on every worker
  source,      // one of the job's inputs, not the model
};

struct farm_option {
  std::string_view name;
  farm_value value;
};

struct farm_command {
  const char* command;
  const char* model;  // name of the first input in the job's folder
  const char* result;
  const char* extension;  // of a result where it is fetched to
  std::vector<std::string> result_options;
  std::vector<farm_option> allowed;
};
const farm_command& command_of(farm_kind kind);

// An option of a list and its value, "" for a flag.
struct given_option {
  std::string_view name;
  farm_value kind;
  std::string value;
};

// Reads options as they travel: each from the table, `--name value` or `--name=value`, nothing between them. Throws
// error{unsupported} naming a word that does not travel, error{usage} for a value that is none.
std::vector<given_option> read_farm_options(farm_kind kind, const std::vector<std::string>& options);

// Whether the job is one that the table allows: its options, and that its inputs are called as the command expects.
// Throws error{unsupported, usage}.
void check_farm_job(const farm_job& job);

}  // namespace kiln::tools
