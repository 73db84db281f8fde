#include "jit/tuning/kernel_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/error.hpp"

namespace kiln {
namespace {

constexpr std::size_t flush_bytes = std::size_t{256} << 20;  // larger than the last-level cache of any device

}  // namespace

struct kernel_bench::form {
  executable exe;
  execution_context context;
  int runs = 0;  // per sample; 0: not calibrated yet
  explicit form(executable e) : exe(std::move(e)), context(exe.make_context({.policy = graph_policy::off})) {}
};

kernel_bench::kernel_bench(const kernel_group& group, std::vector<kernel_input> inputs, std::shared_ptr<device> target,
                           const std::string& target_name, const bench_options& options)
    : owner_(std::move(target)),
      device_(*owner_),
      what_(code_object::make(group.portable.symbol, code_format::native, {}, target_name, group.outputs)),
      inputs_(std::move(inputs)),
      options_(options),
      begin_(device_.make_event()),
      end_(device_.make_event()) {
  if (options_.cold_cache) flush_ = device_.allocate(flush_bytes);
}

kernel_bench::~kernel_bench() = default;

std::size_t kernel_bench::add(const native_bytes& native) {
  content_hash hash = blake3(*native);
  program alone;
  module& m = alone.main();
  alone.add_kernel(hash, native);
  std::vector<value> arguments;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    arguments.push_back(inputs_[i].constant ? m.add_constant(inputs_[i].data)
                                            : m.add_parameter(fmt::format("p{}", i), inputs_[i].data.type()));
  code_object code = what_;
  code.payload = hash.hex();
  value result = m.add(operation(code), arguments);
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < result.producer->outputs().size(); ++i) {
    outputs.push_back({result.producer, i});
    names.push_back(fmt::format("o{}", i));
  }
  m.set_outputs(outputs, names);
  auto made = std::make_unique<form>(load(alone, device_));
  if (!tensors_) {
    first_.emplace(made->exe);
    tensors_.emplace(*first_);
    std::vector<literal> data;
    for (const kernel_input& i : inputs_)
      if (!i.constant) data.push_back(i.data);
    tensors_->upload(data);
  }
  forms_.push_back(std::move(made));
  return forms_.size() - 1;
}

void kernel_bench::drop(std::size_t form) { forms_[form].reset(); }

std::size_t kernel_bench::form_bytes(std::size_t form) const {
  return forms_[form]->exe.plan().arena_bytes + forms_[form]->exe.plan().report.prepared_bytes;
}

std::vector<literal> kernel_bench::outputs(std::size_t form, std::byte fill) {
  for (const auto& span : tensors_->outputs()) {
    std::vector<std::byte> pattern(span.size(), fill);
    device_.upload(span.data(), pattern.data(), pattern.size());
  }
  device_.synchronize();
  kernel_bench::form& f = *forms_[form];
  auto turn = options_.turns ? std::optional(options_.turns->take()) : std::nullopt;
  f.exe.run(f.context, tensors_->inputs(), tensors_->outputs());
  return tensors_->download();
}

// Times `runs` runs in one turn: all between two events, or with cold caches each run between its own events.
double kernel_bench::time_runs(form& f, int runs) {
  auto turn = options_.turns ? std::optional(options_.turns->take()) : std::nullopt;
  device_stream& stream = f.context.stream();
  const bool host = device_.info().host_memory;
  const int together = options_.cold_cache ? 1 : runs;
  double sum = 0;
  for (int done = 0; done < runs; done += together) {
    if (options_.cold_cache) device_.fill_zero(flush_.data(), flush_.size(), &stream);
    begin_->record(&stream);
    for (int k = 0; k < together; ++k) {
      if (host) f.exe.run(f.context, tensors_->inputs(), tensors_->outputs());
      else f.exe.run(f.context, tensors_->inputs(), tensors_->outputs(), stream);
    }
    end_->record(&stream);
    device_.synchronize(&stream);
    sum += end_->milliseconds_since(*begin_);
  }
  return sum / runs;
}

double kernel_bench::sample(std::size_t form, int runs) {
  kernel_bench::form& f = *forms_[form];
  if (runs > 0) return time_runs(f, runs);
  if (f.runs == 0) {
    time_runs(f, 1);  // the first run pays for page faults and cold code
    double once = time_runs(f, 1);
    f.runs = std::clamp(static_cast<int>(std::ceil(options_.sample_ms / std::max(once, 1e-4))), 1, options_.most_runs);
  }
  return time_runs(f, f.runs);
}

}  // namespace kiln
