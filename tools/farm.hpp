// The three halves of `kiln farm` and what they have in common. Each declares its options on a sub-command and returns
// what to do.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "ir/error.hpp"
#include "jit/remote/redis_client.hpp"
#include "tools/command.hpp"

namespace kiln::tools {

struct farm_choice {
  std::string redis = "redis://127.0.0.1:6379";
  double keep_days = 7;
};
void add_farm_options(CLI::App& app, farm_choice& choice);
std::chrono::seconds keep_time(const farm_choice& choice);

// The kind that prints as `text`; internal for text that is none.
error_kind error_kind_named(std::string_view text);

action declare_farm_submit(CLI::App& app);
action declare_farm_worker(CLI::App& app);
action declare_farm_status(CLI::App& app);

}  // namespace kiln::tools
