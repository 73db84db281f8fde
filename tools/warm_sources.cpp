#include "tools/warm_sources.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "ir/container/container.hpp"
#include "ir/open_dimensions.hpp"
#include "jit/parallel.hpp"
#include "jit/targets.hpp"
#include "tools/model_list.hpp"
#include "tools/model_options.hpp"

namespace kiln::tools {
namespace {

// One file with its targets and dimensions.
struct wanted_file {
  std::string file;
  std::vector<std::string> targets, dims;
};

using values_of_dims = std::map<std::string, std::vector<std::int64_t>>;

// "batch=1,8" → {batch: 1, 8}
values_of_dims parse_dims(const std::vector<std::string>& texts) {
  values_of_dims result;
  for (const std::string& text : texts) {
    auto [name, list] = split_assignment(text, "--dim");
    for (const std::string& one : CLI::detail::split(list, ','))
      result[name].push_back(parse_bindings({name + "=" + one}).at(name));
  }
  return result;
}

// Every combination of values for the program's open dimensions. For dimensions that the command line does not mention,
// the file's recommended values are used.
std::vector<dim_bindings> bindings_of(const program& p, const values_of_dims& given) {
  std::vector<dim_bindings> result{{}};
  std::vector<std::string> open;
  for (const auto& [name, range] : p.symbols) {
    auto found = given.find(name);
    const auto& values = found != given.end() ? found->second : range.optimal;
    if (values.empty()) open.push_back(name);
    std::vector<dim_bindings> longer;
    for (const dim_bindings& b : result)
      for (std::int64_t v : values) longer.push_back(b), longer.back()[name] = v;
    result = std::move(longer);
  }
  if (!open.empty()) throw error(error_kind::usage, are_open(open) + " with --dim NAME=N[,N...]");
  return result;
}

std::vector<wanted_file> wanted_files(const warm_request& request) {
  std::vector<wanted_file> wanted;
  for (const std::string& file : request.files) wanted.push_back({file, request.targets, request.dims});
  if (request.manifest.empty()) return wanted;
  for (const listed_model& m : read_model_list(request.manifest)) {
    wanted_file w{m.file, {}, {}};
    CLI::App line(request.manifest);
    line.add_option("--target", w.targets)->allow_extra_args(false);
    line.add_option("--dim", w.dims)->allow_extra_args(false);
    std::vector<std::string> words(m.options.rbegin(), m.options.rend());
    try {
      line.parse(words);
    } catch (const CLI::ParseError& e) {
      throw error(error_kind::usage, fmt::format("{}: {}: {}", request.manifest, m.file, e.what()));
    }
    if (w.targets.empty()) w.targets = request.targets;
    if (w.dims.empty()) w.dims = request.dims;
    wanted.push_back(std::move(w));
  }
  return wanted;
}

class collector {
 public:
  collector(const warm_request& request, warm_sources& out) : request_(request), out_(out) {}

  void read(const std::vector<wanted_file>& wanted, int threads, const std::stop_token& stop) {
    for (const wanted_file& w : wanted) {
      for (const std::string& t : w.targets) target_number(t);  // reject unknown targets before reading any file
      parse_dims(w.dims);
      out_.files.push_back(w.file);
    }
    parallel_for(wanted.size(), threads, [&](std::size_t i) {
      if (stop.stop_requested()) return;
      try {
        add_file(wanted[i], i);
      } catch (const error& e) {
        std::lock_guard lock(mutex_);
        out_.failures.push_back({wanted[i].file, e.kind(), e.what()});
      }
    });
    std::ranges::sort(out_.failures, {}, &warm_failure::file);
    std::set<std::string> asked;
    for (const wanted_file& w : wanted)
      for (const auto& [name, values] : parse_dims(w.dims)) asked.insert(name);
    for (const std::string& name : asked)
      if (!dims_.contains(name) && out_.failures.empty() && !stop.stop_requested())
        throw error(error_kind::usage, fmt::format("--dim {}: no file has an open dimension of this name", name));
  }

  void replay() {
    for (recorded_miss& miss : read_misses(request_.replay)) {
      try {
        std::size_t source = file_number(miss.file);
        auto payload = payload_of(miss);
        if (!out_.plan.add(miss, payload, source))
          throw error(
              error_kind::unsupported,
              fmt::format("kernel '{}' was recorded by another version of Kiln, whose cache this version cannot fill",
                          miss.symbol));
      } catch (const error& e) {
        out_.failures.push_back({miss.file, e.kind(), e.what()});
      }
    }
  }

 private:
  void add_file(const wanted_file& w, std::size_t number) {
    program p = read_program(w.file, request_.consent);
    {
      std::lock_guard lock(mutex_);
      for (const auto& [name, range] : p.symbols) dims_.insert(name);
      if (!request_.replay.empty())
        for (const auto& [hash, bytes] : p.kernels()) payloads_.emplace(hash.hex(), bytes);
    }
    bool on_device = out_.device != nullptr;
    if (w.targets.empty() && !on_device) {
      if (request_.replay.empty()) throw error(error_kind::usage, "no target: give --target or --device");
      return;
    }
    for (const dim_bindings& b : bindings_of(p, parse_dims(w.dims))) {
      program bound = p.bind(b);
      std::lock_guard lock(mutex_);
      for (const std::string& t : w.targets) out_.plan.add(bound, targets_.at(t), number);
      if (!on_device) continue;
      out_.plan.add(bound, device_target(), number);
      out_.on_device.emplace_back(number, b);
    }
  }

  std::size_t target_number(const std::string& name) {
    auto found = targets_.find(name);
    return found != targets_.end() ? found->second
                                   : targets_[name] = out_.plan.add_target({.target = find_target(name)});
  }

  std::size_t device_target() {
    auto found = targets_.find("");
    return found != targets_.end() ? found->second : targets_[""] = out_.plan.add_target(out_.device->compiling());
  }

  std::size_t file_number(const std::string& file) {
    auto found = std::ranges::find(out_.files, file);
    if (found == out_.files.end()) found = out_.files.insert(out_.files.end(), file);
    return static_cast<std::size_t>(found - out_.files.begin());
  }

  // Finds the payload in the files that were named, else in the file that the recording machine used.
  std::shared_ptr<const std::vector<std::byte>> payload_of(const recorded_miss& miss) {
    auto found = payloads_.find(miss.payload);
    if (found == payloads_.end() && hints_.insert(miss.file).second) {
      std::error_code code;
      if (std::filesystem::is_regular_file(miss.file, code)) {
        const program there = read_program(miss.file, request_.consent);
        for (const auto& [hash, bytes] : there.kernels()) payloads_.emplace(hash.hex(), bytes);
      }
      found = payloads_.find(miss.payload);
    }
    if (found == payloads_.end())
      throw error(
          error_kind::missing_file,
          fmt::format("kernel '{}' is neither in the given files nor in {}: give the .kiln file that contains it",
                      miss.symbol, miss.file));
    return found->second;
  }

  const warm_request& request_;
  warm_sources& out_;
  std::map<std::string, std::size_t> targets_;  // by name; "": the device's target
  std::mutex mutex_;                            // guards out_ and the members below while files are read
  std::set<std::string> dims_;
  std::map<std::string, std::shared_ptr<const std::vector<std::byte>>> payloads_;
  std::set<std::string> hints_;  // files that have already been searched
};

}  // namespace

warm_sources collect_sources(const warm_request& request, int threads, std::stop_token stop) {
  auto wanted = wanted_files(request);
  if (wanted.empty() && request.replay.empty())
    throw error(error_kind::usage,
                "name .kiln files, or a list of them with --manifest, or a log of misses with --replay");
  warm_sources result;
  if (!request.device.empty()) {
    result.device = std::make_unique<chosen_device>(choose_device(request.device, "native"));
    if (!result.device->note.empty()) spdlog::warn(result.device->note);
  }
  collector c(request, result);
  c.read(wanted, threads, stop);
  if (!request.replay.empty()) c.replay();
  return result;
}

}  // namespace kiln::tools
