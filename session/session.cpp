#include "session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "ir/bind_shapes.hpp"
#include "ir/container/container.hpp"
#include "ir/container/stripped.hpp"
#include "ir/error.hpp"
#include "ir/native_program.hpp"
#include "ir/open_dimensions.hpp"
#include "runtime/graph/graph_usage.hpp"
#include "session/general_program.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

chosen_device device_of(const session_options& options) {
  return choose_device(options.device, options.target, static_cast<unsigned>(options.threads), options.pinned,
                       options.allocator);
}

specialization way_of(const session_options& options) {
  const bool lazy = options.specialization == specialization::lazy;
  return lazy && options.tuning != tuning_effort::off ? specialization::eager : options.specialization;
}

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

}  // namespace

session::session(const std::filesystem::path& file, session_options options) {
  if (file.extension() == ".onnx") {
    chosen_device chosen = device_of(options);
    auto begin = clock::now();
    if (!options.import)
      throw error(
          error_kind::unsupported,
          fmt::format("{}: this program opens .kiln files only: compile the model with kiln compile", file.string()));
    portable_ = options.import(file);
    read_ms_ = milliseconds_since(begin);
    std::string name = file.string();
    resources_ =
        std::make_unique<session_resources>(std::move(options), std::move(chosen), std::move(name), nullptr, "");
    find_data_sizes(std::nullopt);
    return;
  }
  const auto begin = clock::now();
  portable_ = read_program(file, consent_of(options.cache), weight_check::when_read);
  const double program_ms = milliseconds_since(begin);
  open(file, std::move(options));
  read_ms_ += program_ms;
}

session::session(program portable, const std::filesystem::path& file, session_options options)
    : portable_(std::move(portable)) {
  open(file, std::move(options));
}

// Opens the device and the caches, with the cache entries and tuning hints that the file holds.
void session::open(const std::filesystem::path& file, session_options options) {
  if (options.device != "host") verifying_.emplace(portable_);
  chosen_device chosen = device_of(options);
  const auto begin = clock::now();
  require_weights(portable_, file);
  std::shared_ptr<const embedded_entries> embedded;
  if (!options.cache.disabled) embedded = embedded_entries::read(file);
  std::string hints = read_extras(file).tuning_hints;
  read_ms_ = milliseconds_since(begin);
  resources_ = std::make_unique<session_resources>(std::move(options), std::move(chosen), file.string(),
                                                   std::move(embedded), std::move(hints));
  find_native_kernels();
  find_data_sizes(file);
}

session::session(program portable, std::string name, session_options options) : portable_(std::move(portable)) {
  chosen_device chosen = device_of(options);
  resources_ = std::make_unique<session_resources>(std::move(options), std::move(chosen), std::move(name), nullptr, "");
  find_data_sizes(std::nullopt);
}

// Native kernels with open dims serve all sizes; no others are made.
void session::find_native_kernels() {
  general_ready_ = !portable_.symbols.empty() && has_native_kernels_only(portable_);
}

// The parts that compute the sizes find their kernels where this session finds its own, in the file, too.
void session::find_data_sizes(std::optional<std::filesystem::path> file) {
  if (!has_data_decided_sizes(portable_)) return;
  data_sizes_.emplace(portable_, [this, file = std::move(file)](program part) -> size_resolver::part_runner {
    session_options options = resources_->options();
    options.observer = [this](const session_event& event) {
      if (std::holds_alternative<session_events::warning>(event)) resources_->report(event);
    };
    options.tuning = tuning_effort::off;
    const auto runs = file ? std::make_shared<session>(std::move(part), *file, std::move(options))
                           : std::make_shared<session>(std::move(part), resources_->name(), std::move(options));
    return [runs](const dim_bindings& sizes, std::span<const literal> inputs) { return runs->at(sizes)->run(inputs); };
  });
}

void session::add_data_sizes(dim_bindings& sizes, const std::map<std::string, literal>& inputs) {
  if (data_sizes_) data_sizes_->add(sizes, inputs);
}

std::shared_ptr<instance> session::find(const dim_bindings& sizes) {
  std::lock_guard lock(mutex_);
  auto found = std::ranges::find_if(instances_, [&](const auto& i) { return i->sizes() == sizes; });
  if (found == instances_.end()) return nullptr;
  instances_.splice(instances_.begin(), instances_, found);
  return instances_.front();
}

std::shared_ptr<instance> session::at(const dim_bindings& sizes) {
  require_dimensions(portable_, sizes, ", or inputs that have them");
  return make(sizes, [&] { return portable_.bind(sizes); });
}

std::shared_ptr<instance> session::at(const dim_bindings& sizes, program bound) {
  return make(sizes, [&] { return std::move(bound); });
}

std::shared_ptr<instance> session::make(const dim_bindings& sizes, const std::function<program()>& bind) {
  if (auto found = find(sizes)) return found;
  std::lock_guard making(making_mutex_);
  if (auto found = find(sizes)) return found;  // another thread made it meanwhile
  std::shared_ptr<instance> made = make_from_template(sizes);
  if (!made) made = make_from_program(bind(), sizes);
  made_any_ = true;
  {
    std::lock_guard lock(mutex_);
    instances_.push_front(made);
  }
  while (auto dropped = first_to_drop()) retire(std::move(dropped));
  return made;
}

// Unloading kernels takes longer than making an instance, so nobody waits for it. Other instances end here: a later one
// goes on with their memory and graphs.
void session::retire(std::shared_ptr<instance> dropped) {
  resources_->report(session_events::instance_dropped{dropped->sizes()});
  if (dropped->has_own_kernels()) background_.add([held = std::move(dropped)](const std::stop_token&) {});
}

// Takes an instance out of those that are kept, if there are too many. The last one stays.
std::shared_ptr<instance> session::first_to_drop() {
  const std::size_t most = std::max<std::size_t>(1, resources_->options().most_instances);
  const bool many_graphs = has_too_many_graphs(resources_->device());
  std::lock_guard lock(mutex_);
  if (instances_.size() < 2) return nullptr;
  auto oldest = std::prev(instances_.end());
  if (instances_.size() <= most) {
    if (!many_graphs) return nullptr;
    // One that somebody holds would keep its graphs.
    while (oldest != instances_.begin() && oldest->use_count() > 1) --oldest;
    if (oldest == instances_.begin()) return nullptr;
  }
  auto result = std::move(*oldest);
  instances_.erase(oldest);
  return result;
}

std::shared_ptr<instance> session::make_from_program(program bound, const dim_bindings& sizes) {
  const specialization way = way_of(resources_->options());
  if (portable_.symbols.empty() || way == specialization::eager) return make_exact(std::move(bound), sizes);
  if (way == specialization::off) return make_general(std::move(bound), sizes);
  return make_lazily(std::move(bound), sizes);
}

std::shared_ptr<instance> session::make_exact(program bound, const dim_bindings& sizes, bool only_cached) {
  return std::make_shared<instance>(*resources_, std::move(bound), sizes, instance_kernels{.only_cached = only_cached});
}

// Guarded by ranged_mutex_.
ranged_kernels& session::general_kernels() {
  const bool host = resources_->device().info().host_memory;
  if (!ranged_kernels_) ranged_kernels_.emplace(portable_, host ? processor::cpu : processor::gpu);
  return *ranged_kernels_;
}

// Guarded by ranged_mutex_. Null if there can be none. With a report, throws error{not_cached} if the options say so.
open_plans* session::general_plans(const jit_options& options, jit_report* report) {
  if (!std::exchange(general_plans_tried_, true)) try {
      program native = general_program(portable_, general_kernels(), options, report);
      general_graphs_ = graph_memory(resources_->records(), resources_->device(), native, resources_->options().graphs);
      general_plans_.emplace(std::move(native), resources_->device(), resources_->planning());
      general_plans_->add_streams(resources_->options().most_instances);
    } catch (const error& e) {
      if (report && e.kind() == error_kind::not_cached) {
        general_plans_tried_ = false;
        throw;
      }
      resources_->warn(std::string(e.what()) + ": each set of sizes is planned on its own");
    }
  return general_plans_ ? &*general_plans_ : nullptr;
}

std::shared_ptr<instance> session::make_from_template(const dim_bindings& sizes) {
  if (!general_ready_ || way_of(resources_->options()) == specialization::eager) return nullptr;
  std::lock_guard lock(ranged_mutex_);
  open_plans* plans = general_plans(resources_->compiling());
  auto planned = plans ? plans->at(sizes) : nullptr;
  if (!planned) return nullptr;
  auto made = std::make_shared<instance>(*resources_, portable_, sizes, std::move(planned), general_graphs_);
  if (way_of(resources_->options()) == specialization::lazy) watch(made);
  return made;
}

// Guarded by ranged_mutex_.
std::shared_ptr<instance> session::make_from_plans(const dim_bindings& sizes, const jit_options& jit,
                                                   jit_report& report) {
  if (resources_->cache() && resources_->options().verify_cache) return nullptr;  // make_general() compares
  jit_report of_others;
  open_plans* plans = general_plans(jit, &of_others);
  auto planned = plans ? plans->at(sizes) : nullptr;
  if (!planned) return nullptr;
  add_report(report, std::move(of_others));
  return std::make_shared<instance>(*resources_, portable_, sizes, std::move(planned), general_graphs_,
                                    std::move(report));
}

// Guarded by ranged_mutex_. Null if a kernel cannot be compiled for these values.
std::shared_ptr<session::exact_plans> session::plans_for(const dim_bindings& exact, exact_kernels which) {
  const auto found = std::ranges::find_if(exact_plans_, [&](const auto& p) { return p->exact == exact; });
  if (found != exact_plans_.end()) {
    exact_plans_.splice(exact_plans_.begin(), exact_plans_, found);
    return exact_plans_.front();
  }
  if (not_ready_.contains(exact)) return nullptr;
  constexpr std::size_t most = 8;
  const bool ready = which == exact_kernels::ready;
  try {
    jit_report report;
    jit_options jit = resources_->compiling_with_progress();
    jit.only_if_cached |= ready;
    if (!ready) resources_->report(session_events::finalizing{});
    program native = general_program(portable_, general_kernels(), jit, &report, exact);
    resources_->report(session_events::finalized{exact, report, report.elapsed_ms});
    graph_memory graphs(resources_->records(), resources_->device(), native, resources_->options().graphs);
    open_plans plans(std::move(native), resources_->device(), resources_->planning());
    exact_plans_.push_front(std::make_shared<exact_plans>(exact, std::move(plans), std::move(graphs)));
  } catch (const error& e) {
    if (e.kind() == error_kind::not_cached && !ready) throw;
    if (e.kind() == error_kind::not_cached) compile_in_background(exact);
    else resources_->warn(std::string(e.what()) + ": kernels for all sizes are used instead");
    not_ready_.insert(exact);
    return nullptr;
  }
  if (exact_plans_.size() > most) exact_plans_.pop_back();
  return exact_plans_.front();
}

// For later sessions: this one goes on with kernels for all sizes, so that its results do not depend on the time.
void session::compile_in_background(const dim_bindings& exact) {
  if (!resources_->cache() || resources_->options().only_cached) return;
  background_.add([this, exact, kernels = &general_kernels()](const std::stop_token& stop) {
    jit_options jit = resources_->compiling();
    jit.progress = [&](std::size_t, std::size_t) {
      if (stop.stop_requested()) throw work_cancelled();
    };
    general_program(portable_, *kernels, jit, nullptr, exact);
  });
}

std::unique_ptr<size_series> session::series(const dim_bindings& sizes, const dim_bindings& room,
                                             const dim_bindings& exact, exact_kernels which) {
  const session_options& options = resources_->options();
  if (way_of(options) != specialization::off || options.tuning != tuning_effort::off) return nullptr;
  const auto begin = clock::now();
  std::lock_guard lock(ranged_mutex_);
  if (!general_ready_) finalize_general(sizes);
  // The plans live as long as a series uses them.
  const std::shared_ptr<exact_plans> own = exact.empty() ? nullptr : plans_for(exact, which);
  if (!own && which == exact_kernels::ready) return nullptr;
  open_plans* plans = own ? &own->plans : general_plans(resources_->compiling());
  auto planned = plans ? plans->series(sizes, room) : std::nullopt;
  if (!planned) return nullptr;
  const auto move = [this, own, plans](plan_series& to, const dim_bindings& next) {
    std::lock_guard moving(ranged_mutex_);
    return plans->move(to, next);
  };
  const graph_memory& graphs = own ? own->graphs : general_graphs_;
  auto made = std::make_unique<size_series>(std::move(*planned), resources_->device(), graphs.options(), move,
                                            [own, &graphs](const execution_context& used) { graphs.keep(used); });
  resources_->report(session_events::loaded{sizes, made->now().report, milliseconds_since(begin)});
  return made;
}

// Guarded by ranged_mutex_.
void session::finalize_general(const dim_bindings& sizes) {
  resources_->report(session_events::finalizing{});
  const jit_report report = general_kernels().finalize(sizes, resources_->compiling_with_progress(),
                                                       [this](const std::string& text) { resources_->warn(text); });
  resources_->report(session_events::finalized{sizes, report, report.elapsed_ms});
  general_ready_ = true;
}

std::shared_ptr<instance> session::make_general(program bound, const dim_bindings& sizes, bool only_cached) {
  if (!only_cached) general_wanted_ = true;
  std::lock_guard lock(ranged_mutex_);
  general_wanted_ = false;
  jit_options jit = resources_->compiling_with_progress();
  jit.only_if_cached |= only_cached;
  if (!only_cached) resources_->report(session_events::finalizing{});
  jit_report report =
      general_kernels().finalize(sizes, jit, [this](const std::string& text) { resources_->warn(text); });
  general_ready_ = true;
  if (auto made = make_from_plans(sizes, jit, report)) return made;
  return std::make_shared<instance>(*resources_, std::move(bound), sizes,
                                    instance_kernels{&*ranged_kernels_, std::move(report), only_cached});
}

// Uses kernels that the cache has: exact kernels before general ones. Otherwise the first set of sizes is compiled
// exactly, which takes less time than compiling general kernels, and the others are not.
std::shared_ptr<instance> session::make_lazily(program bound, const dim_bindings& sizes) {
  std::shared_ptr<instance> made;
  auto if_cached = [&](auto make) {
    try {
      made = (this->*make)(bound.clone(), sizes, true);
    } catch (const error& e) {
      if (e.kind() != error_kind::not_cached) throw;
    }
  };
  const bool has_cache = resources_->cache() != nullptr;
  if (has_cache) if_cached(&session::make_exact);
  if (!made && made_any_) made = make_general(std::move(bound), sizes);
  if (!made && has_cache) if_cached(&session::make_general);
  if (!made) made = make_exact(std::move(bound), sizes);
  watch(made);
  return made;
}

// A model that runs twice will probably be asked for other sizes, whose kernels are made before somebody waits for
// them.
void session::watch(const std::shared_ptr<instance>& made) {
  instance_watch by;
  if (!made_any_)
    by.ran_twice = [this, sizes = made->sizes()] {
      background_.add([this, sizes](const std::stop_token& stop) {
        std::lock_guard lock(ranged_mutex_);
        jit_options jit = resources_->compiling();
        if (resources_->device().info().host_memory) jit.threads = 1;
        jit.progress = [&](std::size_t, std::size_t) {
          if (stop.stop_requested() || general_wanted_) throw work_cancelled();
        };
        general_kernels().finalize(sizes, jit, [this](const std::string& text) { resources_->warn(text); });
        if (open_plans* plans = general_plans(resources_->compiling())) plans->at(sizes);
        general_ready_ = true;
      });
    };
  if (made->lazy().serves_many())
    by.hot = [this, weak = std::weak_ptr(made), state = &made->lazy()] {
      const bool queued = background_.add([weak](const std::stop_token& stop) {
        if (auto hot = weak.lock()) hot->specialize([&] { return stop.stop_requested() || weak.use_count() == 1; });
      });
      if (!queued) state->cool();
    };
  if (by) made->lazy().watch(std::move(by));
}

std::shared_ptr<instance> session::at(std::span<const literal> inputs) {
  const auto parameters = portable_.main().parameters();
  if (inputs.size() != parameters.size())
    throw error(error_kind::usage,
                fmt::format("{} inputs were given, the model has {}", inputs.size(), parameters.size()));
  std::map<std::string, literal> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) given.emplace(module::parameter_name(parameters[i]), inputs[i]);
  dim_bindings sizes = sizes_of_inputs(portable_, given);
  add_data_sizes(sizes, given);
  return at(sizes);
}

std::size_t session::instances() const {
  std::lock_guard lock(mutex_);
  return instances_.size();
}

dim_bindings sizes_of_inputs(const program& p, const std::map<std::string, literal>& given) {
  std::vector<given_shape> shapes;
  for (value v : p.main().parameters())
    if (auto found = given.find(module::parameter_name(v)); found != given.end())
      shapes.push_back({found->first, v.type(), found->second.type()});
  dim_bindings sizes = bind_shapes(shapes);
  for (const auto& [name, data] : given) add_sizes(sizes, bind_values(p.symbols, name, data), name);
  return sizes;
}

}  // namespace kiln
